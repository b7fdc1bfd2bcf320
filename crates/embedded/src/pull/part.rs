//! The unfinished file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{FailureCause, PullError, Stop};
use crate::catalogue::KnownModel;
use crate::verified::digest_of;

/// The beginning of a model, growing at its end. Locked, so that two processes never mix their
/// bytes.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    len: u64,
    total: u64,
}

impl PartFile {
    /// Opens what an earlier attempt left, or an empty file.
    pub(super) fn open(model: &KnownModel, models_dir: &Path) -> Result<Self, PullError> {
        let path = model.part_in(models_dir);
        let not_writable = |source| PullError::NotWritable {
            path: path.clone(),
            source,
        };
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = opened.map_err(not_writable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PullError::Busy { path }),
            // Some network disks know no locks; two pulls at once are then caught by the digest.
            Err(TryLockError::Error(_)) => {}
        }
        let len = file.seek(SeekFrom::End(0)).map_err(not_writable)?;
        let mut part = Self {
            file,
            path,
            len,
            total: model.bytes,
        };
        if len > model.bytes {
            part.restart()?;
        }
        Ok(part)
    }

    /// Bytes there.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.len == self.total
    }

    /// Adds bytes at the end.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.total - self.len < bytes.len() as u64 {
            return Err(Stop::not_there(format!(
                "it sent more than the {} bytes of the model",
                self.total
            )));
        }
        self.file
            .write_all(bytes)
            .map_err(|error| self.not_written(error))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Throws everything away.
    pub(super) fn restart(&mut self) -> Result<(), PullError> {
        let emptied = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| self.not_written(error))?;
        self.len = 0;
        Ok(())
    }

    /// Compares the whole file with the model's digest; wrong bytes are thrown away.
    pub(super) async fn check(&mut self, model: &KnownModel) -> Result<(), Stop> {
        let path = self.path.clone();
        let hashed = tokio::task::spawn_blocking(move || digest_of(&path, &mut |_| {})).await;
        let found = hashed
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| self.not_written(error))?;
        if found == model.sha256 {
            return Ok(());
        }
        self.restart()?;
        Err(Stop::Source(FailureCause::WrongDigest {
            expected: model.sha256,
            found,
        }))
    }

    /// Gives the checked file its name.
    pub(super) fn finish(self, target: &Path) -> Result<(), PullError> {
        let renamed = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, target));
        renamed.map_err(|error| self.not_written(error))?;
        // So that the new name survives a power cut too; not every system lets a folder be opened.
        if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// What a failure to write means to the person.
    pub(super) fn not_written(&self, error: io::Error) -> PullError {
        not_written(error, &self.path, self.total - self.len)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // An empty leftover says nothing and would only puzzle people. Never another process's: we
        // hold the lock.
        if self.len == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What a failure to write at `path` means to the person.
pub(super) fn not_written(error: io::Error, path: &Path, missing_bytes: u64) -> PullError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => PullError::DiskFull {
            path,
            missing_bytes,
        },
        _ => PullError::NotWritable {
            path,
            source: error,
        },
    }
}
