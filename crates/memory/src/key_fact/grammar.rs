//! A small grammar of facts: the subject and predicate of a sentence, and the words that announce a
//! correction.
//!
//! Six languages, one file of `grammar/` each. In any other, a fact is corrected only if the caller
//! names it, or if the words hardly differ.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::property_table::Property;
use super::words::{Phrase, Word, Words, has_phrase_at};
use crate::language::{Language, stop_word_in};

/// The tables of the languages; English first: it wins ties.
const TABLES: [&str; 6] = [
    include_str!("../../grammar/en.json"),
    include_str!("../../grammar/de.json"),
    include_str!("../../grammar/fr.json"),
    include_str!("../../grammar/es.json"),
    include_str!("../../grammar/it.json"),
    include_str!("../../grammar/pt.json"),
];

/// The words and phrases of one language by their function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    code: String,
    /// At the beginning of a sentence these announce a correction.
    pub(super) openings: Vec<Phrase>,
    /// These do if there is a comma or the like behind them: "No, …".
    pub(super) denials: Vec<Phrase>,
    /// These may stand in front of an opening.
    pub(super) interjections: HashSet<String>,
    /// A state has changed.
    pub(super) changes: Vec<Phrase>,
    /// A statement holds no longer.
    pub(super) ends: Vec<Phrase>,
    /// Behind these stands the wrong part: "tea instead of coffee".
    pub(super) instead_of: Vec<Phrase>,
    /// Pairs of words around the wrong part: "not Monday but Tuesday".
    pub(super) contrasts: Vec<(String, String)>,
    pub(super) negations: HashSet<String>,
    /// A statement holds beside earlier ones.
    pub(super) adds: Vec<Phrase>,
    /// A statement is about the past.
    pub(super) past: HashSet<String>,
    /// Verbs, which end the subject of a sentence.
    pub(super) verbs: HashSet<String>,
    /// Verbs between a property and its value: "my boss is Tom".
    pub(super) copulas: HashSet<String>,
    /// Verbs in front of a participle: "has moved".
    pub(super) auxiliaries: HashSet<String>,
    /// The words between a property and its owner: "the boss of Anna".
    pub(super) of: HashSet<String>,
    pub(super) articles: HashSet<String>,
    /// The numbers from 0 in words.
    pub(super) numbers: Vec<String>,
    /// Words for the user themselves.
    pub(super) speaker: HashSet<String>,
    /// True if a sentence without subject is about the user, because the verb alone tells it.
    pub(super) drops_pronouns: bool,
    /// Properties of which a subject has only one value at a time.
    pub(super) properties: Vec<Property>,
}

/// A language whose sentences can be parsed.
pub(super) struct Grammar {
    pub(super) table: Table,
    pub(super) language: &'static Language,
    /// Phrases that are no part of a statement, by their first words.
    fillers: HashMap<String, Vec<Phrase>>,
    /// The words of properties, by which the language is detected too.
    pub(super) property_words: HashSet<String>,
}

static GRAMMARS: LazyLock<Vec<Grammar>> = LazyLock::new(|| {
    let build = |text: &&str| {
        #[expect(clippy::expect_used, reason = "the tables are part of the program")]
        let table: Table = serde_json::from_str(text).expect("the table of a grammar");
        let mut fillers: HashMap<String, Vec<Phrase>> = HashMap::new();
        let lists = [
            &table.openings,
            &table.denials,
            &table.changes,
            &table.ends,
            &table.instead_of,
        ];
        let phrases_of_adds = table.adds.iter().filter(|phrase| phrase.0.len() > 1);
        for phrase in lists.into_iter().flatten().chain(phrases_of_adds) {
            if let Some(first) = phrase.0.first() {
                fillers
                    .entry(first.clone())
                    .or_default()
                    .push(phrase.clone());
            }
        }
        // The longest first, so that no word of it is left behind.
        for phrases in fillers.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.0.len()));
        }
        Some(Grammar {
            language: Language::from_code(&table.code)?,
            property_words: table
                .properties
                .iter()
                .flat_map(Property::words)
                .map(str::to_owned)
                .collect(),
            table,
            fillers,
        })
    };
    TABLES.iter().filter_map(build).collect()
});

