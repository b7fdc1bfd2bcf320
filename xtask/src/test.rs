//! `cargo xtask test`: every test there is.

use std::collections::BTreeSet;

use crate::metadata::{self, Package};
use crate::model;
use crate::steps::{Failure, Steps, cargo, output, run as run_command};

/// The library whose examples are run.
const LIBRARY: &str = "adjutant";

/// Runs every test; what needs a language model runs if one is there or can be had.
///
/// # Errors
/// If one fails, with the names of the steps that did.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let runner = Runner::installed();
    let mut steps = Steps::default();
    steps.step("workspace tests", || run_command(&mut runner.tests(&["--workspace"])));
    // The same programs with self-destruction built in: only they can be killed at a chosen instant.
    steps.step("crash tests", || {
        let faults = faults(&workspace)?;
        run_command(&mut runner.tests(&faults.iter().map(String::as_str).collect::<Vec<_>>()))
    });
    steps.step("documentation tests", || {
        run_command(&mut cargo(["test", "--workspace", "--doc", "--locked"]))
    });
    steps.step("examples", || examples(&workspace));
    model::suite(&mut steps);
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
    fn tests(&self, selection: &[&str]) -> std::process::Command {
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

/// The packages with a feature `faults`, as a selection with this feature on.
fn faults(workspace: &[Package]) -> Result<Vec<String>, Failure> {
    const FEATURE: &str = "faults";
    let mut selection = Vec::new();
    for package in workspace.iter().filter(|package| package.features.contains(FEATURE)) {
        selection.extend(["--package".to_owned(), package.name.clone()]);
        selection.extend(["--features".to_owned(), format!("{}/{FEATURE}", package.name)]);
    }
    if selection.is_empty() { Err(format!("no package has a feature {FEATURE}")) } else { Ok(selection) }
}

/// Runs every example of the library to its end.
fn examples(workspace: &[Package]) -> Result<(), Failure> {
    let examples = workspace.iter().find(|package| package.name == LIBRARY).map(|package| &package.examples);
    let examples = examples.filter(|examples| !examples.is_empty()).ok_or("the library has no example")?;
    // One set of features for all of them, so that the library is built once.
    let features: BTreeSet<&str> = examples.values().flatten().map(String::as_str).collect();
    let features = features.into_iter().collect::<Vec<_>>().join(",");
    let mut failed = Vec::new();
    for name in examples.keys() {
        let arguments =
            ["run", "--quiet", "--locked", "--package", LIBRARY, "--features", &features, "--example", name];
        if let Err(failure) = run_command(&mut cargo(arguments)) {
            failed.push(failure);
        }
    }
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
        assert_eq!(
            faults(&workspace),
            Ok(["--package", "b", "--features", "b/faults", "--package", "c", "--features", "c/faults"]
                .map(str::to_owned)
                .to_vec())
        );
    }

    #[test]
    fn nothing_to_run_is_a_failure() {
        assert!(faults(&[package("a", &[])]).is_err());
        assert!(examples(&[package(LIBRARY, &[])]).is_err());
        assert!(examples(&[]).is_err());
    }
}
