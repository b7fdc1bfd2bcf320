//! How well texts fit a question: BM25 over the stems of their words.
//!
//! Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009. Each
//! text is read in its own language, and the words of the question are looked for in the stems of
//! that language.

mod finder; // where a word may stand
mod index; // the words of many texts

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::OnceLock;

use self::finder::Finder;
pub(crate) use self::index::Index;

use crate::words::{Language, Tally, Token, all_languages, each_token};

/// The saturation of BM25 (k1): a higher one lets each further occurrence of a word count longer.
const K1: f64 = 1.2;
/// The weight of a text's length in BM25 (b): 0 none, 1 in proportion.
const B: f64 = 0.75;
/// Words of one question that are looked for at most: more are no question any more.
const WORDS_MAX: usize = 200;
/// Bytes that a word and its stem have in common at most, as far as they are compared before the
/// stem is made.
const COMMON_MAX: usize = 4;
/// Bytes of a text from which its language is told.
const SAMPLE_BYTES: usize = 400;
/// Bytes of a stem in an index at most: longer ones are compared by their beginnings.
const INDEX_WORD_BYTES: usize = 64;

/// Bytes of text for one token, where they are not counted.
pub(crate) const TOKEN_BYTES: f64 = 5.5;

/// A question: the words that texts are ranked by.
#[derive(Debug)]
pub(crate) struct Query {
    /// The words, normalised and without those that say nothing, each once, with its weight.
    words: Vec<(String, bool, f64)>,
    /// For each language the stems of the words, with their places in `words`.
    stems: Vec<OnceLock<Stems>>,
    finder: OnceLock<Finder>,
}

#[derive(Debug)]
struct Stems {
    places: HashMap<String, usize>,
    /// The first letters of words of ASCII that may be one of them: the others need no stem.
    beginnings: Vec<Vec<u8>>,
    /// Their first bytes: a bit for each.
    firsts: u128,
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
    /// Reads a question: texts with their weights, the most important first. A word that stands in
    /// several has its first weight.
    pub(crate) fn of(texts: &[(&str, f64)]) -> Self {
        let mut words: Vec<(String, bool, f64)> = Vec::new();
        for (text, weight) in texts {
            let mut read: Vec<(String, bool)> = Vec::new();
            each_token(text, |token| {
                read.push((token.word.to_owned(), token.is_pair))
            });
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
        Self {
            words,
            stems: all_languages().iter().map(|_| OnceLock::new()).collect(),
            finder: OnceLock::new(),
        }
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

    /// Returns whether more than half of its words stand in a text.
    pub(crate) fn has_most_in(&self, text: &str) -> bool {
        let there = self
            .count(text)
            .counts
            .iter()
            .filter(|count| **count > 0.0)
            .count();
        there * 2 > self.len()
    }

    /// Calls `take` with the place of each token that is one of its words and the word's number;
    /// returns the number of all tokens.
    pub(crate) fn each_match(&self, text: &str, mut take: impl FnMut(usize, usize)) -> usize {
        let Some((language, stems)) = self.stems_for(text) else {
            return 0;
        };
        let mut length = 0;
        each_token(text, |token| {
            length += 1;
            if let Some(word) = stems.find(token, language) {
                take(token.at, word);
            }
        });
        length
    }

    /// Does the same, and reads only what may hold one of the words; returns an estimate of the
    /// number of all tokens. For many or long texts.
    pub(crate) fn each_match_in_part(&self, text: &str, mut take: impl FnMut(usize, usize)) -> f64 {
        let (mut tokens, mut read, mut stems) = (0_u32, 0, None);
        self.finder().each_piece(text, |piece| {
            // Of most texts the language need not be known: they hold nothing.
            let Some((language, stems)) = *stems.get_or_insert_with(|| self.stems_for(text)) else {
                return;
            };
            let start = piece.start;
            read += piece.len() + 1;
            each_token(text.get(piece).unwrap_or_default(), |token| {
                tokens += 1;
                if let Some(word) = stems.find(token, language) {
                    take(start + token.at, word);
                }
            });
        });
        f64::from(tokens) + text.len().saturating_sub(read) as f64 / TOKEN_BYTES
    }

    /// Returns the stems of its words in the language of a text.
    fn stems_for(&self, text: &str) -> Option<(&'static Language, &Stems)> {
        let language = language_of(text)?;
        Some((language, self.stems_in(language)?))
    }

    fn stems_in(&self, language: &'static Language) -> Option<&Stems> {
        let stems = self.stems.get(language.number())?;
        Some(stems.get_or_init(|| Stems::of(&self.words, language)))
    }

    fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| {
            let stems = all_languages()
                .iter()
                .filter_map(|language| self.stems_in(language));
            Finder::of(stems.flat_map(|stems| stems.beginnings.iter().cloned()))
        })
    }

