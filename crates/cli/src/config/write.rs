//! Writing files that are the person's: whole or not at all, and readable for nobody else.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Writes a file that only its owner may read, not even for a moment anybody else. The file is
/// there whole, or as it was. A symbolic link stays one: what it leads to is written.
///
/// # Errors
/// The folder cannot be made, or the file not written.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), CliError> {
    write(file, text, None)
}

/// The same for a file that may be there with permissions of its own: it keeps them.
///
/// # Errors
/// As [`write_private`].
pub(crate) fn write_kept(file: &Path, text: &str) -> Result<(), CliError> {
    write(
        file,
        text,
        fs::metadata(file).ok().map(|data| data.permissions()),
    )
}

fn write(file: &Path, text: &str, permissions: Option<Permissions>) -> Result<(), CliError> {
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    replace(&target, text, permissions).map_err(|error| {
        CliError::configuration(format!("{} cannot be written", file.display()))
            .because(error.to_string())
    })
}

fn replace(file: &Path, text: &str, permissions: Option<Permissions>) -> std::io::Result<()> {
    let folder = file
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_owned);
    make_private(&folder)?;
    // Made with mode 0600 from the beginning.
    let mut new = tempfile::Builder::new()
        .prefix(".adjutant-")
        .suffix(".tmp")
        .tempfile_in(&folder)?;
    new.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        new.as_file().set_permissions(permissions)?;
    }
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Makes a folder that only its owner may enter; one that is there stays as it is.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Whether anybody but the owner may read a file. `false` where permissions are none.
pub(crate) fn others_can_read(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(file).is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}
