//! Cross-validation: each sentence is scored by a classifier that was trained without it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adjutant_core::{ActionKind, ActionScores};
use serde_json::json;

use crate::sentences::Sentence;

/// Parts of the sentences, of which each is left out once.
pub(crate) const FOLDS: usize = 5;
/// Least probability of an action that counts as wanted.
const WANTED: f32 = 0.5;

/// Counts of one group of sentences.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    all: usize,
    /// Every kind of action is right.
    exact: usize,
    /// The likeliest kind is one of the right ones.
    likeliest: usize,
    language: usize,
}

/// Returns the part that a sentence belongs to.
pub(crate) fn fold(id: &str) -> usize {
    // A copy with another history belongs to the part of its sentence.
    let id = id.trim_end_matches('+');
    id.bytes().map(usize::from).sum::<usize>() % FOLDS
}

/// Prints the shares of sentences that are right, by language and class, and writes
/// the scores of each sentence into `target/action-scores.jsonl`.
///
/// # Errors
/// The training gives no classifier, or the file cannot be written.
pub(crate) fn cross_validate<R, C>(
    root: &Path,
    sentences: &[Sentence],
    rows: &[R],
    train: impl Fn(&[&Sentence], &[&R]) -> Result<C, String>,
    score: impl Fn(&C, &Sentence, &R) -> ActionScores,
) -> Result<(), String> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let mut scored = String::new();
    for left_out in 0..FOLDS {
        let (kept, rest): (Vec<_>, Vec<_>) = sentences
            .iter()
            .zip(rows)
            .partition(|(sentence, _)| fold(&sentence.id) != left_out);
        let (trained_on, of_them): (Vec<&Sentence>, Vec<&R>) = kept.into_iter().unzip();
        let classifier = train(&trained_on, &of_them)?;
        for (sentence, row) in rest {
            let scores = score(&classifier, sentence, row);
            let language = sentence.language.to_string();
            for group in ["all", &language, &format!("class {}", sentence.class)] {
                counts
                    .entry(group.to_owned())
                    .or_default()
                    .add(sentence, &scores);
            }
            let of_kinds: Vec<f32> = ActionKind::ALL.map(|kind| scores.of(kind)).to_vec();
            let line = json!({ "id": sentence.id, "language": scores.language().code(), "scores": of_kinds });
            scored.push_str(&format!("{line}\n"));
        }
        eprintln!("fold {} of {FOLDS}", left_out + 1);
    }
    fs::write(root.join("target/action-scores.jsonl"), scored)
        .map_err(|error| error.to_string())?;
    println!("                sentences  every kind  likeliest kind  language");
    for (group, counts) in counts {
        let share = |count: usize| 100.0 * count as f64 / counts.all.max(1) as f64;
        println!(
            "{group:<16} {:>8}  {:>8.1} %  {:>12.1} %  {:>6.1} %",
            counts.all,
            share(counts.exact),
            share(counts.likeliest),
            share(counts.language)
        );
    }
    Ok(())
}

impl Counts {
    fn add(&mut self, sentence: &Sentence, scores: &ActionScores) {
        let mut wanted: Vec<ActionKind> = ActionKind::ALL
            .into_iter()
            .filter(|kind| scores.of(*kind) >= WANTED)
            .collect();
        let likeliest = scores.likeliest();
        if wanted.is_empty() {
            wanted.push(likeliest);
        }
        let right = || std::iter::once(&sentence.kinds).chain(&sentence.alternatives);
        self.all += 1;
        self.exact += usize::from(right().any(|kinds| *kinds == wanted));
        self.likeliest += usize::from(right().any(|kinds| kinds.contains(&likeliest)));
        self.language += usize::from(sentence.language == scores.language());
    }
}
