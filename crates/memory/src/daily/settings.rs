//! `.obsidian/daily-notes.json`: where daily notes are, what they are called, and what they begin with.

use std::convert::Infallible;
use std::str::FromStr;

use jiff::Zoned;
use serde_json::Value;

use super::moment::format_moment;
use crate::VaultError;
use crate::vault::{NotePath, Vault};

/// Obsidian's own default.
const FORMAT: &str = "YYYY-MM-DD";

/// Where daily notes are. Setting `vault.daily`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Daily {
    /// As `.obsidian/daily-notes.json` says; Obsidian's defaults where it says nothing.
    #[default]
    Auto,
    /// As said here, whatever the vault's settings are.
    Fixed(DailySettings),
}

impl FromStr for Daily {
    type Err = Infallible;

    /// `auto`, or the whole path of a daily note as a format of moment.js, such as `[Journal]/YYYY/MM-DD`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.trim() {
            "" | "auto" => Self::Auto,
            format => Self::Fixed(DailySettings { format: format.to_owned(), ..DailySettings::default() }),
        })
    }
}

/// What a vault says about its daily notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailySettings {
    /// The folder, relative to the vault; empty is the vault itself, Obsidian's default.
    pub folder: String,
    /// The name as a format of moment.js, folders included. Default `YYYY-MM-DD`.
    pub format: String,
    /// The note a new daily note begins with.
    pub template: Option<String>,
}

impl Default for DailySettings {
    fn default() -> Self {
        Self { folder: String::new(), format: FORMAT.to_owned(), template: None }
    }
}

impl DailySettings {
    /// The path of the daily note of this time.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the format makes no path inside the vault.
    pub fn path(&self, time: &Zoned) -> Result<NotePath, VaultError> {
        let folder = self.folder.trim().trim_matches('/');
        let name = format_moment(&self.format, time);
        let name = name.trim().trim_start_matches('/');
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        NotePath::parse(&path)
    }
}

/// The settings in force, and what the person should know about them.
pub(crate) fn read(vault: &Vault, daily: &Daily) -> (DailySettings, Vec<String>) {
    match daily {
        Daily::Fixed(settings) => (settings.clone(), Vec::new()),
        Daily::Auto => match vault.obsidian_setting("daily-notes.json") {
            None => (DailySettings::default(), Vec::new()),
            Some(text) => of_json(&text),
        },
    }
}

/// What is missing or of another kind keeps its default, as in Obsidian.
fn of_json(text: &str) -> (DailySettings, Vec<String>) {
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return (DailySettings::default(), Vec::new());
    }
    let Ok(Value::Object(settings)) = serde_json::from_str::<Value>(text) else {
        let notice = "The vault's daily-notes.json cannot be read; Obsidian's defaults were used.";
        return (DailySettings::default(), vec![notice.to_owned()]);
    };
    let text = |key: &str| {
        settings
            .get(key)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let settings = DailySettings {
        folder: text("folder").unwrap_or_default(),
        format: text("format").unwrap_or_else(|| FORMAT.to_owned()),
        template: text("template"),
    };
    (settings, Vec::new())
}
