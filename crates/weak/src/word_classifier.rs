//! A classifier of actions by words alone: for models that give no evidence of their own, and for
//! the clauses of a message, which no model is asked about.

use std::sync::LazyLock;

use adjutant_core::{ActionKind, ActionScores, Language};

use super::linear::{self, Unit, WIDTH, hashed};
use super::words::{is_number, words};

/// Rows of the weights: kinds of actions, then languages.
const ROWS: usize = ActionKind::ALL.len() + Language::ALL.len();
/// Letters of the parts of words that are features.
const PARTS: std::ops::RangeInclusive<usize> = 3..=5;

/// The classifier that is built in, trained on `evals/sentences`.
static BUILT_IN: LazyLock<WordClassifier> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and a test reads it"
    )]
    WordClassifier::from_bytes(include_bytes!("../classifiers/words.bin")).expect("a classifier")
});

/// A linear classifier over the words, pairs of words and parts of words of a message.
///
/// # Examples
///
/// ```
/// use adjutant_core::{ActionKind, Language};
/// use adjutant_weak::WordClassifier;
///
/// let scores = WordClassifier::built_in().scores("lösche die zweite aufgabe");
/// assert!(scores.of(ActionKind::Delete) > 0.5);
/// assert_eq!(scores.language(), Language::German);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WordClassifier {
    /// For each row the weights, and the bias.
    rows: Vec<Unit>,
}

impl WordClassifier {
    /// Number of the features of [`WordClassifier::features`].
    pub const WIDTH: usize = WIDTH;

    /// Creates a classifier. `rows` has [`WordClassifier::WIDTH`] weights and the bias for each of
    /// [`ActionKind::ALL`], then for each of [`Language::ALL`]. `None` for other rows.
    #[must_use]
    pub fn new(rows: Vec<(Vec<f32>, f32)>) -> Option<Self> {
        let fits = rows.len() == ROWS && rows.iter().all(|(weights, _)| weights.len() == WIDTH);
        fits.then_some(Self { rows })
    }

    /// Returns the classifier that is built in: five languages, trained on `evals/sentences`.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads the bytes of [`WordClassifier::to_bytes`]. `None` for others.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        linear::from_bytes(bytes, ROWS).and_then(Self::new)
    }

    /// Returns the classifier as bytes, with weights of 8 bits.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        linear::to_bytes(&self.rows)
    }

    /// Returns the features of a message, each once and in order.
    #[must_use]
    pub fn features(message: &str) -> Vec<usize> {
        let tokens: Vec<String> = words(message)
            .into_iter()
            .map(|word| match is_number(&word.folded) {
                true => "0".to_owned(),
                false => word.folded,
            })
            .collect();
        let mut features = Vec::new();
        let mut add = |kind: &str, text: &str| features.push(hashed(kind, text));
        for token in &tokens {
            add("word", token);
            let letters: Vec<char> = format!(" {token} ").chars().collect();
            for length in PARTS {
                for part in letters.windows(length) {
                    add("part", &part.iter().collect::<String>());
                }
            }
        }
        for pair in tokens.windows(2) {
            add("pair", &pair.join(" "));
        }
        add("first", tokens.first().map_or("", String::as_str));
        add("last", tokens.last().map_or("", String::as_str));
        for mark in ['?', '!', ':', ','] {
            if message.contains(mark) {
                add("mark", &mark.to_string());
            }
        }
        add("length", &tokens.len().min(8).to_string());
        features.sort_unstable();
        features.dedup();
        features
    }

    /// Returns the scores of a message.
    #[must_use]
    pub fn scores(&self, message: &str) -> ActionScores {
        let features = Self::features(message);
        let output = |unit: &Unit| linear::output(unit, &features);
        ActionScores::from_outputs(&self.rows.iter().map(output).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classifier_is_read_as_it_was_written() {
        let row = |at: usize| {
            let mut weights = vec![0.0; WIDTH];
            weights[at] = 1.27;
            (weights, -1.0)
        };
        let classifier = WordClassifier::new((0..ROWS).map(row).collect()).unwrap();
        let bytes = classifier.to_bytes();
        let read = WordClassifier::from_bytes(&bytes).unwrap();
        for ((weights, bias), (read, read_bias)) in classifier.rows.iter().zip(&read.rows) {
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(bias == read_bias && weights.iter().zip(read).all(near));
        }
        assert_eq!(WordClassifier::from_bytes(&bytes[1..]), None);
        assert_eq!(WordClassifier::new(Vec::new()), None);
    }

    #[test]
    fn the_classifier_that_is_built_in_knows_orders_of_five_languages() {
        for (message, kind, language) in [
            (
                "add bread to the list",
                ActionKind::Create,
                Language::English,
            ),
            ("Lösch Aufgabe 3", ActionKind::Delete, Language::German),
            (
                "j'ai terminé le rapport",
                ActionKind::Complete,
                Language::French,
            ),
            ("¿qué tareas tengo?", ActionKind::List, Language::Spanish),
            (
                "muda o nome da tarefa 2 para Pagar o aluguel",
                ActionKind::Reword,
                Language::Portuguese,
            ),
        ] {
            let scores = WordClassifier::built_in().scores(message);
            assert!(scores.of(kind) > 0.5, "{message}: {scores:?}");
            assert_eq!(scores.language(), language, "{message}");
        }
        let nothing = WordClassifier::built_in().scores("");
        assert!(ActionKind::ALL.iter().all(|kind| nothing.of(*kind) < 0.9));
    }
}
