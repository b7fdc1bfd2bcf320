//! Notes that their owner keeps from the assistant: by patterns of the settings, by Obsidian's list
//! of excluded files, and by a property of the note itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use regex::{Regex, RegexBuilder};
use saphyr::Yaml;
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

use super::markdown::front_matter;
use super::note::front_document;
use super::path::case_folded;
use super::walk::{NoteFile, Walk, read_all, read_heads};
use super::{NotePath, Vault};
use crate::VaultError;

/// Obsidian's file with its excluded files, and their key in it.
const OBSIDIAN_FILE: &str = "app.json";
const OBSIDIAN_KEY: &str = "userIgnoreFilters";

/// The property that keeps a note from the assistant when it is `false`.
const PROPERTY: &str = "adjutant";

/// Bytes of a compiled pattern. A pattern beyond that is refused instead of filling the memory.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The patterns that apply to the paths of a vault.
#[derive(Debug, Default)]
pub(crate) struct Exclusions(Vec<Regex>);

impl Exclusions {
    /// Returns true if the path of a note, relative to the vault, is excluded.
    pub(crate) fn contain(&self, path: &str) -> bool {
        let path: String = path.nfc().collect();
        self.0.iter().any(|pattern| pattern.is_match(&path))
    }
}

/// The results of reading notes that are not excluded.
#[derive(Debug)]
pub(crate) struct VisibleNotes<T> {
    pub(crate) results: Vec<T>,
    /// Number of the notes that keep themselves from the assistant.
    pub(crate) excluded: usize,
}

impl Vault {
    /// Keeps notes from the assistant: they are not searched, listed, read or mentioned, and have
    /// no tasks. A pattern is one of `.gitignore`: `*` stands for a part of a name, `**` for
    /// folders, and what is below an excluded folder is excluded; without a slash (but at the end)
    /// it means files and folders of that name anywhere. Case does not count.
    ///
    /// Excluded files of Obsidian's settings and notes with the property `adjutant: false` are
    /// always kept from the assistant.
    #[must_use]
    pub fn with_excluded(self, patterns: Vec<String>) -> Self {
        self.change(|inner| inner.excluded = patterns)
    }

    /// Loads the patterns, Obsidian's too.
    ///
    /// # Errors
    /// [`VaultError::Pattern`]: what it means is unknown, so nothing is shown.
    pub(crate) fn exclusions(&self) -> Result<Exclusions, VaultError> {
        let own = self.excluded_patterns().iter().map(|pattern| {
            glob(pattern).map_err(|source| VaultError::Pattern {
                pattern: pattern.clone(),
                place: "vault.exclude".to_owned(),
                source: Box::new(source),
            })
        });
        let obsidians = self.obsidian_filters()?;
        let obsidians = obsidians.iter().map(|filter| {
            obsidian_filter(filter).map_err(|source| VaultError::Pattern {
                pattern: filter.clone(),
                place: format!(".obsidian/{OBSIDIAN_FILE}"),
                source: Box::new(source),
            })
        });
        own.chain(obsidians)
            .collect::<Result<_, _>>()
            .map(Exclusions)
    }

    /// Returns the list of excluded files in Obsidian's settings; empty if there is none.
    fn obsidian_filters(&self) -> Result<Vec<String>, VaultError> {
        if !self.has_obsidian_setting(OBSIDIAN_FILE) {
            return Ok(Vec::new());
        }
        // A file that cannot be read may hold a list: nothing is shown then.
        let unreadable = || {
            VaultError::shape(
                format!(".obsidian/{OBSIDIAN_FILE}"),
                "it cannot be read, and may exclude notes",
            )
        };
        let text = self
            .obsidian_setting(OBSIDIAN_FILE)
            .ok_or_else(unreadable)?;
        let text = text.trim_start_matches('\u{FEFF}');
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let settings: Map<String, Value> = serde_json::from_str(text).map_err(|_| unreadable())?;
        let filters = settings.get(OBSIDIAN_KEY).and_then(Value::as_array);
        Ok(filters
            .into_iter()
            .flatten()
            .filter_map(|filter| Some(filter.as_str()?.trim().to_owned()))
            .filter(|filter| !filter.is_empty())
            .collect())
    }

    /// Returns the notes below a folder without those whose paths are excluded.
    pub(crate) fn walk_visible(&self, folder: Option<&str>) -> Result<Walk, VaultError> {
        let exclusions = self.exclusions()?;
        let mut walk = self.walk(folder)?;
        let before = walk.notes.len();
        walk.notes.retain(|note| !exclusions.contain(&note.path));
        walk.excluded = before - walk.notes.len();
        Ok(walk)
    }

