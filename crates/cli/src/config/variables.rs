//! Settings from environment variables, of the process or of a `.env` file.

use std::collections::BTreeMap;
use std::path::Path;

use adjutant_core::nearest;

use super::KEYS;
use super::key::Key;
use super::layer::{Assignment, Layer, Origin};
use super::value::Kind;
use crate::error::CliError;

/// Parses the variables that are settings. `file`: the `.env` file they are from, if they are not
/// the process's.
///
/// # Errors
/// A value does not fit; the error has the variable's name and the values that do.
pub(super) fn parse(
    variables: &BTreeMap<String, String>,
    file: Option<&Path>,
) -> Result<Layer, CliError> {
    let mut layer = Layer::new();
    // By setting and not by variable: most variables of a process are not ours.
    for key in KEYS.iter() {
        // Our own name is the more specific one, so it wins. An empty variable counts as none: it
        // is how a shell or a container file unsets one.
        let set = key.variables().into_iter().find_map(|name| {
            let text = variables.get(&name)?;
            (!text.trim().is_empty()).then_some((name, text))
        });
        let Some((name, text)) = set else {
            continue;
        };
        // Older programs have LLM_TIMEOUT in seconds.
        let bare_seconds = key.variable == Some(name.as_str());
        let origin = Origin::Variable {
            name: name.clone(),
            file: file.map(Path::to_owned),
        };
        let value = key.kind.parse(text, bare_seconds).ok_or_else(|| {
            // In quotes: a blank or a quotation mark too many is a common mistake in variables.
            let mut message = key.must(&name, &format!("{text:?}"));
            if matches!(key.kind, Kind::Duration { .. }) && bare_seconds {
                message = message.replacen("a time with its unit", "a number of seconds", 1);
            }
            CliError::configuration(message).because(format!("from {origin}"))
        })?;
        layer.push(Assignment { key, value, origin });
    }
    Ok(layer)
}

/// Returns a warning for each variable `ADJUTANT_…` that names no setting, with the nearest one
/// that does.
pub(super) fn misspelt(variables: &BTreeMap<String, String>) -> Vec<String> {
    let known: Vec<String> = KEYS.iter().flat_map(Key::variables).collect();
    variables
        .keys()
        // Read by the crash tests, in builds that have them.
        .filter(|name| name.starts_with("ADJUTANT_") && *name != "ADJUTANT_KILL_AT")
        .filter(|name| !known.contains(name))
        .map(
            |name| match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("variable {name} is no setting; did you mean {near}?"),
                None => format!("variable {name} is no setting (adjutant config show)"),
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_older_timeout_is_seconds_and_ours_has_a_unit() {
        let layer = parse(&set(&[("LLM_TIMEOUT", "7")]), None).unwrap();
        assert_eq!(layer[0].value.to_string(), "7s");
        let layer = parse(
            &set(&[("LLM_TIMEOUT", "7"), ("ADJUTANT_LLM_TIMEOUT", "9s")]),
            None,
        )
        .unwrap();
        assert_eq!(layer[0].value.to_string(), "9s");
        assert!(parse(&set(&[("ADJUTANT_LLM_TIMEOUT", "7")]), None).is_err());
        let error = parse(&set(&[("LLM_TIMEOUT", "soon")]), None).unwrap_err();
        assert!(
            error
                .message
                .starts_with("LLM_TIMEOUT must be a number of seconds from 1s"),
            "{}",
            error.message
        );
    }

    #[test]
    fn an_empty_variable_is_none_and_a_misspelt_one_is_named() {
        assert!(
            parse(&set(&[("LLM_TIMEOUT", " ")]), None)
                .unwrap()
                .is_empty()
        );
        let warnings = misspelt(&set(&[
            ("ADJUTANT_LLM_TIMOUT", "1"),
            ("OTHER", "x"),
            ("ADJUTANT_MODEL", "demo"),
        ]));
        assert_eq!(
            warnings,
            ["variable ADJUTANT_LLM_TIMOUT is no setting; did you mean ADJUTANT_LLM_TIMEOUT?"]
        );
    }
}
