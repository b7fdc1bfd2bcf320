//! Reading files that somebody else may have put where they are found: those of a cloned folder, of
//! a vault, of a path that a message names.
//!
//! A name tells nothing: a link leads to a device that never ends, a pipe waits for a writer for
//! ever, a file has gigabytes. So a file is opened without waiting, and its kind and size are those
//! of the opened file, which nobody can exchange afterwards.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file for reading; symbolic links are followed. Never waits.
///
/// # Errors
/// It cannot be opened, or is something else: [`io::ErrorKind::IsADirectory`] for a folder,
/// [`io::ErrorKind::InvalidInput`] for a pipe, a device or a socket, with words for the user.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // A pipe is opened although nobody writes to it, and a terminal does not become the one
        // that controls this process. Neither changes anything for a regular file.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder, not a file",
        ));
    }
    if !kind.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is {}, not a file", special(kind)),
        ));
    }
    Ok(file)
}

/// Reads a regular file of at most `bytes_max` bytes. Never waits, and never reads more.
///
/// # Errors
/// As [`open_regular_file`]; [`io::ErrorKind::FileTooLarge`] if the file is longer.
pub fn read_regular_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular_file(path)?;
    // Told by its size, a file is not read at all.
    if file.metadata()?.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    read_at_most(file, bytes_max)
}

/// Reads at most `bytes_max` bytes of a file that the user named. It may be a pipe too, such as
/// that of `<(command)`, which is waited for.
///
/// # Errors
/// It cannot be read; [`io::ErrorKind::FileTooLarge`] if it has more.
pub fn read_named_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_at_most(File::open(path)?, bytes_max)
}

fn read_at_most(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed shows that there is more: a file may grow, and some have no size.
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(bytes)
}

fn too_large(bytes_max: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it has more than {bytes_max} bytes, the most that is read"),
    )
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "a device"
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "1234").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("endless")).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(pipe.unwrap().success());
        assert_eq!(read_regular_file(&at("link"), 4).unwrap(), b"1234");
        for (name, bytes_max, kind, words) in [
            ("link", 3, io::ErrorKind::FileTooLarge, "more than 3 bytes"),
            (
                "endless",
                9,
                io::ErrorKind::InvalidInput,
                "it is a device, not a file",
            ),
            (
                "pipe",
                9,
                io::ErrorKind::InvalidInput,
                "it is a pipe, not a file",
            ),
            (".", 9, io::ErrorKind::IsADirectory, "it is a folder"),
            ("gone", 9, io::ErrorKind::NotFound, "No such file"),
        ] {
            let error = read_regular_file(&at(name), bytes_max).unwrap_err();
            assert_eq!(error.kind(), kind, "{name}");
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
        let error = read_named_file(&at("endless"), 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
