//! Verification of model files by their digest, once per state of the file.
//!
//! The digest of a gigabyte takes seconds, so it is not computed at every start: a marker beside
//! the file has the size and modification time for which it was correct. A changed file has another
//! time and is verified again.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// The suffix of a marker, after the name of the model file.
const SUFFIX: &str = ".verified";

/// The number of bytes read at a time.
const BUFFER_LEN: usize = 1 << 20;

/// Returns true if `file` was verified to have the digest `sha256` and not changed since. False if
/// that is unknown.
pub(crate) fn is_marked(file: &Path, sha256: &str) -> bool {
    marker(file, sha256).is_ok_and(|expected| {
        fs::read_to_string(marker_path(file)).is_ok_and(|found| found == expected)
    })
}

/// Records that `file`, as it is now, has the digest `sha256`.
pub(crate) fn mark(file: &Path, sha256: &str) {
    // Best effort: without the marker the digest is computed again.
    let _ = marker(file, sha256).and_then(|marker| fs::write(marker_path(file), marker));
}

/// Removes the marker of `file`, if there is one.
pub(crate) fn unmark(file: &Path) {
    let _ = fs::remove_file(marker_path(file));
}

/// Computes the SHA-256 of a file, lower-case hexadecimal. Calls `progress` with the bytes read so
/// far.
pub(crate) fn sha256_of(path: &Path, progress: &mut dyn FnMut(u64)) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; BUFFER_LEN];
    let mut done = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
        done += count as u64;
        progress(done);
    }
    Ok(hex(&digest.finalize()))
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn marker_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

/// Returns the text of the marker of `file` with the digest `sha256`.
fn marker(file: &Path, sha256: &str) -> io::Result<String> {
    let data = fs::metadata(file)?;
    // Whole seconds, because archives and images store no more.
    let modified = data
        .modified()?
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    Ok(format!(
        "sha256 {sha256}\nbytes {}\nmodified {modified}\n",
        data.len()
    ))
}
