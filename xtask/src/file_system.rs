//! Reading, writing, copying and listing files, with errors that name the path.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Failure;

/// Returns the paths of a folder's entries, sorted.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let paths = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// Returns the relative path of every file and symbolic link below a folder.
pub(crate) fn files_below(folder: &Path) -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for path in entries(folder)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && !path.is_symlink() {
            found.extend(
                files_below(&path)?
                    .into_iter()
                    .map(|below| format!("{name}/{below}")),
            );
        } else {
            found.insert(name);
        }
    }
    Ok(found)
}

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Creates a folder and its parents, unless it exists.
pub(crate) fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Creates a folder, or deletes the content of an existing one.
pub(crate) fn create_empty(folder: &Path) -> Result<PathBuf, Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    create(folder)?;
    Ok(folder.to_owned())
}

/// Writes a file, and creates its parent folders.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    path.parent().map_or(Ok(()), create)?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file, and creates the parent folders of the destination.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    to.parent().map_or(Ok(()), create)?;
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("{}: {error}", from.display()))
}

pub(crate) fn size(path: &Path) -> Result<u64, Failure> {
    fs::metadata(path)
        .map(|file| file.len())
        .map_err(|error| format!("{}: {error}", path.display()))
}
