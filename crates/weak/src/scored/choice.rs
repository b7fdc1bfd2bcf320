//! Texts that a message may have, with the probability that each is what the person would call the
//! entry.

use crate::lexicon::Lexicon;
use crate::text_classifier::{self, TextClassifier};

/// A text with its probability.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(super) text: String,
    pub(super) probability: f32,
}

/// Returns texts for new entities with their probabilities.
pub(super) fn of_new(message: &str, texts: Vec<String>, lexicon: &Lexicon) -> Vec<Choice> {
    let features = text_classifier::of_new(message, &texts, lexicon);
    rated(texts, &features, false)
}

/// Returns new texts for an entity with this label with their probabilities.
pub(super) fn of_changed(
    message: &str,
    label: &str,
    texts: Vec<String>,
    lexicon: &Lexicon,
) -> Vec<Choice> {
    let features = text_classifier::of_changed(message, label, &texts, lexicon);
    rated(texts, &features, true)
}

fn rated(texts: Vec<String>, features: &[Vec<usize>], changed: bool) -> Vec<Choice> {
    let classifier = TextClassifier::built_in();
    let choice = |(text, features): (String, &Vec<usize>)| Choice {
        probability: classifier.probability(features, changed),
        text,
    };
    texts.into_iter().zip(features).map(choice).collect()
}

/// Returns the likeliest text, the first of several.
pub(super) fn likeliest(choices: &[Choice]) -> Option<&Choice> {
    let likelier = |best: &'_ Choice, next: &'_ Choice| next.probability > best.probability;
    choices
        .iter()
        .reduce(|best, next| if likelier(best, next) { next } else { best })
}
