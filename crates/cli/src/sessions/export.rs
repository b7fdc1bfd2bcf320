//! One conversation in a file.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use adjutant_core::UserId;
use adjutant_core::port::ConversationSummary;
use adjutant_service::export::Export;

use crate::error::CliError;
use crate::store::{self, Store};

/// Reads everything of one conversation.
///
/// # Errors
/// The store cannot be read, or something in the conversation cannot be understood.
pub(crate) async fn export_of(
    store: &dyn Store,
    user: &UserId,
    summary: ConversationSummary,
) -> Result<Export, CliError> {
    let known = store.load(&store::key_of(user, summary.id)).await?;
    Ok(Export::of(summary, known))
}

/// Writes a file. One that is there is replaced only with `force`, and only by a whole new one.
/// Gives its full path.
///
/// # Errors
/// There is one already, or it cannot be written.
pub(crate) fn save(file: &Path, text: &str, force: bool) -> Result<PathBuf, CliError> {
    let place = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::failed(format!(
            "{} is there already; nothing was written",
            place.display()
        ))
        .or_try("another name")
        .or_try("--force    replaces it"),
        _ => CliError::failed(format!("{} cannot be written", place.display()))
            .because(error.to_string()),
    };
    if !force {
        return write_new(&place, text)
            .map_err(failed)
            .map(|()| place.clone());
    }
    // What a link names is replaced, and not the link.
    let target = fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
    if target.is_dir() {
        return Err(failed(std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
    let beside = PathBuf::from(beside);
    write_new(&beside, text)
        .and_then(|()| fs::rename(&beside, &target))
        .map_err(|error| {
            // Nothing of an attempt is left; if there is nothing to remove, that is as good.
            let _ = fs::remove_file(&beside);
            failed(error)
        })?;
    Ok(place)
}

/// Writes a file that is not there yet: whole, or not at all.
fn write_new(place: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(place)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .inspect_err(|_| {
            let _ = fs::remove_file(place);
        })
}
