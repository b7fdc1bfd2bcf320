//! Names after `@` in a message: notes and files to attach.

use std::path::{Path, PathBuf};

use crate::config::expand_home;

/// Characters of a file extension at most, such as `toml` and `markdown`.
const END_MAX: usize = 8;

/// Entries of a folder searched for names, so that Tab answers at once in one of any size.
const ENTRIES_MAX: usize = 20_000;

/// Formats the name of a note or a file as a mention: quoted if it contains blanks. A folder stays
/// open, because a name follows.
pub(crate) fn mention(name: &str) -> String {
    match name.contains(char::is_whitespace) {
        true if name.ends_with('/') => format!("@\"{name}"),
        true => format!("@\"{name}\""),
        false => format!("@{name}"),
    }
}

/// Returns the unfinished mention at the end of a text: its position, and the name typed so far.
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

/// Returns true if an `@` after this character begins a mention instead of continuing a word.
fn opens(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'')
}

/// Returns the names mentioned in a text, in order, without repetitions.
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

/// Returns true if a mentioned name can only be a file: it begins like a path, or it has a file
/// extension or a folder, and that folder exists. `@ana` and `@angular/core` are words.
pub(crate) fn looks_like_path(name: &str, path: &Path) -> bool {
    if ["/", "./", "../", "~/"]
        .iter()
        .any(|start| name.starts_with(start))
    {
        return true;
    }
    let in_folder = name.contains('/');
    // A name without a folder is looked up in the working directory.
    let folder_is_there = path
        .parent()
        .is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir());
    let end = Path::new(name)
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    let named = (1..=END_MAX).contains(&end.len())
        && end.chars().all(char::is_alphanumeric)
        && end.chars().any(char::is_alphabetic);
    if in_folder {
        named || folder_is_there
    } else {
        named
    }
}

/// Returns the files and folders that begin with `typed`; folders end with a slash.
pub(crate) fn paths(typed: &str) -> Vec<String> {
    let (folder, start) = typed
        .rsplit_once('/')
        .map_or(("", typed), |(folder, start)| (folder, start));
    let before = typed.strip_suffix(start).unwrap_or_default();
    let place = match (before, folder) {
        ("", _) => PathBuf::from("."),
        (_, "") => PathBuf::from("/"),
        (_, folder) => expand_home(PathBuf::from(folder)),
    };
    let entries = std::fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .take(ENTRIES_MAX);
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            let slash = if entry.path().is_dir() { "/" } else { "" };
            (!hidden && name.starts_with(start)).then(|| format!("{before}{name}{slash}"))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_behind_an_at_sign_that_begins_a_word() {
        let text = "see @Diana, (@\"Two words\") and @Projects/Diana.md! not ana@example.org, @ or @\"\"; @Diana";
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
    fn a_path_is_distinguished_from_a_word() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let looks = |name: &str| looks_like_path(name, &folder.path().join(name));
        for path in [
            "./x",
            "../x",
            "~/x",
            "/etc/x",
            "README.md",
            "a b.txt",
            "src/x",
            "scr/main.rs",
            "x.7z",
        ] {
            assert!(looks(path), "{path}");
        }
        for word in [
            "ana",
            "angular/core",
            "v1.2",
            ".",
            "..",
            "[[x",
            "",
            "a.very-long-end",
            "x.",
        ] {
            assert!(!looks(word), "{word}");
        }
    }

    #[test]
    fn paths_are_those_that_begin_with_what_is_typed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["main.rs", "mod.rs", ".hidden", "two words.txt"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("more")).unwrap();
        let at = |typed: &str| format!("{}/{typed}", folder.path().display());
        assert_eq!(paths(&at("m")), [at("main.rs"), at("mod.rs"), at("more/")]);
        assert_eq!(paths(&at(".")), [at(".hidden")]);
        assert_eq!(paths(&at("")).len(), 4);
        assert!(paths(&at("gone/x")).is_empty());
        assert_eq!(mention("two words/"), "@\"two words/");
    }
}
