//! The parts that all products of one run share.

use std::fs;
use std::path::PathBuf;

use super::files::entries;
use super::pages::Pages;
use super::system;
use super::target::Target;
use crate::command::Failure;
use crate::steps::Ended;

/// Path of the program in the container's image.
pub(super) const PROGRAM: &str = "/usr/bin/adjutant";

/// Facts that all products of one run share.
pub(super) struct Release {
    pub(super) version: String,
    /// Time of the commit, seconds since 1970: the modification time of every packed file.
    pub(super) epoch: u64,
    pub(super) target: Target,
    /// The program.
    pub(super) binary: PathBuf,
    /// Completions, manual and licences, made by that program and of its crates.
    pub(super) pages: Pages,
    /// The folder of the products.
    pub(super) folder: PathBuf,
    /// The folder they are put together in.
    pub(super) work: PathBuf,
}

/// Removes products of a kind that earlier runs left, so that the folder holds one of each.
pub(super) fn forget(release: &Release, is_one: impl Fn(&str) -> bool) -> Result<(), Failure> {
    for path in entries(&release.folder)? {
        if path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(&is_one)
        {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Skips a step that needs another user than the one who runs it.
pub(super) fn unless_root(words: &str) -> Option<Ended> {
    (!system::is_root()).then(|| Ended::NotRun(format!("{words} needs root")))
}
