//! The word lists of claims, a file for each language in `languages/claims/`.
//!
//! Messages are read in one language, but a model answers in any: all lists are tried on every
//! text. A list that a language has no use for is left out of its file.

use std::sync::LazyLock;

use serde::Deserialize;

use super::language::{PhraseList, WordList};

/// Returns the lists of every language.
pub(crate) fn languages() -> &'static [ClaimLanguage] {
    &LANGUAGES
}

/// The sources of the lists.
const FILES: [&str; 5] = [
    include_str!("../languages/claims/de.json"),
    include_str!("../languages/claims/en.json"),
    include_str!("../languages/claims/es.json"),
    include_str!("../languages/claims/fr.json"),
    include_str!("../languages/claims/pt.json"),
];

// Parsed once, when the first text is checked.
static LANGUAGES: LazyLock<Vec<ClaimLanguage>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the files are compiled in, and a test parses them"
    )]
    let parse = |file: &&str| serde_json::from_str(file).expect("valid word lists");
    FILES.iter().map(parse).collect()
});

/// One language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimLanguage {
    /// True if the verb stands at the end of the sentence, far from its auxiliary.
    pub(crate) verb_last: bool,
    #[serde(rename = "claim")]
    pub(crate) lists: ClaimLists,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(crate) struct ClaimLists {
    pub(crate) acknowledgements: PhraseList,
    pub(crate) also_present: WordList,
    pub(crate) articles: WordList,
    pub(crate) assurances: PhraseList,
    pub(crate) conditions: PhraseList,
    pub(crate) conjunctions: WordList,
    pub(crate) copulas: WordList,
    pub(crate) did: WordList,
    pub(crate) doing: WordList,
    pub(crate) done: WordList,
    pub(crate) done_openings: PhraseList,
    pub(crate) exclamations: PhraseList,
    pub(crate) facts: PhraseList,
    pub(crate) fillers: WordList,
    pub(crate) function_words: WordList,
    pub(crate) infinitive_endings: WordList,
    pub(crate) interjections: WordList,
    pub(crate) it_is: PhraseList,
    pub(crate) just_openings: PhraseList,
    pub(crate) negations: WordList,
    pub(crate) not_now: WordList,
    pub(crate) orders: WordList,
    pub(crate) own: WordList,
    pub(crate) past_openings: PhraseList,
    pub(crate) past_passives: PhraseList,
    pub(crate) perfect_passives: PhraseList,
    pub(crate) promise_openings: PhraseList,
    pub(crate) promise_subjects: WordList,
    pub(crate) promised: WordList,
    pub(crate) promised_by_subject: WordList,
    pub(crate) reasons: WordList,
    pub(crate) running: WordList,
    pub(crate) states: WordList,
    pub(crate) subordinators: WordList,
    pub(crate) talk: WordList,
    pub(crate) things: WordList,
    pub(crate) unkept: PhraseList,
    pub(crate) work: WordList,
    pub(crate) you: WordList,
}

#[cfg(test)]
mod tests {
    use super::super::language::check_lists;
    use super::*;

    #[test]
    fn every_list_is_explained_sorted_and_without_doubles() {
        assert_eq!(languages().len(), FILES.len());
        for file in FILES {
            let mut groups: serde_json::Value = serde_json::from_str(file).unwrap();
            check_lists(&serde_json::json!({ "claim": groups["claim"].take() }).to_string());
        }
    }
}
