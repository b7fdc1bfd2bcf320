//! How well texts fit a question: BM25 over the stems of their words.
//!
//! Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009. Each text is read in its own language, and
//! the words of the question are looked for in the stems of that language.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::words::{Language, Tally, Token, each_token, languages};

/// How soon it stops to matter that a word stands in a text once more.
const K1: f64 = 1.2;
/// How much longer texts are at a disadvantage: 0 not at all, 1 in proportion.
const B: f64 = 0.75;
/// Words of one question that are looked for at most: more are no question any more.
const WORDS_MAX: usize = 200;
/// Bytes of a text from which its language is told.
const SAMPLE_BYTES: usize = 800;

/// A question: the words that texts are ranked by.
#[derive(Debug)]
pub(crate) struct Query {
    /// The words, normalised and without those that say nothing, each once, with its weight.
    words: Vec<(String, bool, f64)>,
    /// For each language the stems of the words, with their places in `words`.
    stems: Vec<OnceLock<Stems>>,
}

#[derive(Debug)]
struct Stems {
    places: HashMap<String, usize>,
    /// The first two bytes of those that are ASCII: what begins otherwise is none of them, and needs no stem.
    beginnings: Vec<[u8; 2]>,
}

/// The number of times that each word of a question stands in a text, and the length of that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// In tokens.
    pub(crate) length: f64,
    /// For each word of the question; empty if none is there.
    pub(crate) counts: Vec<f64>,
}

impl Counted {
    /// Returns whether the text holds no word of the question.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Counts a word once more, `weight` times.
    pub(crate) fn add(&mut self, word: usize, weight: f64, words: usize) {
        if self.counts.is_empty() {
            self.counts = vec![0.0; words];
        }
        if let Some(count) = self.counts.get_mut(word) {
            *count += weight;
        }
    }
}

impl Query {
    /// Reads a question: texts with their weights, the most important first. A word that stands in several has its first weight.
    pub(crate) fn of(texts: &[(&str, f64)]) -> Self {
        let mut words: Vec<(String, bool, f64)> = Vec::new();
        for (text, weight) in texts {
            let mut read: Vec<(String, bool)> = Vec::new();
            each_token(text, |token| read.push((token.word.to_owned(), token.is_pair)));
            let language = Language::of(read.iter().map(|(word, _)| word.as_str()));
            let says_nothing = |word: &str| language.is_some_and(|language| language.is_stop(word));
            // "To be or not to be" is made of stop words only, and still says something.
            let has_content = read.iter().any(|(word, _)| !says_nothing(word));
            for (word, is_pair) in read {
                let is_new = words.iter().all(|(known, _, _)| *known != word);
                if is_new && words.len() < WORDS_MAX && !(has_content && says_nothing(&word)) {
                    words.push((word, is_pair, *weight));
                }
            }
        }
        Self { words, stems: (0..languages()).map(|_| OnceLock::new()).collect() }
    }

    /// Returns whether it has no word.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the number of its words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Counts its words in a text.
    pub(crate) fn count(&self, text: &str) -> Counted {
        let mut counted = Counted::default();
        let length = self.each_match(text, |_, word| counted.add(word, 1.0, self.len()));
        counted.length = length as f64;
        counted
    }

    /// Calls `take` with the place of each token that is one of its words and the word's number; returns the number of all tokens.
    pub(crate) fn each_match(&self, text: &str, mut take: impl FnMut(usize, usize)) -> usize {
        let Some(language) = language_of(text) else { return 0 };
        let Some(stems) = self.stems.get(language.number()) else { return 0 };
        let stems = stems.get_or_init(|| Stems::of(&self.words, language));
        let mut length = 0;
        each_token(text, |token| {
            length += 1;
            if let Some(word) = stems.find(token, language) {
                take(token.at, word);
            }
        });
        length
    }

    /// Scores texts in which its words were counted.
    pub(crate) fn scores(&self, texts: &[Counted]) -> Scores {
        let number = texts.len() as f64;
        let length: f64 = texts.iter().map(|text| text.length).sum();
        self.scores_among(texts, number, if number > 0.0 { length / number } else { 0.0 })
    }

