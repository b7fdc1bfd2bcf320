//! Texts that a message may have, with the probability that each is what the person would call the
//! entry.

use crate::lexicon::Lexicon;
use crate::text_classifier::{self, TextClassifier};

/// Probability from which on a text is more likely right than wrong.
const LIKELY: f32 = 0.5;

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

/// Returns the texts that are more likely right than wrong, the likeliest first, without those that
/// contain a likelier one or are a part of it.
pub(super) fn likeliest_apart(choices: &[Choice]) -> Vec<&Choice> {
    let mut likely: Vec<&Choice> = choices
        .iter()
        .filter(|choice| choice.probability >= LIKELY)
        .collect();
    likely.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let mut apart: Vec<&Choice> = Vec::new();
    for choice in likely {
        let overlaps = |other: &&Choice| {
            other.text.contains(&choice.text) || choice.text.contains(&other.text)
        };
        if !apart.iter().any(overlaps) {
            apart.push(choice);
        }
    }
    apart
}
