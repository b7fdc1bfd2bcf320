use std::sync::{Arc, Mutex, PoisonError};

/// Texts of more lines or characters than this are shown as a placeholder: they would not fit the
/// screen for editing.
const LINES_MAX: usize = 20;
const CHARS_MAX: usize = 2_000;

/// Pasted texts by their placeholder, such as `[pasted text 1: 500 lines]`. The line shows the
/// placeholder; the message and the external editor get the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Pastes(Arc<Mutex<Vec<(String, String)>>>);

impl Pastes {
    /// Returns the text, or its placeholder if it is long.
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
        let word = format!("[pasted text {number}: {size}]");
        pastes.push((word.clone(), text.to_owned()));
        word
    }

    /// Replaces placeholders by their texts. A placeholder inside of a pasted text is left as it
    /// is.
    pub(super) fn expand(&self, line: &str) -> String {
        let pastes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = String::with_capacity(line.len());
        let mut rest = line;
        loop {
            let first = pastes
                .iter()
                .filter_map(|(word, text)| Some((rest.find(word)?, word, text)))
                .min();
            let Some((at, word, text)) = first else { break };
            let (before, after) = rest.split_at(at);
            whole.push_str(before);
            whole.push_str(text);
            rest = after.get(word.len()..).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_one_word_until_it_is_sent() {
        let pastes = Pastes::default();
        let lines = "x\n".repeat(500);
        let word = pastes.shorten(&lines);
        assert_eq!(word, "[pasted text 1: 500 lines]");
        let wide = "y".repeat(2_001);
        let second = pastes.shorten(&wide);
        assert_eq!(second, "[pasted text 2: 2001 characters]");
        let line = format!("before {second} between {word}{word} after");
        assert_eq!(
            pastes.expand(&line),
            format!("before {wide} between {lines}{lines} after")
        );
        pastes.clear();
        assert_eq!(pastes.expand(&line), line);
    }

    #[test]
    fn a_short_text_is_itself_and_a_quoted_word_stays_quoted() {
        let pastes = Pastes::default();
        assert_eq!(pastes.shorten("three\nshort\nlines"), "three\nshort\nlines");
        let text = format!("[pasted text 1: 21 lines]{}", "\nz".repeat(20));
        let word = pastes.shorten(&text);
        assert_eq!(word, "[pasted text 1: 21 lines]");
        assert_eq!(pastes.expand(&word), text);
    }
}
