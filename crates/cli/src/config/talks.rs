//! `[sessions]` and `[notify]`: the conversation that `-c` goes on with, and the program that is
//! run when a question waits.

use super::Values;
use super::key::{Key, Kind, Value, key};

/// The conversations among which `-c` looks for the newest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    #[default]
    Global,
    /// Those that began in the working directory.
    Folder,
}

const FOLDER: &str = "folder";

/// The settings of the sections. None of them may stand in a project's file: one runs a program.
pub(super) fn keys() -> Vec<Key> {
    vec![
        Key {
            default: |_| Some(Value::Text("global".to_owned())),
            ..key("sessions.continue", Kind::Word(&["global", FOLDER]))
        },
        Key {
            unset: "nothing is run",
            ..key("notify.command", Kind::List)
        },
    ]
}

/// Returns what `sessions.continue` says.
pub(super) fn scope(values: &Values) -> Scope {
    match values.text("sessions.continue").as_deref() {
        Some(FOLDER) => Scope::Folder,
        _ => Scope::Global,
    }
}
