//! The model suite: tests and evaluations with the weights of a real language model. Without the
//! weights, which are downloaded on demand, the suite is reported as not run.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{Failure, output, root, run, target};
use crate::file_system::{read, write};
use crate::server;
use crate::steps::{Outcome, Steps};

/// The environment variable that names a weights file to use instead of a download.
const FILE: &str = "ADJUTANT_MODEL_FILE";

/// A file of evaluation cases with its pass mark. The mark is a few cases below the measured
/// result, because greedy decoding differs slightly between processors.
struct Evaluation {
    file: &'static str,
    min_pass: usize,
    /// The sample that `cargo xtask test all` runs. `None`: only `test long` uses the file.
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
            every: 4,
            min_pass: 5,
        }),
    },
    Evaluation {
        file: "evals/todo-lists.jsonl",
        min_pass: 52,
        sample: Some(Sample {
            every: 8,
            min_pass: 7,
        }),
    },
    Evaluation {
        file: "evals/held-out.jsonl",
        min_pass: 138,
        sample: None,
    },
    Evaluation {
        file: "evals/memory.jsonl",
        min_pass: 27,
        sample: Some(Sample {
            every: 8,
            min_pass: 3,
        }),
    },
];

/// Makes sure that the weights are on disk, with any binary that can download them. Returns `None`
/// if they cannot be had.
pub(crate) fn prepare(steps: &Steps, adjutant: &Path) -> Option<PathBuf> {
    let mut weights = None;
    steps.skippable_step("the model suite: the model itself", || {
        match find_weights(adjutant) {
            Ok(file) => {
                println!("    {}", file.display());
                weights = Some(file);
                Ok(Outcome::Passed)
            }
            Err(reason) => Ok(Outcome::NotRun(reason)),
        }
    });
    weights
}

/// Runs the tests that need weights, the evaluations, and the adapters against llama.cpp's server
/// with the same weights. `tests` are the commands that run already built tests. `all_cases` runs
/// every case instead of a sample.
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
                .arg(sample_file(file, *every)?)
                .args(["--min-pass", &min_pass.to_string(), "-m"])
                .arg(model_argument(weights))
                .current_dir(root());
            run(&mut evaluation)
        });
    }
    server::suite(steps, adjutant, weights);
}

/// Returns a file with every `every`-th case of an evaluation file: the file itself if `every` is
/// 1.
fn sample_file(file: &str, every: usize) -> Result<PathBuf, Failure> {
    let all = root().join(file);
    if every == 1 {
        return Ok(all);
    }
    let cases = read(&all)?;
    let sample = target()
        .join("xtask")
        .join(all.file_name().unwrap_or_default());
    write(&sample, &every_nth_line(&cases, every))?;
    println!("    sample: 1 of {every} cases of {file}");
    Ok(sample)
}

/// Returns every `every`-th line, beginning with the first.
fn every_nth_line(lines: &str, every: usize) -> String {
    lines
        .lines()
        .step_by(every)
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Returns the value of `--model` for a weights file.
fn model_argument(weights: &Path) -> String {
    format!("embedded:{}", weights.display())
}

/// Returns the file that `ADJUTANT_MODEL_FILE` names, else the default model, downloaded if
/// necessary.
pub(crate) fn find_weights(adjutant: &Path) -> Result<PathBuf, String> {
    // A wrong name is reported, instead of downloading another model.
    if let Some(file) = std::env::var_os(FILE).map(PathBuf::from) {
        let exists = file.is_file();
        return if exists {
            Ok(file)
        } else {
            Err(format!(
                "{FILE} names a file that does not exist: {}",
                file.display()
            ))
        };
    }
    // For a model that is already installed, `pull` only prints its path.
    let pulled = output(Command::new(adjutant).args(["models", "pull", "--no-input", "--json"]))?;
    parse_path(&pulled).ok_or_else(|| format!("`models pull` reported no path: {pulled}"))
}

/// Returns the weights file from the output of `adjutant models pull --json`.
fn parse_path(pulled: &str) -> Option<PathBuf> {
    let pulled: Value = serde_json::from_str(pulled).ok()?;
    pulled["path"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_begins_with_the_first_case() {
        assert_eq!(every_nth_line("a\nb\nc\nd\ne\n", 3), "a\nd\n");
        assert_eq!(every_nth_line("a\nb", 1), "a\nb\n");
        assert_eq!(every_nth_line("", 3), "");
    }

    #[test]
    fn pass_marks_are_close_to_the_number_of_cases() {
        for Evaluation {
            file,
            min_pass,
            sample,
        } in EVALUATIONS
        {
            let cases = read(&root().join(file)).expect(file).lines().count();
            assert!(
                *min_pass <= cases && *min_pass >= cases * 17 / 20,
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
    fn the_path_of_downloaded_weights_is_parsed() {
        assert_eq!(
            parse_path(r#"{"name":"b","path":"/m/b.gguf"}"#),
            Some(PathBuf::from("/m/b.gguf"))
        );
        assert_eq!(parse_path(r#"{"name":"b"}"#), None);
        assert_eq!(parse_path("nothing"), None);
    }
}
