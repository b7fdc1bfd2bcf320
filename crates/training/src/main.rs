//! `train-actions`: trains the classifier of actions of a model file, and measures it.
//!
//! ```text
//! cargo run --release -p adjutant-training -- words
//! cargo run --release -p adjutant-training -- texts
//! cargo run --release -p adjutant-training -- decide [SCORES.jsonl]
//! cargo run --release -p adjutant-training -- decide --misses CLASS
//! cargo run --release -p adjutant-training -- ablate
//! cargo run --release -p adjutant-training -- cases FOLDER
//! cargo run --release -p adjutant-training -- answers MODEL.gguf EVERY
//! cargo run --release -p adjutant-training -- prompt MODEL.gguf
//! cargo run --release -p adjutant-training -- MODEL.gguf [--continue CLASS]
//! ```
//!
//! Reads `evals/sentences` and fits one linear unit a kind of action and language: over the words of
//! each sentence, or over its state in the model. Writes the classifier into the crate that has it
//! built in, and prints, by five-fold cross-validation, for how many sentences the kinds of actions
//! are right. The scores of each sentence by a classifier that was trained without it are left in
//! `target/action-scores.jsonl`.
//!
//! `texts` trains the classifier of the texts that the rules for words find, and prints how often the
//! likeliest is right. `answers` asks the model one in `EVERY` sentences, prints the verdicts, and
//! leaves the answers in `target/action-answers.jsonl`.
//!
//! `decide` prints what the scores of such a file and the words of the sentences lead to together;
//! without a file, the right actions are given. With `--misses` it prints the sentences of a class
//! that are not right. `ablate` prints by how many sentences the figures change without each word
//! list. `cases` prints the sentences of a folder as cases for `adjutant eval`. `prompt` prints the
//! tokens of the task assistant's constant prompt, for messages with scores and for others.
//!
//! With `--continue`, the fit begins with the classifier that is built in and stays near it: the
//! sentences are those of a new class, and a sample of all others. It takes a fraction of the time.

mod ablate;
mod answers;
mod cases;
mod decide;
mod files;
mod fit;
mod measure;
mod prompt;
mod sentences;
mod states;
mod texts;

use std::path::Path;
use std::process::ExitCode;

use adjutant_core::{ActionKind, Language};
use adjutant_embedded::{ActionClassifier, Decoder};
use adjutant_weak::WordClassifier;

use files::write;
use fit::{Dense, Problem, Rows, Sparse, Unit};
use sentences::Sentence;

/// The blocks after which states are read: with fewer or more of the 28 the classifier is right
/// less often (`docs/agent-quality.md`).
const BLOCKS: usize = 16;
/// Weight of the penalty for large weights, with states and with words.
const STRENGTH: f32 = 0.04;
const STRENGTH_OF_WORDS: f32 = 0.002;
/// Of so many sentences of other classes, one is used to continue; it counts for all of them.
const SAMPLED_EVERY: usize = 6;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str = "\
usage: train-actions words
       train-actions texts
       train-actions decide [SCORES.jsonl]
       train-actions decide --misses CLASS
       train-actions ablate
       train-actions cases FOLDER
       train-actions answers MODEL.gguf EVERY
       train-actions prompt MODEL.gguf
       train-actions MODEL.gguf [--continue CLASS]";

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sentences = sentences::read(&root.join("evals/sentences"))?;
    match arguments[..] {
        ["prompt", model] => prompt::count(&root, Path::new(model)),
        ["ablate"] => ablate::run(&root),
        ["cases", folder] => cases::print(Path::new(folder)),
        ["decide", "--misses", class] => decide::misses(&root, class),
        ["decide"] => decide::run(&root, None),
        ["decide", scores] => decide::run(&root, Some(Path::new(scores))),
        ["answers", model, every] => {
            let every = every.parse().map_err(|_| USAGE.to_owned())?;
            answers::run(&root, Path::new(model), every)
        }
        ["texts"] => texts::run(&root),
        ["words"] => words(&root, &sentences),
        [model] => states(&root, sentences, model, None),
        [model, "--continue", class] => states(&root, sentences, model, Some(class)),
        _ => Err(USAGE.to_owned()),
    }
}

