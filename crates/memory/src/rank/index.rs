//! An inverted index of many short texts: a query looks up its stems and reads none of the texts.

use std::collections::{HashMap, HashSet};

use super::{Query, TermCounts, language_of, stem_of};
use crate::language::{Language, each_token};

/// For each stem the texts that hold it, and its frequency there.
type Postings = HashMap<String, Vec<(usize, f64)>>;

/// The stems of texts, by the languages of the texts.
#[derive(Default)]
pub(crate) struct Index {
    /// By the index of each language.
    postings: HashMap<usize, (&'static Language, Postings)>,
    /// Length of each text, in tokens.
    lengths: Vec<f64>,
}

impl Index {
    /// Indexes texts, each under its number in their order.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut index = Self::default();
        for (at, text) in texts.into_iter().enumerate() {
            index.insert(at, text);
        }
        index
    }

    /// Indexes a text under a number that no other text has.
    pub(crate) fn insert(&mut self, at: usize, text: &str) {
        let mut length = 0_u32;
        if let Some(language) = language_of(text) {
            let (_, postings) = self
                .postings
                .entry(language.index())
                .or_insert_with(|| (language, HashMap::new()));
            each_token(text, |token| {
                length += 1;
                let stem = stem_of(token.word, token.is_bigram, language);
                let texts = postings.entry(stem).or_default();
                match texts.last_mut().filter(|(last, _)| *last == at) {
                    Some((_, count)) => *count += 1.0,
                    None => texts.push((at, 1.0)),
                }
            });
        }
        if self.lengths.len() <= at {
            self.lengths.resize(at + 1, 0.0);
        }
        if let Some(place) = self.lengths.get_mut(at) {
            *place = f64::from(length);
        }
    }

    /// Removes the text that was indexed under a number.
    pub(crate) fn remove(&mut self, at: usize, text: &str) {
        if let Some(length) = self.lengths.get_mut(at) {
            *length = 0.0;
        }
        let Some(language) = language_of(text) else {
            return;
        };
        let Some((_, postings)) = self.postings.get_mut(&language.index()) else {
            return;
        };
        let mut stems = HashSet::new();
        each_token(text, |token| {
            stems.insert(stem_of(token.word, token.is_bigram, language));
        });
        for stem in stems {
            if let Some(texts) = postings.get_mut(&stem) {
                texts.retain(|(other, _)| *other != at);
                if texts.is_empty() {
                    postings.remove(&stem);
                }
            }
        }
    }
}

impl Query {
    /// Counts the terms in the texts of an index; the result is that of [`Query::count`] for each
    /// text.
    pub(crate) fn count_in_index(&self, index: &Index) -> Vec<TermCounts> {
        let lengths = index.lengths.iter().copied();
        let mut counts: Vec<TermCounts> = lengths.map(TermCounts::with_length).collect();
        for (language, postings) in index.postings.values() {
            let Some(stems) = self.stems_in(language) else {
                continue;
            };
            let exact = stems
                .terms
                .iter()
                .filter_map(|(stem, term)| Some((*term, postings.get(stem)?)));
            // Only a query of single characters has to look through the bigrams.
            let is_searched = !stems.characters.is_empty();
            let holding = postings
                .iter()
                .filter(|(stem, _)| is_searched && !stems.terms.contains_key(*stem))
                .filter_map(|(stem, texts)| Some((stems.find_bigram(stem)?, texts)));
            for (term, texts) in exact.chain(holding) {
                for (text, count) in texts {
                    if let Some(counts) = counts.get_mut(*text) {
                        counts.add(term, *count, self.len());
                    }
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_gives_the_counts_of_the_texts() {
        let texts = [
            "Anna moved from Graz to Munich, and she likes moving.",
            "Die Katzen von Josh mögen den warmen Ofen nicht, die Katze nie.",
            "Josh aime les chats noirs et le café",
            "我很喜欢喝绿茶，绿茶很好",
            "",
            "The children's café was closed; e-mail x@y.z",
        ];
        let index = Index::new(texts);
        for question in [
            "Who moves to Munich with cats?",
            "Welche Katze mag Öfen?",
            "绿茶",
            "茶",
            "cafe child",
            "",
        ] {
            let query = Query::new(&[(question, 1.0), ("Josh and the cats", 0.3)]);
            let read: Vec<_> = texts.iter().map(|text| query.count(text)).collect();
            let shown = |counts: &[TermCounts]| -> Vec<(f64, Vec<f64>)> {
                counts
                    .iter()
                    .map(|text| (text.length, text.counts.clone()))
                    .collect()
            };
            assert_eq!(
                shown(&query.count_in_index(&index)),
                shown(&read),
                "{question}"
            );
        }
    }

    #[test]
    fn a_text_that_was_removed_is_counted_no_more() {
        let mut index = Index::new(["Anna likes tea, black tea", "Bert likes tea", "Ana bebe té"]);
        index.remove(0, "Anna likes tea, black tea");
        index.insert(0, "Cleo likes milk");
        index.remove(2, "Ana bebe té");
        let query = Query::new(&[("black tea or milk", 1.0), ("té", 1.0)]);
        let rest = ["Cleo likes milk", "Bert likes tea", ""];
        for (counted, text) in query.count_in_index(&index).iter().zip(rest) {
            let expected = query.count(text);
            assert_eq!(counted.counts, expected.counts, "{text}");
            assert_eq!(counted.length, expected.length, "{text}");
        }
        index.remove(0, "Cleo likes milk");
        index.remove(1, "Bert likes tea");
        assert!(index.postings.values().all(|(_, stems)| stems.is_empty()));
    }
}
