//! BM25: scores texts against a query, over the stems of their words.
//!
//! Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009. Each
//! text is stemmed in its own language, and so is the query for each of these languages: one query
//! finds texts of several languages.

mod index; // inverted index
mod prefilter; // pieces of a text that may match

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::OnceLock;

use unicode_normalization::char::is_combining_mark;

pub(crate) use self::index::Index;
use self::prefilter::Prefilter;

use crate::language::{Language, LanguageTally, Token, all_languages, each_token};

/// Saturation of term frequencies (k1 of BM25): with a higher one further occurrences of a term
/// count longer.
const K1: f64 = 1.2;
/// Normalisation by the length of a text (b of BM25): 0 none, 1 in proportion.
const B: f64 = 0.75;
/// Number of terms of a query that are searched for. A longer text is no question any more.
const TERMS_MAX: usize = 200;
/// Bytes of a word that are compared with those of its stem, before the stem is computed.
const PREFIX_BYTES_MAX: usize = 4;
/// Bytes of a text from which its language is detected.
const SAMPLE_BYTES: usize = 400;
/// Bytes of a term in an index. Longer stems are compared by their first bytes.
const INDEX_TERM_BYTES: usize = 64;

/// Mean bytes of text for each token, where tokens are estimated and not counted.
pub(crate) const BYTES_PER_TOKEN: f64 = 5.5;

/// A query: the terms that texts are scored by.
#[derive(Debug)]
pub(crate) struct Query {
    terms: Vec<QueryTerm>,
    /// The terms stemmed in each language, computed for the first text in it.
    stems: Vec<OnceLock<StemTable>>,
    prefilter: OnceLock<Prefilter>,
}

/// A word of a query, normalised. Stop words are left out, and each word stands once.
#[derive(Debug)]
struct QueryTerm {
    text: String,
    is_bigram: bool,
    weight: f64,
}

/// The terms of a query stemmed in one language.
#[derive(Debug)]
struct StemTable {
    /// The index of the term of each stem.
    terms: HashMap<String, usize>,
    /// The first bytes of the ASCII words that may have one of these stems: others need not be
    /// stemmed.
    prefixes: Vec<Vec<u8>>,
    /// The first byte of each prefix, one bit for each ASCII character.
    first_bytes: u128,
    /// Terms that are one character of a script without spaces, with their indexes: many words of
    /// such scripts are, and every bigram with the character holds it.
    characters: Vec<(String, usize)>,
}

/// The frequency of each term of a query in a text, and the length of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TermCounts {
    /// Length of the text, in tokens.
    pub(crate) length: f64,
    /// The frequency of each term; empty if the text holds none of them.
    pub(crate) counts: Vec<f64>,
}

impl TermCounts {
    pub(crate) fn with_length(length: f64) -> Self {
        Self {
            length,
            counts: Vec::new(),
        }
    }

    /// Returns true if the text holds no term of the query.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds occurrences of a term of a query with `terms` terms. `weight`: their number, which may
    /// be a fraction for a term in a title or heading.
    pub(crate) fn add(&mut self, term: usize, weight: f64, terms: usize) {
        if self.counts.is_empty() {
            self.counts = vec![0.0; terms];
        }
        if let Some(count) = self.counts.get_mut(term) {
            *count += weight;
        }
    }
}

/// The texts that scores are relative to: BM25 needs their number, their mean length and, for each
/// term, how many of them hold it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Corpus<'a> {
    /// Number of texts, those without a term of the query too.
    pub(crate) texts: f64,
    /// Mean length of the texts, in tokens.
    pub(crate) mean_length: f64,
    /// Document frequencies: for each term of the query, the number of texts that hold it.
    pub(crate) frequencies: &'a [f64],
}

/// The scores of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scores {
    /// The score of each text, in the order of the texts.
    pub(crate) values: Vec<f64>,
    /// The upper bound, which a text that consists of the query alone would come near.
    upper_bound: f64,
}

