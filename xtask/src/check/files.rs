//! Text that no file of the repository may contain: paths of one machine, and markers of unfinished
//! work.

use std::fs;

use crate::command::{Failure, output, root};

/// A text file of the repository with its content.
pub(crate) struct File {
    /// Path from the repository root, with `/` as separator.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the path, from the root, of every file that is tracked or could be added (not ignored).
///
/// # Errors
/// Git cannot list the files.
pub(crate) fn tracked() -> Result<Vec<String>, Failure> {
    let mut git = std::process::Command::new("git");
    git.args([
        "ls-files",
        // Without `-z`, git quotes names with special characters.
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
        Err("git lists no file".to_owned())
    } else {
        Ok(paths)
    }
}

/// Reads every text file that is tracked or could be added.
///
/// # Errors
/// Git cannot list the files.
pub(crate) fn read_all() -> Result<Vec<File>, Failure> {
    // A file that is deleted but not yet committed, or is not UTF-8, has nothing to check.
    let text = |path: String| {
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(File { path, text })
    };
    Ok(tracked()?.into_iter().filter_map(text).collect())
}

/// Absolute folders that differ between machines. Each is written in two parts, because this file
/// is checked as well.
const FOLDERS: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
];

/// Markers of work left for later, written in two parts for the same reason.
const MARKERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// Vendored files, kept byte for byte as they were published; another check compares their hashes.
const VENDORED: &str = "crates/service/web/vendor/";

/// Returns folders of this machine: the developer's home and the parent of the repository.
pub(crate) fn machine_folders() -> Vec<String> {
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

/// Returns the lines that contain such a path or marker.
pub(crate) fn forbidden(files: &[File], machine_folders: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.path.starts_with(VENDORED)) {
        for (index, line) in file.text.lines().enumerate() {
            let location = format!("{}:{}", file.path, index + 1);
            let mut folders = FOLDERS
                .iter()
                .copied()
                .chain(machine_folders.iter().map(String::as_str));
            if let Some(folder) = folders.find(|folder| names_folder(line, folder)) {
                found.push(format!(
                    "{location}: names {folder}, a folder of one machine"
                ));
            }
            if let Some(marker) = MARKERS.iter().find(|marker| has_word(line, marker)) {
                found.push(format!(
                    "{location}: {marker}: do it, or say in the docs that it is missing"
                ));
            }
        }
    }
    found
}

/// Returns true if the line has an absolute path in this folder, as opposed to the end of a longer
/// path or of a URL.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}/".contains(c)))
        // A `file://` URL has a third slash before the path, which looks like the end of a longer
        // path.
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
    fn absolute_folders_are_found() {
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
    fn vendored_files_are_not_checked() {
        let text = MARKERS[0].to_owned();
        let file = |path: &str| File {
            path: path.to_owned(),
            text: text.clone(),
        };
        assert!(forbidden(&[file(&format!("{VENDORED}x.js"))], &[]).is_empty());
        assert_eq!(forbidden(&[file("x.js")], &[]).len(), 1);
    }

    #[test]
    fn relative_paths_and_urls_pass() {
        let folder = FOLDERS[0];
        check(
            &format!("https://example.org{folder}x and target{folder}y"),
            &[],
        );
    }

    #[test]
    fn markers_are_found_as_whole_words() {
        let marker = MARKERS[0];
        check(
            &format!("// {marker}: later"),
            &[&format!(
                "a.md:1: {marker}: do it, or say in the docs that it is missing"
            )],
        );
        check(&format!("{marker}S, MY_{marker}, todo"), &[]);
    }
}
