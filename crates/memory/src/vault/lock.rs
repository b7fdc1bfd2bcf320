//! The lock of a vault, which lets one writer at a time in, over all processes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::VaultError;

/// Time that another writer is waited for.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The exclusive right to write in a vault, held while a file is read, changed and replaced.
/// Released when the last clone is dropped, and by the system when the process dies.
#[derive(Debug, Clone)]
pub(crate) struct VaultLock {
    _file: Arc<File>,
}

/// Locks the vault's own folder, which leaves no file anywhere and is the same for every process
/// whatever its settings. Where a folder cannot be locked (Windows, some network file systems),
/// locks a file in the system's temporary folder.
pub(super) fn acquire(root: &Path, tag: &str) -> Result<VaultLock, VaultError> {
    let name = || root.display().to_string();
    match File::open(root) {
        Ok(file) => {
            if let Some(lock) = wait(file, &name)? {
                return Ok(lock);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(VaultError::from_root(root, error));
        }
        // Windows cannot open a folder as a file.
        Err(_) => {}
    }
    let path = std::env::temp_dir().join(format!("adjutant-vault-{}.lock", tag));
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| VaultError::from_file(&path.display().to_string(), "open", error))?;
    wait(file, &name)?.ok_or_else(|| VaultError::Io {
        name: name(),
        source: io::Error::new(
            io::ErrorKind::Unsupported,
            "this system cannot lock files, so two writers could not be kept apart",
        ),
    })
}

/// Waits for the lock of a file. `None` if this file cannot be locked at all.
fn wait(file: File, name: &dyn Fn() -> String) -> Result<Option<VaultLock>, VaultError> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => {
                let _file = Arc::new(file);
                return Ok(Some(VaultLock { _file }));
            }
            Err(TryLockError::WouldBlock) if begun.elapsed() >= WAIT_MAX => {
                return Err(VaultError::Busy { name: name() });
            }
            Err(TryLockError::WouldBlock) => {
                // The system has no lock with a time-out, so it is tried again with growing pauses.
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            // The file system has no locks: the caller locks another file.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}