    /// Scores texts in which its words were counted.
    pub(crate) fn scores(&self, texts: &[Counted]) -> Scores {
        let number = texts.len() as f64;
        let length: f64 = texts.iter().map(|text| text.length).sum();
        self.scores_among(
            texts,
            number,
            if number > 0.0 { length / number } else { 0.0 },
        )
    }

    /// Returns the words by which an index of texts is searched for it, each with the number of its
    /// word: the stems of all languages, as [`index_words`] writes them.
    pub(crate) fn index_words(&self) -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for (language, stems) in all_languages().iter().zip(&self.stems) {
            let stems = stems.get_or_init(|| Stems::of(&self.words, language));
            for (stem, place) in &stems.places {
                let is_pair = self
                    .words
                    .get(*place)
                    .is_some_and(|(_, is_pair, _)| *is_pair);
                found.push((index_word(stem, language, is_pair), *place));
            }
        }
        // A pair is the same in every language.
        found.sort_unstable();
        found.dedup_by(|one, other| one.0 == other.0);
        found
    }

    /// Scores texts that are some of `number` with this mean length; the others hold none of its
    /// words.
    pub(crate) fn scores_among(&self, texts: &[Counted], number: f64, mean_length: f64) -> Scores {
        self.scores_held(texts, &self.holding(texts), number, mean_length)
    }

    /// Returns, for each of its words, the number of texts that hold it.
    pub(crate) fn holding<T: Borrow<Counted>>(&self, texts: &[T]) -> Vec<f64> {
        let mut holding = vec![0.0; self.len()];
        for text in texts {
            for (held, count) in holding.iter_mut().zip(&text.borrow().counts) {
                *held += f64::from(*count > 0.0);
            }
        }
        holding
    }

    /// The same where others may hold its words too. `holding`: for each word, the number of all
    /// texts that do.
    pub(crate) fn scores_held<T: Borrow<Counted>>(
        &self,
        texts: &[T],
        holding: &[f64],
        number: f64,
        mean_length: f64,
    ) -> Scores {
        let weights: Vec<f64> = holding
            .iter()
            .zip(&self.words)
            .map(|(held, (_, _, weight))| {
                weight * (1.0 + (number - held + 0.5) / (held + 0.5)).ln()
            })
            .collect();
        let score = |text: &Counted| {
            let length = if mean_length > 0.0 {
                text.length / mean_length
            } else {
                1.0
            };
            let saturation = K1 * (1.0 - B + B * length);
            let parts = text.counts.iter().zip(&weights);
            parts
                .map(|(count, weight)| weight * count * (K1 + 1.0) / (count + saturation))
                .sum()
        };
        let most = weights.iter().sum::<f64>() * (K1 + 1.0);
        Scores {
            each: texts.iter().map(|text| score(text.borrow())).collect(),
            most,
        }
    }
}

/// The scores of texts of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scores {
    /// In the order of the texts.
    pub(crate) each: Vec<f64>,
    /// A bound that no score reaches: what a text would have that consists of the question. Parts
    /// of it can be compared between texts of different kinds.
    pub(crate) most: f64,
}

