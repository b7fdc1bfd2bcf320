//! Checks of the vault and of the file of facts that the user names.

use std::path::{Path, PathBuf};

use adjutant_memory::{NotePath, Vault};

use crate::error::CliError;

/// Default file of facts in the vault.
pub(super) const MEMORY: &str = "memory/facts.md";

/// Resolves the vault that the user named; a relative path starts at the working directory.
///
/// # Errors
/// It is no folder that can be read.
pub(super) fn folder(here: &Path, path: &Path) -> Result<PathBuf, CliError> {
    let path = here.join(crate::config::expand_home(path.to_owned()));
    let vault = Vault::open(&path).map_err(|error| {
        CliError::usage(format!("{} cannot be the vault", path.display()))
            .because(error.to_string())
            .or_try("--vault none, for no memory")
    })?;
    Ok(vault.root().to_owned())
}

/// Checks that a path can be a file of the vault.
///
/// # Errors
/// It cannot.
pub(super) fn note(path: &str) -> Result<String, CliError> {
    match NotePath::parse(path) {
        Ok(_) => Ok(path.trim().to_owned()),
        Err(error) => Err(CliError::usage(error.to_string()).or_try(format!("--memory {MEMORY}"))),
    }
}
