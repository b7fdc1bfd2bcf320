//! The path of a note: validation of names, and the name that a title becomes.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::VaultError;
use crate::text::on_one_line;

/// Bytes of the name of one folder or file: the limit of ext4, APFS and NTFS alike is 255, and 12
/// are left for temporary names.
const COMPONENT_BYTES_MAX: usize = 243;
/// Levels of folders in a path.
const DEPTH_MAX: usize = 32;
/// Characters that no new name may hold: Obsidian refuses them, because some system or its links
/// cannot have them.
const ILLEGAL: &[char] = &['*', '"', '<', '>', ':', '|', '?', '#', '^', '[', ']', '\\'];

/// The path of a note relative to its vault: parts joined by `/`, ending in `.md`, in Unicode's
/// composed form (NFC).
///
/// A value that exists cannot name a file outside the vault or a hidden one. Symbolic links that
/// lead outside are checked when the file is opened.
///
/// # Examples
///
/// ```
/// use adjutant_memory::NotePath;
///
/// let path = NotePath::parse("[[Plans/House#Roof]]").unwrap();
/// assert_eq!((path.as_str(), path.title()), ("Plans/House.md", "House"));
/// assert!(NotePath::parse("../secrets").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotePath(String);

impl NotePath {
    /// Parses the path of a note that may exist, as a user or a model gives it: with or without
    /// `.md`, or as a wiki link, whose heading and display text (`[[Note#Part|text]]`) are dropped.
    ///
    /// # Errors
    /// [`VaultError::Name`] for a name that leads out of the vault (absolute, `..`, `~`, drives,
    /// UNC), for hidden names, and for names that no file can have.
    pub fn parse(name: &str) -> Result<Self, VaultError> {
        Self::from_name(name, false)
    }

    /// Parses the path of a note that its owner or their settings have named. Days and months may
    /// end in a dot (`22 So.`, `nov./22`), as names from elsewhere may not: Windows drops that dot.
    ///
    /// # Errors
    /// [`VaultError::Name`] as [`NotePath::parse`].
    pub(crate) fn from_owner(name: &str) -> Result<Self, VaultError> {
        Self::from_name(name, !cfg!(windows))
    }

    fn from_name(name: &str, allows_dots: bool) -> Result<Self, VaultError> {
        let text = link_target(name);
        check_characters(text, name)?;
        // On Windows a colon leads to another drive (`C:file`) or into a stream of a file.
        if cfg!(windows) && text.contains(':') {
            return Err(refused(name, "it has a colon"));
        }
        Self::build(text.split('/').map(str::to_owned), name, allows_dots)
    }

    /// Returns the path of a note to be created. Characters that Obsidian does not allow in a name
    /// become spaces.
    ///
    /// # Errors
    /// [`VaultError::Name`] as [`NotePath::parse`], and if a part has no other characters.
    pub fn for_new(name: &str) -> Result<Self, VaultError> {
        let text = name.trim();
        let text = text
            .strip_prefix("[[")
            .and_then(|text| text.strip_suffix("]]"))
            .unwrap_or(text);
        check_characters(text, name)?;
        let parts = text.split('/').map(|part| {
            let allowed: String = part
                .chars()
                .map(|char| if ILLEGAL.contains(&char) { ' ' } else { char })
                .collect();
            on_one_line(&allowed)
        });
        let path = Self::build(parts, name, false)?;
        if path.0.split('/').any(is_reserved) {
            return Err(refused(
                name,
                "Windows reserves that name, and vaults are carried between systems",
            ));
        }
        Ok(path)
    }

    /// Joins the parts of a path. `allows_dots`: a part may end in a dot.
    fn build(
        parts: impl Iterator<Item = String>,
        name: &str,
        allows_dots: bool,
    ) -> Result<Self, VaultError> {
        let ends_badly = |part: &str| part.ends_with(' ') || (!allows_dots && part.ends_with('.'));
        let mut parts: Vec<String> = parts.filter(|part| part != ".").collect();
        // A slash at the end, or a doubled one, is a slip of the pen.
        parts.retain(|part| !part.is_empty());
        let Some(last) = parts.last_mut() else {
            return Err(refused(name, "it is empty"));
        };
        if !has_md(last) {
            last.push_str(".md");
        }
        let stem = without_md(last);
        let part_error = |part: &String| {
            if part.starts_with('.') {
                Some("hidden folders and files are not notes")
            } else if ends_badly(part) || part.starts_with(' ') {
                Some("a name cannot begin with a space or end in a dot or a space")
            } else {
                let is_long = part.len() > COMPONENT_BYTES_MAX;
                is_long.then_some("a part of it is longer than 243 bytes")
            }
        };
        let reason = if stem.is_empty() {
            "it is empty"
        } else if ends_badly(stem) {
            "a name cannot end in a dot or a space"
        } else if parts.len() > DEPTH_MAX {
            "it has too many folders (32 at most)"
        } else if let Some(reason) = parts.iter().find_map(part_error) {
            reason
        } else {
            return Ok(Self(parts.join("/").nfc().collect()));
        };
        Err(refused(name, reason))
    }

