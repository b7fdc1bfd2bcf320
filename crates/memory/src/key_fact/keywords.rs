//! The keywords of a fact: its words without stop words, reduced to their stems.
//!
//! Two facts are compared in one language, the one whose stop words their words hold most of
//! (English if there are none).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::language::{Language, each_token, without_accents};

/// The share of keywords above which two facts are versions of one, as a fraction.
const MATCH_OVER: (usize, usize) = (70, 100);

/// The tokens of a fact, before a language is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct FactTokens {
    words: Vec<String>,
    /// Bigrams of scripts without spaces between words.
    bigrams: BTreeSet<String>,
}

type Keywords = BTreeSet<String>;

impl FactTokens {
    pub(crate) fn new(text: &str) -> Self {
        let mut tokens = Self::default();
        // A tag is metadata, not a part of the statement.
        let text = text
            .split_whitespace()
            .filter(|word| !is_tag(word))
            .collect::<Vec<_>>()
            .join(" ");
        each_token(&text, |token| {
            let word = token.word.to_owned();
            if token.is_bigram {
                tokens.bigrams.insert(word);
            } else {
                tokens.words.push(word);
            }
        });
        tokens
    }

    /// Returns the keywords of both in the language that is detected from both together.
    fn keywords_with(&self, other: &Self) -> (Keywords, Keywords) {
        let both = self.words.iter().chain(&other.words).map(String::as_str);
        // One language for both texts: stems of two languages cannot be compared.
        let language = Language::detect(both).or_else(Language::fallback);
        (self.keywords(language), other.keywords(language))
    }

    fn keywords(&self, language: Option<&Language>) -> Keywords {
        let keep = |drop_stop: bool| -> Keywords {
            self.words
                .iter()
                .filter(|word| {
                    !(drop_stop && language.is_some_and(|language| language.is_stop(word)))
                })
                .map(|word| match language {
                    Some(language) => language.stem(word),
                    None => without_accents(word).into_owned(),
                })
                .chain(self.bigrams.iter().cloned())
                .collect()
        };
        let keywords = keep(true);
        // "To be or not to be" is made of stop words only, and still says something.
        if keywords.is_empty() {
            keep(false)
        } else {
            keywords
        }
    }
}

/// The overlap of two facts: their shared keywords, and all keywords of the larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlap {
    shared: usize,
    all: usize,
}

impl Overlap {
    pub(crate) fn between(one: &FactTokens, other: &FactTokens) -> Self {
        let (one, other) = one.keywords_with(other);
        Self {
            shared: one.intersection(&other).count(),
            all: one.len().max(other.len()),
        }
    }

    /// Returns true if strictly more than 70 % are shared, computed in integers.
    pub(crate) fn is_match(self) -> bool {
        self.all > 0 && self.shared * MATCH_OVER.1 > self.all * MATCH_OVER.0
    }

    /// Orders overlaps by their shares. Multiplied crosswise, so that equal shares are equal.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        (self.shared * other.all).cmp(&(other.shared * self.all))
    }
}

/// Returns the number of keywords of a query that a text holds.
pub(crate) fn shared_keywords(query: &FactTokens, text: &FactTokens) -> usize {
    let (query, text) = query.keywords_with(text);
    query.intersection(&text).count()
}

fn is_tag(word: &str) -> bool {
    crate::vault::note::tag_at_start(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &str, other: &str) -> (usize, usize, bool) {
        let overlap = Overlap::between(&FactTokens::new(one), &FactTokens::new(other));
        (overlap.shared, overlap.all, overlap.is_match())
    }

    #[test]
    fn exactly_seventy_percent_is_not_over() {
        let ten = "alpha bravo charlie delta echo foxtrot golf hotel india juliet";
        assert_eq!(
            overlap(ten, "alpha bravo charlie delta echo foxtrot golf"),
            (7, 10, false)
        );
        assert_eq!(
            overlap(ten, "alpha bravo charlie delta echo foxtrot golf hotel"),
            (8, 10, true)
        );
    }

    #[test]
    fn case_punctuation_stop_words_and_forms_do_not_count() {
        assert_eq!(
            overlap(
                "Josh prefers dark modes, in all apps!",
                "josh PREFERRED the dark mode in all of his apps"
            ),
            (5, 5, true)
        );
        assert_eq!(
            overlap("Josh’s car is red", "Josh's cars are red"),
            (3, 3, true)
        );
        assert_eq!(overlap("café opens", "cafe opens"), (2, 2, true));
    }

    #[test]
    fn another_object_is_another_fact() {
        assert!(!overlap("Josh likes tea", "Josh likes coffee").2);
        assert!(!overlap("The server is 10.0.0.1", "The server is 10.0.0.2").2);
        assert!(!overlap("", "").2);
    }

    #[test]
    fn other_languages_have_their_forms_and_stop_words() {
        // German: "der", "die" go, and cases are one word.
        assert!(
            overlap(
                "Die Katze von Josh mag den warmen Ofen",
                "Josh und die Katzen mögen den warmen Ofen"
            )
            .2
        );
        assert!(overlap("Josh préfère les chats noirs", "Josh préfère le chat noir").2);
        assert!(overlap("Джош любит чёрный кофе", "Джош любит черный кофе").2);
    }

    #[test]
    fn scripts_without_spaces_are_compared_by_bigrams() {
        assert!(overlap("我喜欢喝绿茶和咖啡", "我很喜欢喝绿茶和咖啡").2);
        assert!(!overlap("我喜欢喝绿茶", "我住在上海").2);
        assert!(overlap("ผมชอบดื่มกาแฟดำตอนเช้า", "ผมชอบดื่มกาแฟดำตอนเช้าๆ").2);
        // The longer one says more: 13 of 19 bigrams is below the bound.
        assert!(
            !overlap(
                "ジョシュは紅茶が好きです",
                "ジョシュは毎朝いつも濃い紅茶が好きです"
            )
            .2
        );
    }

    #[test]
    fn stop_words_alone_still_compare() {
        assert_eq!(overlap("who are you", "you are who"), (3, 3, true));
    }
}
