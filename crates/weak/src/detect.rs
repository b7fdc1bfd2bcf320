//! Detection of the language of a text.

use adjutant_core::Language;

use super::lexicon::lexicon;
use super::words::words;

/// Fewest known words by which a text is in another language than English: one word may be one of
/// English too, such as the French "car".
const DETECTED_WORDS_MIN: usize = 2;

/// Returns the language whose words a text has most of: English, if it has few of any.
pub(crate) fn detect(text: &str) -> Language {
    let words = words(text);
    let known = |language: Language| {
        let lexicon = lexicon(language);
        words
            .iter()
            .filter(|word| lexicon.stop_words.has(&word.folded))
            .count()
    };
    // The first of several with as many.
    Language::ALL
        .into_iter()
        .rev()
        .filter(|language| known(*language) >= DETECTED_WORDS_MIN)
        .max_by_key(|language| known(*language))
        .unwrap_or_default()
}
