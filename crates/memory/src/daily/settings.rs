//! The folder, name and template of daily notes.

use std::convert::Infallible;
use std::str::FromStr;

use jiff::Zoned;
use serde_json::{Map, Value};

use super::locale::Locale;
use super::moment::Format;
use crate::VaultError;
use crate::vault::NotePath;

/// Obsidian's own default.
const FORMAT: &str = "YYYY-MM-DD";

/// Where daily notes are. Setting `vault.daily`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Daily {
    /// As the vault's settings say: those of the plugin Periodic Notes where it makes the daily
    /// notes, else `.obsidian/daily-notes.json`; Obsidian's defaults where they say nothing.
    #[default]
    Auto,
    /// As said here, whatever the vault's settings are.
    Fixed(DailySettings),
}

impl FromStr for Daily {
    type Err = Infallible;

    /// `auto`, or the whole path of a daily note as a format of moment.js, such as
    /// `[Journal]/YYYY/MM-DD`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.trim() {
            "" | "auto" => Self::Auto,
            format => Self::Fixed(DailySettings {
                format: format.to_owned(),
                ..DailySettings::default()
            }),
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
        Self {
            folder: String::new(),
            format: FORMAT.to_owned(),
            template: None,
        }
    }
}

impl DailySettings {
    /// The path of the daily note of this time, with the names of a language.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the format makes no path inside the vault.
    pub fn path(&self, time: &Zoned, locale: Locale) -> Result<NotePath, VaultError> {
        NotePath::of_owner(&self.in_folder(&self.name(locale).write(time)))
    }

    /// The format, read for one language.
    pub(super) fn name(&self, locale: Locale) -> Format {
        Format::new(&self.format, locale)
    }

    /// The path of a note of that name, which may have folders of its own.
    pub(super) fn in_folder(&self, name: &str) -> String {
        let folder = self.folder.trim().trim_matches('/');
        let name = name.trim().trim_start_matches('/');
        if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        }
    }

    /// What is missing or of another kind keeps its default, as in Obsidian.
    pub(super) fn of_keys(keys: &Map<String, Value>, template: &str) -> Self {
        let text = |key: &str| {
            let text = keys.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            folder: text("folder").unwrap_or_default(),
            format: text("format").unwrap_or_else(|| FORMAT.to_owned()),
            template: text(template),
        }
    }
}
