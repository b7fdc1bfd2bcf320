//! A classifier of the texts that the rules for words cut out of a message: is this what the person
//! would call the entry?

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::features::{Features, Read};
use super::lexicon::Lexicon;
use super::linear::{self, Unit, WIDTH};
use super::words::Word;

/// Units: for texts of new entities, and for new texts of known ones.
const UNITS: usize = 2;

/// The classifier that is built in, trained on `evals/sentences`.
static BUILT_IN: LazyLock<TextClassifier> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and a test reads it"
    )]
    TextClassifier::from_bytes(include_bytes!("../classifiers/texts.bin")).expect("a classifier")
});

/// A linear classifier over a text, what stands around it in the message, and what it takes the
/// place of.
#[derive(Debug, Clone, PartialEq)]
pub struct TextClassifier {
    units: Vec<Unit>,
}

impl TextClassifier {
    /// Number of the features of a text.
    pub const WIDTH: usize = WIDTH;

    /// Creates a classifier from weights and bias for texts of new entities, and for new texts of
    /// known ones. `None` if they have another number of weights than [`TextClassifier::WIDTH`].
    #[must_use]
    pub fn new(units: [(Vec<f32>, f32); UNITS]) -> Option<Self> {
        let fits = units.iter().all(|(weights, _)| weights.len() == WIDTH);
        fits.then(|| Self {
            units: units.into(),
        })
    }

    /// Returns the classifier that is built in: five languages, trained on `evals/sentences`.
    pub(crate) fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads the bytes of [`TextClassifier::to_bytes`]. `None` for others.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        linear::from_bytes(bytes, UNITS).map(|units| Self { units })
    }

    /// Returns the classifier as bytes, with weights of 8 bits.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        linear::to_bytes(&self.units)
    }

    /// Returns the probability of a text with these features. `changed`: it is a new text of a known
    /// entity.
    #[must_use]
    pub fn probability(&self, features: &[usize], changed: bool) -> f32 {
        let output = linear::output(&self.units[usize::from(changed)], features);
        1.0 / (1.0 + (-output).exp())
    }
}

/// Returns the features of each of the texts that a message may have for a new entity.
pub(crate) fn of_new(message: &str, texts: &[String], lexicon: &Lexicon) -> Vec<Vec<usize>> {
    let message = Read::new(message);
    let features = |(rank, text): (usize, &String)| {
        let own = Read::new(text);
        let mut features = Features::new(lexicon);
        let part = message.find(&own.words);
        features.around(&message, part);
        let (first, last) = (own.token(0), own.tokens.last().map_or("$", String::as_str));
        features.word("first", first);
        features.word("last", last);
        features.lists("first is", first);
        features.lists("last is", last);
        for word in own.tokens.iter().skip(1) {
            features.lists("has", word);
        }
        features.ends("first", first);
        features.ends("last", last);
        features.word("first 2", &format!("{first} {}", own.token(1)));
        if let [.., before, last] = &own.tokens[..] {
            features.word("last 2", &format!("{before} {last}"));
        }
        features.words_and_pairs(&own.tokens);
        if let Some((begin, end)) = part {
            for word in &message.tokens[..begin] {
                features.word("in front", word);
            }
            for word in &message.tokens[end..] {
                features.word("after", word);
            }
        }
        let length = own.words.len();
        let others = texts.iter().filter(|other| *other != text);
        let longer = others.clone().filter(|other| other.contains(text.as_str()));
        let shorter = others.filter(|other| text.contains(other.as_str()));
        features.count("length", length);
        features.count("rest", message.words.len().saturating_sub(length));
        features.shape(
            "whole",
            format!("{} {}", message.words.len() == length, length.min(8)),
        );
        features.shape(
            "among",
            format!("{} {}", longer.count().min(3), shorter.count().min(3)),
        );
        features.count("texts", texts.len());
        features.shape("rank", format!("{} {}", rank.min(5), texts.len().min(6)));
        features.count("message", message.words.len() / 3);
        let inside = part.map_or(own.text, |(begin, end)| {
            &message.text[message.words[begin].start..message.words[end - 1].end]
        });
        for mark in [',', ';', ':', '.', '!', '?', '-', '\u{2013}', '(', '"'] {
            if inside.contains(mark) {
                features.shape("inside", mark);
                features.shape("inside of", format!("{mark} {}", length.min(8)));
            }
        }
        if message.text.contains('?') {
            features.shape("asks", "");
        }
        features.finish()
    };
    texts.iter().enumerate().map(features).collect()
}

