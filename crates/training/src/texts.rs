//! The training of the classifier of texts: of all that the rules for words find, which is right?

use std::path::Path;

use adjutant_core::GenerateRequest;
use adjutant_weak::{TextChoices, TextClassifier, WeakTools};

use crate::decide::{self, Evaluation};
use crate::files;
use crate::fit::{Problem, Sparse, Unit};
use crate::measure::{FOLDS, fold};
use crate::sentences::{self, Line};

/// Weight of the penalty for large weights.
const STRENGTH: f32 = 0.0003;
/// Least probabilities of the likeliest text for which the figures are printed.
const LEAST: [f32; 7] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6];

/// A text of a sentence with its features, and true if it is right.
struct Text {
    /// The sentence and the place among its choices: texts of one choice stand together.
    choice: (usize, usize),
    fold: usize,
    features: Vec<usize>,
    is_right: bool,
}

/// Trains the classifier, writes it into the crate that has it built in, and prints how often the
/// likeliest text is right.
///
/// # Errors
/// Those of [`Evaluation`]; a file that cannot be written.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let evaluation = Evaluation::new(root, None)?;
    let weak = WeakTools::new();
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (at, (line, tasks)) in evaluation.lines.iter().enumerate() {
        let mut request = GenerateRequest::new(decide::messages(line)?);
        request.tools = evaluation.tools.clone().into();
        let scores = decide::given(line)?;
        let choices = weak.text_choices(&request, &decide::references(tasks), scores);
        for (place, choices) in choices.into_iter().enumerate() {
            let group = match choices.changed {
                None => &mut new,
                Some(_) => &mut changed,
            };
            group.extend(labelled(line, (at, place), choices));
        }
    }
    let units = [fit(&new, None), fit(&changed, None)];
    let classifier = TextClassifier::new(units).ok_or("the classifier has other rows")?;
    let file = "crates/weak/classifiers/texts.bin";
    files::write(root, file, &classifier.to_bytes())?;
    print("texts of new tasks", &new, false)?;
    print("new texts of tasks", &changed, true)
}

/// Returns the texts of a choice, of which those are right that the sentence names.
fn labelled(line: &Line, choice: (usize, usize), choices: TextChoices) -> Vec<Text> {
    let is_right = |text: &str| {
        let mut actions = sentences::right(line).into_iter().flatten();
        actions.any(|action| {
            let is_of = match &choices.changed {
                None => action[0] == "add",
                Some(id) => action[0] == "rename" && action[1].as_u64() == id.parse().ok(),
            };
            is_of && decide::has_text(&action, text)
        })
    };
    let text = |(text, features): &(String, Vec<usize>)| Text {
        choice,
        fold: fold(&line.id),
        features: features.clone(),
        is_right: is_right(text),
    };
    choices.texts.iter().map(text).collect()
}

/// Fits a unit to all texts but those of one fold.
fn fit(texts: &[Text], left_out: Option<usize>) -> Unit {
    let used = texts.iter().filter(|text| Some(text.fold) != left_out);
    let used: Vec<&Text> = used.collect();
    let rows = Sparse {
        rows: used.iter().map(|text| text.features.clone()).collect(),
        width: TextClassifier::WIDTH,
    };
    let labels: Vec<bool> = used.iter().map(|text| text.is_right).collect();
    let problem = Problem {
        rows: &rows,
        labels: &labels,
        weights: &vec![1.0; used.len()],
        strength: STRENGTH,
        known: None,
    };
    problem.fit()
}

/// Prints the shares of choices whose likeliest text is right, by its least probability: each by a
/// classifier that was trained without the sentence.
fn print(name: &str, texts: &[Text], changed: bool) -> Result<(), String> {
    let mut likeliest: Vec<(f32, bool)> = Vec::new();
    for left_out in 0..FOLDS {
        let unit = fit(texts, Some(left_out));
        let classifier = TextClassifier::new([unit.clone(), unit]).ok_or("no classifier")?;
        let choices = texts.chunk_by(|a, b| a.choice == b.choice);
        let choices = choices.filter(|texts| texts.iter().any(|text| text.fold == left_out));
        likeliest.extend(choices.filter_map(|texts| {
            let rated = texts.iter().map(|text| {
                let probability = classifier.probability(&text.features, changed);
                (probability, text.is_right)
            });
            rated.max_by(|(a, _), (b, _)| a.total_cmp(b))
        }));
    }
    let all = likeliest.len().max(1);
    let share = |count: usize| 100.0 * count as f64 / all as f64;
    println!("{name}: {all} messages, the likeliest text");
    println!("least probability    right    wrong    asked");
    for least in LEAST {
        let acted = likeliest
            .iter()
            .filter(|(probability, _)| *probability >= least);
        let right = acted.clone().filter(|(_, is_right)| *is_right).count();
        let wrong = acted.count() - right;
        println!(
            "{least:>17}  {:>5.1} %  {:>5.1} %  {:>5.1} %",
            share(right),
            share(wrong),
            share(all - right - wrong)
        );
    }
    Ok(())
}
