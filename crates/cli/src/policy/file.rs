use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use adjutant_core::ConversationId;

use super::grant::Grant;
use crate::config::{Dirs, write_private};
use crate::error::CliError;

/// The file of permissions, in the state folder.
const FILE: &str = "policy.json";

/// The lock file that is held while permissions are changed.
const LOCK: &str = "policy.lock";

fn path(dirs: &Dirs) -> PathBuf {
    dirs.state.join(FILE)
}

/// Loads all permissions, oldest first.
///
/// # Errors
/// The file exists and cannot be read.
pub(crate) fn load(dirs: &Dirs) -> Result<Vec<Grant>, CliError> {
    let file = path(dirs);
    let unreadable = |reason: String| {
        CliError::configuration(format!(
            "{} cannot be read: nothing is allowed by it",
            file.display()
        ))
        .because(reason)
        .or_try("mend the file, or remove it and be asked again")
    };
    match fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string())),
        // Without a permission the file was never written, so this is the usual case.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// Changes the permissions under a lock. The file is written only if they differ afterwards.
///
/// # Errors
/// The file cannot be read or written.
pub(crate) fn change(dirs: &Dirs, change: impl FnOnce(&mut Vec<Grant>)) -> Result<(), CliError> {
    // A lock file of its own: the file of permissions is replaced at each write, and a lock on the
    // replaced one would exclude no other process.
    let _lock = lock(&dirs.state)?;
    let before = load(dirs)?;
    let mut grants = before.clone();
    change(&mut grants);
    if grants != before {
        let text = serde_json::to_string_pretty(&grants)
            .map_err(|error| CliError::failed(error.to_string()))?;
        write_private(&path(dirs), &format!("{text}\n"))?;
    }
    Ok(())
}

/// Locks the lock file, until it is dropped.
fn lock(state: &Path) -> Result<File, CliError> {
    let file = state.join(LOCK);
    let failed = |error: std::io::Error| {
        CliError::configuration(format!("{} cannot be used", file.display()))
            .because(error.to_string())
    };
    // Created with private permissions; an empty file is enough for a lock.
    if !file.exists() {
        write_private(&file, "")?;
    }
    let lock = File::open(&file).map_err(failed)?;
    lock.lock().map_err(failed)?;
    Ok(lock)
}

/// Removes the permissions of a deleted conversation.
///
/// # Errors
/// The file cannot be read or written.
pub(crate) fn forget_conversation(
    dirs: &Dirs,
    conversation: ConversationId,
) -> Result<(), CliError> {
    let is_of_it = |grant: &Grant| grant.conversation == Some(conversation);
    // Looked for without the lock first: most conversations have none, and no lock file is made.
    if !load(dirs)?.iter().any(is_of_it) {
        return Ok(());
    }
    change(dirs, |grants| grants.retain(|grant| !is_of_it(grant)))
}
