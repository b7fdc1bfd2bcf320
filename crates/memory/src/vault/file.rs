//! One file, read whole and replaced whole. After a crash at any moment the file holds the old text
//! or the new one, never a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::VaultError;
use crate::outside_file::read_regular_file;

/// Bound of a note that is read or written, in bytes: 4 MiB. Larger files are left alone.
pub const NOTE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The text of a file as it was read, a byte order mark included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredText(String);

impl StoredText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The place where a replacement is prepared before it is moved into the vault.
pub(super) struct StagingArea<'a> {
    /// The folder for temporary files. `None`: they are written beside their targets.
    pub(super) work: Option<&'a Path>,
    /// The name of the vault in the work folder, which several vaults may share.
    pub(super) tag: &'a str,
    /// The path of the note, for errors.
    pub(super) name: &'a str,
    /// The readers of a file that did not exist.
    pub(super) readers: Readers,
}

/// The readers of a new file. Nobody but its owner may write to it, whatever the umask allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The owner alone: facts about a person.
    Owner,
    /// Everybody that the umask allows, as for other notes of the vault.
    Usual,
}

/// Mode bits of folders in a vault, and of a folder of our own.
const FOLDER_MODE: u32 = 0o755;
const OWN_FOLDER_MODE: u32 = 0o700;

/// Reads a file, at most [`NOTE_BYTES_MAX`].
pub(super) fn read_text(path: &Path, name: &str) -> Result<StoredText, VaultError> {
    let failed = |error: io::Error| VaultError::from_file(name, "read", error);
    let bytes = read_regular_file(path, NOTE_BYTES_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(
            name,
            fs::metadata(path).map_or(NOTE_BYTES_MAX + 1, |about| about.len()),
        ),
        _ => failed(error),
    })?;
    String::from_utf8(bytes)
        .map(StoredText)
        .map_err(|error| VaultError::NotText {
            name: name.to_owned(),
            at: error.utf8_error().valid_up_to(),
            source: error.utf8_error(),
        })
}

pub(super) fn too_large(name: &str, bytes: u64) -> VaultError {
    VaultError::TooLarge {
        name: name.to_owned(),
        bytes,
        max: NOTE_BYTES_MAX,
    }
}

/// Writes `after` to a temporary file, makes it durable, checks again that the target is what
/// `before` read, and moves it there. Mode and owner are kept. Returns false if another program
/// wrote in between.
///
/// A write of another program between that check and the move is put back where the system can
/// exchange two files (Linux, macOS). Lost is only what a program writes later than that into a
/// file that it opened before; where two files cannot be exchanged, what it writes in that moment.
pub(super) fn replace(
    target: &Path,
    before: Option<&StoredText>,
    after: &[u8],
    staging: &StagingArea<'_>,
) -> Result<bool, VaultError> {
    let failed = |error: io::Error| VaultError::from_file(staging.name, "write", error);
    let folder = target
        .parent()
        .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    if before.is_some() {
        // A rename needs only the permission of the folder, so it would replace a read-only file
        // too.
        let metadata = fs::metadata(target).map_err(failed)?;
        if metadata.permissions().readonly() {
            return Err(VaultError::ReadOnly {
                name: staging.name.to_owned(),
                source: None,
            });
        }
    } else {
        create_folders(folder, FOLDER_MODE).map_err(failed)?;
    }
    // A watcher of the vault, such as a synchronisation, sees no half-written file in the work
    // folder.
    if let Some(work) = staging.work {
        // If this fails, the folder cannot be used, and the file is written beside the target.
        let _ = create_folders(work, OWN_FOLDER_MODE);
        let temporary = new_temporary(work, &format!("{}-", staging.tag));
        if may_be_same_device(work, folder)
            && let Ok(file) = create(&temporary, staging.readers)
        {
            match write_and_move(file, &temporary, target, before, after) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
                done => return done.map_err(failed),
            }
        }
    }
    let temporary = new_temporary(folder, ".adjutant-");
    let file = create(&temporary, staging.readers).map_err(failed)?;
    write_and_move(file, &temporary, target, before, after).map_err(failed)
}

/// Returns true if a rename from `work` to `folder` may work. It may still fail: one device can be
/// mounted twice.
#[cfg(unix)]
fn may_be_same_device(work: &Path, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(work), fs::metadata(folder)) {
        (Ok(work), Ok(folder)) => work.dev() == folder.dev(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn may_be_same_device(_work: &Path, _folder: &Path) -> bool {
    true
}

/// Returns a new name in a folder. Other temporary files there with the prefix were left by a
/// process that died: the vault's lock is held, so no other process is writing.
fn new_temporary(folder: &Path, prefix: &str) -> PathBuf {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_leftover = name
            .to_str()
            .is_some_and(|name| name.starts_with(prefix) && name.ends_with(".tmp"));
        if is_leftover {
            // If that fails, the next write tries it again.
            let _ = fs::remove_file(entry.path());
        }
    }
    folder.join(format!("{prefix}{}.tmp", Uuid::now_v7().simple()))
}

#[cfg_attr(
    not(unix),
    expect(
        unused_variables,
        reason = "files have the access rights of their folder"
    )
)]
fn create(temporary: &Path, readers: Readers) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Fails if the name exists, so a link that was put there is not followed.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(
        &mut options,
        match readers {
            Readers::Owner => 0o600,
            Readers::Usual => 0o644,
        },
    );
    options.open(temporary)
}

