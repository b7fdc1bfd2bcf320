//! The word lists of a language, which are data in `languages/` and not code.
//!
//! Each list says in its `about` what it is for. The file is parsed once, when the first message
//! is read. Its words are sorted, so a look-up is a binary search.
//!
//! English is the only language of messages yet. In another one less is recognised, and a guard that
//! recognises nothing asks the user. Answers are checked in more, see [`super::claim_language`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Returns the lists of the language that messages are read in.
pub(crate) fn lists() -> &'static Language {
    &ENGLISH
}

// Parsed once, when the first message is read: most programs have no weak model.
static ENGLISH: LazyLock<Language> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and a test parses it"
    )]
    serde_json::from_str(include_str!("../languages/en.json")).expect("valid word lists")
});

/// The lists, grouped by the module that reads them. A list that the file lacks, or that no field
/// is for, is an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Language {
    pub(crate) message: MessageLists,
    pub(crate) entry: EntryLists,
    pub(crate) fact: FactLists,
    pub(crate) question: QuestionLists,
    pub(crate) sentence: SentenceLists,
    pub(crate) speech: SpeechLists,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageLists {
    pub(crate) about_the_assistant: PhraseList,
    pub(crate) anaphora: WordList,
    pub(crate) articles: WordList,
    pub(crate) before_order: WordList,
    pub(crate) behind_ordinal: WordList,
    pub(crate) between_numbers: WordList,
    pub(crate) conjunctions: WordList,
    pub(crate) create: WordList,
    pub(crate) delete_verbs: WordList,
    pub(crate) description_words: WordList,
    pub(crate) destroy: WordList,
    pub(crate) endings: WordList,
    pub(crate) future: WordList,
    pub(crate) general_words: WordList,
    pub(crate) generic_nouns: WordList,
    pub(crate) have: WordList,
    pub(crate) irregular_forms: PhraseList,
    pub(crate) list_verbs: WordList,
    pub(crate) mark_verbs: WordList,
    pub(crate) memory_verbs: WordList,
    pub(crate) modals: WordList,
    pub(crate) negations: WordList,
    pub(crate) number_marks: WordList,
    pub(crate) ordinals: Ordinals,
    pub(crate) stop_words: WordList,
    pub(crate) prohibitions: WordList,
    pub(crate) quantities: WordList,
    pub(crate) question_verbs: WordList,
    pub(crate) question_words: WordList,
    pub(crate) reword: WordList,
    pub(crate) speakers: WordList,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryLists {
    pub(crate) before_text: WordList,
    pub(crate) diaries: PhraseList,
    pub(crate) no_object: WordList,
    pub(crate) not_an_entry: WordList,
    pub(crate) notes: PhraseList,
    pub(crate) prepositions: WordList,
    pub(crate) topic_prepositions: WordList,
    pub(crate) write_verbs: WordList,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactLists {
    pub(crate) adverbs: WordList,
    pub(crate) asks: WordList,
    pub(crate) attributes: WordList,
    pub(crate) bare_objects: WordList,
    pub(crate) be: WordList,
    pub(crate) before_fact: WordList,
    pub(crate) before_possessives: WordList,
    pub(crate) before_remember: WordList,
    pub(crate) behind_drive: WordList,
    pub(crate) behind_is: WordList,
    pub(crate) behind_name_is: WordList,
    pub(crate) behind_own_is: WordList,
    pub(crate) behind_was: WordList,
    pub(crate) conditional: WordList,
    pub(crate) contracted_subjects: WordList,
    pub(crate) everything: WordList,
    pub(crate) finite_verbs: WordList,
    pub(crate) forget: PhraseList,
    pub(crate) forget_endings: PhraseList,
    pub(crate) have_participles: WordList,
    pub(crate) i_am: WordList,
    pub(crate) i_have: WordList,
    pub(crate) intentions: WordList,
    pub(crate) interjections: WordList,
    pub(crate) introductions: PhraseList,
    pub(crate) lasting_participles: WordList,
    pub(crate) later: WordList,
    pub(crate) momentary: WordList,
    pub(crate) names_no_fact: WordList,
    pub(crate) naming_participles: WordList,
    pub(crate) negation_before_verb: WordList,
    pub(crate) negation_behind_verb: WordList,
    pub(crate) no_order: WordList,
    pub(crate) obligation: WordList,
    pub(crate) obligation_before_to: WordList,
    pub(crate) own_verbs: WordList,
    pub(crate) passing_objects: WordList,
    pub(crate) passing_states: WordList,
    pub(crate) placeholder_first: WordList,
    pub(crate) placeholders: WordList,
    pub(crate) possessives: WordList,
    pub(crate) pronouns: WordList,
    pub(crate) remember: PhraseList,
    pub(crate) remember_behind: PhraseList,
    pub(crate) secrets: WordList,
    pub(crate) simple_be: WordList,
    pub(crate) stative_verbs: WordList,
    pub(crate) stative_verbs_third_person: WordList,
    pub(crate) task_list: WordList,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionLists {
    pub(crate) about_memory: PhraseList,
    pub(crate) auxiliaries: WordList,
    pub(crate) before_places: WordList,
    pub(crate) contractions: WordList,
    pub(crate) diaries: WordList,
    pub(crate) everything: WordList,
    pub(crate) first_words: WordList,
    pub(crate) memory_verbs: WordList,
    pub(crate) obligation: WordList,
    pub(crate) own_notes: WordList,
    pub(crate) possessives: WordList,
    pub(crate) search_orders: PhraseList,
    pub(crate) speakers: WordList,
    pub(crate) task_list: WordList,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentenceLists {
    pub(crate) abbreviations: WordList,
    pub(crate) orders_behind_and: WordList,
    pub(crate) polite: WordList,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpeechLists {
    pub(crate) agreement: WordList,
    pub(crate) file_verbs: WordList,
    pub(crate) files: WordList,
    pub(crate) points_back: WordList,
    pub(crate) refusal: WordList,
}

/// Single words, sorted.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "List<Vec<String>>")]
pub(crate) struct WordList(Vec<String>);

impl WordList {
    /// Returns true if a word in lower case is in the list.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0
            .binary_search_by(|other| other.as_str().cmp(word))
            .is_ok()
    }

    /// Returns the words.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns true if there are no words.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a test holds for one of the words.
    pub(crate) fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|word| test(word))
    }
}

impl From<List<Vec<String>>> for WordList {
    fn from(list: List<Vec<String>>) -> Self {
        Self(list.words)
    }
}

/// Phrases, each split into words. "|" separates alternatives of one word.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "List<Vec<String>>")]
pub(crate) struct PhraseList(Vec<Vec<String>>);

impl PhraseList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Splits each word as `split` does.
    pub(crate) fn split_by(&mut self, split: impl Fn(&str) -> Vec<String>) {
        for phrase in &mut self.0 {
            *phrase = phrase.iter().flat_map(|word| split(word)).collect();
        }
    }
}

impl From<List<Vec<String>>> for PhraseList {
    fn from(list: List<Vec<String>>) -> Self {
        Self(
            list.words
                .iter()
                .flat_map(|phrase| expanded(phrase))
                .collect(),
        )
    }
}

/// Returns the phrases of a pattern in which "|" separates alternatives of one word: "to my|the
/// list".
fn expanded(pattern: &str) -> Vec<Vec<String>> {
    let mut phrases = vec![Vec::new()];
    for word in pattern.split_whitespace() {
        phrases = phrases
            .iter()
            .flat_map(|phrase: &Vec<String>| {
                word.split('|').map(|alternative| {
                    let mut phrase = phrase.clone();
                    phrase.push(alternative.to_owned());
                    phrase
                })
            })
            .collect();
    }
    phrases
}

/// Ordinal numbers with the position they name, counted from 1.
#[derive(Debug, Deserialize)]
#[serde(from = "List<BTreeMap<String, usize>>")]
pub(crate) struct Ordinals(BTreeMap<String, usize>);

impl Ordinals {
    pub(crate) fn position(&self, word: &str) -> Option<usize> {
        self.0.get(word).copied()
    }
}

impl From<List<BTreeMap<String, usize>>> for Ordinals {
    fn from(list: List<BTreeMap<String, usize>>) -> Self {
        Self(list.words)
    }
}

/// A list as it is in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List<T> {
    // Read so that a list without it is an error: it says what the list is for.
    #[serde(rename = "about")]
    _about: String,
    words: T,
}

/// Checks a file of lists: each is explained, sorted and without doubles.
#[cfg(test)]
pub(crate) fn check_lists(file: &str) {
    #[derive(Deserialize)]
    struct Raw {
        about: String,
        words: serde_json::Value,
    }

    let file: BTreeMap<String, BTreeMap<String, Raw>> = serde_json::from_str(file).unwrap();
    for (name, Raw { about, words }) in file.into_values().flatten() {
        assert!(
            about.ends_with('.') || about.ends_with('"') || about.ends_with('?'),
            "{name}"
        );
        let words: Vec<String> = match words {
            serde_json::Value::Object(words) => words.into_iter().map(|(word, _)| word).collect(),
            words => serde_json::from_value(words).unwrap(),
        };
        assert!(!words.is_empty(), "{name}");
        assert!(
            words.is_sorted_by(|a, b| a < b),
            "{name} is not sorted, or has a double"
        );
        assert!(
            words.iter().all(|word| *word == word.to_lowercase()),
            "{name}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parsing fails if the file lacks a list, or has one that no field is for.
    #[test]
    fn every_list_is_explained_sorted_and_without_doubles() {
        assert!(lists().message.stop_words.has("the"));
        check_lists(include_str!("../languages/en.json"));
    }
}
