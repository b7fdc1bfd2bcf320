//! Text that no file of the repository may contain: paths of one machine, and marks of unfinished
//! work.

use std::fs;

use crate::command::{Failure, output, root};

/// A text file of the repository.
pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the path of every file that is, or could be, committed, from the root.
///
/// # Errors
/// If git cannot list them.
pub(crate) fn tracked() -> Result<Vec<String>, Failure> {
    let mut git = std::process::Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])
    .current_dir(root());
    let paths: Vec<String> = output(&mut git)?
        .split_terminator('\0')
        .map(str::to_owned)
        .collect();
    if paths.is_empty() {
        Err("git names no file".to_owned())
    } else {
        Ok(paths)
    }
}

/// Reads every text file that is, or could be, committed.
///
/// # Errors
/// If git cannot list them.
pub(crate) fn read() -> Result<Vec<File>, Failure> {
    // A file that is deleted and not yet committed, or is not text, has nothing to check.
    let text = |path: String| {
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(File { path, text })
    };
    Ok(tracked()?.into_iter().filter_map(text).collect())
}

/// Folders that exist on one machine only. Split in two, because this file is checked too.
const FOLDERS: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
];

/// Marks of work left for later.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// Files of others, kept as they were published: a check of their own compares every byte.
const OF_OTHERS: &str = "crates/service/web/vendor/";

/// Folders of the machine this runs on: of the repository and of whoever runs it.
pub(crate) fn this_machine() -> Vec<String> {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let parent = root()
        .parent()
        .map(|parent| parent.display().to_string())
        .filter(|parent| parent.len() > 1);
    [home, parent]
        .into_iter()
        .flatten()
        .map(|folder| format!("{}/", folder.trim_end_matches('/')))
        .collect()
}

/// Returns the lines with such text.
pub(crate) fn forbidden(files: &[File], this_machine: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| !file.path.starts_with(OF_OTHERS))
    {
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            let mut folders = FOLDERS
                .iter()
                .copied()
                .chain(this_machine.iter().map(String::as_str));
            if let Some(folder) = folders.find(|folder| names_folder(line, folder)) {
                found.push(format!("{place}: names {folder}, a folder of one machine"));
            }
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
                found.push(format!(
                    "{place}: {mark}: do it, or say in the docs that it is missing"
                ));
            }
        }
    }
    found
}

/// Returns true if an absolute path begins here: `/x/y`, but not the end of `a/x/y` or of an address.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}/".contains(c)))
        // An address of a file has a third slash before it.
        || line.contains(&format!("file://{folder}"))
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(part_of_word) && !line[at + word.len()..].starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let file = File {
            path: "a.md".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(forbidden(&[file], &["/srv/ana/".to_owned()]), expected);
    }

    #[test]
    fn folders_of_a_machine_are_found() {
        let folder = FOLDERS[0];
        check(
            &format!("fine\nsee {folder}x"),
            &[&format!("a.md:2: names {folder}, a folder of one machine")],
        );
        check(
            &format!("file://{folder}x"),
            &[&format!("a.md:1: names {folder}, a folder of one machine")],
        );
        check(
            "`/srv/ana/x`",
            &["a.md:1: names /srv/ana/, a folder of one machine"],
        );
    }

    #[test]
    fn files_of_others_say_what_they_like() {
        let text = MARKS[0].to_owned();
        let file = |path: &str| File {
            path: path.to_owned(),
            text: text.clone(),
        };
        assert!(forbidden(&[file(&format!("{OF_OTHERS}x.js"))], &[]).is_empty());
        assert_eq!(forbidden(&[file("x.js")], &[]).len(), 1);
    }

    #[test]
    fn other_paths_and_addresses_are_fine() {
        let folder = FOLDERS[0];
        check(
            &format!("https://example.org{folder}x and target{folder}y"),
            &[],
        );
    }

    #[test]
    fn marks_are_found_as_words_only() {
        let mark = MARKS[0];
        check(
            &format!("// {mark}: later"),
            &[&format!(
                "a.md:1: {mark}: do it, or say in the docs that it is missing"
            )],
        );
        check(&format!("{mark}S, MY_{mark}, todo"), &[]);
    }
}