    /// Returns the path, with `/` and `.md`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the title of the note: its file name without `.md`.
    #[must_use]
    pub fn title(&self) -> &str {
        without_md(self.0.rsplit('/').next().unwrap_or(&self.0))
    }

    pub(crate) fn refused(&self, reason: &'static str) -> VaultError {
        VaultError::Name {
            name: self.to_string(),
            reason,
        }
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses the folder that a list or a search is restricted to. `None` is the whole vault.
///
/// # Errors
/// [`VaultError::Name`] as [`NotePath::parse`].
pub(crate) fn folder(name: &str) -> Result<Option<String>, VaultError> {
    if matches!(name.trim(), "" | "." | "/") {
        return Ok(None);
    }
    let name = name.trim().trim_end_matches('/');
    check_characters(name, name)?;
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.iter().any(|part| part.starts_with('.')) {
        return Err(refused(name, "hidden folders are not read"));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/").nfc().collect()))
}

/// Returns the target of `[[target#heading|text]]`; other text as it is.
pub(crate) fn link_target(name: &str) -> &str {
    let name = name.trim();
    // `![[Note]]` embeds the note.
    let name = name.strip_prefix('!').unwrap_or(name);
    let Some(inner) = name
        .strip_prefix("[[")
        .and_then(|name| name.strip_suffix("]]"))
    else {
        return name;
    };
    inner.split(['|', '#']).next().unwrap_or(inner).trim()
}

/// Returns true if a path ends with another one, at the beginning of a folder or of the file name.
pub(crate) fn is_path_suffix(path: &str, suffix: &str) -> bool {
    path.strip_suffix(suffix)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Returns a path and all that it ends with, the whole first: `a/b/c`, `b/c`, `c`.
pub(crate) fn path_suffixes(path: &str) -> impl Iterator<Item = &str> {
    let ends = path
        .match_indices('/')
        .filter_map(|(at, _)| path.get(at + 1..));
    std::iter::once(path).chain(ends)
}

/// Returns a path without `.md`, in any case.
pub(crate) fn without_md(path: &str) -> &str {
    match path.split_at_checked(path.len().saturating_sub(3)) {
        Some((stem, end)) if end.eq_ignore_ascii_case(".md") => stem,
        _ => path,
    }
}

/// Returns a name in lower case and composed form (NFC): the names of one note in two encodings, or
/// with other capitals, fold to the same text.
pub(crate) fn case_folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).nfc().collect()
}

fn check_characters(text: &str, name: &str) -> Result<(), VaultError> {
    // Invisible and reversing characters make one name look like another.
    let is_invisible = |char| matches!(char, '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}');
    let reason = if text.is_empty() {
        "it is empty"
    } else if text.chars().any(char::is_control) {
        "it has control characters"
    } else if text.chars().any(is_invisible) {
        "it has invisible characters"
    } else if text.contains('\\') {
        "folders are divided by /, and \\ cannot be part of a name"
    } else if text.starts_with('/') {
        "it is an absolute path; give it relative to the vault"
    } else if text.starts_with('~') {
        "~ is not looked up; give the path relative to the vault"
    } else if names_drive(text) {
        "it names a drive; give it relative to the vault"
    } else if text.split('/').any(|part| part.trim() == "..") {
        "it leads out of the vault"
    } else {
        return Ok(());
    };
    Err(refused(name, reason))
}

fn names_drive(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|char| char.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && chars.next().is_none_or(|char| char == '/')
}

fn has_md(name: &str) -> bool {
    without_md(name).len() < name.len()
}

/// Returns true for the file name of a note.
pub(crate) fn is_note_name(name: &str) -> bool {
    has_md(name) && name.len() > 3
}

/// Returns true for names that Windows reserves for devices, with any extension.
fn is_reserved(part: &str) -> bool {
    let stem = part
        .split('.')
        .next()
        .unwrap_or(part)
        .trim_end()
        .to_ascii_uppercase();
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|char: char| char.is_ascii_digit() && char != '0'))
}

fn refused(name: &str, reason: &'static str) -> VaultError {
    // The name goes into an error message.
    let name = if name.chars().count() > 120 {
        format!("{}…", name.chars().take(120).collect::<String>())
    } else {
        name.to_owned()
    };
    VaultError::Name { name, reason }
}
