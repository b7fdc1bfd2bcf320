//! Languages that the word lists cover, by their most frequent words.

use super::sentence::{COMMA, words};
use crate::claim_language::{ClaimLanguage, languages};

/// One frequent word in so many shows the language. Related languages share some of them.
const WORDS_PER_FREQUENT_WORD: usize = 4;

/// Words of a text that is too short to show its language, such as a name or a number.
const SHORT_WORDS_MAX: usize = 2;

/// Returns true if a reply is in a language of the lists. A short reply is in the language of the
/// message.
pub(super) fn is_covered(reply: &str, message: &str) -> bool {
    let spoken = spoken(reply);
    if spoken.is_empty() || has_frequent_words(&spoken) {
        return true;
    }
    let is_latin = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphabetic())
            .all(|c| u32::from(c) < 0x250)
    };
    spoken.len() <= SHORT_WORDS_MAX && is_latin(reply) && has_frequent_words(&self::spoken(message))
}

/// Returns the words of a text that have letters.
fn spoken(text: &str) -> Vec<String> {
    let mut words = words(text);
    words.retain(|word| word != COMMA && word.chars().any(char::is_alphabetic));
    words
}

fn has_frequent_words(words: &[String]) -> bool {
    let share = |language: &ClaimLanguage| {
        let frequent = words
            .iter()
            .filter(|word| language.lists.function_words.has(word));
        frequent.count() * WORDS_PER_FREQUENT_WORD
    };
    languages()
        .iter()
        .any(|language| share(language) >= words.len().max(1))
}