/// Creates the folders of a path that are missing; the umask takes its part of their mode.
#[cfg_attr(
    not(unix),
    expect(unused_variables, reason = "folders have the access rights of theirs")
)]
fn create_folders(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    builder.create(path)
}

fn write_and_move(
    mut file: File,
    temporary: &Path,
    target: &Path,
    before: Option<&StoredText>,
    after: &[u8],
) -> io::Result<bool> {
    let done = fill_temporary(&mut file, target, before, after).and_then(|()| {
        drop(file);
        if !is_unchanged(target, before)? {
            return Ok(false);
        }
        match before {
            Some(before) => swap_in(temporary, target, before, after),
            None => move_to_free_name(temporary, target),
        }
    });
    // After an exchange this is the old text, after an error the new one; after a rename there is
    // nothing to remove.
    let _ = fs::remove_file(temporary);
    done
}

fn fill_temporary(
    file: &mut File,
    target: &Path,
    before: Option<&StoredText>,
    after: &[u8],
) -> io::Result<()> {
    file.write_all(after)?;
    if before.is_some() {
        let metadata = fs::metadata(target)?;
        // The owner first: a change of the owner clears some mode bits.
        keep_owner(file, &metadata);
        file.set_permissions(metadata.permissions())?;
    }
    // Durable before the move: after a crash a name without its content would be worse than the old
    // file.
    file.sync_all()
}

/// Gives the new file the owner of the old one. That matters when an administrator's process writes
/// to a user's vault. Without the right to give files away the owner is that of this process.
#[cfg(unix)]
fn keep_owner(file: &File, metadata: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(metadata.uid()), Some(metadata.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _about: &fs::Metadata) {}

fn is_unchanged(target: &Path, before: Option<&StoredText>) -> io::Result<bool> {
    match read_regular_file(target, NOTE_BYTES_MAX) {
        Ok(now) => Ok(before.is_some_and(|before| before.0.as_bytes() == now)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(before.is_none()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts a file in the place of `before`. Returns false if the target was another file by then; that
/// one is put back.
fn swap_in(temporary: &Path, target: &Path, before: &StoredText, after: &[u8]) -> io::Result<bool> {
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
    // The content is compared only after this: it takes a while, in which a program that had opened
    // the file before may still write into it.
    sync_folder(target);
    let mut out = match read_regular_file(temporary, NOTE_BYTES_MAX) {
        Ok(out) if out == before.0.as_bytes() => return Ok(true),
        other => other.unwrap_or_default(),
    };
    // Another program's write came out, so it goes back. What comes out of the target then has to
    // be what was put there; else it is a newer write, and goes back in turn.
    let mut put = after.to_vec();
    loop {
        // The target was removed in between, so the file that came out is moved back.
        if exchange(temporary, target).is_err() {
            fs::rename(temporary, target)?;
            return Ok(false);
        }
        let now = read_regular_file(temporary, NOTE_BYTES_MAX).unwrap_or_default();
        if now == put {
            sync_folder(target);
            return Ok(false);
        }
        put = std::mem::replace(&mut out, now);
    }
}

/// Puts a file where there is none. Returns false if there is one by now.
fn move_to_free_name(temporary: &Path, target: &Path) -> io::Result<bool> {
    // A hard link is made only if the name is free, so that a note that another program creates at
    // this moment is not lost. Some file systems have no links; there the name was free a moment
    // ago.
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

/// Returns true if two files cannot be exchanged here, because of the system or of the file system.
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
        // The content is durable already; some file systems cannot sync a folder.
        let _ = folder.sync_all();
    }
}

#[cfg(all(test, any(target_os = "linux", target_vendor = "apple")))]
mod tests {
    use super::*;

    #[test]
    fn a_write_since_the_last_check_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, target) = (folder.path().join("ours"), folder.path().join("note.md"));
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        let before = StoredText("before".to_owned());
        for (there, done) in [("before", true), ("another", false), ("", false)] {
            fs::write(&ours, "after").unwrap();
            fs::write(&target, there).unwrap();
            assert_eq!(
                swap_in(&ours, &target, &before, b"after").unwrap(),
                done,
                "{there:?}"
            );
            assert_eq!(text(&target), if done { "after" } else { there });
            assert_eq!(text(&ours), if done { "before" } else { "after" });
        }
        // It was removed since.
        fs::remove_file(&target).unwrap();
        assert!(!swap_in(&ours, &target, &before, b"after").unwrap());
        assert!(!target.exists());
    }
}
