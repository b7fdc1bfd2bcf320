//! [`PartFile`]: an unfinished download.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::{FailureCause, FetchError, PullError};
use crate::catalogue::KnownModel;
use crate::verified::sha256_of;

/// The beginning of a model's file, extended at its end. Locked, so that two processes never mix
/// their bytes.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    len: u64,
    total: u64,
}

impl PartFile {
    /// Opens the file that an earlier attempt left, or creates an empty one.
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
            // Some network file systems have no locks; the digest then detects two pulls at once.
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

    /// Returns the number of bytes so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if no bytes are missing.
    pub(super) fn is_whole(&self) -> bool {
        self.len == self.total
    }

    /// Appends bytes at the end.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        // A longer file is not the model, so nothing of the excess is written.
        if self.total - self.len < bytes.len() as u64 {
            return Err(FetchError::not_there(format!(
                "it sent more than the {} bytes of the model",
                self.total
            )));
        }
        self.file
            .write_all(bytes)
            .map_err(|error| self.write_error(error))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Deletes all bytes.
    pub(super) fn restart(&mut self) -> Result<(), PullError> {
        let emptied = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| self.write_error(error))?;
        self.len = 0;
        Ok(())
    }

    /// Compares the whole file with the model's digest; deletes all bytes if they are wrong.
    pub(super) async fn check(&mut self, model: &KnownModel) -> Result<(), FetchError> {
        let path = self.path.clone();
        let hashed = tokio::task::spawn_blocking(move || sha256_of(&path, &mut |_| {})).await;
        let found = hashed
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| self.write_error(error))?;
        if found == model.sha256 {
            return Ok(());
        }
        // No byte of a wrong file can be trusted, so the next source begins anew.
        self.restart()?;
        Err(FetchError::Source(FailureCause::WrongDigest {
            expected: model.sha256,
            found,
        }))
    }

    /// Renames the verified file to `target`.
    pub(super) fn finish(self, target: &Path) -> Result<(), PullError> {
        // Synced before the rename, so that the final name never belongs to an incomplete file.
        let renamed = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, target));
        renamed.map_err(|error| self.write_error(error))?;
        // So that the new name survives a power cut too. Not every system can open a folder.
        if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Returns the pull's error for a failure to write this file.
    pub(super) fn write_error(&self, error: io::Error) -> PullError {
        write_error(error, &self.path, self.total - self.len)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // An empty file is useless and would only confuse users. It is not another process's,
        // because we hold the lock.
        if self.len == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the pull's error for a failure to write at `path`.
pub(super) fn write_error(error: io::Error, path: &Path, missing_bytes: u64) -> PullError {
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
