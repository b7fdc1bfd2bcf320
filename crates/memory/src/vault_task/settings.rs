//! The settings of Obsidian's plugin Tasks that decide how tasks are read and written.

use serde_json::Value;

use crate::task_line::{Style, TaskFormat};
use crate::vault::Vault;

/// The plugin's settings file, below `.obsidian`.
const FILE: &str = "plugins/obsidian-tasks-plugin/data.json";

/// The status of a task, by the character between its brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The task is open: `[ ]`, and any character that has no other meaning.
    Todo,
    /// The task is begun and not finished: `[/]`.
    InProgress,
    /// The task is completed: `[x]` or `[X]`.
    Done,
    /// The task was given up: `[-]`.
    Cancelled,
    /// The line is a checkbox and no task, by the owner's settings.
    NonTask,
}

impl TaskStatus {
    /// Returns true if nothing is left to be done.
    #[must_use]
    pub fn is_closed(self) -> bool {
        match self {
            Self::Todo | Self::InProgress => false,
            Self::Done | Self::Cancelled | Self::NonTask => true,
        }
    }
}

/// The settings of the plugin, or its defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PluginSettings {
    pub(crate) style: Style,
    /// The meanings that the owner has given to characters.
    statuses: Vec<(char, TaskStatus)>,
}

impl PluginSettings {
    /// Loads the settings. One that is missing, or of another type, has its default, as in the
    /// plugin.
    pub(crate) fn load(vault: &Vault) -> Self {
        let text = vault.obsidian_setting(FILE);
        let keys = text
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .unwrap_or_default();
        let flag =
            |key: &str, default: bool| keys.get(key).and_then(Value::as_bool).unwrap_or(default);
        let dataview = keys.get("taskFormat").and_then(Value::as_str) == Some("dataview");
        let global_filter = keys
            .get("globalFilter")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let groups = ["coreStatuses", "customStatuses"].into_iter();
        let statuses = groups
            .filter_map(|group| keys.get("statusSettings")?.get(group)?.as_array())
            .flatten()
            .filter_map(|status| {
                let mut symbol = status.get("symbol")?.as_str()?.chars();
                let meaning = meaning(status.get("type")?.as_str()?);
                // The brackets hold one character, so other symbols cannot occur.
                let only = symbol.next().filter(|_| symbol.next().is_none());
                only.map(|symbol| (symbol, meaning))
            })
            .collect();
        let style = Style {
            format: if dataview {
                TaskFormat::Dataview
            } else {
                TaskFormat::Emoji
            },
            global_filter: global_filter.to_owned(),
            done_date: flag("setDoneDate", true),
            created_date: flag("setCreatedDate", false),
            next_below: flag("recurrenceOnNextLine", false),
            drop_scheduled: flag("removeScheduledDateOnRecurrence", false),
        };
        Self { style, statuses }
    }

    /// Returns the status for a character between brackets. A character without a meaning is that
    /// of an open task.
    pub(crate) fn status(&self, symbol: char) -> TaskStatus {
        let known = self
            .statuses
            .iter()
            .find(|(known, _)| *known == symbol)
            .map(|(_, status)| *status);
        known.unwrap_or(match symbol {
            'x' | 'X' => TaskStatus::Done,
            '/' => TaskStatus::InProgress,
            '-' => TaskStatus::Cancelled,
            // The plugin too takes an unknown symbol for that of an open task.
            _ => TaskStatus::Todo,
        })
    }
}

fn meaning(kind: &str) -> TaskStatus {
    match kind {
        "IN_PROGRESS" => TaskStatus::InProgress,
        "DONE" => TaskStatus::Done,
        "CANCELLED" => TaskStatus::Cancelled,
        "NON_TASK" => TaskStatus::NonTask,
        _ => TaskStatus::Todo,
    }
}