impl Scores {
    /// Returns a score as a share of the upper bound. Shares are comparable between corpora of
    /// different kinds, such as facts and notes.
    pub(crate) fn share(&self, score: f64) -> f64 {
        share(score, self.upper_bound)
    }
}

/// Returns a score as a share of the most; 0 if the most is 0.
pub(crate) fn share(score: f64, most: f64) -> f64 {
    if most > 0.0 { score / most } else { 0.0 }
}

impl Query {
    /// Returns the query of texts with their weights, the most important first. A word that stands
    /// in several has its first weight.
    pub(crate) fn new(texts: &[(&str, f64)]) -> Self {
        let mut terms: Vec<QueryTerm> = Vec::new();
        for (text, weight) in texts {
            let mut words: Vec<(String, bool)> = Vec::new();
            each_token(text, |token| {
                words.push((token.word.to_owned(), token.is_bigram))
            });
            let language = Language::detect(words.iter().map(|(word, _)| word.as_str()));
            let is_stop = |word: &str| language.is_some_and(|language| language.is_stop(word));
            // "To be or not to be" is made of stop words only, and still a query.
            let has_content = words.iter().any(|(word, _)| !is_stop(word));
            for (word, is_bigram) in words {
                let is_new = terms.iter().all(|known| known.text != word);
                // The first weight stays: texts come in the order of their importance.
                if is_new && terms.len() < TERMS_MAX && !(has_content && is_stop(&word)) {
                    terms.push(QueryTerm {
                        text: word,
                        is_bigram,
                        weight: *weight,
                    });
                }
            }
        }
        Self {
            terms,
            stems: all_languages().iter().map(|_| OnceLock::new()).collect(),
            prefilter: OnceLock::new(),
        }
    }

    /// Returns true if the query has no term.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the number of terms.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    /// Counts the terms in a text.
    pub(crate) fn count(&self, text: &str) -> TermCounts {
        let mut counts = TermCounts::default();
        let length = self.each_match(text, |_, term| counts.add(term, 1.0, self.len()));
        counts.length = length as f64;
        counts
    }

    /// Does the same as [`count`](Self::count), but reads only the pieces of the text that may
    /// match; the length is an estimate. For many texts.
    pub(crate) fn count_prefiltered(&self, text: &str) -> TermCounts {
        let mut counts = TermCounts::default();
        counts.length =
            self.each_match_prefiltered(text, |_, term| counts.add(term, 1.0, self.len()));
        counts
    }

    /// Returns true if a text holds more than half of the terms.
    pub(crate) fn has_most_in(&self, text: &str) -> bool {
        let counts = self.count(text).counts;
        let held = counts.iter().filter(|count| **count > 0.0).count();
        held * 2 > self.len()
    }

    /// Calls `take` with the offset of each token that matches a term, and the term's index;
    /// returns the number of all tokens.
    pub(crate) fn each_match(&self, text: &str, mut take: impl FnMut(usize, usize)) -> usize {
        let Some((language, stems)) = self.stems_for(text) else {
            return 0;
        };
        let mut length = 0;
        each_token(text, |token| {
            length += 1;
            if let Some(term) = stems.find(token, language) {
                take(token.at, term);
            }
        });
        length
    }

    /// Does the same as [`each_match`](Self::each_match), but reads only the pieces of the text
    /// that may match; returns an estimate of the number of all tokens. For many or long texts.
    pub(crate) fn each_match_prefiltered(
        &self,
        text: &str,
        mut take: impl FnMut(usize, usize),
    ) -> f64 {
        let (mut tokens, mut read, mut stems) = (0_u32, 0, None);
        self.prefilter().each_piece(text, |piece| {
            // Detected here, because most texts have no such piece and need no language.
            let Some((language, stems)) = *stems.get_or_insert_with(|| self.stems_for(text)) else {
                return;
            };
            let start = piece.start;
            read += piece.len() + 1;
            each_token(text.get(piece).unwrap_or_default(), |token| {
                tokens += 1;
                if let Some(term) = stems.find(token, language) {
                    take(start + token.at, term);
                }
            });
        });
        f64::from(tokens) + text.len().saturating_sub(read) as f64 / BYTES_PER_TOKEN
    }

