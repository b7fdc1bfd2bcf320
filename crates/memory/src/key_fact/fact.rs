//! One fact.

use std::fmt;

use adjutant_core::MemorySource;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::MemoryError;

/// Unicode characters of one fact: a fact is a line, not a note.
pub const FACT_CHARS_MAX: usize = 1_000;

/// The tag that makes a fact important.
pub(crate) const IMPORTANT: &str = "#important";

/// What a fact is called in commands: the first 6 hexadecimal digits of its text's SHA-256. It
/// changes with the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactId(String);

impl FactId {
    pub(crate) fn of(text: &str) -> Self {
        Self(
            Sha256::digest(text.as_bytes())
                .iter()
                .take(3)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// The digits.
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

/// A persistent piece of information about the vault's owner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyFact {
    /// What it is called in commands.
    pub id: FactId,
    /// The fact, without its date and without `#important`.
    pub content: String,
    /// Its tags with `#`; `#important` among them if it is.
    pub tags: Vec<String>,
    /// The day it was recorded, as its line or its history says; none for an important fact written
    /// by hand.
    pub created: Option<Date>,
    /// When it was recorded, if its history knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The conversation where it was learned, if its history knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MemorySource>,
}

impl KeyFact {
    /// Whether a model is always told.
    #[must_use]
    pub fn is_important(&self) -> bool {
        self.tags.iter().any(|tag| tag == IMPORTANT)
    }
}

/// Makes one line of somebody's words: white space folded, `#important` taken out (it is an
/// argument, not a word), and a beginning that Markdown would read as structure escaped.
///
/// # Errors
/// [`MemoryError::Fact`] for nothing, and for more than [`FACT_CHARS_MAX`] characters.
pub(crate) fn line_of(words: &str) -> Result<(String, bool), MemoryError> {
    let visible = words.chars().filter(|char| {
        (!char.is_control() || char.is_whitespace())
            && !matches!(char, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
    });
    let visible: String = visible.collect();
    let (text, important) = without_important(&visible);
    // `%%` would hide whatever follows it in the file.
    let text = text.replace("%%", "% %");
    let text = without_date_mark(&text);
    let text = if is_structure(&text) {
        format!("\\{text}")
    } else {
        text
    };
    if text.is_empty() {
        return Err(MemoryError::Fact {
            reason: "a fact needs words".to_owned(),
        });
    }
    let chars = text.chars().count();
    if chars > FACT_CHARS_MAX {
        return Err(MemoryError::Fact {
            reason: format!(
                "a fact has at most {FACT_CHARS_MAX} characters, this one has {chars}; say it in fewer words, or as several facts"
            ),
        });
    }
    Ok((text, important))
}

/// The words without the tag, and whether it was there.
pub(crate) fn without_important(text: &str) -> (String, bool) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kept: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != IMPORTANT)
        .collect();
    (kept.join(" "), kept.len() < words.len())
}

/// The tags in a fact's words: `#` and letters, digits, `_`, `-`, `/`, not digits alone.
pub(crate) fn tags_of(text: &str) -> Vec<String> {
    text.split_whitespace()
        .filter_map(crate::vault::note::tag_at_start)
        .map(|tag| format!("#{tag}"))
        .collect()
}

/// A date in front belongs to the line, not to the fact.
fn without_date_mark(text: &str) -> String {
    match date_mark(text) {
        Some((date, rest)) => format!("{date}: {}", rest.trim_start()),
        None => text.to_owned(),
    }
}

/// Whether Markdown would take the beginning of an item's words for something other than words.
fn is_structure(text: &str) -> bool {
    let digits = text.trim_start_matches(|char: char| char.is_ascii_digit());
    text.starts_with(['>', '<', '|', '~', '`', '='])
        || text.starts_with("[ ]")
        || text.starts_with("[x]")
        || text.starts_with("[X]")
        || text.starts_with("[^")
        || ["#", "##", "###", "####", "#####", "######", "-", "+", "*"]
            .iter()
            .any(|mark| {
                text.strip_prefix(mark)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
        || text.starts_with("---")
        || text.starts_with("***")
        || text.starts_with("___")
        || (digits.len() < text.len()
            && digits.starts_with(['.', ')'])
            && digits
                .get(1..)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}
/// `[2025-12-10] rest`, also with the date as a link (`[[2025-12-10]]`).
pub(crate) fn date_mark(words: &str) -> Option<(Date, &str)> {
    let (inner, rest) = match words.strip_prefix("[[") {
        Some(linked) => linked.split_once("]]")?,
        None => words.strip_prefix('[')?.split_once(']')?,
    };
    if inner.len() != 10 || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let date = inner.parse::<Date>().ok()?;
    Some((date, rest.trim_start_matches([' ', '\t'])))
}