/// Trains the classifier over words.
fn words(root: &Path, sentences: &[Sentence]) -> Result<(), String> {
    let features: Vec<Vec<usize>> = sentences
        .iter()
        .map(|sentence| WordClassifier::features(&sentence.message))
        .collect();
    let train = |sentences: &[&Sentence], features: &[&Vec<usize>]| {
        let rows = Sparse {
            rows: features.iter().map(|row| (*row).clone()).collect(),
            width: WordClassifier::WIDTH,
        };
        let units = train(sentences, &rows, STRENGTH_OF_WORDS, &[]);
        WordClassifier::new(units).ok_or("the classifier has other rows".to_owned())
    };
    let all: Vec<&Vec<usize>> = features.iter().collect();
    let classifier = train(&sentences.iter().collect::<Vec<_>>(), &all)?;
    write(
        root,
        "crates/weak/classifiers/words.bin",
        &classifier.to_bytes(),
    )?;
    let score = |classifier: &WordClassifier, sentence: &Sentence, _: &Vec<usize>| {
        classifier.scores(&sentence.message)
    };
    measure::cross_validate(root, sentences, &features, train, score)
}

/// Trains the classifier over states of a model; from the one that is built in, with a class.
fn states(
    root: &Path,
    mut sentences: Vec<Sentence>,
    model: &str,
    class: Option<&str>,
) -> Result<(), String> {
    if let Some(class) = class {
        sentences = sentences::sampled(&sentences, class, SAMPLED_EVERY);
    }
    let sentences = sentences::with_exchanges(sentences);
    let mut decoder = Decoder::load(Path::new(model)).map_err(|error| error.to_string())?;
    let fingerprint = decoder.fingerprint();
    let known = match class {
        None => None,
        Some(_) => Some(
            ActionClassifier::built_in(&fingerprint)
                .ok_or("no classifier is built in for this model, so none can be continued")?,
        ),
    };
    let known = known.as_ref().map_or(&[][..], ActionClassifier::rows);
    let kept = root.join("target/action-states.bin");
    let states = states::of(&sentences, &mut decoder, BLOCKS, &kept)?;
    let train = |sentences: &[&Sentence], states: &[&Vec<f32>]| {
        let units = train(sentences, &Dense::standardised(states), STRENGTH, known);
        ActionClassifier::new(fingerprint, BLOCKS, units).map_err(|error| error.to_string())
    };
    let all: Vec<&Vec<f32>> = states.iter().collect();
    let classifier = train(&sentences.iter().collect::<Vec<_>>(), &all)?;
    let file = "crates/embedded/classifiers/qwen2.5-coder-1.5b.bin";
    write(root, file, &classifier.to_bytes())?;
    let score =
        |classifier: &ActionClassifier, _: &Sentence, state: &Vec<f32>| classifier.scores(state);
    measure::cross_validate(root, &sentences, &states, train, score)
}

/// Fits a unit for every kind of action and every language. `known` has the units to stay near, if
/// there are any.
fn train(
    sentences: &[&Sentence],
    rows: &(impl Rows + Sync),
    strength: f32,
    known: &[Unit],
) -> Vec<Unit> {
    let weights: Vec<f32> = sentences.iter().map(|sentence| sentence.weight).collect();
    let of_kind = |kind: ActionKind| -> Vec<bool> {
        sentences
            .iter()
            .map(|sentence| sentence.kinds.contains(&kind))
            .collect()
    };
    let of_language = |language: Language| -> Vec<bool> {
        sentences
            .iter()
            .map(|sentence| sentence.language == language)
            .collect()
    };
    let labels = ActionKind::ALL
        .into_iter()
        .map(of_kind)
        .chain(Language::ALL.into_iter().map(of_language));
    let labels: Vec<(usize, Vec<bool>)> = labels.enumerate().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = labels.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts: Vec<_> = labels
            .chunks(share)
            .map(|labels| {
                let weights = &weights[..];
                let fit = move |(at, labels): &(usize, Vec<bool>)| {
                    let problem = Problem {
                        rows,
                        labels,
                        weights,
                        strength,
                        known: known.get(*at),
                    };
                    problem.fit()
                };
                scope.spawn(move || labels.iter().map(fit).collect::<Vec<Unit>>())
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_default())
            .collect()
    })
}
