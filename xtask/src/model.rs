//! The suite that needs a language model's weights: it runs when they are there or can be fetched,
//! and says loudly that it did not run otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{Failure, output, root, run, target};
use crate::server;
use crate::steps::{Ended, Steps};

/// The variable that names a file of weights, so that nothing is downloaded.
const FILE: &str = "ADJUTANT_MODEL_FILE";

/// A file of cases, and the least number of them that has to pass: what was measured less a few,
/// because greedy output differs a little between processors.
struct Evaluation {
    file: &'static str,
    min_pass: usize,
    /// Every such case is asked in a run that samples, from the first on, and so many of them have
    /// to pass. `None`: the file is for long runs.
    sample: Option<Sample>,
}

struct Sample {
    every: usize,
    min_pass: usize,
}

const EVALUATIONS: &[Evaluation] = &[
    Evaluation {
        file: "evals/todo.jsonl",
        min_pass: 23,
        sample: Some(Sample {
            every: 1,
            min_pass: 23,
        }),
    },
    Evaluation {
        file: "evals/todo-lists.jsonl",
        min_pass: 54,
        sample: Some(Sample {
            every: 3,
            min_pass: 18,
        }),
    },
    Evaluation {
        file: "evals/held-out.jsonl",
        min_pass: 148,
        sample: None,
    },
    Evaluation {
        file: "evals/memory.jsonl",
        min_pass: 30,
        sample: Some(Sample {
            every: 1,
            min_pass: 30,
        }),
    },
];

/// Gets the model, with any binary that can fetch one. `None` if it cannot be had.
pub(crate) fn prepare(steps: &Steps, adjutant: &Path) -> Option<PathBuf> {
    let mut weights = None;
    steps.may_be_skipped("the model suite: the model itself", || {
        match find_weights(adjutant) {
            Ok(file) => {
                println!("    {}", file.display());
                weights = Some(file);
                Ok(Ended::Ok)
            }
            Err(cause) => Ok(Ended::NotRun(cause)),
        }
    });
    weights
}

/// Runs the tests that need weights, the evaluations, and the adapters against a real server with
/// the same weights. `tests`: what runs the tests, as they were built before. `all_cases`: instead
/// of a sample of the evaluations.
pub(crate) fn suite(
    steps: &Steps,
    adjutant: &Path,
    weights: &Path,
    tests: &mut [Command],
    all_cases: bool,
) {
    steps.step("the model suite: tests", || {
        tests
            .iter_mut()
            .try_for_each(|tests| run(tests.env(FILE, weights)))
    });
    for Evaluation {
        file,
        min_pass,
        sample,
    } in EVALUATIONS
    {
        let all = Sample {
            every: 1,
            min_pass: *min_pass,
        };
        let Some(Sample { every, min_pass }) = (if all_cases {
            Some(&all)
        } else {
            sample.as_ref()
        }) else {
            continue;
        };
        steps.step(&format!("the model suite: {file}"), || {
            let mut evaluation = Command::new(adjutant);
            evaluation
                .arg("eval")
                .arg(sampled(file, *every)?)
                .args(["--min-pass", &min_pass.to_string(), "-m"])
                .arg(model_of(weights))
                .current_dir(root());
            run(&mut evaluation)
        });
    }
    server::suite(steps, adjutant, weights);
}

/// Returns a file with every so manyth case of another: that one itself, if all are wanted.
fn sampled(file: &str, every: usize) -> Result<PathBuf, Failure> {
    let all = root().join(file);
    if every == 1 {
        return Ok(all);
    }
    let failed = |error: std::io::Error| format!("a sample of {file}: {error}");
    let cases = fs::read_to_string(&all).map_err(failed)?;
    let sample = target()
        .join("xtask")
        .join(all.file_name().unwrap_or_default());
    fs::create_dir_all(target().join("xtask")).map_err(failed)?;
    fs::write(&sample, sample_of(&cases, every)).map_err(failed)?;
    println!("    one of {every} cases of {file}");
    Ok(sample)
}

/// Returns every so manyth line, from the first on.
fn sample_of(lines: &str, every: usize) -> String {
    lines
        .lines()
        .step_by(every)
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Returns the value of `-m` for a file of weights.
fn model_of(weights: &Path) -> String {
    format!("embedded:{}", weights.display())
}

/// The file `ADJUTANT_MODEL_FILE` names, else the default model, fetched if it is not on the disk.
fn find_weights(adjutant: &Path) -> Result<PathBuf, String> {
    if let Some(file) = std::env::var_os(FILE).map(PathBuf::from) {
        let there = file.is_file();
        return if there {
            Ok(file)
        } else {
            Err(format!(
                "{FILE} is {}, and there is no such file",
                file.display()
            ))
        };
    }
    // Fetching what is there already only says so.
    let pulled = output(Command::new(adjutant).args(["models", "pull", "--no-input", "--json"]))?;
    path_of(&pulled).ok_or_else(|| format!("no model is installed after fetching one: {pulled}"))
}

/// The file in what `adjutant models pull --json` prints.
fn path_of(pulled: &str) -> Option<PathBuf> {
    let pulled: Value = serde_json::from_str(pulled).ok()?;
    pulled["path"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_begins_with_the_first_case() {
        assert_eq!(sample_of("a\nb\nc\nd\ne\n", 3), "a\nd\n");
        assert_eq!(sample_of("a\nb", 1), "a\nb\n");
        assert_eq!(sample_of("", 3), "");
    }

    #[test]
    fn every_evaluation_has_more_cases_than_must_pass() {
        for Evaluation {
            file,
            min_pass,
            sample,
        } in EVALUATIONS
        {
            let cases = fs::read_to_string(root().join(file))
                .expect(file)
                .lines()
                .count();
            assert!(
                *min_pass <= cases && *min_pass > cases * 9 / 10,
                "{file}: {min_pass} of {cases}"
            );
            let Some(Sample { every, min_pass }) = sample else {
                continue;
            };
            let sampled = cases.div_ceil(*every);
            assert!(
                *min_pass <= sampled && *min_pass >= sampled * 9 / 10,
                "{file}: {min_pass} of {sampled}"
            );
        }
    }

    #[test]
    fn the_file_that_was_fetched_is_found() {
        assert_eq!(
            path_of(r#"{"name":"b","path":"/m/b.gguf"}"#),
            Some(PathBuf::from("/m/b.gguf"))
        );
        assert_eq!(path_of(r#"{"name":"b"}"#), None);
        assert_eq!(path_of("nothing"), None);
    }
}
