//! Sentences and their words, each with its place in the text.

use adjutant_core::capitalized;

use crate::analysis;
use crate::language::{PhraseList, WordList, lists};

/// A word with its byte offsets in the text.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// The word in lower case, with a straight apostrophe.
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Word {
    pub(super) fn is_one_of(&self, list: &WordList) -> bool {
        list.has(&self.text)
    }

    pub(super) fn is(&self, other: &str) -> bool {
        self.text == other
    }
}

/// A sentence with its words.
#[derive(Debug)]
pub(super) struct Sentence<'a> {
    pub(super) text: &'a str,
    pub(super) words: Vec<Word>,
    /// True if it ends with a question mark.
    pub(super) is_question: bool,
}

impl<'a> Sentence<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let is_question = text.trim_end().ends_with('?');
        Self {
            text,
            words: words(text),
            is_question,
        }
    }

    /// Returns true if one of its words may name something.
    pub(super) fn says_something(&self) -> bool {
        !analysis::content_words(self.text).is_empty()
    }

    pub(super) fn has(&self, list: &WordList) -> bool {
        self.words.iter().any(|word| word.is_one_of(list))
    }

    /// Returns true if the word at a place is one of a list.
    pub(super) fn is_at(&self, at: usize, list: &WordList) -> bool {
        self.words.get(at).is_some_and(|word| word.is_one_of(list))
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other.is(word))
    }

    /// Returns true if a phrase stands in it.
    pub(super) fn has_row(&self, row: &[impl AsRef<str>]) -> bool {
        (0..self.words.len()).any(|at| self.after(at, row).is_some())
    }

    /// Returns the place of the first word behind polite openings.
    pub(super) fn order(&self) -> usize {
        let mut at = 0;
        while let Some(word) = self.words.get(at) {
            let next = |other: &str| self.words.get(at + 1).is_some_and(|next| next.is(other));
            at += match word.text.as_str() {
                "i'd" | "i" if next("like") || next("want") => 2,
                "i" if next("would") => 3,
                // They are a part of the order: "don't forget", "do not forget".
                "don't" | "do" => return at,
                _ if word.is_one_of(&lists().sentence.polite) => 1,
                _ => return at,
            };
        }
        at.min(self.words.len())
    }

    /// Returns the place behind a phrase, if the phrase stands at a place.
    pub(super) fn after(&self, at: usize, row: &[impl AsRef<str>]) -> Option<usize> {
        let end = at + row.len();
        let words = self.words.get(at..end)?;
        let same = words
            .iter()
            .zip(row)
            .all(|(word, other)| word.is(other.as_ref()));
        same.then_some(end)
    }

    /// Returns the place behind the longest of the phrases that stand at a place.
    pub(super) fn longest(&self, at: usize, phrases: &PhraseList) -> Option<usize> {
        phrases.iter().filter_map(|row| self.after(at, row)).max()
    }

    /// Returns the text from a word on.
    pub(super) fn from(&self, at: usize) -> &'a str {
        self.words
            .get(at)
            .map_or("", |word| &self.text[word.start..])
    }

    /// Returns the text from a word up to another.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        match (
            self.words.get(from),
            to.checked_sub(1).and_then(|last| self.words.get(last)),
        ) {
            (Some(first), Some(last)) if from < to => &self.text[first.start..last.end],
            _ => "",
        }
    }

    /// Returns true if one of these signs stands in front of a word.
    pub(super) fn has_sign_before(&self, at: usize, signs: &[char]) -> bool {
        let end = self
            .words
            .get(at)
            .map_or(self.text.len(), |word| word.start);
        let start = at
            .checked_sub(1)
            .and_then(|before| self.words.get(before))
            .map_or(0, |word| word.end);
        self.text
            .get(start..end)
            .is_some_and(|between| between.contains(signs))
    }
}

/// Splits a text into words.
pub(super) fn words(text: &str) -> Vec<Word> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '\'' || c == '\u{2019}';
    let mut words = Vec::new();
    let mut start = None;
    // The blank behind the text ends its last word.
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_of_word(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let raw = text
                    .get(from..at)
                    .unwrap_or_default()
                    .to_lowercase()
                    .replace('\u{2019}', "'");
                let text = raw.trim_matches('\'').to_owned();
                if !text.is_empty() {
                    words.push(Word {
                        text,
                        start: from,
                        end: at,
                    });
                }
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Splits a message into sentences.
pub(super) fn sentences(message: &str) -> Vec<Sentence<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in message.char_indices() {
        let end = at + c.len_utf8();
        let follows_blank = message[end..]
            .chars()
            .next()
            .is_none_or(char::is_whitespace);
        let ends = match c {
            '\n' => true,
            '!' | '?' | ';' => follows_blank,
            '.' => follows_blank && !is_shortened(&message[start..at], &message[end..]),
            // Chinese and Japanese put no blank behind them.
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            pieces.push(&message[start..end]);
            start = end;
        }
    }
    pieces.push(&message[start..]);
    // "Remember that I am vegan and add milk" is a fact and an order.
    let pieces = pieces.into_iter().flat_map(split_at_order);
    pieces
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .map(Sentence::new)
        .filter(|it| !it.words.is_empty())
        .collect()
}

/// Returns true if a full stop belongs to a word or a number: "Dr. Weiss", "on 3.5. from Oslo".
fn is_shortened(before: &str, behind: &str) -> bool {
    let goes_on = behind.trim_start().starts_with(char::is_lowercase);
    words(before)
        .last()
        .filter(|word| word.end == before.len())
        .is_some_and(|word| {
            word.is_one_of(&lists().sentence.abbreviations)
                || goes_on && word.text.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Splits off "… and add milk", which is an order like a sentence.
fn split_at_order(piece: &str) -> Vec<&str> {
    let words = words(piece);
    let order = words
        .windows(2)
        .skip(2)
        .find(|pair| pair[0].is("and") && pair[1].is_one_of(&lists().sentence.orders_behind_and));
    match order {
        Some(pair) => vec![&piece[..pair[0].start], &piece[pair[1].start..]],
        None => vec![piece],
    }
}

/// Puts a text on one line, without punctuation that only begins or ends a sentence.
pub(super) fn tidy(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | ';' | ':' | '.' | '!' | '-' | '\u{2013}' | '\u{2014}'
            )
    };
    let line = line.trim_start_matches(ends).trim_end_matches(ends);
    let line = line
        .strip_suffix(", please")
        .or_else(|| line.strip_suffix(" please"))
        .unwrap_or(line);
    let line = unquoted(line.trim_end_matches(ends));
    capitalized(line)
}

/// Removes quotation marks around a whole text.
fn unquoted(line: &str) -> &str {
    const MARKS: [(char, char); 4] = [
        ('"', '"'),
        ('\'', '\''),
        ('\u{201c}', '\u{201d}'),
        ('\u{ab}', '\u{bb}'),
    ];
    let inside = MARKS.iter().find_map(|(open, close)| {
        let inside = line.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inside.contains([*open, *close])).then_some(inside)
    });
    inside.unwrap_or(line)
}