impl Stems {
    fn of(words: &[(String, bool, f64)], language: &Language) -> Self {
        let mut stems = Self {
            places: HashMap::new(),
            beginnings: Vec::new(),
            firsts: 0,
        };
        for (place, (word, is_pair, _)) in words.iter().enumerate() {
            let stem = if *is_pair {
                word.clone()
            } else {
                language.stem(word)
            };
            let forms = language.forms(word).iter().copied();
            for form in forms.chain([word.as_str(), stem.as_str()]) {
                stems.may_begin_like(form);
            }
            stems.places.entry(stem).or_insert(place);
        }
        stems
    }

    /// A word and its stem have all but their ends in common.
    fn may_begin_like(&mut self, form: &str) {
        let common = form
            .len()
            .saturating_sub(1)
            .clamp(form.len().min(2), COMMON_MAX);
        if let Some(common) = form.as_bytes().get(..common)
            && let Some(first) = common.first().filter(|first| first.is_ascii())
        {
            self.firsts |= 1 << first;
            self.beginnings.push(common.to_vec());
        }
    }

    fn find(&self, token: Token<'_>, language: &Language) -> Option<usize> {
        if token.is_pair {
            return self.places.get(token.word).copied();
        }
        let word = token.word.as_bytes();
        let may_be = word
            .first()
            .filter(|first| first.is_ascii())
            .is_none_or(|first| {
                self.firsts & (1 << first) != 0
                    && self
                        .beginnings
                        .iter()
                        .any(|beginning| word.starts_with(beginning))
            });
        if may_be {
            self.places.get(&language.stem(token.word)).copied()
        } else {
            None
        }
    }
}

/// Returns a text as it is put into an index, in pieces of at most so many words: of each piece its
/// words, separated by spaces, and their number. A word is its stem behind the code of the text's
/// language; a pair of characters stands as it is.
pub(crate) fn index_words(text: &str, words_max: usize) -> Vec<(String, u32)> {
    let Some(language) = language_of(text) else {
        return Vec::new();
    };
    let mut pieces: Vec<(String, u32)> = Vec::new();
    each_token(text, |token| {
        let stem = if token.is_pair {
            token.word.to_owned()
        } else {
            language.stem(token.word)
        };
        let word = index_word(&stem, language, token.is_pair);
        match pieces
            .last_mut()
            .filter(|(_, words)| (*words as usize) < words_max)
        {
            Some((piece, words)) => {
                piece.push(' ');
                piece.push_str(&word);
                *words += 1;
            }
            None => pieces.push((word, 1)),
        }
    });
    pieces
}

fn index_word(stem: &str, language: &Language, is_pair: bool) -> String {
    let stem = stem
        .get(..stem.floor_char_boundary(INDEX_WORD_BYTES))
        .unwrap_or(stem);
    if is_pair {
        stem.to_owned()
    } else {
        format!("{}:{stem}", language.code())
    }
}

/// Returns the language of a text, as its beginning tells.
fn language_of(text: &str) -> Option<&'static Language> {
    let mut tally = Tally::default();
    let sample = text
        .get(..text.floor_char_boundary(SAMPLE_BYTES))
        .unwrap_or(text);
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

    #[test]
    fn what_reads_a_text_in_part_finds_what_reads_all_of_it() {
        let texts = [
            "The children's café was CLOSED; he went — as always — to the müsli-bar of Łódź, and bought 绿茶 there.",
            "Die Katzen mochten den Öfen nicht, und gingen in die Cafés; der Fußboden war kalt.",
            "a\u{301}b cafe\u{301} CAFE\u{301}, Ｃａｆｅ! l'amour, aujourd'hui don't e-mail x@y.z https://cafe.example/tea",
            "",
            "no\u{a0}break and\u{2003}wide\ttabs\r\nlines",
        ];
        for question in [
            "When did the child go and buy green tea in a cafe?",
            "绿茶",
            "Öfen Cafe Boden",
            "amour breaks",
        ] {
            let query = Query::of(&[(question, 1.0)]);
            for text in texts {
                let (mut all, mut part) = (Vec::new(), Vec::new());
                query.each_match(text, |at, word| all.push((at, word)));
                query.each_match_in_part(text, |at, word| part.push((at, word)));
                assert_eq!(all, part, "{question}: {text}");
            }
        }
    }
}
