//! The words by which a text announces that an earlier statement does not hold any more.

use super::grammar::{self, Grammar};
use super::words::{Phrase, Word, Words, has_phrase, has_phrase_at};

/// Words behind "instead of" that are the wrong part.
const WRONG_WORDS_MAX: usize = 4;

/// The way in which a text announces its statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// No cue, or one that the statement holds beside earlier ones.
    #[default]
    None,
    /// A change of state: "now", "moved".
    Change,
    /// The end of a state: "no longer".
    End,
    /// The wrong part is named: "not Monday but Tuesday", "my name is Sarah, not Chad".
    Contrast,
    /// A sentence that begins with the correction: "no, …", "actually …".
    Opening,
}

/// The cue of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cue {
    pub(crate) kind: Kind,
    /// The words that are named as wrong.
    pub(crate) wrong: Vec<String>,
    /// True if the statement holds beside earlier ones: "also".
    pub(crate) adds: bool,
}

impl Cue {
    /// Detects the cue of a text in its language; in any that has a grammar if the language is not
    /// detected.
    pub(crate) fn of(words: &Words) -> Self {
        let cues = match grammar::detect(words.iter()) {
            Some(grammar) => vec![Self::detect(grammar, &words.0)],
            None => {
                let cue = |grammar| Self::detect(grammar, &words.0);
                grammar::all().iter().map(cue).collect()
            }
        };
        cues.into_iter()
            .max_by_key(|cue| cue.kind)
            .unwrap_or_default()
    }

    /// Returns the cue of two texts together.
    pub(crate) fn with(mut self, other: Self) -> Self {
        self.kind = self.kind.max(other.kind);
        self.wrong.extend(other.wrong);
        self.adds |= other.adds;
        self
    }

    fn detect(grammar: &Grammar, words: &[Word]) -> Self {
        let table = &grammar.table;
        let mut cue = Self::default();
        // "She also moved to …" adds, whatever other cue is in it.
        let is_added = |at: usize| {
            let adds = table.adds.iter();
            let mut found = adds.filter(|phrase| has_phrase_at(words, at, &phrase.0));
            // "Otra vez" is "again", and "otra" is "another".
            found.any(|phrase| grammar.filler_at(words, at) <= phrase.0.len())
        };
        if (0..words.len()).any(is_added) {
            cue.adds = true;
            return cue;
        }
        for range in wrong_ranges(grammar, words) {
            let wrong = words.get(range.wrong.clone()).unwrap_or_default();
            cue.wrong.extend(wrong.iter().map(|word| word.text.clone()));
        }
        let begins = |(at, word): (usize, &Word)| word.begins_sentence.then_some(at);
        let mut sentences = words.iter().enumerate().filter_map(begins);
        cue.kind = if sentences.any(|at| opening_end(grammar, words, at).is_some()) {
            Kind::Opening
        } else if !cue.wrong.is_empty() {
            Kind::Contrast
        } else if table.ends.iter().any(|phrase| has_phrase(words, &phrase.0)) {
            Kind::End
        } else if table
            .changes
            .iter()
            .any(|phrase| has_phrase(words, &phrase.0))
        {
            Kind::Change
        } else {
            Kind::None
        };
        cue
    }
}

/// Returns the index behind the words that open a correction at the beginning of a sentence. `None`
/// if there are none.
fn opening_end(grammar: &Grammar, words: &[Word], begin: usize) -> Option<usize> {
    let table = &grammar.table;
    let (mut at, mut end) = (begin, None);
    loop {
        let ends =
            |phrase: &Phrase| has_phrase_at(words, at, &phrase.0).then_some(at + phrase.0.len());
        // "No dogs are allowed" corrects nothing.
        let has_pause = |end: &usize| words.get(*end).is_none_or(|word| word.is_after_pause);
        let opening = table.openings.iter().filter_map(ends).max();
        let denial = table
            .denials
            .iter()
            .filter_map(ends)
            .filter(has_pause)
            .max();
        match opening.max(denial) {
            Some(behind) => {
                at = behind;
                end = Some(behind);
            }
            None if table.interjections.contains(&words.get(at)?.text) => at += 1,
            None => return end,
        }
        if at == words.len() {
            return end;
        }
    }
}

/// Returns a text without the words that only announce a correction: "No, " and "Actually". A text
/// of nothing else stays as it is.
pub(crate) fn without_opening(text: &str) -> String {
    let words = Words::new(text);
    let detected = grammar::detect(words.iter());
    let grammars = grammar::all().iter();
    let begin = match detected {
        Some(grammar) => opening_end(grammar, &words.0, 0),
        None => grammars
            .filter_map(|grammar| opening_end(grammar, &words.0, 0))
            .max(),
    };
    let rest = begin
        .and_then(|begin| words.0.get(begin))
        .and_then(|word| text.get(word.at..));
    let Some(rest) = rest else {
        return text.to_owned();
    };
    let mut chars = rest.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

/// A part of a text that is named as wrong, and the same with the words around it that say so.
pub(super) struct WrongRange {
    wrong: std::ops::Range<usize>,
    pub(super) whole: std::ops::Range<usize>,
}

/// Returns the parts of a text that are named as wrong.
pub(super) fn wrong_ranges(grammar: &Grammar, words: &[Word]) -> Vec<WrongRange> {
    let table = &grammar.table;
    let pause = |from: usize| {
        let rest = words.iter().enumerate().skip(from);
        let mut pauses = rest.filter(|(_, word)| word.is_after_pause || word.begins_sentence);
        pauses.next().map_or(words.len(), |(at, _)| at)
    };
    let range = |from: usize, begin: usize, end: usize, behind: usize| WrongRange {
        wrong: begin..end,
        whole: from..behind,
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let mut instead = table.instead_of.iter();
        let instead = instead.find(|phrase| has_phrase_at(words, at, &phrase.0));
        let contrast = table.contrasts.iter().find_map(|(first, second)| {
            let is_second = |word: &Word| word.text == *second;
            let behind = words.iter().skip(at + 1).position(is_second)?;
            (word.text == *first).then_some(at + 1 + behind)
        });
        if let Some(phrase) = instead {
            let begin = at + phrase.0.len();
            let end = pause(begin + 1).min(begin + WRONG_WORDS_MAX);
            found.push(range(at, begin, end, end));
        } else if let Some(second) = contrast {
            found.push(range(at, at + 1, second, second + 1));
        } else if at > 0 && word.is_after_pause && table.negations.contains(&word.text) {
            // "My name is Sarah, not Chad."
            let end = pause(at + 1);
            found.push(range(at, at + 1, end, end));
        }
    }
    found
}
