//! Files that hold what people said: for whoever makes them, and nobody else of the machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that only its owner reads and writes, where the system knows such files.
///
/// # Errors
/// Something of that name is there, or it cannot be created.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
