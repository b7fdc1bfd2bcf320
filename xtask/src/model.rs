//! The suite that needs a language model's weights: it runs when they are there or can be fetched, and says loudly that
//! it did not run otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::steps::{Ended, Steps, cargo, output, root, run, target};

/// Where the weights are, for whoever has them already.
const FILE: &str = "ADJUTANT_MODEL_FILE";

/// The evaluation files with how many of their cases have to pass. The floors are what was measured less one or two
/// cases (and what the design asks for): greedy output differs a little between processors.
const EVALUATIONS: &[(&str, &str)] = &[("evals/todo.jsonl", "23"), ("evals/todo-lists.jsonl", "54")];

/// Builds the binary as it ships, gets the model, runs its tests and the evaluations.
pub(crate) fn suite(steps: &mut Steps) {
    let mut built = false;
    steps.step("release build", || {
        run(&mut cargo(["build", "--release", "--locked", "--package", "adjutant-cli"]))?;
        built = true;
        Ok(())
    });
    if !built {
        return;
    }
    let adjutant = binary();
    let mut weights = None;
    steps.may_be_skipped("the model suite: the model itself", || match find_weights(&adjutant) {
        Ok(file) => {
            println!("    {}", file.display());
            weights = Some(file);
            Ok(Ended::Ok)
        }
        Err(cause) => Ok(Ended::NotRun(cause)),
    });
    let Some(weights) = weights else { return };
    steps.step("the model suite: tests", || {
        let arguments = ["test", "--release", "--locked", "--package", "adjutant-embedded"];
        run(cargo(arguments).env(FILE, &weights))
    });
    for (cases, min_pass) in EVALUATIONS {
        steps.step(&format!("the model suite: {cases}"), || {
            let mut evaluation = Command::new(&adjutant);
            evaluation
                .args(["eval", cases, "--min-pass", min_pass, "-m"])
                .arg(model_of(&weights))
                .current_dir(root());
            run(&mut evaluation)
        });
    }
}

fn binary() -> PathBuf {
    target().join("release").join(format!("adjutant{}", std::env::consts::EXE_SUFFIX))
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
    output(Command::new(adjutant).args(["models", "pull", "--no-input"]))?;
    let list = output(Command::new(adjutant).args(["models", "list", "--json"]))?;
    installed(&list).ok_or_else(|| format!("no model is installed after fetching one: {list}"))
}

/// The file of the default model, if it is installed, in `adjutant models list --json`.
fn installed(list: &str) -> Option<PathBuf> {
    let list: Value = serde_json::from_str(list).ok()?;
    list.as_array()?
        .iter()
        .find(|model| model["default"] == true && model["installed"] == true)
        .and_then(|model| model["path"].as_str())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_default_model_is_found() {
        let list = r#"[{"default":false,"installed":true,"path":"/m/a.gguf"},{"default":true,"installed":true,"path":"/m/b.gguf"}]"#;
        assert_eq!(installed(list), Some(PathBuf::from("/m/b.gguf")));
    }

    #[test]
    fn a_default_model_that_is_not_there_is_not_found() {
        assert_eq!(installed(r#"[{"default":true,"installed":false,"path":"/m/a.gguf"}]"#), None);
        assert_eq!(installed("nothing"), None);
    }
}
