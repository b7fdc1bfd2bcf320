//! What a fact is about: its words without stop words, reduced to their stems.
//!
//! Two facts are compared in one language, the one whose stop words their words hold most of (English if none). Scripts
//! without spaces between words have no words to count: there every two neighbouring characters are a keyword, which is
//! the usual way to search such text without a dictionary.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Strictly more than this share of keywords makes a fact a correction of another.
pub(crate) const OVERLAP_OVER: (usize, usize) = (70, 100);

/// The languages for which there are both stop words and a stemmer. English first: it wins ties.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let all = [
        ("en", Algorithm::English),
        ("ar", Algorithm::Arabic),
        ("da", Algorithm::Danish),
        ("nl", Algorithm::Dutch),
        ("fi", Algorithm::Finnish),
        ("fr", Algorithm::French),
        ("de", Algorithm::German),
        ("el", Algorithm::Greek),
        ("hu", Algorithm::Hungarian),
        ("it", Algorithm::Italian),
        ("no", Algorithm::Norwegian),
        ("pt", Algorithm::Portuguese),
        ("ro", Algorithm::Romanian),
        ("ru", Algorithm::Russian),
        ("es", Algorithm::Spanish),
        ("sv", Algorithm::Swedish),
        ("tr", Algorithm::Turkish),
    ];
    all.into_iter()
        .filter_map(|(code, algorithm)| {
            let stop = stop_words::lookup(code)?.iter().map(|word| normal(word)).collect();
            Some(Language { stop, stemmer: Stemmer::create(algorithm) })
        })
        .collect()
});

struct Language {
    stop: HashSet<String>,
    stemmer: Stemmer,
}

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
        let mut run: Vec<&str> = Vec::new();
        let mut run_end = 0;
        // Tags say how a fact is filed, not what it says.
        let text: String =
            text.split_whitespace().filter(|word| !is_tag(word)).map(normal).collect::<Vec<_>>().join(" ");
        for (at, word) in text.unicode_word_indices() {
            if word.chars().all(is_unspaced) {
                if at != run_end {
                    words.close(&mut run);
                }
                run.extend(word.graphemes(true));
                run_end = at + word.len();
            } else {
                words.close(&mut run);
                words.spaced.push(without_possessive(word).to_owned());
            }
        }
        words.close(&mut run);
        words
    }

    /// Ends a run of a script without spaces.
    fn close(&mut self, run: &mut Vec<&str>) {
        match run.as_slice() {
            [] => {}
            [single] => {
                self.pairs.insert((*single).to_owned());
            }
            many => self.pairs.extend(many.windows(2).map(|pair| pair.concat())),
        }
        run.clear();
    }

    /// The keywords in the language that `self` and `other` together seem to be in.
    fn keywords_beside(&self, other: &Self) -> (Keywords, Keywords) {
        let language = language_of(self.spaced.iter().chain(&other.spaced));
        (self.keywords(language), other.keywords(language))
    }

    fn keywords(&self, language: Option<&Language>) -> Keywords {
        let keep = |drop_stop: bool| -> Keywords {
            self.spaced
                .iter()
                .filter(|word| !(drop_stop && language.is_some_and(|language| language.stop.contains(*word))))
                .map(|word| match language {
                    Some(language) => plain(&language.stemmer.stem(word)),
                    None => plain(word),
                })
                .chain(self.pairs.iter().cloned())
                .collect()
        };
        let keywords = keep(true);
        // "To be or not to be" is made of stop words only, and still says something.
        if keywords.is_empty() { keep(false) } else { keywords }
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
        Self { shared: one.intersection(&other).count(), of: one.len().max(other.len()) }
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

fn language_of<'a>(words: impl Iterator<Item = &'a String> + Clone) -> Option<&'static Language> {
    let mut best: Option<(&Language, usize)> = None;
    for language in LANGUAGES.iter() {
        let hits = words.clone().filter(|word| language.stop.contains(*word)).count();
        if best.is_none_or(|(_, most)| hits > most) {
            best = Some((language, hits));
        }
    }
    best.map(|(language, _)| language)
}

/// One form of letters: compatible forms joined, lower case, one apostrophe.
fn normal(text: &str) -> String {
    text.nfkc()
        .flat_map(char::to_lowercase)
        .map(|char| if char == '\u{2019}' { '\'' } else { char })
        .collect()
}

/// "Josh's" is about Josh.
fn without_possessive(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}

/// Without accents, which not everybody types. Only those of alphabets whose letters stay recognisable without.
fn plain(word: &str) -> String {
    word.nfd().filter(|char| !('\u{300}'..='\u{36F}').contains(char)).collect()
}

fn is_tag(word: &str) -> bool {
    crate::vault::note::tag_at_start(word).is_some()
}

/// Scripts that are written without spaces: Han, Hiragana, Katakana, Thai, Lao, Burmese, Khmer and Tibetan.
fn is_unspaced(char: char) -> bool {
    matches!(u32::from(char),
        0x0E00..=0x0EFF | 0x0F00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007
        | 0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
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
        assert_eq!(overlap(ten, "alpha bravo charlie delta echo foxtrot golf"), (7, 10, false));
        assert_eq!(overlap(ten, "alpha bravo charlie delta echo foxtrot golf hotel"), (8, 10, true));
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
        assert_eq!(overlap("Josh’s car is red", "Josh's cars are red"), (3, 3, true));
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
            overlap("Die Katze von Josh mag den warmen Ofen", "Josh und die Katzen mögen den warmen Ofen").2
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
        assert!(!overlap("ジョシュは紅茶が好きです", "ジョシュは毎朝いつも濃い紅茶が好きです").2);
    }

    #[test]
    fn stop_words_alone_still_compare() {
        assert_eq!(overlap("who are you", "you are who"), (3, 3, true));
    }
}
