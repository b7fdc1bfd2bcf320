//! Properties of the grammar's tables: how a language puts them into words.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::words::{Phrase, Words};

/// A property, as its language puts it into words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) value: ValueKind,
    /// True if two values can never be true together, so that the later claim corrects the earlier
    /// one without saying so.
    #[serde(default)]
    pub(super) exclusive: bool,
    /// Words in front of the value: "lives in".
    #[serde(default)]
    pub(super) patterns: Vec<Pattern>,
    /// Nouns of the form "my … is": "boss". One with a star may stand anywhere in front of the verb.
    #[serde(default)]
    pub(super) nouns: Vec<Noun>,
    /// The values of a closed set, each with the ways of saying it.
    #[serde(default)]
    pub(super) states: BTreeMap<String, Vec<Pattern>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ValueKind {
    /// One of the states.
    State,
    /// A name, in capitals.
    Name,
    Number,
    /// Words with a digit: a date, a phone number.
    Digits,
    Email,
    Any,
}

/// Words in their order. "=" is a form of "to be", "#" a number, "$" the value, "~" a subject that
/// may stand behind its verb; a pattern begins with neither of the last two.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern(pub(super) Vec<Piece>);

#[derive(Debug)]
pub(super) enum Piece {
    Word(String),
    Copula,
    Number,
    Value,
    Subject,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        let piece = |piece: &str| match piece {
            "=" => vec![Piece::Copula],
            "#" => vec![Piece::Number],
            "$" => vec![Piece::Value],
            "~" => vec![Piece::Subject],
            word => Words::new(word)
                .iter()
                .map(|word| Piece::Word(word.to_owned()))
                .collect(),
        };
        Self(text.split(' ').flat_map(piece).collect())
    }
}

#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Noun {
    pub(super) words: Phrase,
    pub(super) stands_anywhere: bool,
}

impl From<String> for Noun {
    fn from(text: String) -> Self {
        let words = text.trim_end_matches(" *");
        Self {
            stands_anywhere: words.len() < text.len(),
            words: Phrase::from(words.to_owned()),
        }
    }
}

impl Property {
    /// Returns all words by which the property is claimed.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let patterns = self.patterns.iter().chain(self.states.values().flatten());
        let of_patterns = patterns.flat_map(|pattern| &pattern.0);
        let of_patterns = of_patterns.filter_map(|piece| match piece {
            Piece::Word(word) => Some(word.as_str()),
            Piece::Copula | Piece::Number | Piece::Value | Piece::Subject => None,
        });
        let of_nouns = self.nouns.iter().flat_map(|noun| &noun.words.0);
        of_patterns.chain(of_nouns.map(String::as_str))
    }
}
