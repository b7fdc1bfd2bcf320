//! `cargo xtask test`: every test there is.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::metadata::{self, Package};
use crate::steps::{Failure, Steps, cargo, output, root, run as run_command, target};
use crate::{clients, model};

/// The library whose examples are run.
const LIBRARY: &str = "adjutant";
/// What the shipped binary can have and does not by default.
const DISPATCH: &str = "adjutant-cli/restate";

/// Runs every test; what needs a language model runs if one is there or can be had.
///
/// # Errors
/// If one fails, with the names of the steps that did.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let runner = Runner::installed();
    let mut steps = Steps::default();
    // With all that the library can have, because its tests go through every provider and its examples need the rest, and with
    // self-destruction built in: only such programs can be killed at a chosen instant, and nothing else of them is different.
    // One selection for all of it: another would build the workspace again. What ships is built without, and meets the clients.
    let selection = selection(&workspace)?;
    let features = ["--workspace", "--features", &selection];
    steps.step("tests", || run_command(&mut runner.tests(&features)));
    steps.step("documentation tests", || run_command(cargo(["test", "--doc", "--locked"]).args(features)));
    steps.step("examples", || examples(&workspace, &features));
    let mut shipped = None;
    steps.step("release build", || {
        run_command(&mut cargo(["build", "--release", "--locked", "--package", "adjutant-cli"]))?;
        shipped = Some(target().join("release").join(format!("adjutant{}", std::env::consts::EXE_SUFFIX)));
        Ok(())
    });
    if let Some(adjutant) = shipped {
        clients::suite(&mut steps, &adjutant, &built_examples());
        model::suite(&mut steps, &adjutant, &mut runner.tests(&features));
    }
    steps.finish()
}

/// What runs the tests: cargo-nextest where it is installed, else cargo itself.
enum Runner {
    Nextest,
    Cargo,
}

impl Runner {
    fn installed() -> Self {
        match output(&mut cargo(["nextest", "--version"])) {
            Ok(_) => Self::Nextest,
            Err(_) => Self::Cargo,
        }
    }

    /// Runs the tests of a selection, without documentation tests.
    fn tests(&self, selection: &[&str]) -> Command {
        let mut command = match self {
            Self::Nextest => cargo(["nextest", "run", "--locked", "--no-fail-fast"]),
            Self::Cargo => {
                cargo(["test", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"])
            }
        };
        command.args(selection);
        command
    }
}

/// What everything is tested with.
///
/// # Errors
/// If nothing can be killed.
fn selection(workspace: &[Package]) -> Result<String, Failure> {
    let faulty = workspace.iter().filter(|package| package.features.contains("faults"));
    let faulty: Vec<String> = faulty.map(|package| format!("{}/faults", package.name)).collect();
    if faulty.is_empty() {
        return Err("no package has a feature faults".to_owned());
    }
    Ok(format!("{},{},{DISPATCH}", features_of(workspace, LIBRARY), faulty.join(",")))
}

/// Every feature of a package, as cargo takes them.
fn features_of(workspace: &[Package], name: &str) -> String {
    let package = workspace.iter().filter(|package| package.name == name);
    let features: Vec<String> = package
        .flat_map(|package| package.features.iter().map(|feature| format!("{name}/{feature}")))
        .collect();
    features.join(",")
}

/// Where the examples of the workspace are once they are built.
fn built_examples() -> PathBuf {
    target().join("debug").join("examples")
}

/// Runs every example of the library to its end.
fn examples(workspace: &[Package], features: &[&str]) -> Result<(), Failure> {
    let examples = workspace.iter().find(|package| package.name == LIBRARY).map(|package| &package.examples);
    let examples = examples.filter(|examples| !examples.is_empty()).ok_or("the library has no example")?;
    run_command(cargo(["build", "--locked", "--examples"]).args(features))?;
    let folder = built_examples();
    let runs = examples.keys().map(|name| {
        let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let mut example = Command::new(program);
        example.current_dir(root()).stdin(Stdio::null());
        // One that takes its model from the environment has its script beside it.
        let script = format!("crates/{LIBRARY}/examples/{name}.jsonl");
        if root().join(&script).is_file() {
            example.env("ADJUTANT_MODEL", format!("scripted:{script}"));
        }
        run_command(&mut example)
    });
    let failed: Vec<Failure> = runs.filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, features: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            description: None,
            license: None,
            rust_version: None,
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            examples: Default::default(),
            arrows: Default::default(),
            dev_arrows: Default::default(),
        }
    }

    #[test]
    fn everything_that_can_crash_is_tested_so() {
        let workspace = [package(LIBRARY, &["x"]), package("b", &["faults"]), package("c", &["faults", "x"])];
        assert_eq!(selection(&workspace), Ok(format!("adjutant/x,b/faults,c/faults,{DISPATCH}")));
    }

    #[test]
    fn the_library_is_tested_with_everything_it_can_have() {
        let workspace = [package("a", &["x"]), package(LIBRARY, &["gemini", "openai"])];
        assert_eq!(features_of(&workspace, LIBRARY), "adjutant/gemini,adjutant/openai");
    }

    #[test]
    fn nothing_to_run_is_a_failure() {
        assert!(selection(&[package("a", &[])]).is_err());
        assert!(examples(&[package(LIBRARY, &[])], &[]).is_err());
        assert!(examples(&[], &[]).is_err());
    }
}
