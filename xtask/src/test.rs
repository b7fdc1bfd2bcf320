//! `cargo xtask test`: every test there is.

use std::process::{Command, Stdio};

use crate::metadata::{self, Package};
use crate::steps::{Failure, Steps, cargo, output, root, run as run_command, target};
use crate::{clients, model};

/// The library whose examples are run.
const LIBRARY: &str = "adjutant";
/// What the shipped binary can have and does not by default, and what its part of the crash tests is about.
const DISPATCH: &str = "adjutant-cli/restate";

/// Runs every test; what needs a language model runs if one is there or can be had.
///
/// # Errors
/// If one fails, with the names of the steps that did.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let runner = Runner::installed();
    let mut steps = Steps::default();
    // With all that the library can have: its tests go through every provider, and its examples need the rest.
    let whole = features_of(&workspace, LIBRARY);
    steps.step("workspace tests", || run_command(&mut runner.tests(&["--workspace", "--features", &whole])));
    // The same programs with self-destruction built in: only they can be killed at a chosen instant. The whole workspace is
    // built again, because another selection would have other features, and so build the dependencies again.
    steps.step("crash tests", || {
        let faulty = faulty(&workspace)?;
        let features: Vec<String> = faulty.iter().map(|name| format!("{name}/faults")).collect();
        let features = format!("{whole},{},{DISPATCH}", features.join(","));
        run_command(runner.tests(&["--workspace", "--features", &features]).args(runner.only(&faulty)))
    });
    steps.step("documentation tests", || {
        run_command(&mut cargo(["test", "--workspace", "--doc", "--locked"]))
    });
    steps.step("examples", || examples(&workspace, &whole));
    let mut shipped = None;
    steps.step("release build", || {
        run_command(&mut cargo(["build", "--release", "--locked", "--package", "adjutant-cli"]))?;
        shipped = Some(target().join("release").join(format!("adjutant{}", std::env::consts::EXE_SUFFIX)));
        Ok(())
    });
    if let Some(adjutant) = shipped {
        clients::suite(&mut steps, &adjutant);
        model::suite(&mut steps, &adjutant);
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

    /// Runs those of these packages only, of everything that is built. Cargo itself has no such choice, and runs it all.
    fn only(&self, packages: &[&str]) -> Vec<String> {
        let packages: Vec<String> = packages.iter().map(|name| format!("package({name})")).collect();
        match self {
            Self::Nextest => vec!["--filterset".to_owned(), packages.join(" + ")],
            Self::Cargo => Vec::new(),
        }
    }
}

/// Every package that has the feature `faults`.
fn faulty(workspace: &[Package]) -> Result<Vec<&str>, Failure> {
    let faulty = workspace.iter().filter(|package| package.features.contains("faults"));
    let names: Vec<&str> = faulty.map(|package| package.name.as_str()).collect();
    if names.is_empty() { Err("no package has a feature faults".to_owned()) } else { Ok(names) }
}

/// Every feature of a package, as cargo takes them.
fn features_of(workspace: &[Package], name: &str) -> String {
    let package = workspace.iter().filter(|package| package.name == name);
    let features: Vec<String> = package
        .flat_map(|package| package.features.iter().map(|feature| format!("{name}/{feature}")))
        .collect();
    features.join(",")
}

/// Runs every example of the library to its end.
fn examples(workspace: &[Package], features: &str) -> Result<(), Failure> {
    let examples = workspace.iter().find(|package| package.name == LIBRARY).map(|package| &package.examples);
    let examples = examples.filter(|examples| !examples.is_empty()).ok_or("the library has no example")?;
    // Of the whole workspace, as the tests: what is built already is not built again with other features.
    run_command(&mut cargo(["build", "--locked", "--workspace", "--examples", "--features", features]))?;
    let folder = target().join("debug").join("examples");
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
    fn crash_tests_are_those_of_every_package_that_can_crash() {
        let workspace = [package("a", &["x"]), package("b", &["faults"]), package("c", &["faults", "x"])];
        assert_eq!(faulty(&workspace), Ok(vec!["b", "c"]));
    }

    #[test]
    fn the_library_is_tested_with_everything_it_can_have() {
        let workspace = [package("a", &["x"]), package(LIBRARY, &["gemini", "openai"])];
        assert_eq!(features_of(&workspace, LIBRARY), "adjutant/gemini,adjutant/openai");
    }

    #[test]
    fn nothing_to_run_is_a_failure() {
        assert!(faulty(&[package("a", &[])]).is_err());
        assert!(examples(&[package(LIBRARY, &[])], "").is_err());
        assert!(examples(&[], "").is_err());
    }
}
