//! Writes JSON strings straight into a buffer, without a `serde_json::Value` in between. The bytes
//! are the same as those of `serde_json`.

use serde::Serialize;

// Eight bytes at once in one `u64`: `ONES` has 1 in every byte, `HIGH` the high bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

/// Appends a string, escaped and with quotes around it.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends a string, escaped, without quotes around it.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    loop {
        let (plain, behind) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = behind.split_first() else {
            return;
        };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.push(DIGITS[usize::from(byte >> 4)]);
                out.push(DIGITS[usize::from(byte & 0xf)]);
            }
        }
        rest = behind;
    }
}

/// Appends a value as JSON.
///
/// # Errors
/// Those of `serde_json`, if the value cannot be JSON.
pub(crate) fn push(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, value)
}

/// Returns the length of a string literal whose opening quote comes before these bytes: up to its
/// closing quote. `None` if it has no end or a raw control character. Escapes are not checked.
pub(crate) fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain_length(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some(at),
            // The next byte is part of the escape, even if it is a quote.
            b'\\' => at += 2,
            _ => return None,
        }
    }
}

/// Returns the number of bytes at the beginning that need no escape. Reads eight at a time, because
/// instructions and tool results are long.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        // The lowest bit that is set belongs to the first control character, quote or backslash.
        let found = (control | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c))) & HIGH;
        if found != 0 {
            return at * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    words.len() * 8 + rest.iter().position(special).unwrap_or(rest.len())
}

/// Returns the high bit of every byte that is zero; bits above the lowest such byte may be wrong.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        push_text(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it() {
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        for at in 0..9 {
            let text = format!("{}{all}", "x".repeat(at));
            assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_writes_it(text in any::<String>(), plain in "[a-z\"\\\\\n\u{1f}\u{7f}ä🦀]{0,40}") {
            prop_assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
            prop_assert_eq!(written(&plain), serde_json::to_string(&plain).unwrap());
        }
    }
}
