//! The suite that needs a language model's weights: it runs when they are there or can be fetched, and says loudly that
//! it did not run otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::server;
use crate::steps::{Ended, Steps, output, root, run};

/// Where the weights are, for whoever has them already.
const FILE: &str = "ADJUTANT_MODEL_FILE";

/// The evaluation files with how many of their cases have to pass. The floors are what was measured less one or two
/// cases (and what the design asks for): greedy output differs a little between processors.
const EVALUATIONS: &[(&str, &str)] = &[("evals/todo.jsonl", "23"), ("evals/todo-lists.jsonl", "54")];

/// Gets the model, with any binary that can fetch one. `None` if it cannot be had.
pub(crate) fn prepare(steps: &Steps, adjutant: &Path) -> Option<PathBuf> {
    let mut weights = None;
    steps.may_be_skipped("the model suite: the model itself", || match find_weights(adjutant) {
        Ok(file) => {
            println!("    {}", file.display());
            weights = Some(file);
            Ok(Ended::Ok)
        }
        Err(cause) => Ok(Ended::NotRun(cause)),
    });
    weights
}

/// Runs the tests that need weights, the evaluations, and the adapters against a real server with the same weights.
/// `tests`: what runs the tests, as they were built before.
pub(crate) fn suite(steps: &Steps, adjutant: &Path, weights: &Path, tests: &mut [Command]) {
    steps.step("the model suite: tests", || {
        tests.iter_mut().try_for_each(|tests| run(tests.env(FILE, weights)))
    });
    for (cases, min_pass) in EVALUATIONS {
        steps.step(&format!("the model suite: {cases}"), || {
            let mut evaluation = Command::new(adjutant);
            evaluation
                .args(["eval", cases, "--min-pass", min_pass, "-m"])
                .arg(model_of(weights))
                .current_dir(root());
            run(&mut evaluation)
        });
    }
    server::suite(steps, adjutant, weights);
}

/// How `-m` names a file of weights.
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
            Err(format!("{FILE} is {}, and there is no such file", file.display()))
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
    fn the_file_that_was_fetched_is_found() {
        assert_eq!(path_of(r#"{"name":"b","path":"/m/b.gguf"}"#), Some(PathBuf::from("/m/b.gguf")));
        assert_eq!(path_of(r#"{"name":"b"}"#), None);
        assert_eq!(path_of("nothing"), None);
    }
}