    /// Returns the language of a text, and the terms stemmed in it.
    fn stems_for(&self, text: &str) -> Option<(&'static Language, &StemTable)> {
        let language = language_of(text)?;
        Some((language, self.stems_in(language)?))
    }

    fn stems_in(&self, language: &'static Language) -> Option<&StemTable> {
        let stems = self.stems.get(language.index())?;
        Some(stems.get_or_init(|| StemTable::new(&self.terms, language)))
    }

    fn prefilter(&self) -> &Prefilter {
        self.prefilter.get_or_init(|| {
            let stems = all_languages()
                .iter()
                .filter_map(|language| self.stems_in(language));
            Prefilter::new(stems.flat_map(|stems| stems.prefixes.iter().cloned()))
        })
    }

    /// Returns the terms as an index of texts has them, each with its index in the query: the
    /// stems of all languages, as [`index_terms`] writes them.
    pub(crate) fn index_terms(&self) -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for (language, stems) in all_languages().iter().zip(&self.stems) {
            let stems = stems.get_or_init(|| StemTable::new(&self.terms, language));
            for (stem, at) in &stems.terms {
                let is_bigram = self.terms.get(*at).is_some_and(|term| term.is_bigram);
                found.push((index_term(stem, language, is_bigram), *at));
            }
        }
        // A bigram is the same in every language.
        found.sort_unstable();
        found.dedup_by(|one, other| one.0 == other.0);
        found
    }

    /// Scores texts that are a corpus by themselves.
    pub(crate) fn score(&self, texts: &[TermCounts]) -> Scores {
        let number = texts.len() as f64;
        let length: f64 = texts.iter().map(|text| text.length).sum();
        let corpus = Corpus {
            texts: number,
            mean_length: share(length, number),
            frequencies: &self.frequencies(texts),
        };
        self.score_in(texts, corpus)
    }

    /// Returns, for each term, the number of texts that hold it.
    pub(crate) fn frequencies<T: Borrow<TermCounts>>(&self, texts: &[T]) -> Vec<f64> {
        let mut frequencies = vec![0.0; self.len()];
        for text in texts {
            for (frequency, count) in frequencies.iter_mut().zip(&text.borrow().counts) {
                *frequency += f64::from(*count > 0.0);
            }
        }
        frequencies
    }

    /// Scores some texts of a corpus.
    pub(crate) fn score_in<T: Borrow<TermCounts>>(
        &self,
        texts: &[T],
        corpus: Corpus<'_>,
    ) -> Scores {
        // The inverse document frequency, which Lucene too keeps above 0 by the 1 in the logarithm.
        let weights: Vec<f64> = corpus
            .frequencies
            .iter()
            .zip(&self.terms)
            .map(|(frequency, term)| {
                let inverse = (corpus.texts - frequency + 0.5) / (frequency + 0.5);
                term.weight * (1.0 + inverse).ln()
            })
            .collect();
        let score = |text: &TermCounts| {
            let length = if corpus.mean_length > 0.0 {
                text.length / corpus.mean_length
            } else {
                1.0
            };
            let saturation = K1 * (1.0 - B + B * length);
            let parts = text.counts.iter().zip(&weights);
            parts
                .map(|(count, weight)| weight * count * (K1 + 1.0) / (count + saturation))
                .sum()
        };
        Scores {
            values: texts.iter().map(|text| score(text.borrow())).collect(),
            // The limit that a text approaches which holds every term very often.
            upper_bound: weights.iter().sum::<f64>() * (K1 + 1.0),
        }
    }
}

