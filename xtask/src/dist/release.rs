//! Inputs and helpers that all packages of one run share.

use std::fs;
use std::path::PathBuf;

use super::pages::Pages;
use super::system;
use super::target::Target;
use crate::command::Failure;
use crate::file_system::entries;
use crate::steps::Outcome;

/// Path of the program in the container image.
pub(super) const PROGRAM: &str = "/usr/bin/adjutant";

/// Inputs of a package: the binary, its version and the files that go with it.
pub(super) struct Release {
    pub(super) version: String,
    /// Time of the commit in seconds since 1970, used as the modification time of every packed file
    /// so that archives are reproducible.
    pub(super) epoch: u64,
    pub(super) target: Target,
    /// Path of the built `adjutant`.
    pub(super) binary: PathBuf,
    /// Completions, manual pages and licence notices, generated for this binary.
    pub(super) pages: Pages,
    /// Output folder of the packages.
    pub(super) folder: PathBuf,
    /// Scratch folder in which they are assembled.
    pub(super) work: PathBuf,
}

/// Deletes packages that earlier runs left in the output folder and whose name matches.
pub(super) fn remove_old_products(
    release: &Release,
    is_one: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
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

/// Returns the reason to skip a step that only root can perform, if the current user is not root.
pub(super) fn skip_without_root(action: &str) -> Option<Outcome> {
    (!system::is_root()).then(|| Outcome::NotRun(format!("{action} needs root")))
}
