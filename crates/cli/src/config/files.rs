//! Files of the user: read as text; written whole or not at all, and readable for their owner
//! alone.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::path::Path;

use adjutant_memory::{read_named_file, read_regular_file};

use crate::error::CliError;

/// Length of a file of settings, variables or instructions, in bytes: 1 MiB. A longer one is not
/// read.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Length of a file that a setting or an option names, in bytes: 64 MiB.
const NAMED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads a file's text, at most [`FILE_BYTES_MAX`]. `named`: the user named the file, so it has to
/// exist and may be a pipe; `None` is that of a file that was not named and does not exist.
pub(super) fn read_file(path: &Path, named: bool) -> Result<Option<String>, CliError> {
    let bytes = match named {
        true => read_named_file(path, FILE_BYTES_MAX),
        false => read_regular_file(path, FILE_BYTES_MAX),
    };
    match bytes.and_then(text) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(None),
        Err(error) => Err(
            CliError::configuration(format!("{} cannot be read", path.display()))
                .because(error.to_string()),
        ),
    }
}

fn text(bytes: Vec<u8>) -> std::io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

/// Reads the text of a file that the user named in a setting or an option: a script of a model, a
/// schema, an instruction. At most [`NAMED_BYTES_MAX`].
///
/// # Errors
/// It cannot be read, is longer, or is not UTF-8.
pub(crate) fn read_named_text(path: &Path) -> std::io::Result<String> {
    read_named_file(path, NAMED_BYTES_MAX).and_then(text)
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
