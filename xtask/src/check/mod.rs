//! `cargo xtask check`: the rules of the house. Cheap ones first; all are run, whatever fails.

mod arrows; // which crate may know which
mod files; // what no file may say
mod leak; // evaluation cases must not stand in prompts
mod packages; // what every package states
mod repeats; // what vendors say twice

use crate::metadata::{self, Package};
use crate::steps::{Failure, Steps, cargo, output, run as run_command};

/// Runs every check.
///
/// # Errors
/// If one fails, with the names of those that did.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let files = files::read()?;
    let mut steps = Steps::default();
    steps.step("format", || run_command(&mut cargo(["fmt", "--all", "--check"])));
    steps.step("arrows between crates", || none(arrows::broken(&workspace)));
    steps.step("packages", || none(packages::incomplete(&workspace)));
    steps.step("what no file may say", || none(files::forbidden(&files, &files::this_machine())));
    steps.step("evaluation cases not in prompts", || none(leak::leaks(&files)));
    steps.step("what vendors say twice", || none(repeats::between_vendors(&files)));
    steps.step("clippy", || {
        run_command(&mut cargo([
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))
    });
    steps.step("features one by one", || features_one_by_one(&workspace));
    steps.step("documentation", || {
        run_command(
            cargo(["doc", "--workspace", "--no-deps", "--all-features", "--locked"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    });
    steps.step("dependencies and licences", deny);
    steps.finish()
}

/// What was found, one a line; finding nothing is the good end.
fn none(found: Vec<String>) -> Result<(), Failure> {
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// Every package with no feature and with each of its features alone.
fn features_one_by_one(workspace: &[Package]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (package, feature) in combinations(workspace) {
        // Clippy, not check: its `-D warnings` reaches our packages only, so that dependencies are not built again.
        let arguments =
            ["clippy", "--locked", "-p", package, "--no-default-features", "--features", feature, "--"];
        if let Err(failure) = run_command(cargo(arguments).args(["-D", "warnings"])) {
            failures.push(failure);
        }
    }
    none(failures)
}

/// A package and one of its features; the empty word is none of them. Packages without features are in the clippy run. A
/// feature whose name begins with `_` is what others share, and of no use alone; self-destruction is for tests, which are
/// built with all of it.
fn combinations(workspace: &[Package]) -> Vec<(&str, &str)> {
    let alone = |feature: &&str| !["default", "faults"].contains(feature) && !feature.starts_with('_');
    let mut combinations = Vec::new();
    for package in workspace {
        let features: Vec<&str> = package.features.iter().map(String::as_str).filter(alone).collect();
        if !features.is_empty() {
            combinations.extend(std::iter::once("").chain(features).map(|it| (package.name.as_str(), it)));
        }
    }
    combinations
}

fn deny() -> Result<(), Failure> {
    if output(&mut cargo(["deny", "--version"])).is_err() {
        return Err("cargo-deny is missing: cargo install --locked cargo-deny@0.20.2".to_owned());
    }
    run_command(&mut cargo(["deny", "--all-features", "--locked", "check", "bans", "licenses", "sources"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_a_failure() {
        assert_eq!(none(Vec::new()), Ok(()));
        assert_eq!(none(vec!["a".to_owned(), "b".to_owned()]), Err("a\nb".to_owned()));
    }

    #[test]
    fn each_feature_stands_alone_once() {
        let package = |name: &str, features: &[&str]| Package {
            name: name.to_owned(),
            description: None,
            license: None,
            rust_version: None,
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            examples: Default::default(),
            arrows: Default::default(),
            dev_arrows: Default::default(),
        };
        let workspace = [
            package("a", &["default", "faults", "x", "y", "_shared"]),
            package("b", &[]),
            package("c", &["faults"]),
        ];
        assert_eq!(combinations(&workspace), [("a", ""), ("a", "x"), ("a", "y")]);
    }
}
