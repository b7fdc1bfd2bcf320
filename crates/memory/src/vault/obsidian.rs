//! Obsidian's addresses of notes, `obsidian://open?…`.

use std::collections::HashMap;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::note::aliases;
use super::path::{case_folded, path_suffixes, without_md};
use super::walk::{NoteFile, read_heads};
use super::{NotePath, Vault, folder_name};
use crate::VaultError;

/// The characters that are percent-encoded: Obsidian wants slashes and spaces encoded too.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Bytes of a link that is resolved; a longer one has no note.
const LINK_BYTES_MAX: usize = 1_000;

impl Vault {
    /// Returns, for each link, the address at which Obsidian opens its note:
    /// `obsidian://open?vault=Notes&file=Plans%2FHouse%23Roof`. A link is the text in `[[…]]`
    /// before the `|`: the note's path, the end of its path or an alias, and optionally `#` and a
    /// heading. `None` for a link that leads to no note of this vault. Of several notes with a name
    /// the one in the fewest folders is taken, as in Obsidian.
    ///
    /// # Errors
    /// [`VaultError::Missing`] or [`VaultError::NotAFolder`] if the vault is gone.
    pub fn obsidian_addresses(&self, links: &[String]) -> Result<Vec<Option<String>>, VaultError> {
        let wanted: Vec<Option<(String, &str)>> =
            links.iter().map(|link| parse_link(link)).collect();
        if wanted.iter().all(Option::is_none) {
            return Ok(vec![None; links.len()]);
        }
        let mut notes = self.walk_visible(None)?.notes;
        // Of notes with the same name the first in this order is taken.
        notes.sort_by_cached_key(|note| (note.path.matches('/').count(), note.path.clone()));
        let by_path = notes_by_path(&notes);
        let found: Vec<Option<&NoteFile>> = wanted
            .iter()
            .map(|wanted| by_path.get(&wanted.as_ref()?.0).copied())
            .collect();
        let is_left = wanted
            .iter()
            .zip(&found)
            .any(|(wanted, found)| wanted.is_some() && found.is_none());
        // The aliases are in the notes, which have to be read for them: only if a link is left.
        let by_alias = if is_left {
            paths_by_alias(&notes)
        } else {
            HashMap::new()
        };
        let (name, before) = self.name_in_obsidian();
        let address = |(wanted, found): (&Option<(String, &str)>, &Option<&NoteFile>)| {
            let (path, heading) = wanted.as_ref()?;
            let alias = || by_alias.get(without_md(path)).map(String::as_str);
            let path = found.map(|note| note.path.as_str()).or_else(alias)?;
            let file = format!("{before}{}{heading}", without_md(path));
            Some(format!(
                "obsidian://open?vault={}&file={}",
                utf8_percent_encode(&name, ENCODED),
                utf8_percent_encode(&file, ENCODED)
            ))
        };
        Ok(wanted.iter().zip(&found).map(address).collect())
    }

    /// Returns the name of the vault that Obsidian has opened, and the folder of this one in it,
    /// with a slash behind it: this vault may be a subfolder of Obsidian's.
    fn name_in_obsidian(&self) -> (String, String) {
        let has_settings = |folder: &&Path| folder.join(".obsidian").is_dir();
        let root = self
            .root()
            .ancestors()
            .find(has_settings)
            .unwrap_or(self.root());
        let below = self.root().strip_prefix(root).unwrap_or(Path::new(""));
        let below = below
            .iter()
            .map(|part| part.to_string_lossy() + "/")
            .collect();
        (folder_name(root), below)
    }
}

/// Returns the case-folded path that a link names and the heading behind it, with its `#`. `None`
/// if no note can have the name.
fn parse_link(link: &str) -> Option<(String, &str)> {
    let link = link.trim().trim_end_matches('\\');
    if link.len() > LINK_BYTES_MAX || link.chars().any(char::is_control) {
        return None;
    }
    let at = link.find('#').unwrap_or(link.len());
    let (name, heading) = link.split_at(at);
    let path = NotePath::from_owner(name).ok()?;
    Some((case_folded(path.as_str()), heading.trim_end()))
}

/// Returns the notes by their paths and the ends of their paths; of several with the same end the
/// first is taken.
fn notes_by_path(notes: &[NoteFile]) -> HashMap<String, &NoteFile> {
    let mut names = HashMap::new();
    for note in notes {
        for suffix in path_suffixes(&case_folded(&note.path)) {
            names.entry(suffix.to_owned()).or_insert(note);
        }
    }
    names
}

/// Returns the paths of notes by their aliases, case-folded.
fn paths_by_alias(notes: &[NoteFile]) -> HashMap<String, String> {
    let named = read_heads(notes, |note, text| Some((note.path.clone(), aliases(text))));
    let mut found = HashMap::new();
    for (path, names) in named {
        for name in names {
            found
                .entry(case_folded(&name))
                .or_insert_with(|| path.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn addresses(vault: &Vault, links: &[&str]) -> Vec<Option<String>> {
        let links: Vec<String> = links.iter().map(|link| (*link).to_owned()).collect();
        vault.obsidian_addresses(&links).unwrap()
    }

    #[test]
    fn a_link_to_a_note_has_an_address_and_others_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("My & Notes");
        fs::create_dir_all(root.join("Plans/Old")).unwrap();
        for (name, text) in [
            ("House.md", "---\naliases: [The home, \"A/B\"]\n---\n"),
            ("Plans/Garden – Süd.md", "# Roses\n"),
            ("Plans/Twice.md", ""),
            ("Twice.md", ""),
            ("Plans/Old/v1.2.md", ""),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let vault = Vault::open(&root).unwrap();
        let open = |file: &str| {
            Some(format!(
                "obsidian://open?vault=My%20%26%20Notes&file={file}"
            ))
        };
        let expected = [
            ("House", open("House")),
            (" house.md ", open("House")),
            ("House#Roof & wall", open("House%23Roof%20%26%20wall")),
            ("House#^block", open("House%23%5Eblock")),
            (
                "garden – süd",
                open("Plans%2FGarden%20%E2%80%93%20S%C3%BCd"),
            ),
            ("Twice", open("Twice")),
            ("Plans/Twice\\", open("Plans%2FTwice")),
            ("v1.2", open("Plans%2FOld%2Fv1.2")),
            ("the home", open("House")),
            ("a/b", open("House")),
        ];
        let links: Vec<&str> = expected.iter().map(|(link, _)| *link).collect();
        assert_eq!(
            addresses(&vault, &links),
            expected.map(|(_, address)| address)
        );
        let none = [
            "Gone",
            "#Roof",
            "",
            "../House",
            "/House",
            "Old/Twice",
            "wice",
            "picture.png",
            "Ho\nuse",
        ];
        assert!(addresses(&vault, &none).iter().all(Option::is_none));
        assert!(
            addresses(&vault, &[&"a".repeat(5_000)])
                .iter()
                .all(Option::is_none)
        );
    }

    #[test]
    fn a_folder_in_a_vault_of_obsidian_is_a_part_of_that_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("Whole/.obsidian")).unwrap();
        fs::create_dir_all(folder.path().join("Whole/Work/More")).unwrap();
        fs::write(folder.path().join("Whole/Work/More/One.md"), "").unwrap();
        let vault = Vault::open(folder.path().join("Whole/Work")).unwrap();
        let wanted = "obsidian://open?vault=Whole&file=Work%2FMore%2FOne".to_owned();
        assert_eq!(addresses(&vault, &["One"]), [Some(wanted)]);
    }
}
