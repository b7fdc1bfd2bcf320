//! Abbreviated ids: a part from the beginning or the end that matches exactly one object.

use crate::error::CliError;

/// The kind of object, for error messages.
pub(crate) struct Kind {
    /// Singular, such as `decision`.
    pub(crate) one: &'static str,
    /// Plural, such as `decisions`.
    pub(crate) many: &'static str,
    /// The command that lists the ids.
    pub(crate) list: &'static str,
}

/// Returns true if `given` is the id, its beginning or its end, ignoring case.
pub(crate) fn is_meant(id: &str, given: &str) -> bool {
    let (id, given) = (id.to_ascii_lowercase(), given.trim().to_ascii_lowercase());
    !given.is_empty() && (id.starts_with(&given) || id.ends_with(&given))
}

/// Returns the object whose id is meant. A complete id takes precedence over ids that contain it.
///
/// # Errors
/// The id matches none, or more than one.
pub(crate) fn the_one<T>(
    all: impl IntoIterator<Item = T>,
    given: &str,
    id: impl Fn(&T) -> String,
    kind: &Kind,
) -> Result<T, CliError> {
    let given = given.trim();
    let mut meant: Vec<T> = all
        .into_iter()
        .filter(|one| is_meant(&id(one), given))
        .collect();
    if let Some(exact) = meant
        .iter()
        .position(|one| id(one).eq_ignore_ascii_case(given))
    {
        return Ok(meant.swap_remove(exact));
    }
    match (meant.pop(), meant.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => {
            Err(
                CliError::unknown(format!("{given:?} fits {} {}", more + 1, kind.many))
                    .or_try(format!("more of the id; {} shows them", kind.list)),
            )
        }
        (None, _) => Err(
            CliError::unknown(format!("no {} has the id {given:?}", kind.one)).or_try(kind.list),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: Kind = Kind {
        one: "thing",
        many: "things",
        list: "list things",
    };

    fn check(given: &str, found: Result<&str, &str>) {
        let all = ["abc_1", "abc_12", "def_3"];
        let one = the_one(all, given, |id| (*id).to_owned(), &THINGS);
        match (one, found) {
            (Ok(one), Ok(found)) => assert_eq!(one, found),
            (Err(error), Err(words)) => assert_eq!(error.message, words),
            (one, found) => panic!("{one:?} is not {found:?}"),
        }
    }

    #[test]
    fn a_part_that_fits_one_id_is_enough() {
        check("d", Ok("def_3"));
        check(" DEF ", Ok("def_3"));
        check("_12", Ok("abc_12"));
        check("c_1", Ok("abc_1"));
    }

    #[test]
    fn a_whole_id_is_not_the_beginning_of_a_longer_one() {
        check("abc_1", Ok("abc_1"));
    }

    #[test]
    fn an_id_that_fits_none_or_several_is_an_error() {
        check("abc", Err("\"abc\" fits 2 things"));
        check("ef", Err("no thing has the id \"ef\""));
        check("  ", Err("no thing has the id \"\""));
    }
}