    /// Fails if a note is kept from the assistant. A note that does not exist is if its path is
    /// excluded.
    ///
    /// # Errors
    /// [`VaultError::Excluded`], and as for reading the note.
    pub(crate) fn check_visible(&self, path: &NotePath) -> Result<(), VaultError> {
        let excluded = || VaultError::Excluded {
            name: path.to_string(),
        };
        let exclusions = self.exclusions()?;
        let located = self.locate(path)?;
        // A link with another name leads to the same note.
        let real = located.real.strip_prefix(self.root()).ok();
        let real = real.map(|real| real.to_string_lossy().replace('\\', "/"));
        if exclusions.contain(path.as_str()) || real.is_some_and(|real| exclusions.contain(&real)) {
            return Err(excluded());
        }
        match self.read_stored(path) {
            Ok(Some(stored)) if keeps_itself_out(stored.as_str()) => Err(excluded()),
            // A note that is not text has no properties.
            Ok(_) | Err(VaultError::NotText { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a file of this machine is a note of this vault that is kept from the
    /// assistant, or if that cannot be told.
    #[must_use]
    pub fn excludes_file(&self, file: &std::path::Path) -> bool {
        let Ok(real) = file.canonicalize() else {
            return false;
        };
        let Ok(inside) = real.strip_prefix(self.root()) else {
            return false;
        };
        let path = inside.to_string_lossy().replace('\\', "/");
        let Ok(exclusions) = self.exclusions() else {
            return true;
        };
        let note = NoteFile {
            path: path.clone(),
            real: real.clone(),
        };
        exclusions.contain(&path) || visible(vec![note]).is_empty()
    }

    /// Returns the names of notes that contain a text, without `.md`, those in the fewest folders
    /// first; at most `limit`. Excluded notes are left out; none is returned if it cannot be told
    /// which are.
    #[must_use]
    pub fn note_names(&self, part: &str, limit: usize) -> Vec<String> {
        let wanted = case_folded(part);
        let Ok(walk) = self.walk_visible(None) else {
            return Vec::new();
        };
        let mut notes = walk.notes;
        notes.retain(|note| case_folded(super::path::without_md(&note.path)).contains(&wanted));
        notes.sort_by_cached_key(|note| (note.path.matches('/').count(), note.path.clone()));
        let mut names = Vec::new();
        // Read in pieces: a part of a name may fit ten thousand notes.
        for piece in notes.chunks(limit.max(1)) {
            for note in visible(piece.to_vec()) {
                names.push(super::path::without_md(&note.path).to_owned());
            }
            if names.len() >= limit {
                break;
            }
        }
        names.truncate(limit);
        names
    }

    /// Returns the number of notes that are kept from the assistant. Reads the beginning of every
    /// note.
    ///
    /// # Errors
    /// The vault is gone, or a pattern cannot be read.
    pub fn excluded_notes(&self) -> Result<usize, VaultError> {
        let walk = self.walk_visible(None)?;
        let notes = walk.notes.len();
        Ok(walk.excluded + notes - visible(walk.notes).len())
    }
}

/// Reads the notes and returns the results of `visit`, without notes that keep themselves from the
/// assistant.
pub(crate) fn read_visible<T: Send>(
    notes: &[NoteFile],
    visit: impl Fn(usize, &NoteFile, &str) -> Option<T> + Sync,
) -> VisibleNotes<T> {
    let excluded = AtomicUsize::new(0);
    let results = read_all(notes, |at, note, text| {
        if keeps_itself_out(text) {
            excluded.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        visit(at, note, text)
    });
    VisibleNotes {
        results,
        excluded: excluded.into_inner(),
    }
}

/// Returns the notes that do not keep themselves from the assistant.
pub(crate) fn visible(notes: Vec<NoteFile>) -> Vec<NoteFile> {
    let kept_out: std::collections::HashSet<String> = read_heads(&notes, |note, head| {
        keeps_itself_out(head).then(|| note.path.clone())
    })
    .into_iter()
    .collect();
    let mut notes = notes;
    notes.retain(|note| !kept_out.contains(&note.path));
    notes
}

/// Returns true if a note has the property `adjutant: false`.
fn keeps_itself_out(text: &str) -> bool {
    let begin = text.trim_start_matches('\u{FEFF}');
    if !begin.starts_with("---") || !begin.contains(PROPERTY) {
        return false;
    }
    let Some(front) = front_matter(text).0.and_then(|front| text.get(front)) else {
        // Of a beginning of a note the end of the front matter may be missing.
        return false;
    };
    let is_false = |value: &Yaml<'_>| {
        value.as_bool() == Some(false)
            || value
                .as_str()
                .is_some_and(|word| matches!(word.to_lowercase().as_str(), "false" | "no" | "off"))
    };
    match front_document(front) {
        Some(documents) => documents
            .first()
            .and_then(|document| document.as_mapping_get(PROPERTY))
            .is_some_and(is_false),
        // Front matter that is no YAML is read by its lines: the owner meant it.
        None => front.lines().any(|line| {
            line.split_once(':').is_some_and(|(key, value)| {
                key.trim() == PROPERTY && value.trim().eq_ignore_ascii_case("false")
            })
        }),
    }
}

/// Compiles a pattern as `.gitignore` has them.
fn glob(pattern: &str) -> Result<Regex, regex::Error> {
    let pattern: String = pattern.trim().nfc().collect();
    let inner = pattern.trim_end_matches('/');
    let anchored = inner.contains('/');
    let inner = inner.trim_start_matches('/');
    let mut source = String::from(if anchored { "^" } else { "^(?:.*/)?" });
    let mut chars = inner.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '*' if chars.next_if_eq(&'*').is_some() => {
                // `**/` stands for no folder, too.
                if chars.next_if_eq(&'/').is_some() {
                    source.push_str("(?:.*/)?");
                } else {
                    source.push_str(".*");
                }
            }
            '*' => source.push_str("[^/]*"),
            '?' => source.push_str("[^/]"),
            other => source.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    // The note itself, with or without its ending, or what is below a folder.
    source.push_str(r"(?:\.md)?(?:/.*)?$");
    compiled(&source)
}

/// Compiles an entry of Obsidian's excluded files: the beginning of a path, or a regular
/// expression between slashes.
fn obsidian_filter(filter: &str) -> Result<Regex, regex::Error> {
    let expression = filter
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'))
        .filter(|inner| !inner.is_empty());
    match expression {
        Some(expression) => compiled(expression),
        None => {
            let begin: String = filter.nfc().collect();
            compiled(&format!("^{}", regex::escape(&begin)))
        }
    }
}

fn compiled(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source)
        .case_insensitive(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore() {
        for (pattern, excluded, kept) in [
            ("Diary", "Diary/2026/a.md", "Diaries/a.md"),
            ("diary/", "Work/Diary/a.md", "Diary notes.md"),
            ("/Diary", "Diary/a.md", "Work/Diary/a.md"),
            ("Work/Diary", "work/diary/a.md", "Old/Work/Diary/a.md"),
            ("*.private.md", "a/b.private.md", "a/private.md"),
            ("**/secret", "a/b/secret/c.md", "a/secrets/c.md"),
            ("People/*", "People/Anna.md", "People.md"),
            ("Note", "Note.md", "Notes.md"),
            ("M?ss", "Mess/a.md", "Mass media.md"),
        ] {
            let pattern = glob(pattern).unwrap();
            assert!(pattern.is_match(excluded), "{pattern} {excluded}");
            assert!(!pattern.is_match(kept), "{pattern} {kept}");
        }
    }

    #[test]
    fn filters_are_those_of_obsidian() {
        let filter = |filter: &str| obsidian_filter(filter).unwrap();
        assert!(filter("Archive/").is_match("archive/a.md"));
        assert!(!filter("Archive/").is_match("Old/Archive/a.md"));
        assert!(filter("/.*secret.*/").is_match("a/my secrets.md"));
        assert!(obsidian_filter("/(/").is_err());
    }

    #[test]
    fn a_property_keeps_a_note_out() {
        for kept_out in [
            "---\nadjutant: false\n---\nx",
            "\u{FEFF}---\r\ntags: a\r\nadjutant: \"false\"\r\n---\r\n",
            "---\nadjutant: no\n---\n",
            "---\nadjutant: false\nbroken: [\n---\n",
        ] {
            assert!(keeps_itself_out(kept_out), "{kept_out}");
        }
        for shown in [
            "---\nadjutant: true\n---\n",
            "adjutant: false\n",
            "---\nother: 1\n---\nadjutant: false",
            "---\nlist:\n  adjutant: false\n---\n",
        ] {
            assert!(!keeps_itself_out(shown), "{shown}");
        }
    }
}
