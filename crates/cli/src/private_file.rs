//! Files with private contents, which other users of the machine must not read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that only its owner may read and write, on systems with such permissions.
///
/// # Errors
/// The file exists, or cannot be created.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_private(path, options.write(true).create_new(true))
}

/// Opens a file to append to, which is created with its folder if it does not exist.
///
/// # Errors
/// The folder or the file cannot be created or opened.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder)?;
    }
    open_private(path, OpenOptions::new().append(true).create(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
