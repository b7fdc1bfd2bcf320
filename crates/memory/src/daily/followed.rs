//! Whose settings of daily notes are followed: ours, those of Periodic Notes, or Obsidian's own.

use jiff::Zoned;

use super::guess::guess;
use super::locale::Locale;
use super::periodic::{self, Periodic};
use super::settings::{Daily, DailySettings};
use super::template::has_code;
use crate::VaultError;
use crate::vault::{NotePath, Vault};

/// Whose settings are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DailySource {
    /// Setting `vault.daily`.
    Setting,
    /// The community plugin Periodic Notes.
    PeriodicNotes,
    /// Obsidian's own daily notes, or its defaults.
    Core,
}

/// The daily notes of a vault on a day: the settings in force, and what the person should know
/// about them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DailyNotes {
    /// Folder, format and template.
    pub settings: DailySettings,
    /// Whose settings these are.
    pub source: DailySource,
    /// Language of the names.
    pub locale: Locale,
    /// Settings that cannot be read, and guesses that are not certain.
    pub notices: Vec<String>,
}

impl DailyNotes {
    /// The path of the daily note of this time.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the format makes no path inside the vault.
    pub fn path(&self, time: &Zoned) -> Result<NotePath, VaultError> {
        self.settings.path(time, self.locale)
    }

    /// Returns whether the path depends on the language.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.settings.name(self.locale).has_names()
    }
}

impl Vault {
    /// Reads where daily notes are. Without a language, the one that the notes there are named in
    /// is found.
    #[must_use]
    pub fn daily_notes(&self, daily: &Daily, locale: Option<Locale>, today: &Zoned) -> DailyNotes {
        let (settings, source, mut notices) = match daily {
            Daily::Fixed(settings) => (settings.clone(), DailySource::Setting, Vec::new()),
            Daily::Auto => self.own_daily_notes(),
        };
        let locale = locale.unwrap_or_else(|| {
            let guess = guess(self, &settings, today);
            notices.extend(guess.notice);
            guess.locale
        });
        DailyNotes {
            settings,
            source,
            locale,
            notices,
        }
    }

    /// Returns whether the template has code of the plugin Templater, which is not run here; `None`
    /// if it cannot be read.
    #[must_use]
    pub fn template_has_code(&self, name: &str) -> Option<bool> {
        let template = NotePath::of_owner(name).and_then(|path| self.read_stored(&path));
        template
            .ok()
            .flatten()
            .map(|stored| has_code(stored.text()))
    }

    fn own_daily_notes(&self) -> (DailySettings, DailySource, Vec<String>) {
        let mut notices = Vec::new();
        match periodic::read(self) {
            Periodic::On(settings) => return (settings, DailySource::PeriodicNotes, notices),
            Periodic::Damaged => notices.push(
                "The settings of the plugin Periodic Notes cannot be read; those of Obsidian's daily notes were used."
                    .to_owned(),
            ),
            Periodic::Off => {}
        }
        let settings = match self.obsidian_setting("daily-notes.json") {
            None => DailySettings::default(),
            Some(text) => of_json(&text).unwrap_or_else(|notice| {
                notices.push(notice);
                DailySettings::default()
            }),
        };
        (settings, DailySource::Core, notices)
    }
}

/// # Errors
/// The words for the person, if it is no JSON.
fn of_json(text: &str) -> Result<DailySettings, String> {
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return Ok(DailySettings::default());
    }
    serde_json::from_str(text)
        .map(|keys| DailySettings::of_keys(&keys, "template"))
        .map_err(|_| {
            "The vault's daily-notes.json cannot be read; Obsidian's defaults were used.".to_owned()
        })
}
