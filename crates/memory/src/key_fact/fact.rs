//! A fact, its id, and the one line that it is.

use std::fmt;

use adjutant_core::MemorySource;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::MemoryError;
use crate::text::sha256_hex;

/// Bound of one fact, in Unicode characters: a fact is a line, not a note.
pub const FACT_CHARS_MAX: usize = 1_000;

/// The tag of an important fact.
pub(crate) const IMPORTANT: &str = "#important";

/// The id of a fact: the first 6 hexadecimal digits of its text's SHA-256. It changes with the
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactId(String);

impl FactId {
    pub(crate) fn from_text(text: &str) -> Self {
        // Computed from the text, so that the owner's file needs no marker.
        Self(sha256_hex(text.as_bytes(), 3))
    }

    /// Returns an id as it is written. `None` if no fact can have it.
    pub(crate) fn from_digits(digits: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 6 && digits.bytes().all(is_digit)).then(|| Self(digits.to_owned()))
    }

    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A lasting fact about the owner of a memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyFact {
    /// The id by which commands and models name the fact.
    pub id: FactId,
    /// The text, without its date and without `#important`.
    pub content: String,
    /// The tags in the text, with `#`; `#important` among them if the fact is important.
    pub tags: Vec<String>,
    /// The day on which it was recorded, from its line or from the ledger; none for an important
    /// fact written by hand.
    pub created: Option<Date>,
    /// The time at which it was recorded, if the ledger has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The conversation in which it was learned, if the ledger has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MemorySource>,
}

impl KeyFact {
    /// Returns true if the fact belongs into every instruction of the model.
    #[must_use]
    pub fn is_important(&self) -> bool {
        self.tags.iter().any(|tag| tag == IMPORTANT)
    }
}

/// Makes one line of a text: folds white space, takes `#important` out (it is an argument, not a
/// part of the text), and escapes a beginning that Markdown would read as structure. Returns true
/// with it if the tag was there.
///
/// # Errors
/// [`MemoryError::Fact`] for an empty text, and for more than [`FACT_CHARS_MAX`] characters.
pub(crate) fn parse_fact(words: &str) -> Result<(String, bool), MemoryError> {
    // Characters that turn the direction of text could make a fact read as another one.
    let visible = words.chars().filter(|char| {
        (!char.is_control() || char.is_whitespace())
            && !matches!(char, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
    });
    let visible: String = visible.collect();
    let (text, important) = without_important(&visible);
    // In Obsidian `%%` would hide all that follows it in the file.
    let text = text.replace("%%", "% %");
    let text = without_date_mark(&text);
    // Escaped, or the line would be read as a nested list, a heading or code, and not as a fact.
    let text = if is_structure(&text) {
        format!("\\{text}")
    } else {
        text
    };
    let chars = text.chars().count();
    let reason = match chars {
        0 => "a fact needs words".to_owned(),
        1..=FACT_CHARS_MAX => return Ok((text, important)),
        _ => format!(
            "a fact has at most {FACT_CHARS_MAX} characters, this one has {chars}; say it in fewer words, or as several facts"
        ),
    };
    Err(MemoryError::fact(reason))
}

/// Returns a text without the tag, and true if the tag was there.
pub(crate) fn without_important(text: &str) -> (String, bool) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kept: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != IMPORTANT)
        .collect();
    (kept.join(" "), kept.len() < words.len())
}

/// Returns the tags in a text: `#` and letters, digits, `_`, `-`, `/`, not digits alone.
pub(crate) fn tags_in(text: &str) -> Vec<String> {
    text.split_whitespace()
        .filter_map(crate::vault::note::tag_at_start)
        .map(|tag| format!("#{tag}"))
        .collect()
}

/// Writes a date in brackets at the beginning as text: in the file such a date is that of the line.
fn without_date_mark(text: &str) -> String {
    match date_mark(text) {
        Some((date, rest)) => format!("{date}: {}", rest.trim_start()),
        None => text.to_owned(),
    }
}

/// Returns true if Markdown would read the beginning of an item's text as structure: a quote, a
/// heading, a list, code, a checkbox or a rule.
fn is_structure(text: &str) -> bool {
    let digits = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let ends_mark = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    text.starts_with(['>', '<', '|', '~', '`', '='])
        || ["[ ]", "[x]", "[X]", "[^", "---", "***", "___"]
            .iter()
            .any(|mark| text.starts_with(mark))
        || ["#", "##", "###", "####", "#####", "######", "-", "+", "*"]
            .iter()
            .any(|mark| text.strip_prefix(mark).is_some_and(ends_mark))
        || (digits.len() < text.len() && digits.strip_prefix(['.', ')']).is_some_and(ends_mark))
}

/// Parses `[2025-12-10] rest`, also with the date as a link (`[[2025-12-10]]`).
pub(crate) fn date_mark(words: &str) -> Option<(Date, &str)> {
    let (inner, rest) = match words.strip_prefix("[[") {
        Some(linked) => linked.split_once("]]")?,
        None => words.strip_prefix('[')?.split_once(']')?,
    };
    // `parse` takes other forms of a date too, such as `20251210`.
    if inner.len() != 10 || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let date = inner.parse::<Date>().ok()?;
    Some((date, rest.trim_start_matches([' ', '\t'])))
}
