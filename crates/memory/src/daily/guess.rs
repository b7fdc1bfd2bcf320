//! The language that an owner's daily notes are named in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use jiff::{Span, Zoned};
use unicode_normalization::UnicodeNormalization as _;

use super::locale::Locale;
use super::settings::DailySettings;
use crate::vault::Vault;

/// Days back in which notes are looked for, and days ahead: some people make next week's.
const DAYS_BACK: i64 = 800;
const DAYS_AHEAD: i64 = 31;
/// After so many days with a note, the question is decided.
const DAYS_ENOUGH: usize = 40;
/// Most folders that are read.
const FOLDERS_MAX: usize = 1_000;

/// A language that was guessed, and what the person should know about it.
pub(super) struct Guess {
    pub(super) locale: Locale,
    /// Other languages fit as well, and name today's note otherwise.
    pub(super) notice: Option<String>,
}

/// Finds the language in which most of the daily notes that are there have the names the format
/// gives them. English, if no other fits better.
pub(super) fn guess(vault: &Vault, settings: &DailySettings, today: &Zoned) -> Guess {
    let english = Locale::english();
    let unsure = Guess {
        locale: english,
        notice: None,
    };
    let english_name = settings.name(english);
    if !english_name.has_names() {
        return unsure;
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
    for back in -DAYS_AHEAD..=DAYS_BACK {
        let Ok(day) = today.checked_sub(Span::new().days(back)) else {
            continue;
        };
        let mut known = BTreeMap::new();
        let mut any = false;
        for ((_, name), count) in candidates.iter().zip(&mut found) {
            let path = settings.in_folder(&name.write(&day));
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
        return unsure;
    }
    let mut fitting = candidates
        .iter()
        .zip(&found)
        .filter(|(_, count)| **count == best)
        .map(|(one, _)| one);
    let Some((locale, name)) = fitting.next() else {
        return unsure;
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
    Guess {
        locale: *locale,
        notice,
    }
}

/// Names of files, each folder read once.
struct Listing<'a> {
    vault: &'a Vault,
    folders: BTreeMap<String, BTreeSet<String>>,
    opened: usize,
}

impl Listing<'_> {
    /// Returns whether there is such a note. Names are compared composed: some systems keep them
    /// decomposed.
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
            let names = real
                .and_then(|real| fs::read_dir(real).ok())
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| Some(entry.file_name().to_str()?.nfc().collect()))
                .collect();
            self.folders.insert(folder.to_owned(), names);
        }
        // Inserted above, if it was missing.
        self.folders.entry(folder.to_owned()).or_default()
    }
}
