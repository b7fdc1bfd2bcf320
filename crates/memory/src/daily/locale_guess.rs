//! The language in which the owner's daily notes are named, guessed from their names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use jiff::{Span, Zoned};
use unicode_normalization::UnicodeNormalization as _;

use super::locale::Locale;
use super::settings::DailySettings;
use crate::vault::Vault;

/// Days back in which notes are searched for, and days ahead: some people create next week's notes.
const DAYS_BACK: i64 = 800;
const DAYS_AHEAD: i64 = 31;
/// Number of days with a note after which the guess is made.
const DAYS_ENOUGH: usize = 40;
/// Number of folders that are read.
const FOLDERS_MAX: usize = 1_000;

/// A guessed language, and a remark about it for the user.
pub(super) struct LocaleGuess {
    pub(super) locale: Locale,
    /// Set if other languages fit as well, and name today's note otherwise.
    pub(super) notice: Option<String>,
}

/// Finds the language in which most of the existing daily notes have the names that the format
/// gives them. English, if no other fits better.
pub(super) fn guess_locale(vault: &Vault, settings: &DailySettings, today: &Zoned) -> LocaleGuess {
    let english = Locale::english();
    let english_guess = LocaleGuess {
        locale: english,
        notice: None,
    };
    let english_name = settings.name(english);
    if !english_name.has_names() {
        return english_guess;
    }
    let candidates: Vec<_> = Locale::all()
        .map(|locale| (locale, settings.name(locale)))
        .collect();
    let mut found = vec![0_usize; candidates.len()];
    let mut listing = Listing {
        vault,
        folders: BTreeMap::new(),
        opened: 0,
    };
    let mut days_found = 0;
    // From the newest day on: if the language was changed, the recent names decide.
    for back in -DAYS_AHEAD..=DAYS_BACK {
        let Ok(day) = today.checked_sub(Span::new().days(back)) else {
            continue;
        };
        let mut known = BTreeMap::new();
        let mut any = false;
        for ((_, name), count) in candidates.iter().zip(&mut found) {
            let path = settings.in_folder(&name.write(&day));
            // Many languages give a day the same name, so each name is looked up once.
            let exists = *known
                .entry(path)
                .or_insert_with_key(|path| listing.has(path));
            *count += usize::from(exists);
            any |= exists;
        }
        days_found += usize::from(any);
        if days_found == DAYS_ENOUGH || listing.opened >= FOLDERS_MAX {
            break;
        }
    }
    let best = found.iter().copied().max().unwrap_or_default();
    // English is the first of the candidates.
    if best == 0 || found.first() == Some(&best) {
        return english_guess;
    }
    let mut fitting = candidates
        .iter()
        .zip(&found)
        .filter(|(_, count)| **count == best)
        .map(|(one, _)| one);
    let Some((locale, name)) = fitting.next() else {
        return english_guess;
    };
    let path = name.write(today);
    let others: Vec<&str> = fitting
        .filter(|(_, other)| other.write(today) != path)
        .map(|(other, _)| other.name())
        .collect();
    let notice = (!others.is_empty()).then(|| {
        format!(
            "The names of the daily notes fit {} and {}; the first was taken (setting vault.locale).",
            locale.name(),
            others.join(", ")
        )
    });
    LocaleGuess {
        locale: *locale,
        notice,
    }
}

/// The names of files, each folder read once.
struct Listing<'a> {
    vault: &'a Vault,
    folders: BTreeMap<String, BTreeSet<String>>,
    opened: usize,
}

impl Listing<'_> {
    /// Returns true if there is such a note. Names are compared in composed form: some systems
    /// store them decomposed.
    fn has(&mut self, path: &str) -> bool {
        let path: String = path.nfc().collect();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        self.names(folder).contains(&format!("{name}.md"))
    }

    fn names(&mut self, folder: &str) -> &BTreeSet<String> {
        if !self.folders.contains_key(folder) {
            let there = match folder.rsplit_once('/') {
                _ if folder.is_empty() => true,
                Some((above, name)) => self.names(above).contains(name),
                None => self.names("").contains(folder),
            };
            let real = there.then(|| self.vault.folder(folder)).flatten();
            self.opened += usize::from(real.is_some());
            // Listed once for each folder: to ask for each name in each language would be slow.
            let names = real
                .and_then(|real| fs::read_dir(real).ok())
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| Some(entry.file_name().to_str()?.nfc().collect()))
                .collect();
            self.folders.insert(folder.to_owned(), names);
        }
        // It was inserted above, if it was missing.
        self.folders.entry(folder.to_owned()).or_default()
    }
}
