//! Files of the user: read as text; written whole or not at all, and readable for their owner
//! alone.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::path::Path;

use crate::error::CliError;

/// Reads a file's text. `None`: it does not exist and need not (`required`).
pub(super) fn read_file(path: &Path, required: bool) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(None),
        Err(error) => Err(
            CliError::configuration(format!("{} cannot be read", path.display()))
                .because(error.to_string()),
        ),
    }
}

/// Writes a file that only its owner may read, at no moment anybody else. After an error the file
/// is as it was. A symbolic link stays one: the file it leads to is written.
///
/// # Errors
/// The folder cannot be made, or the file cannot be written.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), CliError> {
    write(file, text, None)
}

/// Writes a file as [`write_private`] does; one that exists keeps its permissions.
///
/// # Errors
/// As [`write_private`].
pub(crate) fn write_keeping_permissions(file: &Path, text: &str) -> Result<(), CliError> {
    let permissions = fs::metadata(file).ok().map(|data| data.permissions());
    write(file, text, permissions)
}

fn write(file: &Path, text: &str, permissions: Option<Permissions>) -> Result<(), CliError> {
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    replace(&target, text, permissions).map_err(|error| {
        CliError::configuration(format!("{} cannot be written", file.display()))
            .because(error.to_string())
    })
}

fn replace(file: &Path, text: &str, permissions: Option<Permissions>) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    // A folder that exists keeps its permissions.
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    // Made with mode 0600 from the beginning, and in the same folder: a rename to another file
    // system would not be atomic.
    let mut new = tempfile::Builder::new()
        .prefix(".adjutant-")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        new.as_file().set_permissions(permissions)?;
    }
    // Before the rename: after a power failure the name must not lead to an empty file.
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Returns a warning if others than the owner may read a file of keys. Never on Windows.
pub(super) fn warn_if_others_can_read(file: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(file).ok()?.permissions().mode();
        (mode & 0o077 != 0).then(|| {
            format!(
                "{0} holds keys, and others on this machine can read it: chmod 600 {0}",
                file.display()
            )
        })
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}
