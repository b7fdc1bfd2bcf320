//! Checks of configuration files and environment variables.

use std::sync::Arc;

use adjutant_runtime::InMemory;

use super::{Check, Group};
use crate::config::{Checked, Settings, Sources};
use crate::error::CliError;
use crate::wiring;

const GROUP: Group = Group("configuration");

/// Checks each source by itself.
pub(super) fn files(sources: &Sources) -> Vec<Check> {
    sources
        .check()
        .into_iter()
        .flat_map(source_checks)
        .collect()
}

fn source_checks(checked: Checked) -> Vec<Check> {
    let Checked {
        name,
        path,
        exists,
        result,
    } = checked;
    let place = path.map(|path| path.display().to_string());
    // The user's file is opened by `adjutant config edit`; others are named by their path.
    let remedy = match (name, &place) {
        ("config.toml", Some(_)) => "adjutant config edit".to_owned(),
        (_, Some(place)) => format!("edit {place}"),
        (name, None) => format!("unset the one that is named, or correct it ({name})"),
    };
    let shown = place.unwrap_or_else(|| "of this process".to_owned());
    match result {
        Err(error) => {
            let check = Check {
                cause: error.cause.clone(),
                ..GROUP.fail(name, &error.message)
            };
            // The error names the place already; its remedies tell how to change it there.
            let near = error
                .cause
                .filter(|cause| cause.starts_with("did you mean"));
            let check = match near.or_else(|| error.tries.first().cloned()) {
                Some(how) => check.with_remedy(format!("{remedy}    ({how})")),
                None => check.with_remedy(remedy),
            };
            vec![check]
        }
        // A file that does not exist is no problem: every setting has a default.
        Ok(warnings) if warnings.is_empty() => {
            let message = if exists {
                shown
            } else {
                format!("{shown} (not there: nothing is set in it)")
            };
            vec![GROUP.ok(name, message)]
        }
        Ok(warnings) => warnings
            .into_iter()
            .map(|warning| from_warning(name, &warning))
            .collect(),
    }
}

/// Creates the failed check of settings that cannot be loaded, though each source is right by
/// itself.
pub(super) fn not_loaded(error: &CliError) -> Check {
    GROUP.fail_with("settings", error, "adjutant config check")
}

/// Creates a warning from a text that contains its own remedy.
fn from_warning(name: &str, warning: &str) -> Check {
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
        return GROUP
            .warn(name, warning)
            .with_remedy("adjutant config show --origin");
    };
    GROUP.warn(name, message).with_remedy(remedy)
}

/// Checks that the settings fit together: tools exist, and instruction and prices can be read.
pub(super) fn consistency(settings: &Settings) -> Check {
    // The agent is built and not run, so it needs no database; doctor checks that by itself.
    let store = Arc::new(InMemory::new());
    match wiring::agent(settings, wiring::no_model(), store.clone(), store) {
        Ok(_) => GROUP.ok("settings", "they fit together"),
        Err(error) => {
            let mut check = GROUP.fail_with("settings", &error, "adjutant config show --origin");
            // `known_tool` suggests a tool name; the setting to put it into is in the cause.
            if let (Some(cause), Some(near)) = (&error.cause, error.tries.first())
                && cause.starts_with("in agent.")
            {
                check = check.with_remedy(format!("adjutant config edit    ({cause}: {near})"));
            }
            check
        }
    }
}
