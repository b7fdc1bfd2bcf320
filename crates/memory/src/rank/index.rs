//! The words of many short texts, read once: a question then looks up its own and reads none of the
//! texts.

use std::collections::HashMap;

use super::{Counted, Query, language_of};
use crate::words::{Language, each_token};

/// For each stem the texts that hold it, and how often.
type Places = HashMap<String, Vec<(usize, f64)>>;

/// The stems of texts, by their languages.
#[derive(Default)]
pub(crate) struct Index {
    /// For each language, by its number, the texts that hold a stem, and how often.
    stems: HashMap<usize, (&'static Language, Places)>,
    /// The tokens of each text.
    lengths: Vec<f64>,
}

impl Index {
    /// Reads texts.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut index = Self::default();
        for (at, text) in texts.into_iter().enumerate() {
            let mut length = 0_u32;
            if let Some(language) = language_of(text) {
                let (_, stems) = index
                    .stems
                    .entry(language.number())
                    .or_insert_with(|| (language, HashMap::new()));
                each_token(text, |token| {
                    length += 1;
                    let stem = if token.is_pair {
                        token.word.to_owned()
                    } else {
                        language.stem(token.word)
                    };
                    let texts = stems.entry(stem).or_default();
                    match texts.last_mut().filter(|(last, _)| *last == at) {
                        Some((_, count)) => *count += 1.0,
                        None => texts.push((at, 1.0)),
                    }
                });
            }
            index.lengths.push(f64::from(length));
        }
        index
    }
}

impl Query {
    /// Counts its words in the texts of an index: for each the same as reading it would.
    pub(crate) fn count_in(&self, index: &Index) -> Vec<Counted> {
        let length = |length: &f64| Counted {
            length: *length,
            counts: Vec::new(),
        };
        let mut counted: Vec<Counted> = index.lengths.iter().map(length).collect();
        for (language, known) in index.stems.values() {
            let Some(stems) = self.stems_in(language) else {
                continue;
            };
            for (stem, word) in &stems.places {
                for (text, count) in known.get(stem).into_iter().flatten() {
                    if let Some(counted) = counted.get_mut(*text) {
                        counted.add(*word, *count, self.len());
                    }
                }
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_counts_what_reading_the_texts_does() {
        let texts = [
            "Anna moved from Graz to Munich, and she likes moving.",
            "Die Katzen von Josh mögen den warmen Ofen nicht, die Katze nie.",
            "Josh aime les chats noirs et le café",
            "我很喜欢喝绿茶，绿茶很好",
            "",
            "The children's café was closed; e-mail x@y.z",
        ];
        let index = Index::of(texts);
        for question in [
            "Who moves to Munich with cats?",
            "Welche Katze mag Öfen?",
            "绿茶",
            "cafe child",
            "",
        ] {
            let query = Query::of(&[(question, 1.0), ("Josh and the cats", 0.3)]);
            let read: Vec<_> = texts.iter().map(|text| query.count(text)).collect();
            let shown = |counted: &[Counted]| -> Vec<(f64, Vec<f64>)> {
                counted
                    .iter()
                    .map(|counted| (counted.length, counted.counts.clone()))
                    .collect()
            };
            assert_eq!(shown(&query.count_in(&index)), shown(&read), "{question}");
        }
    }
}