/// The grammars that have a word as a verb, as one for the user or as one of a property: a bit for
/// each. One lookup for all of them: the language of each stored fact is detected.
static KNOWN_BY: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let mut known: HashMap<&str, u8> = HashMap::new();
    for (at, grammar) in GRAMMARS.iter().enumerate() {
        let table = &grammar.table;
        let words = table.verbs.iter().chain(&table.speaker);
        for word in words.chain(&grammar.property_words) {
            *known.entry(word).or_default() |= 1 << at;
        }
    }
    known
});

/// A sentence, divided into subject and predicate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The stems of the subject; empty for the user themselves.
    pub(crate) subject: Vec<String>,
    /// The stems of the predicate.
    pub(crate) predicate: Vec<String>,
    /// True if it has a verb, which divides subject and predicate.
    pub(crate) has_verb: bool,
}

impl Grammar {
    pub(super) fn is_verb(&self, word: &str) -> bool {
        self.table.verbs.contains(word)
    }

    pub(super) fn is_speaker(&self, word: &str) -> bool {
        self.table.speaker.contains(word)
    }

    /// Returns the length of the filler at a place, in words; 0 if there is none.
    pub(super) fn filler_at(&self, words: &[Word], at: usize) -> usize {
        let first = words.get(at).map_or("", |word| word.text.as_str());
        let phrases = self.fillers.get(first).into_iter().flatten();
        phrases
            .map(|phrase| &phrase.0)
            .find(|phrase| has_phrase_at(words, at, phrase))
            .map_or(0, Vec::len)
    }

    /// Returns the stem of a word that has a meaning of its own: no verb, no word for the user, no
    /// stop word and no elision.
    pub(super) fn content_stem(&self, word: &str) -> Option<String> {
        let has_content = !self.is_verb(word)
            && !self.is_speaker(word)
            && !word.ends_with('\'')
            && !self.language.is_stop(word);
        has_content.then(|| self.language.stem(word))
    }

    pub(super) fn parse(&self, words: &Words) -> Sentence {
        let mut sentence = Sentence::default();
        let mut has_speaker = self.table.drops_pronouns;
        let mut at = 0;
        while let Some(word) = words.0.get(at) {
            let filler = self.filler_at(&words.0, at);
            let word = word.text.as_str();
            let had_verb = sentence.has_verb;
            if filler <= 1 {
                // In "Anna lives …" the verb is the predicate's first word, in "Anna's birthday is …"
                // it stands behind the subject.
                sentence.has_verb |= self.is_verb(word);
                has_speaker |= self.is_speaker(word);
            }
            at += filler.max(1);
            if filler > 0 {
                continue;
            }
            if let Some(stem) = self.content_stem(word) {
                match had_verb {
                    true => sentence.predicate.push(stem),
                    false => sentence.subject.push(stem),
                }
            }
        }
        // "Eigentlich arbeitet Anna …": the subject stands behind the verb.
        if sentence.subject.is_empty() && !has_speaker && !sentence.predicate.is_empty() {
            sentence.subject.push(sentence.predicate.remove(0));
        }
        sentence
    }
}

/// Returns the grammars of all languages that have one.
pub(super) fn all() -> &'static [Grammar] {
    &GRAMMARS
}

/// Detects the grammar of the language that knows most of these words. `None` if none of them
/// knows a word, or another language knows more.
pub(super) fn detect<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<&'static Grammar> {
    let mut counts = [0_usize; TABLES.len()];
    for word in words.clone() {
        let grammars = KNOWN_BY.get(word).copied().unwrap_or_default();
        let stop = stop_word_in(word);
        for (at, (count, grammar)) in counts.iter_mut().zip(GRAMMARS.iter()).enumerate() {
            let is_known = grammars & (1 << at) != 0 || stop.has(grammar.language);
            *count += usize::from(is_known);
        }
    }
    // Reversed, because `max_by_key` returns the last of equals: English, the first, wins ties.
    let (known, best) = counts
        .into_iter()
        .zip(GRAMMARS.iter())
        .rev()
        .max_by_key(|(known, _)| *known)?;
    let general = Language::detect(words.clone());
    // A language without a grammar that has more stop words among them is none of these.
    let is_other = general.is_some_and(|language| {
        words.clone().filter(|word| language.is_stop(word)).count() > known
    });
    (known > 0 && !is_other).then_some(best)
}
