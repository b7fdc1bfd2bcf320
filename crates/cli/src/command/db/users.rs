//! Users whose names an operator should review: almost equal ones, and the local user among others.

use std::collections::BTreeMap;

use adjutant_core::UserId;

/// Describes suspicious names. None is wrong by itself: only someone who knows the users can tell
/// if two names mean one person.
pub(super) fn notices(users: &[UserId]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<&UserId>> = BTreeMap::new();
    for user in users {
        let words: Vec<&str> = user.as_str().split_whitespace().collect();
        alike.entry(words.join(" ")).or_default().push(user);
    }
    let mut notices: Vec<String> = alike
        .into_values()
        .filter(|users| users.len() > 1)
        .map(|users| {
            let names: Vec<String> = users.iter().map(|user| format!("{:?}", user.as_str())).collect();
            format!(
                "{} differ by white space only, and are {} users: earlier versions left out white space around the names \
                 that a proxy or an issuer gave, so the data of them all may be with one",
                names.join(", "),
                users.len()
            )
        })
        .collect();
    let others = users
        .iter()
        .filter(|user| **user != UserId::local())
        .count();
    if others > 0 && others < users.len() {
        notices.push(format!(
            "the user \"local\", who is whoever works on this machine, has data beside {others} others: if the service was open to \
             names from a proxy or an issuer, one of them may have been called so too, and what is there may be theirs in part"
        ));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices_about(names: &[&str]) -> Vec<String> {
        let users: Vec<UserId> = names
            .iter()
            .map(|name| UserId::new(*name).unwrap())
            .collect();
        notices(&users)
    }

    #[test]
    fn names_that_differ_by_white_space_only_are_noted_with_invisible_characters() {
        let found = notices_about(&["ana", "ana ", "ana\u{a0}", "bert", "Ana"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(r#""ana", "ana ", "ana\u{a0}" differ"#),
            "{found:?}"
        );
        assert_eq!(notices_about(&["ana", "bert", "an a"]), [""; 0]);
    }

    #[test]
    fn the_local_user_is_noted_beside_others_only() {
        assert_eq!(notices_about(&["local"]), [""; 0]);
        assert_eq!(notices_about(&["ana", "bert"]), [""; 0]);
        let found = notices_about(&["ana", "bert", "local"]);
        assert!(
            found.len() == 1 && found[0].contains("beside 2 others"),
            "{found:?}"
        );
    }
}
