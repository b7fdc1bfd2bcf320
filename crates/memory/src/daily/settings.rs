//! The folder, name and template of daily notes.

use std::convert::Infallible;
use std::str::FromStr;

use jiff::Zoned;
use serde_json::{Map, Value};

use super::locale::Locale;
use super::moment::Format;
use crate::VaultError;
use crate::vault::NotePath;

/// The default format of Obsidian.
const FORMAT: &str = "YYYY-MM-DD";

/// The place of daily notes. Setting `vault.daily`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Daily {
    /// The vault's own settings: those of the plugin Periodic Notes where it makes the daily notes,
    /// else `.obsidian/daily-notes.json`; Obsidian's defaults where they are silent.
    #[default]
    Auto,
    /// These settings, whatever the vault's own are.
    Fixed(DailySettings),
}

impl FromStr for Daily {
    type Err = Infallible;

    /// Parses `auto`, or the whole path of a daily note as a format of moment.js, such as
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

/// The folder, the name and the template of daily notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailySettings {
    /// The folder, relative to the vault; empty is the vault itself, Obsidian's default.
    pub folder: String,
    /// The name as a format of moment.js, folders included. Default `YYYY-MM-DD`.
    pub format: String,
    /// The note that a new daily note is copied from.
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
    /// Returns the path of the daily note of a time, with the names of a language.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the format makes no path inside the vault.
    pub fn path(&self, time: &Zoned, locale: Locale) -> Result<NotePath, VaultError> {
        NotePath::from_owner(&self.in_folder(&self.name(locale).write(time)))
    }

    /// Returns the format, parsed for one language.
    pub(super) fn name(&self, locale: Locale) -> Format {
        Format::new(&self.format, locale)
    }

    /// Returns the path of a note of that name, which may have folders too.
    pub(super) fn in_folder(&self, name: &str) -> String {
        let folder = self.folder.trim().trim_matches('/');
        let name = name.trim().trim_start_matches('/');
        if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        }
    }

    /// Returns the settings of a JSON object. A key that is missing or of another type has its
    /// default, as in Obsidian.
    pub(super) fn from_keys(keys: &Map<String, Value>, template: &str) -> Self {
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
