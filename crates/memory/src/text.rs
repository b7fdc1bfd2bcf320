//! Edits of a text by byte ranges, and the digests and timestamps that files are marked with.

use std::ops::Range;

use jiff::Zoned;
use sha2::{Digest, Sha256};

use crate::vault::markdown::{bom_len, front_matter, line_ending};

/// Returns a text with a range replaced.
pub(crate) fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    format!(
        "{}{with}{}",
        before.unwrap_or_default(),
        after.unwrap_or_default()
    )
}

/// Returns the text to insert at `at`, the start of a line, so that `block` stands there with a
/// blank line before and after it. A text without final line ending stays one.
pub(crate) fn insertion(text: &str, at: usize, block: &str) -> String {
    let ending = line_ending(text);
    let (before, after) = (
        text.get(..at).unwrap_or_default(),
        text.get(at..).unwrap_or_default(),
    );
    let mut new = String::new();
    let is_start = before.trim_start_matches('\u{FEFF}').is_empty();
    let had_final = is_start || before.ends_with('\n');
    if !had_final {
        new.push_str(ending);
    }
    let blank_before = is_start
        || before.strip_suffix('\n').is_some_and(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            line.is_empty() || line.ends_with('\n')
        });
    // Without a blank line the block could continue the paragraph above it.
    if !blank_before {
        new.push_str(ending);
    }
    new.push_str(block);
    if !after.is_empty() {
        new.push_str(ending);
        if !after.starts_with(['\r', '\n']) {
            new.push_str(ending);
        }
    // A note without a last line ending keeps none.
    } else if had_final {
        new.push_str(ending);
    }
    new
}

/// Returns the text to insert at `at`, the end of a line, so that `line` is the line below it. A
/// text without final line ending stays one.
pub(crate) fn line_below(text: &str, at: usize, line: &str) -> String {
    let ending = line_ending(text);
    if at == text.len() && !text.ends_with('\n') {
        format!("{ending}{line}")
    } else {
        format!("{line}{ending}")
    }
}

/// Returns the lines of a text with their ranges, from a byte order mark on, without what ends
/// them.
pub(crate) fn lines_with_ranges(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = bom_len(text);
    let lines = text.get(at..).unwrap_or_default().split_inclusive('\n');
    lines.map(move |whole| {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let range = at..at + line.len();
        at += whole.len();
        (range, line)
    })
}

/// Returns the range of a value in the front matter of a text, behind the colon of its key.
pub(crate) fn front_matter_value(text: &str, wanted: &str) -> Option<Range<usize>> {
    let front = front_matter(text).0?;
    let mut at = front.start;
    for line in text.get(front)?.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        if bare.split_once(':').is_some_and(|(key, _)| key == wanted) {
            return Some(at + wanted.len() + 1..at + bare.len());
        }
        at += line.len();
    }
    None
}

/// Returns a text without control characters, its lines divided by `\n`.
pub(crate) fn without_controls(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|char| if char == '\r' { '\n' } else { char })
        .filter(|char| !char.is_control() || matches!(char, '\n' | '\t'))
        .collect()
}

/// Returns a text on one line, with single spaces.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first `bytes` bytes of the SHA-256 of a text, in hexadecimal digits.
pub(crate) fn sha256_hex(text: &[u8], bytes: usize) -> String {
    Sha256::digest(text)
        .iter()
        .take(bytes)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns a time as front matter has it: local, to the second, without zone.
pub(crate) fn timestamp(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
