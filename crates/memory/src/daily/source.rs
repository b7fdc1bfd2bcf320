//! The source of the settings of daily notes: the memory's own options, the plugin Periodic Notes,
//! or Obsidian.

use jiff::Zoned;

use super::locale::Locale;
use super::locale_guess::guess_locale;
use super::periodic::{self, PeriodicNotes};
use super::settings::{Daily, DailySettings};
use super::template::has_code;
use crate::VaultError;
use crate::vault::{NotePath, Vault};

/// The source of the settings that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DailySource {
    /// The setting `vault.daily` of this memory.
    Setting,
    /// Obsidian's community plugin Periodic Notes, where it is enabled.
    PeriodicNotes,
    /// Obsidian's own daily notes, or its defaults.
    Core,
}

/// The settings of daily notes that are in force in a vault on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DailyNotes {
    /// Folder, format and template of the notes.
    pub settings: DailySettings,
    /// The source from which the settings were read.
    pub source: DailySource,
    /// Language of the names of months and days.
    pub locale: Locale,
    /// Remarks for the user: settings that cannot be read, and guesses that are not certain.
    pub notices: Vec<String>,
}

impl DailyNotes {
    /// Returns the path of the daily note of a time.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the format makes no path inside the vault.
    pub fn path(&self, time: &Zoned) -> Result<NotePath, VaultError> {
        self.settings.path(time, self.locale)
    }

    /// Returns true if the path depends on the language.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.settings.name(self.locale).has_names()
    }
}

impl Vault {
    /// Reads the settings of daily notes. Without a `locale`, the language is guessed from the
    /// names of the existing daily notes.
    ///
    /// # Examples
    ///
    /// ```
    /// use adjutant_memory::{Daily, Vault};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let vault = Vault::open(folder.path())?;
    /// let time: jiff::Zoned = "2026-11-22T14:05:00[UTC]".parse()?;
    /// let daily = vault.daily_notes(&Daily::Auto, None, &time);
    /// assert_eq!(daily.path(&time)?.as_str(), "2026-11-22.md");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn daily_notes(&self, daily: &Daily, locale: Option<Locale>, today: &Zoned) -> DailyNotes {
        let (settings, source, mut notices) = match daily {
            Daily::Fixed(settings) => (settings.clone(), DailySource::Setting, Vec::new()),
            Daily::Auto => self.daily_notes_of_obsidian(),
        };
        let locale = locale.unwrap_or_else(|| {
            let guess = guess_locale(self, &settings, today);
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

    /// Returns true if a template has code of the plugin Templater, which is not run here; `None`
    /// if the template cannot be read.
    #[must_use]
    pub fn template_has_code(&self, name: &str) -> Option<bool> {
        let template = NotePath::from_owner(name).and_then(|path| self.read_stored(&path));
        template
            .ok()
            .flatten()
            .map(|stored| has_code(stored.as_str()))
    }

    fn daily_notes_of_obsidian(&self) -> (DailySettings, DailySource, Vec<String>) {
        let mut notices = Vec::new();
        match periodic::load(self) {
            PeriodicNotes::On(settings) => return (settings, DailySource::PeriodicNotes, notices),
            PeriodicNotes::Damaged => notices.push(
                "The settings of the plugin Periodic Notes cannot be read; those of Obsidian's daily notes were used."
                    .to_owned(),
            ),
            PeriodicNotes::Off => {}
        }
        let settings = match self.obsidian_setting("daily-notes.json") {
            None => DailySettings::default(),
            Some(text) => parse_settings(&text).unwrap_or_else(|notice| {
                notices.push(notice);
                DailySettings::default()
            }),
        };
        (settings, DailySource::Core, notices)
    }
}

/// # Errors
/// A notice for the user, if it is no JSON.
fn parse_settings(text: &str) -> Result<DailySettings, String> {
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return Ok(DailySettings::default());
    }
    serde_json::from_str(text)
        .map(|keys| DailySettings::from_keys(&keys, "template"))
        .map_err(|_| {
            "The vault's daily-notes.json cannot be read; Obsidian's defaults were used.".to_owned()
        })
}