    /// Scores texts that are some of `number` with this mean length; the others hold none of its words.
    pub(crate) fn scores_among(&self, texts: &[Counted], number: f64, mean_length: f64) -> Scores {
        let mut holding = vec![0.0; self.len()];
        for text in texts {
            for (held, count) in holding.iter_mut().zip(&text.counts) {
                *held += f64::from(*count > 0.0);
            }
        }
        let weights: Vec<f64> = holding
            .iter()
            .zip(&self.words)
            .map(|(held, (_, _, weight))| weight * (1.0 + (number - held + 0.5) / (held + 0.5)).ln())
            .collect();
        let score = |text: &Counted| {
            let length = if mean_length > 0.0 { text.length / mean_length } else { 1.0 };
            let saturation = K1 * (1.0 - B + B * length);
            let parts = text.counts.iter().zip(&weights);
            parts.map(|(count, weight)| weight * count * (K1 + 1.0) / (count + saturation)).sum()
        };
        let most = weights.iter().sum::<f64>() * (K1 + 1.0);
        Scores { each: texts.iter().map(score).collect(), most }
    }
}

/// The scores of texts of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scores {
    /// In the order of the texts.
    pub(crate) each: Vec<f64>,
    /// A bound that no score reaches: what a text would have that consists of the question. Parts of it can be compared between texts of
    /// different kinds.
    pub(crate) most: f64,
}

impl Stems {
    fn of(words: &[(String, bool, f64)], language: &Language) -> Self {
        let (mut places, mut beginnings) = (HashMap::new(), Vec::new());
        for (place, (word, is_pair, _)) in words.iter().enumerate() {
            let stem = if *is_pair { word.clone() } else { language.stem(word) };
            let forms = language.forms(word).iter().copied();
            beginnings.extend(forms.chain([word.as_str(), stem.as_str()]).filter_map(beginning));
            places.entry(stem).or_insert(place);
        }
        beginnings.sort_unstable();
        beginnings.dedup();
        Self { places, beginnings }
    }

    fn find(&self, token: Token<'_>, language: &Language) -> Option<usize> {
        if token.is_pair {
            return self.places.get(token.word).copied();
        }
        // Most words are none of those that are looked for, and their stems are not worth making.
        if beginning(token.word).is_some_and(|beginning| self.beginnings.binary_search(&beginning).is_err()) {
            return None;
        }
        self.places.get(&language.stem(token.word)).copied()
    }
}

/// Returns the first two bytes of a word that is ASCII there; a second one that is missing is 0.
fn beginning(word: &str) -> Option<[u8; 2]> {
    let mut bytes = word.bytes();
    let beginning = [bytes.next()?, bytes.next().unwrap_or_default()];
    beginning.is_ascii().then_some(beginning)
}

/// Returns the language of a text, as its beginning tells.
fn language_of(text: &str) -> Option<&'static Language> {
    let mut tally = Tally::default();
    let sample = text.get(..text.floor_char_boundary(SAMPLE_BYTES)).unwrap_or(text);
    each_token(sample, |token| tally.see(token.word));
    tally.language().or_else(Language::usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(question: &str, texts: &[&str]) -> Vec<usize> {
        let query = Query::of(&[(question, 1.0)]);
        let counted: Vec<Counted> = texts.iter().map(|text| query.count(text)).collect();
        let scores = query.scores(&counted).each;
        let mut order: Vec<usize> = (0..texts.len()).filter(|at| scores[*at] > 0.0).collect();
        order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        order
    }

    #[test]
    fn what_fits_best_comes_first() {
        let texts = [
            "Anna has a dog and a cat.",
            "Bert went to Munich by train in spring, with all of his friends and with a great deal of luggage.",
            "Anna moved to Munich.",
            "Nothing of that.",
        ];
        assert_eq!(best("When did Anna go to Munich?", &texts), [2, 1, 0]);
        assert_eq!(best("the", &["the", "of"]), [0]);
        assert!(best("", &texts).is_empty());
    }

    #[test]
    fn each_text_is_read_in_its_own_language() {
        let texts = [
            "Die Katzen von Josh mögen den warmen Ofen",
            "Josh aime les chats noirs et le café",
            "我很喜欢喝绿茶",
        ];
        assert_eq!(best("Welchen Ofen mag die Katze?", &texts), [0]);
        assert_eq!(best("Quel chat est noir ?", &texts), [1]);
        assert_eq!(best("cafe", &texts), [1]);
        assert_eq!(best("绿茶", &texts), [2]);
    }

    #[test]
    fn words_of_less_weight_decide_where_the_others_do_not() {
        let query = Query::of(&[("and the car?", 1.0), ("Anna lives in Munich", 0.3)]);
        let texts = ["Anna has a car", "Bert has a car", "Anna lives in Munich"];
        let counted: Vec<Counted> = texts.iter().map(|text| query.count(text)).collect();
        let scores = query.scores(&counted).each;
        assert!(scores[0] > scores[1] && scores[2] > 0.0, "{scores:?}");
    }
}