impl StemTable {
    fn new(terms: &[QueryTerm], language: &Language) -> Self {
        let mut table = Self {
            terms: HashMap::new(),
            prefixes: Vec::new(),
            first_bytes: 0,
            characters: Vec::new(),
        };
        for (at, term) in terms.iter().enumerate() {
            let text = &term.text;
            let stem = stem_of(text, term.is_bigram, language);
            table.add_prefix(text);
            table.add_prefix(&stem);
            if term.is_bigram && is_one_character(text) {
                table.characters.push((text.clone(), at));
            }
            table.terms.entry(stem).or_insert(at);
        }
        // After the terms as they are written: "lives" is a form of "life", and of "live" first.
        for (at, term) in terms.iter().enumerate() {
            for form in language.forms(&term.text) {
                table.add_prefix(form);
                table.terms.entry(language.stem(form)).or_insert(at);
            }
        }
        table
    }

    /// Adds the prefix that a form has in common with all words of its stem: these differ in their
    /// ends.
    fn add_prefix(&mut self, form: &str) {
        let common = form
            .len()
            .saturating_sub(1)
            .clamp(form.len().min(2), PREFIX_BYTES_MAX);
        if let Some(common) = form.as_bytes().get(..common)
            && let Some(first) = common.first().filter(|first| first.is_ascii())
        {
            self.first_bytes |= 1 << first;
            self.prefixes.push(common.to_vec());
        }
    }

    /// Returns the index of the term that a bigram is, or whose only character it holds.
    fn find_bigram(&self, bigram: &str) -> Option<usize> {
        let exact = self.terms.get(bigram).copied();
        exact.or_else(|| {
            let mut characters = self.characters.iter();
            characters
                .find(|(character, _)| bigram.contains(character.as_str()))
                .map(|(_, at)| *at)
        })
    }

    /// Returns the index of the term that a token matches. Computes the stem only of tokens that
    /// have a prefix in common with a term, which few have.
    fn find(&self, token: Token<'_>, language: &Language) -> Option<usize> {
        if token.is_bigram {
            return self.find_bigram(token.word);
        }
        let word = token.word.as_bytes();
        let first = word.first().filter(|first| first.is_ascii());
        let may_match = first.is_none_or(|first| {
            self.first_bytes & (1 << first) != 0
                && self.prefixes.iter().any(|prefix| word.starts_with(prefix))
        });
        if may_match {
            self.terms.get(&language.stem(token.word)).copied()
        } else {
            None
        }
    }
}

/// Returns true for one character with its combining marks.
fn is_one_character(text: &str) -> bool {
    characters(text).count() == 1
}

/// Returns the characters of a text, each with its combining marks.
fn characters(text: &str) -> impl Iterator<Item = &str> {
    let starts = text
        .char_indices()
        .filter(|(_, char)| !is_combining_mark(*char))
        .map(|(at, _)| at);
    let ends = starts.clone().skip(1).chain([text.len()]);
    starts.zip(ends).filter_map(|(from, to)| text.get(from..to))
}

/// Returns the terms of a text for an index, in pieces of at most `words_max` words: of each piece
/// its terms, separated by spaces, and the number of its words. A term is a stem behind the code of
/// the text's language, or a bigram as it is, and each character of a bigram, which can be a word.
pub(crate) fn index_terms(text: &str, words_max: usize) -> Vec<(String, u32)> {
    let Some(language) = language_of(text) else {
        return Vec::new();
    };
    let mut pieces: Vec<(String, u32)> = Vec::new();
    let mut last_character = String::new();
    each_token(text, |token| {
        let stem = stem_of(token.word, token.is_bigram, language);
        let mut term = index_term(&stem, language, token.is_bigram);
        if token.is_bigram && !is_one_character(token.word) {
            for character in characters(token.word) {
                // Bigrams overlap in a character.
                if character != last_character {
                    term.push(' ');
                    term.push_str(character);
                    character.clone_into(&mut last_character);
                }
            }
        }
        match pieces
            .last_mut()
            .filter(|(_, words)| (*words as usize) < words_max)
        {
            Some((piece, words)) => {
                piece.push(' ');
                piece.push_str(&term);
                *words += 1;
            }
            None => pieces.push((term, 1)),
        }
    });
    pieces
}