/// Returns the features of each of the new texts that a message may have for an entity with this
/// label.
pub(crate) fn of_changed(
    message: &str,
    label: &str,
    texts: &[String],
    lexicon: &Lexicon,
) -> Vec<Vec<usize>> {
    let (message, label) = (Read::new(message), Read::new(label));
    let in_label: BTreeSet<&str> = label.words.iter().map(|word| &word.folded[..]).collect();
    let in_message: BTreeSet<&str> = message.words.iter().map(|word| &word.folded[..]).collect();
    let features = |(rank, text): (usize, &String)| {
        let own = Read::new(text);
        let mut features = Features::new(lexicon);
        // What both begin and end with stays; the words between are old and new.
        let pairs = label.words.iter().zip(&own.words);
        let begin = pairs.take_while(|(a, b)| a.folded == b.folded).count();
        let pairs = label.words[begin..]
            .iter()
            .rev()
            .zip(own.words[begin..].iter().rev());
        let end = pairs.take_while(|(a, b)| a.folded == b.folded).count();
        let (old_end, new_end) = (label.words.len() - end, own.words.len() - end);
        let (old, new) = (&label.words[begin..old_end], &own.words[begin..new_end]);
        let part = message.find(new);
        features.around(&message, part);
        features.words_and_pairs(&own.tokens[begin..new_end]);
        let first = own.tokens[begin..new_end]
            .first()
            .map_or("", String::as_str);
        let last = own.tokens[begin..new_end].last().map_or("", String::as_str);
        let left = begin.checked_sub(1).map_or("^", |at| label.token(at));
        features.word("new first", first);
        features.word("new last", last);
        features.lists("new first is", first);
        features.lists("new last is", last);
        for word in &own.tokens[begin..new_end] {
            features.lists("new has", word);
        }
        features.lists("old is", label.token(begin));
        features.lists("left is", left);
        features.word("join left", &format!("{left} {first}"));
        features.word("join right", &format!("{last} {}", label.token(old_end)));
        if let (Some(old_first), Some(old_last)) = (old.first(), old.last()) {
            features.word("old first", &old_first.folded);
            features.word("old last", &old_last.folded);
            features.word("old and new", &format!("{} {first}", old_first.folded));
        }
        features.count("kept in front", begin.min(4));
        features.count("kept behind", end.min(4));
        features.count("new", new.len().min(8));
        features.count("old", old.len().min(8));
        features.shape(
            "sizes",
            format!("{} {}", new.len().min(4), old.len().min(4)),
        );
        features.shape(
            "kept",
            format!("{} {} {}", begin > 0, end > 0, old.is_empty()),
        );
        features.count("texts", texts.len());
        features.count("rank", rank);
        features.count("message", message.words.len().min(20) / 2);
        let said = |words: &[Word]| {
            let said = words
                .iter()
                .filter(|word| in_message.contains(&word.folded[..]));
            let said = said.count();
            format!("{} {}", said.min(3), (words.len() - said).min(3))
        };
        let kept: Vec<Word> = [&label.words[..begin], &label.words[old_end..]].concat();
        features.shape("old said", said(old));
        features.shape("kept said", said(&kept));
        let again = new
            .iter()
            .filter(|word| in_label.contains(&word.folded[..]));
        features.count("again", again.count().min(3));
        let has_digit = |words: &[Word]| {
            let digit = |word: &Word| word.folded.contains(|c: char| c.is_ascii_digit());
            words.iter().any(digit)
        };
        features.shape("digits", format!("{} {}", has_digit(new), has_digit(old)));
        let (start, behind) = part.unwrap_or((0, 0));
        let rest = (0..message.words.len())
            .filter(|at| !(start..behind).contains(at))
            .filter(|at| !in_label.contains(&message.words[*at].folded[..]));
        let rest: Vec<usize> = rest.collect();
        for at in &rest {
            features.word("rest", message.token(*at));
        }
        features.count("rest", rest.len().min(8));
        for mark in [
            "\"", "\u{201c}", "\u{201e}", "\u{ab}", "->", "=>", "\u{2192}", ": ", "?",
        ] {
            if message.text.contains(mark) {
                features.shape("mark", mark);
            }
        }
        features.finish()
    };
    texts.iter().enumerate().map(features).collect()
}

#[cfg(test)]
mod tests {
    use adjutant_core::Language;

    use super::*;
    use crate::lexicon::lexicon;

    #[test]
    fn a_classifier_is_read_as_it_was_written() {
        let unit = |at: usize| {
            let mut weights = vec![0.0; WIDTH];
            weights[at] = 1.27;
            (weights, -1.0)
        };
        let classifier = TextClassifier::new([unit(1), unit(2)]).unwrap();
        let bytes = classifier.to_bytes();
        let read = TextClassifier::from_bytes(&bytes).unwrap();
        for changed in [false, true] {
            let probability = classifier.probability(&[1], changed);
            assert!((probability - read.probability(&[1], changed)).abs() < 1e-6);
            assert_eq!(probability > 0.5, !changed);
        }
        assert_eq!(TextClassifier::from_bytes(&bytes[1..]), None);
        assert_eq!(
            TextClassifier::new([(Vec::new(), 0.0), (Vec::new(), 0.0)]),
            None
        );
    }

    #[test]
    fn the_classifier_that_is_built_in_prefers_texts_without_the_order() {
        let classifier = TextClassifier::built_in();
        let texts = ["call mum on Sunday", "remind me to call mum on Sunday"].map(str::to_owned);
        let features = of_new(
            "remind me to call mum on Sunday",
            &texts,
            lexicon(Language::English),
        );
        let new: Vec<f32> = features
            .iter()
            .map(|features| classifier.probability(features, false))
            .collect();
        assert!(new[0] > 0.5 && new[1] < 0.5, "{new:?}");
        let texts = [
            "Visita a Luis el martes",
            "El martes",
            "Visita el martes a Luis",
        ];
        let features = of_changed(
            "pasa la visita al martes",
            "Visita a Luis el lunes",
            &texts.map(str::to_owned),
            lexicon(Language::Spanish),
        );
        let changed: Vec<f32> = features
            .iter()
            .map(|features| classifier.probability(features, true))
            .collect();
        assert!(changed[0] > changed[1], "{changed:?}");
    }
}
