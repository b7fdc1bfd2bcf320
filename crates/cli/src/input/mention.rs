//! `@note`: the text of a note goes along with a message.

use std::collections::BTreeSet;
use std::path::Path;

use adjutant_memory::{Memory, MemoryError, NoteText};

use super::framed;
use crate::display::clip;
use crate::screen::Screen;

/// The most notes of one message.
const NOTES_MAX: usize = 5;

/// Entries of a vault that are looked at for names, so that Tab answers at once in any folder.
const ENTRIES_MAX: usize = 20_000;

/// How a note is written in a message: in quotes if its name has blanks.
pub(crate) fn mention(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("@\"{name}\"") } else { format!("@{name}") }
}

/// The mention that a text ends in the middle of: where it begins, and what is typed of the name.
pub(crate) fn open_mention(before: &str) -> Option<(usize, &str)> {
    let at = before.rfind('@')?;
    let starts = before.get(..at)?.chars().next_back().is_none_or(opens);
    let name = before.get(at + 1..)?;
    let name = match name.strip_prefix('"') {
        Some(quoted) if !quoted.contains('"') => quoted,
        Some(_) => return None,
        None if name.contains(char::is_whitespace) => return None,
        None => name,
    };
    starts.then_some((at, name))
}

/// What may stand before an `@` that is no part of a word.
fn opens(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'')
}

/// The names behind `@` in a text, in order, each once.
pub(crate) fn mentions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let (before, after) = text.split_at(at);
        let after = after.get(1..).unwrap_or_default();
        if !before.chars().next_back().is_none_or(opens) {
            continue;
        }
        let name = match after.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => {
                let word = after.split(char::is_whitespace).next().unwrap_or_default();
                word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"'])
            }
        };
        if !name.trim().is_empty() && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// The message with the notes that it names. What is attached is told; a name that is no note's stays a word.
pub(crate) async fn with_notes(text: &str, memory: &Memory, screen: &Screen) -> String {
    let mut message = text.to_owned();
    let names = mentions(text);
    for name in names.iter().take(NOTES_MAX) {
        match memory.notes().read(name, None).await {
            Ok(note) => {
                screen.note(&format!("  attached: {}", told(&note)));
                message.push_str(&around(&note));
            }
            Err(error) => screen.note(&format!("  @{} is not attached: {}", clip(name, 80), why(&error))),
        }
    }
    if names.len() > NOTES_MAX {
        screen.note(&format!("  only the first {NOTES_MAX} notes were attached"));
    }
    message
}

fn why(error: &MemoryError) -> String {
    clip(&error.to_string(), 300)
}

fn told(note: &NoteText) -> String {
    let lines = match note.lines {
        1 => "1 line".to_owned(),
        number => format!("{number} lines"),
    };
    match note.cut {
        None => format!("{}, {lines}", note.path),
        Some(_) => format!("{}, lines {} to {} of {lines}", note.path, note.first_line, note.last_line),
    }
}

fn around(note: &NoteText) -> String {
    let cut = note.cut.as_ref().map(|cut| format!("\n({cut})")).unwrap_or_default();
    framed(&format!("note \"{}\"", note.path), &format!("{}{cut}", note.text))
}

/// Names of notes below a folder that hold what is typed, nearest to its top first.
pub(crate) fn names(root: &Path, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut found = BTreeSet::new();
    let mut folders = std::collections::VecDeque::from([root.to_owned()]);
    let mut looked_at = 0;
    while let Some(folder) = folders.pop_front() {
        // A folder that cannot be read has no names to offer.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                return found.into_iter().map(|(_, name)| name).collect();
            }
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let Ok(kind) = entry.file_type() else { continue };
            if hidden {
                continue;
            }
            if kind.is_dir() {
                folders.push_back(path);
                continue;
            }
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if let Some(name) = relative.strip_suffix(".md")
                && name.to_lowercase().contains(&typed)
            {
                found.insert((name.matches('/').count(), name.to_owned()));
            }
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_behind_an_at_sign_that_begins_a_word() {
        let text =
            "see @Diana, (@\"Two words\") and @Projects/Diana.md! not ana@example.org, @ or @\"\"; @Diana";
        assert_eq!(mentions(text), ["Diana", "Two words", "Projects/Diana.md"]);
        assert_eq!(mentions("@[[x"), ["[[x"]);
    }

    #[test]
    fn a_mention_is_open_until_it_ends() {
        assert_eq!(open_mention("see @Di"), Some((4, "Di")));
        assert_eq!(open_mention("@\"Two w"), Some((0, "Two w")));
        assert_eq!(open_mention("@"), Some((0, "")));
        for closed in ["see", "@Diana is", "@\"Two words\"", "ana@ex"] {
            assert_eq!(open_mention(closed), None, "{closed}");
        }
        assert_eq!(mention("Two words"), "@\"Two words\"");
    }

    #[test]
    fn names_are_those_of_notes_that_can_be_seen() {
        let vault = tempfile::tempdir().unwrap();
        for (folder, file) in
            [("", "Zeta.md"), ("Projects", "Diana.md"), (".obsidian", "x.md"), ("", "a.txt"), ("", ".h.md")]
        {
            std::fs::create_dir_all(vault.path().join(folder)).unwrap();
            std::fs::write(vault.path().join(folder).join(file), "x").unwrap();
        }
        assert_eq!(names(vault.path(), ""), ["Zeta", "Projects/Diana"]);
        assert_eq!(names(vault.path(), "diA"), ["Projects/Diana"]);
        assert!(names(&vault.path().join("gone"), "").is_empty());
    }
}