fn index_term(stem: &str, language: &Language, is_bigram: bool) -> String {
    let stem = stem
        .get(..stem.floor_char_boundary(INDEX_TERM_BYTES))
        .unwrap_or(stem);
    if is_bigram {
        stem.to_owned()
    } else {
        // Equal stems of two languages are different words.
        format!("{}:{stem}", language.code())
    }
}

fn stem_of(word: &str, is_bigram: bool, language: &Language) -> String {
    if is_bigram {
        word.to_owned()
    } else {
        language.stem(word)
    }
}

/// Detects the language of a text from its beginning.
fn language_of(text: &str) -> Option<&'static Language> {
    let mut tally = LanguageTally::default();
    let sample = text
        .get(..text.floor_char_boundary(SAMPLE_BYTES))
        .unwrap_or(text);
    each_token(sample, |token| tally.count(token.word));
    tally.language().or_else(Language::fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(question: &str, texts: &[&str]) -> Vec<usize> {
        let query = Query::new(&[(question, 1.0)]);
        let counts: Vec<TermCounts> = texts.iter().map(|text| query.count(text)).collect();
        let scores = query.score(&counts).values;
        let mut order: Vec<usize> = (0..texts.len()).filter(|at| scores[*at] > 0.0).collect();
        order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        order
    }

    #[test]
    fn the_best_match_comes_first() {
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
    fn a_word_of_one_character_is_found_in_a_script_without_spaces() {
        let texts = ["猫が好き", "黒猫", "犬が好き", "猫"];
        let mut found = best("猫", &texts);
        found.sort_unstable();
        assert_eq!(found, [0, 1, 3]);
        assert_eq!(best("猫が", &texts), [0]);
        assert_eq!(best("水", &texts), [] as [usize; 0]);
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
    fn a_form_of_two_words_is_found_by_both() {
        for (question, text) in [
            ("Where do I live?", "Josh lives with Carla and the kids"),
            ("Where is she living?", "Anna lives in Graz"),
            (
                "What does he say about life?",
                "Josh says that cats have nine lives",
            ),
            ("Did they leave?", "The train leaves at nine"),
            ("Which leaf is red?", "Anna collects leaves"),
            ("Who cuts it in half?", "Josh halves the apple"),
            ("Are there roses?", "Josh grows one rose"),
            ("When did it rise?", "The rent rose in May"),
            ("Are there doves?", "Anna feeds the dove in the park"),
            ("Which lives?", "Josh's life is quiet"),
        ] {
            assert_eq!(
                best(question, &[text, "Nothing of that."]),
                [0],
                "{question}"
            );
        }
    }

    #[test]
    fn words_of_less_weight_decide_where_the_others_do_not() {
        let query = Query::new(&[("and the car?", 1.0), ("Anna lives in Munich", 0.3)]);
        let texts = ["Anna has a car", "Bert has a car", "Anna lives in Munich"];
        let counts: Vec<TermCounts> = texts.iter().map(|text| query.count(text)).collect();
        let scores = query.score(&counts).values;
        assert!(scores[0] > scores[1] && scores[2] > 0.0, "{scores:?}");
    }

    #[test]
    fn the_prefilter_loses_no_match() {
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
            let query = Query::new(&[(question, 1.0)]);
            for text in texts {
                let (mut all, mut part) = (Vec::new(), Vec::new());
                query.each_match(text, |at, word| all.push((at, word)));
                query.each_match_prefiltered(text, |at, word| part.push((at, word)));
                assert_eq!(all, part, "{question}: {text}");
            }
        }
    }
}
