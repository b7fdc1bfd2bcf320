//! One file: read whole, replaced whole. After a crash at any instant there is the old file or the
//! new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::VaultError;

/// Bytes of one note that are read or written at most: 4 MiB. Larger files are left alone.
pub const NOTE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a file held when it was read: UTF-8 text, a byte order mark included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored(String);

impl Stored {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Where a replacement is prepared, and what the file is called in errors.
pub(super) struct Place<'a> {
    pub(super) work: Option<&'a Path>,
    pub(super) tag: &'a str,
    pub(super) name: &'a str,
}

/// Reads it, at most [`NOTE_BYTES_MAX`].
pub(super) fn read(path: &Path, name: &str) -> Result<Stored, VaultError> {
    let failed = |error: io::Error| VaultError::of_file(name, "read", &error);
    let too_large = |bytes| VaultError::TooLarge {
        name: name.to_owned(),
        bytes,
        max: NOTE_BYTES_MAX,
    };
    // Of a file that says how large it is nothing is read.
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > NOTE_BYTES_MAX {
        return Err(too_large(size));
    }
    let bytes = read_bytes(path).map_err(failed)?;
    if bytes.len() as u64 > NOTE_BYTES_MAX {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes)
        .map(Stored)
        .map_err(|error| VaultError::NotText {
            name: name.to_owned(),
            at: error.utf8_error().valid_up_to(),
        })
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(NOTE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes `after` to a temporary file, makes it durable, looks once more whether the target is what
/// `before` read, and moves it there. Mode and owner are kept. `false` if somebody else wrote in
/// between.
///
/// A write of another program between the last look and the move is put back where the system can
/// exchange two files (Linux, macOS). Lost is what a program writes later than that into a file
/// that it opened before; where two files cannot be exchanged, what it writes in that instant.
pub(super) fn replace(
    target: &Path,
    before: Option<&Stored>,
    after: &[u8],
    place: &Place<'_>,
) -> Result<bool, VaultError> {
    let failed = |error: io::Error| VaultError::of_file(place.name, "write", &error);
    let folder = target
        .parent()
        .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    if before.is_some() {
        // A rename would replace it all the same: only the folder's permission counts for that.
        let about = fs::metadata(target).map_err(failed)?;
        if about.permissions().readonly() {
            return Err(VaultError::ReadOnly {
                name: place.name.to_owned(),
            });
        }
    } else {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if let Some(work) = place.work.filter(|work| may_be_same_device(work, folder)) {
        match attempt(target, before, after, &in_work_folder(work, place.tag)) {
            Err(error) if is_elsewhere(&error) => {}
            done => return done.map_err(failed),
        }
    }
    attempt(target, before, after, &beside(folder)).map_err(failed)
}

/// Whether a rename from `work` to `folder` may work. It may still fail: one device can be mounted
/// twice.
#[cfg(unix)]
fn may_be_same_device(work: &Path, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let _ = fs::create_dir_all(work);
    match (fs::metadata(work), fs::metadata(folder)) {
        (Ok(work), Ok(folder)) => work.dev() == folder.dev(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn may_be_same_device(_work: &Path, _folder: &Path) -> bool {
    true
}

/// A name in the work folder. Whatever else has this vault's name there was left by a process that
/// died: the lock is held.
fn in_work_folder(work: &Path, tag: &str) -> PathBuf {
    let _ = fs::create_dir_all(work);
    clear(work, &format!("{tag}-"));
    work.join(format!("{tag}-{}.tmp", Uuid::now_v7().simple()))
}

/// A hidden name beside the target.
fn beside(folder: &Path) -> PathBuf {
    clear(folder, ".adjutant-");
    folder.join(format!(".adjutant-{}.tmp", Uuid::now_v7().simple()))
}

fn clear(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let left = name
            .to_str()
            .is_some_and(|name| name.starts_with(prefix) && name.ends_with(".tmp"));
        if left {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The work folder is of no use for this vault: on another file system, or not usable at all.
fn is_elsewhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::CrossesDevices)
        || error
            .get_ref()
            .is_some_and(|inner| inner.is::<NoWorkFolder>())
}

#[derive(Debug, thiserror::Error)]
#[error("the work folder cannot be used")]
struct NoWorkFolder;

fn attempt(
    target: &Path,
    before: Option<&Stored>,
    after: &[u8],
    temporary: &Path,
) -> io::Result<bool> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(temporary)
        .map_err(|error| {
            // Beside the target this is the error; in the work folder it is a reason to go beside.
            if temporary.parent() == target.parent() {
                error
            } else {
                io::Error::other(NoWorkFolder)
            }
        })?;
    let done = fill(&mut file, target, before, after).and_then(|()| {
        drop(file);
        if !unchanged(target, before)? {
            return Ok(false);
        }
        match before {
            Some(before) => swap(temporary, target, before, after),
            None => put_new(temporary, target),
        }
    });
    // After a rename there is nothing left to remove.
    let _ = fs::remove_file(temporary);
    done
}

fn fill(file: &mut File, target: &Path, before: Option<&Stored>, after: &[u8]) -> io::Result<()> {
    file.write_all(after)?;
    if before.is_some() {
        let about = fs::metadata(target)?;
        keep_owner(file, &about);
        file.set_permissions(about.permissions())?;
    }
    file.sync_all()
}

/// The owner matters when an administrator's process writes to somebody's vault. Without the right
/// to give files away there is nothing to do: then the owner is who runs this.
#[cfg(unix)]
fn keep_owner(file: &File, about: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(about.uid()), Some(about.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _about: &fs::Metadata) {}

fn unchanged(target: &Path, before: Option<&Stored>) -> io::Result<bool> {
    match (before, read_bytes(target)) {
        (Some(before), Ok(now)) => Ok(before.0.as_bytes() == now),
        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        (Some(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        (None, Ok(_)) => Ok(false),
        (_, Err(error)) => Err(error),
    }
}

/// Puts a file in the place of `before`. `false` if it was another by then: that one is put back.
fn swap(temporary: &Path, target: &Path, before: &Stored, after: &[u8]) -> io::Result<bool> {
    match exchange(temporary, target) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if is_unsupported(&error) => {
            fs::rename(temporary, target)?;
            sync_folder(target);
            return Ok(true);
        }
        Err(error) => return Err(error),
    }
    // Takes a while, in which a program that had opened the file before may still write into it.
    sync_folder(target);
    let mut out = match read_bytes(temporary) {
        Ok(out) if out == before.0.as_bytes() => return Ok(true),
        other => other.unwrap_or_default(),
    };
    // Somebody's write came out: back with it. What comes out then has to be what was put there;
    // else it is a newer write.
    let mut put = after.to_vec();
    loop {
        if exchange(temporary, target).is_err() {
            fs::rename(temporary, target)?;
            return Ok(false);
        }
        let now = read_bytes(temporary).unwrap_or_default();
        if now == put {
            sync_folder(target);
            return Ok(false);
        }
        put = std::mem::replace(&mut out, now);
    }
}

/// Puts a file where there is none. `false` if there is one by now.
fn put_new(temporary: &Path, target: &Path) -> io::Result<bool> {
    // A link is made only if the name is free, so that a note somebody creates at this instant is
    // not lost. Some file systems have no links; there the name was free a moment ago.
    match fs::hard_link(temporary, target) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(_) => fs::rename(temporary, target)?,
    }
    sync_folder(target);
    Ok(true)
}

/// Exchanges two files in one step.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether two files cannot be exchanged here, be it for the system or for the file system.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

/// Makes the rename itself durable, where a folder can be opened for that.
fn sync_folder(target: &Path) {
    if let Some(folder) = target.parent()
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

#[cfg(all(test, any(target_os = "linux", target_vendor = "apple")))]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_the_last_look_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, target) = (folder.path().join("ours"), folder.path().join("note.md"));
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        let before = Stored("before".to_owned());
        for (there, done) in [("before", true), ("an editor's", false), ("", false)] {
            fs::write(&ours, "after").unwrap();
            fs::write(&target, there).unwrap();
            assert_eq!(
                swap(&ours, &target, &before, b"after").unwrap(),
                done,
                "{there:?}"
            );
            assert_eq!(text(&target), if done { "after" } else { there });
            assert_eq!(text(&ours), if done { "before" } else { "after" });
        }
        // It was removed since.
        fs::remove_file(&target).unwrap();
        assert!(!swap(&ours, &target, &before, b"after").unwrap());
        assert!(!target.exists());
    }
}
