//! Export of one conversation to a file.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use adjutant_core::UserId;
use adjutant_core::port::ConversationSummary;
use adjutant_service::export::Export;

use crate::command::output::file_error;
use crate::error::CliError;
use crate::store::{self, Store};

/// Loads all data of one conversation.
///
/// # Errors
/// The store cannot be read, or the conversation contains unreadable events.
pub(crate) async fn load_export(
    store: &dyn Store,
    user: &UserId,
    summary: ConversationSummary,
) -> Result<Export, CliError> {
    let known = store.load(&store::key_of(user, summary.id)).await?;
    Ok(Export::new(summary, known))
}

/// Writes a file atomically and returns its full path. An existing one is replaced only with
/// `force`.
///
/// # Errors
/// The file exists, or cannot be written.
pub(crate) fn save(file: &Path, text: &str, force: bool) -> Result<PathBuf, CliError> {
    let place = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => file_exists(&place),
        _ => file_error(&place, "written", &error),
    };
    if !force {
        return write_new(&place, text)
            .map_err(failed)
            .map(|()| place.clone());
    }
    // A symbolic link is kept; the file it points to is replaced.
    let target = fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
    // Checked here, because the rename would fail only after the whole text was written.
    if target.is_dir() {
        return Err(failed(std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
    let beside = PathBuf::from(beside);
    write_new(&beside, text)
        .and_then(|()| fs::rename(&beside, &target))
        .map_err(|error| {
            // A partial file is removed; it may not exist.
            let _ = fs::remove_file(&beside);
            failed(error)
        })?;
    Ok(place)
}

/// Returns the error of a file that must not be replaced.
pub(crate) fn file_exists(place: &Path) -> CliError {
    CliError::failed(format!(
        "{} is there already; nothing was written",
        place.display()
    ))
    .or_try("another name")
    .or_try("--force    replaces it")
}

/// Creates a new file, completely or not at all.
fn write_new(place: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(place)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .inspect_err(|_| {
            // The error of the write is returned; a second one would hide it.
            let _ = fs::remove_file(place);
        })
}
