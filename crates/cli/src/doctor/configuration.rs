//! Files and variables that settings come from.

use std::sync::Arc;

use adjutant_runtime::InMemory;

use super::Check;
use crate::config::{Checked, Settings, Sources};
use crate::wiring;

const GROUP: &str = "configuration";

/// Each source by itself.
pub(super) fn files(sources: &Sources) -> Vec<Check> {
    sources.check().into_iter().flat_map(of_source).collect()
}

fn of_source(checked: Checked) -> Vec<Check> {
    let Checked {
        name,
        path,
        there,
        found,
    } = checked;
    let place = path.map(|path| path.display().to_string());
    // The editor opens the person's own file.
    let remedy = match (name, &place) {
        ("config.toml", Some(_)) => "adjutant config edit".to_owned(),
        (_, Some(place)) => format!("edit {place}"),
        (name, None) => format!("unset the one that is named, or correct it ({name})"),
    };
    let shown = place.unwrap_or_else(|| "of this process".to_owned());
    match found {
        Err(error) => {
            let mut check = Check::fail(GROUP, name, error.message.clone());
            check.cause.clone_from(&error.cause);
            // Where it is was found; what to do is to change it there, and how is said in the
            // error.
            let near = error
                .cause
                .filter(|cause| cause.starts_with("did you mean"));
            let check = match near.or_else(|| error.tries.first().cloned()) {
                Some(how) => check.mend(format!("{remedy}    ({how})")),
                None => check.mend(remedy),
            };
            vec![check]
        }
        Ok(warnings) if warnings.is_empty() => {
            let message = if there {
                shown
            } else {
                format!("{shown} (not there: nothing is set in it)")
            };
            vec![Check::ok(GROUP, name, message)]
        }
        Ok(warnings) => warnings
            .into_iter()
            .map(|warning| of_warning(name, &warning))
            .collect(),
    }
}

/// A warning whose way out stands in it.
fn of_warning(name: &str, warning: &str) -> Check {
    let (message, remedy) = if let Some((message, command)) = warning.split_once(": chmod ") {
        (message.to_owned(), format!("chmod {command}"))
    } else if let Some((message, near)) = warning.split_once("; did you mean ") {
        (
            message.to_owned(),
            format!("call it {}", near.trim_end_matches('?')),
        )
    } else if let Some((message, command)) = warning.rsplit_once(" (adjutant ") {
        (
            message.to_owned(),
            format!("adjutant {}", command.trim_end_matches(')')),
        )
    } else {
        return Check::warn(GROUP, name, warning).mend("adjutant config show --origin");
    };
    Check::warn(GROUP, name, message).mend(remedy)
}

/// Whether the settings fit together: tools that there are, an instruction and prices that can be
/// read.
pub(super) fn sensible(settings: &Settings) -> Check {
    let store = Arc::new(InMemory::new());
    match wiring::agent(settings, wiring::no_model(), store.clone(), store) {
        Ok(_) => Check::ok(GROUP, "settings", "they fit together"),
        Err(error) => {
            let mut check =
                Check::of_error(GROUP, "settings", &error, "adjutant config show --origin");
            // `known_tool` names the tool that is meant; the place to put it is in the cause.
            if let (Some(cause), Some(near)) = (&error.cause, error.tries.first())
                && cause.starts_with("in agent.")
            {
                check = check.mend(format!("adjutant config edit    ({cause}: {near})"));
            }
            check
        }
    }
}
