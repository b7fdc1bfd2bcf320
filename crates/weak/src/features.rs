//! Features of texts for linear classifiers: words, pairs of words and shapes, hashed.

use std::fmt::Display;

use super::lexicon::Lexicon;
use super::linear::hashed;
use super::words::{Word, is_infinitive, is_number, words};

/// Letters of the ends of words that are features.
const ENDS: [usize; 2] = [2, 3];
/// Counts above this are one feature.
const COUNT_MAX: usize = 12;

/// The features of one text.
pub(crate) struct Features<'a> {
    pub(crate) lexicon: &'a Lexicon,
    found: Vec<usize>,
}

impl<'a> Features<'a> {
    pub(crate) fn new(lexicon: &'a Lexicon) -> Self {
        Self {
            lexicon,
            found: Vec::new(),
        }
    }

    /// Adds a feature of one language.
    pub(crate) fn word(&mut self, kind: &str, text: &str) {
        let kind = format!("{} {kind}", self.lexicon.language.code());
        self.found.push(hashed(&kind, text));
    }

    /// Adds a feature of all languages.
    pub(crate) fn shape(&mut self, kind: &str, value: impl Display) {
        self.found.push(hashed(kind, &value.to_string()));
    }

    pub(crate) fn count(&mut self, kind: &str, count: usize) {
        self.shape(kind, count.min(COUNT_MAX));
    }

    /// Adds each word and each pair of words.
    pub(crate) fn words_and_pairs(&mut self, words: &[String]) {
        for word in words {
            self.word("in", word);
        }
        for pair in words.windows(2) {
            self.word("pair", &pair.join(" "));
        }
    }

    /// Adds the ends of a word.
    pub(crate) fn ends(&mut self, kind: &str, word: &str) {
        let letters: Vec<char> = word.chars().collect();
        for length in ENDS {
            let end = letters.len().saturating_sub(length);
            let end: String = letters[end..].iter().collect();
            self.word(&format!("{kind} {length}"), &end);
        }
    }

    /// Adds the word lists that a word is of.
    pub(crate) fn lists(&mut self, kind: &str, word: &str) {
        let lexicon = self.lexicon;
        let lists = [
            ("adding", lexicon.adding_verbs.has(word)),
            ("connector", lexicon.connectors.has(word)),
            ("contrast", lexicon.contrasts.has(word)),
            ("negation", lexicon.negations.has(word)),
            ("pending", lexicon.pending.has(word)),
            ("pronoun", lexicon.pronouns.has(word)),
            ("stop", lexicon.stop_words.has(word)),
            ("when", lexicon.when.has(word)),
            ("infinitive", is_infinitive(word, lexicon.language)),
        ];
        for (name, _) in lists.into_iter().filter(|(_, is_in)| *is_in) {
            self.shape(kind, name);
        }
    }

    /// Adds the words and marks around a part of a message.
    pub(crate) fn around(&mut self, message: &Read<'_>, part: Option<(usize, usize)>) {
        let Some((begin, end)) = part else {
            self.shape("place", "none");
            return;
        };
        let before = begin.checked_sub(1).map_or("^", |at| message.token(at));
        let earlier = begin.checked_sub(2).map_or("^", |at| message.token(at));
        let (behind, later) = (message.token(end), message.token(end + 1));
        let mark_before = message.between(begin);
        self.word("before", before);
        self.word("before 2", &format!("{earlier} {before}"));
        self.word("before mark", &format!("{mark_before} {before}"));
        self.word("behind", behind);
        self.lists("before is", before);
        self.lists("behind is", behind);
        self.word("behind 2", &format!("{behind} {later}"));
        self.word("begin", &format!("{before} {}", message.token(begin)));
        self.shape("mark before", mark_before);
        self.shape("mark behind", message.between(end));
        self.shape(
            "place",
            format!("{} {}", begin == 0, end == message.words.len()),
        );
    }

    pub(crate) fn finish(mut self) -> Vec<usize> {
        self.found.sort_unstable();
        self.found.dedup();
        self.found
    }
}

/// A text with its words.
pub(crate) struct Read<'a> {
    pub(crate) text: &'a str,
    pub(crate) words: Vec<Word>,
    /// The words, with one for all numbers.
    pub(crate) tokens: Vec<String>,
}

impl<'a> Read<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let words = words(text);
        // Any number stands for all.
        let token = |word: &Word| match is_number(&word.folded) {
            true => "0".to_owned(),
            false => word.folded.clone(),
        };
        let tokens = words.iter().map(token).collect();
        Self {
            text,
            words,
            tokens,
        }
    }

    /// Returns a word, or the mark of the end.
    pub(crate) fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("$", String::as_str)
    }

    /// Returns what stands in front of a word, without blanks.
    pub(crate) fn between(&self, at: usize) -> &'a str {
        let start = at.checked_sub(1).map_or(0, |before| self.words[before].end);
        let end = self
            .words
            .get(at)
            .map_or(self.text.len(), |word| word.start);
        self.text[start..end].trim()
    }

    /// Returns the place of words that follow each other, the last one.
    pub(crate) fn find(&self, words: &[Word]) -> Option<(usize, usize)> {
        let same = |at: &usize| {
            let own = &self.words[*at..*at + words.len()];
            own.iter().zip(words).all(|(a, b)| a.folded == b.folded)
        };
        let last = self.words.len().checked_sub(words.len())?;
        let found = (0..=last).rev().find(same).filter(|_| !words.is_empty());
        found.map(|begin| (begin, begin + words.len()))
    }
}
