//! The facts of a file, cached as long as it is the same file.

use std::fs;
#[cfg(unix)]
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;

use super::corpus::FactCorpus;

/// Age in seconds from which the modification time of a file is trusted. A file system may give two
/// changes within a second or two the same time.
const SETTLED_SECONDS: i64 = 2;

/// The facts that were read last, with the fingerprint of their file.
#[derive(Default)]
pub(crate) struct FactCache(Mutex<Option<(FileFingerprint, Arc<FactCorpus>)>>);

impl FactCache {
    /// Returns the cached facts, if they were read from a file with this fingerprint.
    pub(crate) fn get(&self, fingerprint: &FileFingerprint) -> Option<Arc<FactCorpus>> {
        // The entry is replaced as a whole, so a panic elsewhere cannot leave half of one.
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached
            .as_ref()
            .filter(|(known, _)| known == fingerprint)
            .map(|(_, facts)| facts.clone())
    }

    /// Caches the facts of a file, unless it may have changed while or since it was read: if its
    /// fingerprints `before` and `after` reading differ, or if it was modified just before `now`.
    pub(crate) fn put(
        &self,
        before: FileFingerprint,
        after: Option<&FileFingerprint>,
        now: Timestamp,
        facts: &Arc<FactCorpus>,
    ) {
        let is_settled = before
            .modified_at()
            .is_some_and(|at| now.duration_since(at).as_secs() >= SETTLED_SECONDS);
        // Else the cache is emptied: the facts before are those of an older file.
        let is_unchanged = is_settled && after == Some(&before);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            is_unchanged.then(|| (before, facts.clone()));
    }
}

/// The metadata that tell whether a file is the same, with the same content, as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFingerprint {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl FileFingerprint {
    /// Returns the fingerprint of a file. `None` if there is no such file, or its system has no
    /// modification times.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            path: path.to_owned(),
            bytes: metadata.len(),
            modified: metadata.modified().ok()?,
            #[cfg(unix)]
            inode: inode(&metadata),
        })
    }

    fn modified_at(&self) -> Option<Timestamp> {
        self.modified.try_into().ok()
    }
}

/// Returns the identity of a file and the time at which anything about it changed. Unlike the
/// modification time, no program can set that one back.
#[cfg(unix)]
fn inode(metadata: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (
        metadata.dev(),
        metadata.ino(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}
