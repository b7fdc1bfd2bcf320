//! Words of a language by which a scored message is read. They are data, in `languages/lexicon/`.
//!
//! The scores say what is asked for, in any words; the lists only find references to entities and
//! the limits of texts.

#[cfg(feature = "training")]
mod training; // lexicons without one of their lists

use std::collections::BTreeMap;
use std::sync::LazyLock;

use adjutant_core::Language;
use serde::Deserialize;

use super::language::{PhraseList, WordList};
use super::words::{is_number, words};

const FILES: [(Language, &str); 5] = [
    (
        Language::English,
        include_str!("../languages/lexicon/en.json"),
    ),
    (
        Language::German,
        include_str!("../languages/lexicon/de.json"),
    ),
    (
        Language::French,
        include_str!("../languages/lexicon/fr.json"),
    ),
    (
        Language::Spanish,
        include_str!("../languages/lexicon/es.json"),
    ),
    (
        Language::Portuguese,
        include_str!("../languages/lexicon/pt.json"),
    ),
];

// Each is parsed once, with the first message in its language.
static LEXICONS: [(Language, LazyLock<Lexicon>); 5] = [
    (FILES[0].0, LazyLock::new(|| parse(FILES[0].0, FILES[0].1))),
    (FILES[1].0, LazyLock::new(|| parse(FILES[1].0, FILES[1].1))),
    (FILES[2].0, LazyLock::new(|| parse(FILES[2].0, FILES[2].1))),
    (FILES[3].0, LazyLock::new(|| parse(FILES[3].0, FILES[3].1))),
    (FILES[4].0, LazyLock::new(|| parse(FILES[4].0, FILES[4].1))),
];

/// Returns the words of a language, of English for one without a file.
pub(crate) fn lexicon(language: Language) -> &'static Lexicon {
    let of = LEXICONS.iter().find(|(known, _)| *known == language);
    &of.unwrap_or(&LEXICONS[0]).1
}

/// The lexicons that messages are read by: the built-in ones, unless others are measured
/// (`training`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lexicons {
    others: Option<&'static [Lexicon]>,
}

impl Lexicons {
    /// Returns the words of a language, of English for one without a lexicon.
    pub(crate) fn of(self, language: Language) -> &'static Lexicon {
        let other = self.others.and_then(|others| {
            let of = others.iter().find(|other| other.language == language);
            of.or(others.first())
        });
        other.unwrap_or_else(|| lexicon(language))
    }
}

#[expect(
    clippy::expect_used,
    reason = "the files are compiled in, and a test parses each"
)]
fn parse(language: Language, text: &str) -> Lexicon {
    let lexicon: Lexicon = serde_json::from_str(text).expect("valid word lists");
    lexicon.prepared(language)
}

/// The lists of one language, in lower case and without diacritics.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lexicon {
    #[serde(skip)]
    pub(crate) language: Language,
    pub(crate) adding_verbs: WordList,
    pub(crate) agreements: PhraseList,
    pub(crate) all: PhraseList,
    pub(crate) also_tasks: WordList,
    pub(crate) before_text: PhraseList,
    pub(crate) behind_into: PhraseList,
    pub(crate) behind_text: PhraseList,
    pub(crate) both: PhraseList,
    pub(crate) cardinals: Numerals,
    pub(crate) connectors: WordList,
    pub(crate) contrasts: WordList,
    pub(crate) corrections: PhraseList,
    pub(crate) entry_nouns: WordList,
    pub(crate) except: PhraseList,
    pub(crate) finished: WordList,
    pub(crate) instead_of: PhraseList,
    pub(crate) into: PhraseList,
    pub(crate) last: WordList,
    pub(crate) negations: WordList,
    pub(crate) no_longer: PhraseList,
    pub(crate) ordinals: Numerals,
    pub(crate) other: PhraseList,
    pub(crate) pending: WordList,
    pub(crate) penultimate: WordList,
    pub(crate) pronouns: WordList,
    pub(crate) retractions: WordList,
    pub(crate) stop_words: WordList,
    pub(crate) when: WordList,
}

impl Lexicon {
    fn prepared(mut self, language: Language) -> Self {
        self.language = language;
        // A phrase has the words that a message is split into: "s'il te plaît" has four.
        let split = |word: &str| -> Vec<String> {
            let words = words(word).into_iter();
            words.map(|word| word.folded).collect()
        };
        for phrases in self.phrases() {
            phrases.split_by(split);
        }
        self
    }

    fn phrases(&mut self) -> [&mut PhraseList; 12] {
        [
            &mut self.agreements,
            &mut self.all,
            &mut self.before_text,
            &mut self.behind_into,
            &mut self.behind_text,
            &mut self.both,
            &mut self.corrections,
            &mut self.except,
            &mut self.instead_of,
            &mut self.into,
            &mut self.no_longer,
            &mut self.other,
        ]
    }
}

/// Returns true if a word may name a particular entity.
pub(crate) fn is_content(word: &str, lexicon: &Lexicon) -> bool {
    !lexicon.stop_words.has(word) && !lexicon.entry_nouns.has(word) && !is_number(word)
}

/// Words for the numbers from one.
#[derive(Debug, Deserialize)]
#[serde(from = "Forms")]
pub(crate) struct Numerals(BTreeMap<String, usize>);

impl Numerals {
    /// Returns the number that a word stands for.
    pub(crate) fn number(&self, word: &str) -> Option<usize> {
        self.0.get(word).copied()
    }
}

/// The forms of each number, from one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forms {
    // Read so that a list without it is an error: it says what the list is for.
    #[serde(rename = "about")]
    _about: String,
    words: Vec<Vec<String>>,
}

impl From<Forms> for Numerals {
    fn from(forms: Forms) -> Self {
        let numbered = forms.words.into_iter().enumerate();
        Self(
            numbered
                .flat_map(|(index, forms)| forms.into_iter().map(move |form| (form, index + 1)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Deserialize)]
    struct Raw {
        about: String,
        words: serde_json::Value,
    }

    #[test]
    fn every_list_is_explained_sorted_and_folded() {
        for (language, text) in FILES {
            assert!(lexicon(language).stop_words.iter().count() > 100);
            let lists: BTreeMap<String, Raw> = serde_json::from_str(text).unwrap();
            for (name, Raw { about, words }) in lists {
                assert!(about.ends_with('.'), "{language} {name}");
                // Numerals are lists of forms, in the order of the numbers.
                let Ok(words) = serde_json::from_value::<Vec<String>>(words) else {
                    continue;
                };
                assert!(words.is_sorted_by(|a, b| a < b), "{language} {name}");
                for word in words {
                    assert_eq!(crate::words::fold(&word), word, "{language} {name}");
                }
            }
        }
    }
}
