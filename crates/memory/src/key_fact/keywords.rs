//! What a fact is about: its words without stop words, reduced to their stems.
//!
//! Two facts are compared in one language, the one whose stop words their words hold most of
//! (English if none).

use std::collections::BTreeSet;

use crate::words::{Language, each_token, plain};

/// Strictly more than this share of keywords makes a fact a correction of another.
pub(crate) const OVERLAP_OVER: (usize, usize) = (70, 100);

/// The words of a text, before a language is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// With spaces between them.
    spaced: Vec<String>,
    /// Pairs of characters of scripts without spaces; single characters where one stands alone.
    pairs: BTreeSet<String>,
}

/// Keywords of one text.
pub(crate) type Keywords = BTreeSet<String>;

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Self::default();
        // Tags say how a fact is filed, not what it says.
        let text = text
            .split_whitespace()
            .filter(|word| !is_tag(word))
            .collect::<Vec<_>>()
            .join(" ");
        each_token(&text, |token| {
            let word = token.word.to_owned();
            if token.is_pair {
                words.pairs.insert(word);
            } else {
                words.spaced.push(word);
            }
        });
        words
    }

    /// The keywords in the language that `self` and `other` together seem to be in.
    fn keywords_beside(&self, other: &Self) -> (Keywords, Keywords) {
        let both = self.spaced.iter().chain(&other.spaced).map(String::as_str);
        let language = Language::of(both).or_else(Language::usual);
        (self.keywords(language), other.keywords(language))
    }

    fn keywords(&self, language: Option<&Language>) -> Keywords {
        let keep = |drop_stop: bool| -> Keywords {
            self.spaced
                .iter()
                .filter(|word| {
                    !(drop_stop && language.is_some_and(|language| language.is_stop(word)))
                })
                .map(|word| match language {
                    Some(language) => language.stem(word),
                    None => plain(word).into_owned(),
                })
                .chain(self.pairs.iter().cloned())
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

/// How much two facts are about the same: shared keywords and the keywords of the larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlap {
    shared: usize,
    of: usize,
}

impl Overlap {
    pub(crate) fn between(one: &Words, other: &Words) -> Self {
        let (one, other) = one.keywords_beside(other);
        Self {
            shared: one.intersection(&other).count(),
            of: one.len().max(other.len()),
        }
    }

    /// Strictly over 70 %, in whole numbers.
    pub(crate) fn is_match(self) -> bool {
        self.of > 0 && self.shared * OVERLAP_OVER.1 > self.of * OVERLAP_OVER.0
    }

    /// Whether this is more than the other, exactly.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.shared * other.of > other.shared * self.of
    }
}

/// How many keywords of `query` a text holds; `None` if not one.
pub(crate) fn found_in(query: &Words, text: &Words) -> Option<usize> {
    let (query, text) = query.keywords_beside(text);
    let found = query.intersection(&text).count();
    (found > 0).then_some(found)
}

fn is_tag(word: &str) -> bool {
    crate::vault::note::tag_at_start(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &str, other: &str) -> (usize, usize, bool) {
        let overlap = Overlap::between(&Words::of(one), &Words::of(other));
        (overlap.shared, overlap.of, overlap.is_match())
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
    fn another_thing_is_another_fact() {
        assert!(!overlap("Josh likes tea", "Josh likes coffee").2);
        assert!(!overlap("The server is 10.0.0.1", "The server is 10.0.0.2").2);
        assert!(!overlap("", "").2);
    }

    #[test]
    fn other_languages_have_their_own_forms_and_stop_words() {
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
    fn scripts_without_spaces_are_compared_by_pairs() {
        assert!(overlap("我喜欢喝绿茶和咖啡", "我很喜欢喝绿茶和咖啡").2);
        assert!(!overlap("我喜欢喝绿茶", "我住在上海").2);
        assert!(overlap("ผมชอบดื่มกาแฟดำตอนเช้า", "ผมชอบดื่มกาแฟดำตอนเช้าๆ").2);
        // The longer one says more: 13 of 19 pairs is below the bound.
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
