//! The words of a text, with what their comparison needs of its punctuation and capitals.

use serde::Deserialize;

use crate::language::each_token;

/// Articles, pronouns and prepositions that are joined to the next word by an apostrophe.
const ELISIONS: &[&str] = &[
    "j", "l", "d", "n", "m", "s", "c", "t", "qu", "un", "all", "dell", "nell", "dall", "sull",
    "quest", "dov", "com",
];

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word, normalised.
    pub(crate) text: String,
    /// The offset of its first byte.
    pub(crate) at: usize,
    /// True if it begins with a capital letter.
    pub(crate) is_capital: bool,
    /// True if there is punctuation in front of it.
    pub(crate) is_after_pause: bool,
    /// True if it is the first of the text, of a sentence or of a line.
    pub(crate) begins_sentence: bool,
}

/// The words of a text. An address is one word; an elision is a word of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words(pub(crate) Vec<Word>);

impl Words {
    /// Divides a text into words.
    pub(crate) fn new(text: &str) -> Self {
        let mut words = Vec::new();
        let (mut is_after_pause, mut begins_sentence) = (false, true);
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            for chunk in line.split_inclusive(char::is_whitespace) {
                let found = words_in(chunk, at);
                at += chunk.len();
                if let Some(first) = found.first() {
                    let first = first.clone();
                    words.push(Word {
                        is_after_pause,
                        begins_sentence,
                        ..first
                    });
                    words.extend(found.into_iter().skip(1));
                    (is_after_pause, begins_sentence) = (false, false);
                }
                let chunk = chunk.trim_end().trim_end_matches(['"', '”', '’', ')']);
                is_after_pause |= chunk.ends_with([',', ';', ':', '.', '!', '?', '–', '—', '-']);
                begins_sentence |= chunk.ends_with(['.', '!', '?', ';']);
            }
            begins_sentence = true;
        }
        Self(words)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|word| word.text.as_str())
    }
}

/// Returns true if a phrase stands at a place.
pub(crate) fn has_phrase_at(words: &[Word], at: usize, phrase: &[String]) -> bool {
    !phrase.is_empty()
        && words.get(at..at + phrase.len()).is_some_and(|words| {
            let mut pairs = words.iter().zip(phrase);
            pairs.all(|(word, expected)| word.text == *expected)
        })
}

/// Returns true if a phrase stands anywhere.
pub(crate) fn has_phrase(words: &[Word], phrase: &[String]) -> bool {
    (0..words.len()).any(|at| has_phrase_at(words, at, phrase))
}

/// Divides a text without white space, which stands at an offset.
fn words_in(chunk: &str, offset: usize) -> Vec<Word> {
    let mut found = Vec::new();
    let mut push = |text: String, at: usize| {
        let first = chunk.get(at..).and_then(|rest| rest.chars().next());
        found.push(Word {
            text,
            at: offset + at,
            is_capital: first.is_some_and(char::is_uppercase),
            is_after_pause: false,
            begins_sentence: false,
        });
    };
    let trimmed = chunk.trim();
    // The parts of an address say nothing about its subject.
    if trimmed.contains('@') || trimmed.contains("://") {
        let address = trimmed.trim_end_matches(['.', ',', ';', '!']);
        push(address.to_lowercase(), 0);
        return found;
    }
    // Elided words of French and Italian are words of their own: `j'habite`, `dell'anno`.
    each_token(chunk, |token| match token.word.split_once('\'') {
        Some((joined, rest)) if ELISIONS.contains(&joined) => {
            let length = chunk
                .get(token.at..)
                .and_then(|rest| rest.find(['\'', '’']));
            push(format!("{joined}'"), token.at);
            let behind = token.at + length.map_or(0, |length| length + 1);
            push(rest.to_owned(), chunk.ceil_char_boundary(behind));
        }
        Some(_) | None => push(token.word.to_owned(), token.at),
    });
    found
}

/// Words that stand one behind the other, as a text is divided into them.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
pub(super) struct Phrase(pub(super) Vec<String>);

impl From<String> for Phrase {
    fn from(text: String) -> Self {
        Self(Words::new(&text).iter().map(str::to_owned).collect())
    }
}
