//! The name of a note: which ones there can be, and what a title becomes.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::VaultError;

/// Bytes of one folder's or file's name: the limit of ext4, APFS and NTFS alike is 255; 12 are left
/// for temporary names.
const COMPONENT_BYTES_MAX: usize = 243;
/// Folders in folders.
const DEPTH_MAX: usize = 32;
/// What no file name may hold: Obsidian refuses them, because some system or its links cannot have
/// them.
const ILLEGAL: &[char] = &['*', '"', '<', '>', ':', '|', '?', '#', '^', '[', ']', '\\'];

/// Where a note is, relative to its vault: parts joined by `/`, ending in `.md`, in Unicode's
/// composed form (NFC).
///
/// A value that exists stays inside the vault by its words and names nothing hidden. Whether a
/// symbolic link on the way leads outside is checked when the file is touched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotePath(String);

impl NotePath {
    /// The path of a note that may exist, as a person or a model names it: with or without `.md`,
    /// or as a wiki link with its heading and its shown words (`[[Note#Part|words]]`), which are
    /// dropped.
    ///
    /// # Errors
    /// [`VaultError::Name`] for what leads out of the vault (absolute, `..`, `~`, drives, UNC), for
    /// hidden names, and for what no file can be called.
    pub fn parse(name: &str) -> Result<Self, VaultError> {
        Self::named(name, false)
    }

    /// The path of a note that its owner or their settings have named. Days and months may end in a
    /// dot (`22 So.`, `nov./22`), as names from elsewhere may not: Windows drops that dot.
    ///
    /// # Errors
    /// [`VaultError::Name`] as [`NotePath::parse`].
    pub(crate) fn of_owner(name: &str) -> Result<Self, VaultError> {
        Self::named(name, !cfg!(windows))
    }

    fn named(name: &str, dots: bool) -> Result<Self, VaultError> {
        let text = link_target(name);
        check(text, name)?;
        // On Windows a colon leads to another drive (`C:file`) or into a stream of a file.
        if cfg!(windows) && text.contains(':') {
            return Err(refused(name, "it has a colon"));
        }
        Self::build(text.split('/').map(str::to_owned), name, dots)
    }

    /// The path of a note to be written. Characters that Obsidian does not allow in a name become
    /// spaces.
    ///
    /// # Errors
    /// [`VaultError::Name`] as [`NotePath::parse`], and if nothing is left of a part.
    pub fn for_new(name: &str) -> Result<Self, VaultError> {
        let text = name.trim();
        let text = text
            .strip_prefix("[[")
            .and_then(|text| text.strip_suffix("]]"))
            .unwrap_or(text);
        check(text, name)?;
        let parts = text.split('/').map(|part| {
            let allowed: String = part
                .chars()
                .map(|char| if ILLEGAL.contains(&char) { ' ' } else { char })
                .collect();
            allowed.split_whitespace().collect::<Vec<_>>().join(" ")
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

    /// `dots`: whether a name may end in a dot.
    fn build(
        parts: impl Iterator<Item = String>,
        name: &str,
        dots: bool,
    ) -> Result<Self, VaultError> {
        let ends_badly = |part: &str| part.ends_with(' ') || (!dots && part.ends_with('.'));
        let mut parts: Vec<String> = parts.filter(|part| part != ".").collect();
        // One slash at the end is a slip of the pen; nothing between two slashes is too.
        parts.retain(|part| !part.is_empty());
        let Some(last) = parts.last_mut() else {
            return Err(refused(name, "it is empty"));
        };
        if !has_md(last) {
            last.push_str(".md");
        }
        let stem = last.get(..last.len() - 3).unwrap_or_default();
        if stem.is_empty() {
            return Err(refused(name, "it is empty"));
        }
        if ends_badly(stem) {
            return Err(refused(name, "a name cannot end in a dot or a space"));
        }
        if parts.len() > DEPTH_MAX {
            return Err(refused(name, "it has too many folders (32 at most)"));
        }
        for part in &parts {
            if part.starts_with('.') {
                return Err(refused(name, "hidden folders and files are not notes"));
            }
            if ends_badly(part) || part.starts_with(' ') {
                return Err(refused(
                    name,
                    "a name cannot begin with a space or end in a dot or a space",
                ));
            }
            if part.len() > COMPONENT_BYTES_MAX {
                return Err(refused(name, "a part of it is longer than 243 bytes"));
            }
        }
        Ok(Self(parts.join("/").nfc().collect()))
    }

    /// The path, with `/` and `.md`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the note is called: its file name without `.md`.
    #[must_use]
    pub fn title(&self) -> &str {
        let name = self.0.rsplit('/').next().unwrap_or(&self.0);
        name.get(..name.len().saturating_sub(3)).unwrap_or(name)
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The folder a list or a search keeps to: `None` is the whole vault.
///
/// # Errors
/// [`VaultError::Name`] as [`NotePath::parse`].
pub(crate) fn folder(name: &str) -> Result<Option<String>, VaultError> {
    if matches!(name.trim(), "" | "." | "/") {
        return Ok(None);
    }
    let name = name.trim().trim_end_matches('/');
    check(name, name)?;
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.iter().any(|part| part.starts_with('.')) {
        return Err(refused(name, "hidden folders are not read"));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/").nfc().collect()))
}

/// `[[target#heading|words]]` without brackets, heading and words; other text as it is.
pub(crate) fn link_target(name: &str) -> &str {
    let name = name.trim();
    let name = name.strip_prefix('!').unwrap_or(name);
    let Some(inner) = name
        .strip_prefix("[[")
        .and_then(|name| name.strip_suffix("]]"))
    else {
        return name;
    };
    inner.split(['|', '#']).next().unwrap_or(inner).trim()
}

/// Names of one note in two encodings, or with other capitals, fold to the same text.
pub(crate) fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).nfc().collect()
}

fn check(text: &str, name: &str) -> Result<(), VaultError> {
    if text.is_empty() {
        return Err(refused(name, "it is empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(refused(name, "it has control characters"));
    }
    // Invisible and reversing characters make one name look like another.
    if text.chars().any(|char| matches!(char, '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')) {
        return Err(refused(name, "it has invisible characters"));
    }
    if text.contains('\\') {
        return Err(refused(
            name,
            "folders are divided by /, and \\ cannot be part of a name",
        ));
    }
    if text.starts_with('/') {
        return Err(refused(
            name,
            "it is an absolute path; give it relative to the vault",
        ));
    }
    if text.starts_with('~') {
        return Err(refused(
            name,
            "~ is not looked up; give the path relative to the vault",
        ));
    }
    let mut chars = text.chars();
    if chars.next().is_some_and(|char| char.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && chars.next().is_none_or(|char| char == '/')
    {
        return Err(refused(
            name,
            "it names a drive; give it relative to the vault",
        ));
    }
    if text.split('/').any(|part| part.trim() == "..") {
        return Err(refused(name, "it leads out of the vault"));
    }
    Ok(())
}

fn has_md(name: &str) -> bool {
    name.len() >= 3
        && name
            .get(name.len() - 3..)
            .is_some_and(|end| end.eq_ignore_ascii_case(".md"))
}

/// Whether the file name belongs to a note.
pub(crate) fn is_note_name(name: &str) -> bool {
    has_md(name) && name.len() > 3
}

/// Names that Windows keeps for devices, with any extension.
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
    // A name without end helps nobody.
    let name = if name.chars().count() > 120 {
        format!("{}…", name.chars().take(120).collect::<String>())
    } else {
        name.to_owned()
    };
    VaultError::Name { name, reason }
}
