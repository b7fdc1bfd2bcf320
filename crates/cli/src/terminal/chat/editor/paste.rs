use std::iter::repeat_n;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts of more lines or characters than this are shown as a placeholder: they would not fit the
/// screen for editing.
const LINES_MAX: usize = 20;
const CHARS_MAX: usize = 2_000;

/// First of the characters that stand for a pasted text in the edited line. They are of Unicode's
/// private use area, and there are 6,400.
const FIRST: u32 = 0xE000;
const CHARS: u32 = 6_400;

/// Combining marks of two and of three bytes, which an editor deletes with the character in front
/// of them.
const MARK_OF_TWO: char = '\u{300}';
const MARK_OF_THREE: char = '\u{FE00}';

/// Long pasted texts. In the edited line each is a single character (with combining marks) that
/// keys move over, delete and bring back as one; on the screen it is a placeholder such as
/// `[pasted text 1: 500 lines]`; in the message and in the external editor it is the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Pastes(Arc<Mutex<Vec<Paste>>>);

#[derive(Debug)]
struct Paste {
    /// The character in the edited line, with its marks. It has as many bytes as the placeholder, because the line editor
    /// counts the columns before the cursor in bytes of what is shown.
    character: String,
    placeholder: String,
    text: String,
}

impl Pastes {
    /// Returns the text, or the character that stands for it if it is long.
    pub(super) fn shorten(&self, text: &str) -> String {
        let lines = text.lines().count();
        let long = lines > LINES_MAX || text.chars().nth(CHARS_MAX).is_some();
        if !long {
            return text.to_owned();
        }
        let mut pastes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = pastes.len() + 1;
        let size = if lines > 1 {
            format!("{lines} lines")
        } else {
            format!("{} characters", text.chars().count())
        };
        let placeholder = format!("[pasted text {number}: {size}]");
        let character = character(number, placeholder.len());
        pastes.push(Paste {
            character: character.clone(),
            placeholder,
            text: text.to_owned(),
        });
        character
    }

    /// Returns the edited line with the pasted texts in it.
    pub(super) fn expand(&self, line: &str) -> String {
        self.replaced(line, |paste| &paste.text)
    }

    /// Returns the edited line as it is shown; it has the same length in bytes.
    pub(super) fn shown(&self, line: &str) -> String {
        self.replaced(line, |paste| &paste.placeholder)
    }

    fn replaced(&self, line: &str, by: impl Fn(&Paste) -> &str) -> String {
        let pastes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = String::with_capacity(line.len());
        let mut rest = line;
        loop {
            let first = pastes
                .iter()
                .filter_map(|paste| Some((rest.find(&paste.character)?, paste)))
                .min_by_key(|(at, _)| *at);
            let Some((at, paste)) = first else { break };
            let (before, after) = rest.split_at(at);
            whole.push_str(before);
            whole.push_str(by(paste));
            rest = after.get(paste.character.len()..).unwrap_or_default();
        }
        whole.push_str(rest);
        whole
    }

    pub(super) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Returns a character of this many bytes with its combining marks. `bytes`: at least 5.
fn character(number: usize, bytes: usize) -> String {
    let index = u32::try_from(number).unwrap_or_default() % CHARS;
    let first = char::from_u32(FIRST + index).unwrap_or('\u{E000}');
    let marks = bytes.saturating_sub(first.len_utf8());
    let of_two = [0, 2, 1][marks % 3];
    let of_three = marks.saturating_sub(2 * of_two) / 3;
    std::iter::once(first)
        .chain(repeat_n(MARK_OF_TWO, of_two))
        .chain(repeat_n(MARK_OF_THREE, of_three))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_one_character_until_it_is_sent() {
        let pastes = Pastes::default();
        let lines = "x\n".repeat(500);
        let first = pastes.shorten(&lines);
        assert_eq!(pastes.shown(&first), "[pasted text 1: 500 lines]");
        let wide = "y".repeat(2_001);
        let second = pastes.shorten(&wide);
        assert_eq!(pastes.shown(&second), "[pasted text 2: 2001 characters]");
        let line = format!("before {second} between {first}{first} after");
        assert_eq!(
            pastes.expand(&line),
            format!("before {wide} between {lines}{lines} after")
        );
        assert_eq!(pastes.shown(&line).len(), line.len());
        pastes.clear();
        assert_eq!(pastes.expand(&line), line);
    }

    #[test]
    fn a_character_has_as_many_bytes_as_its_placeholder() {
        for bytes in 5..60 {
            assert_eq!(character(1, bytes).len(), bytes);
        }
        assert_ne!(character(1, 30), character(2, 30));
    }

    #[test]
    fn a_short_text_is_itself_and_a_typed_placeholder_stays_what_it_is() {
        let pastes = Pastes::default();
        assert_eq!(pastes.shorten("three\nshort\nlines"), "three\nshort\nlines");
        let text = format!("[pasted text 1: 21 lines]{}", "\nz".repeat(20));
        let character = pastes.shorten(&text);
        assert_eq!(pastes.expand(&character), text);
        assert_eq!(
            pastes.expand("[pasted text 1: 21 lines]"),
            "[pasted text 1: 21 lines]"
        );
    }
}
