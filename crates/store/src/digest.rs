//! SHA-256 digests in hexadecimal.

use ring::digest::{SHA256, digest};

/// Returns the SHA-256 of a text in hexadecimal, for looking up a text as a whole.
pub(crate) fn hash(text: &str) -> String {
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map(char::from);
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(digit)
        .collect()
}
