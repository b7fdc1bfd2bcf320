//! Where vaults are.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep below the home folder is looked.
const DEPTH_MAX: usize = 4;
/// How many folders are opened at most.
const FOLDERS_MAX: usize = 5_000;
/// How many vaults are told at most.
const VAULTS_MAX: usize = 20;
/// Folders with a lot in them that is nobody's notes.
const SKIPPED: &[&str] =
    &["node_modules", "target", "vendor", "Library", "AppData", "snap", "go", "__pycache__"];

/// Folders below `home` with a `.obsidian` folder, nearest first, then by name.
///
/// Looks 4 levels deep, into 5,000 folders at most, and finds 20 vaults at most. Hidden folders, folders of programs and
/// symbolic links are left out, and so is what cannot be read; a vault is not searched for vaults.
#[must_use]
pub fn find_vaults(home: &Path) -> Vec<PathBuf> {
    let mut vaults = Vec::new();
    let mut queue = VecDeque::from([(home.to_owned(), 0)]);
    let mut opened = 0;
    while let Some((folder, depth)) = queue.pop_front() {
        if opened == FOLDERS_MAX || vaults.len() == VAULTS_MAX {
            break;
        }
        opened += 1;
        if folder.join(".obsidian").is_dir() {
            vaults.push(folder);
            continue;
        }
        if depth == DEPTH_MAX {
            continue;
        }
        let mut below: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                !name.starts_with('.') && !SKIPPED.contains(&name.as_ref())
            })
            .map(|entry| entry.path())
            .collect();
        below.sort();
        queue.extend(below.into_iter().map(|folder| (folder, depth + 1)));
    }
    vaults
}
