//! Files of the repository that training writes.

use std::path::Path;

/// Writes a file and says so.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(root: &Path, file: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(root.join(file), bytes).map_err(|error| format!("{file}: {error}"))?;
    println!("written: {file}");
    Ok(())
}
