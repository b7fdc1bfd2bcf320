//! Decodes bytes of any source as text for a model.

use adjutant_core::limits::MESSAGE_BYTES_MAX;

use crate::terminal::display::plural;

/// Text without control characters.
#[derive(Debug, PartialEq)]
pub(super) struct Text {
    /// The text without blanks at its end; may be empty.
    pub(super) text: String,
    /// Number of control characters removed.
    pub(super) removed: usize,
}

/// The reason why bytes cannot be sent.
#[derive(Debug, PartialEq)]
pub(super) enum Unusable {
    TooLong,
    /// They are no text, with the evidence.
    NotText(String),
}

/// Decodes bytes as UTF-8 and removes control characters.
///
/// # Errors
/// The bytes are longer than a message may be, not UTF-8, or contain a zero.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Text, Unusable> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Unusable::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Unusable::NotText(format!("byte {} is not UTF-8", at + 1))
    })?;
    // Text has no zeros; a binary file that happens to be UTF-8 does.
    if let Some(at) = text.find('\0') {
        return Err(Unusable::NotText(format!("byte {} is zero", at + 1)));
    }
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .replace("\r\n", "\n");
    let kept: String = text
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect();
    let removed = text.chars().count() - kept.chars().count();
    Ok(Text {
        text: kept.trim_end().to_owned(),
        removed,
    })
}

impl Text {
    /// Returns a note about removed characters. `what` describes the text.
    pub(super) fn notice(&self, what: &str) -> Option<String> {
        let removed = plural(
            self.removed as u64,
            "control character was",
            "control characters were",
        );
        (self.removed > 0).then(|| format!("{removed} removed from {what}"))
    }

    /// Formats the number of its lines.
    pub(super) fn lines(&self) -> String {
        plural(self.text.lines().count() as u64, "line", "lines")
    }
}
