//! `cargo xtask check`: the lints and repository rules that every commit must pass. Cheap checks
//! run first, and all of them run even if one fails.

mod arrows; // dependencies between crates
pub(crate) mod budget; // limits of crates, bytes and instructions
mod comments; // documentation and references
mod cycles; // import cycles between modules
mod files; // forbidden text
mod leak; // evaluation cases in prompts
mod packages; // metadata of packages, MSRV
mod reads; // files opened before their kind and size are known
mod repeats; // duplication between providers
mod unused; // unused dependencies

use std::process::Command;

use crate::command::{Failure, cargo, fail_with, output, root, run as run_command};
use crate::metadata::SELECTION;
use crate::metadata::{self, Package};
use crate::steps::Steps;
use files::File;

/// Returns true for a combination that only `cargo xtask test long` checks: those with the embedded
/// model and those of the CLI, whose dependencies get features that no other check selects. They
/// take more than half of the time of all combinations.
fn is_slow(package: &str, feature: &str) -> bool {
    feature == "embedded" || package == "adjutant-cli"
}

/// Runs every check.
///
/// # Errors
/// One or more checks fail; the message has their names.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let files = files::read_all()?;
    let steps = Steps::begin()?;
    steps.step("format", || {
        run_command(&mut cargo(["fmt", "--all", "--check"]))?;
        // `benches/` is a workspace of its own, which `--all` does not reach.
        run_command(&mut cargo([
            "fmt",
            "--check",
            "--manifest-path",
            "benches/Cargo.toml",
        ]))
    });
    steps.step("arrows between crates", || {
        fail_with(arrows::broken(&workspace))
    });
    steps.step("import cycles", || fail_with(cycles::inside_crates(&files)));
    steps.step("packages", || fail_with(packages::incomplete(&workspace)));
    steps.step("unused dependencies", || {
        fail_with(unused::dependencies(&workspace, &files))
    });
    steps.step("minimum supported Rust version", || {
        fail_with(packages::too_new(&workspace)?)
    });
    steps.step("spelling", spelling);
    steps.step("forbidden text", || {
        fail_with(files::forbidden(&files, &files::machine_folders()))
    });
    steps.step("files of others", || fail_with(reads::unbounded(&files)));
    steps.step("documentation", || fail_with(comments::unhelpful(&files)));
    steps.step("dead references", || {
        fail_with(comments::dead_references(&files, &files::tracked()?))
    });
    steps.step("evaluation cases in prompts", || {
        fail_with(leak::leaks(&files))
    });
    steps.step("duplication between providers", || {
        fail_with(repeats::between_providers(&files))
    });
    steps.step("crates within the budget", budget::crates);
    steps.step("clippy", || {
        let mut clippy = cargo(["clippy", "--all-targets", "--locked"]);
        run_command(clippy.args(SELECTION).args(["--", "-D", "warnings"]))
    });
    steps.step("rustdoc", || {
        // With `--examples`, cargo unifies the features that dev-dependencies add. Without it,
        // dependencies would have other features than in the clippy run and would be checked again.
        let mut doc = cargo([
            "doc",
            "--no-deps",
            "--lib",
            "--bin",
            "xtask",
            "--examples",
            "--locked",
        ]);
        run_command(doc.args(SELECTION).env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.step("features one by one", || {
        features_one_by_one(&workspace, &files, |package, feature| {
            !is_slow(package, feature)
        })
    });
    steps.step("dependencies and licences", deny);
    steps.finish()
}

/// Checks the combinations of features that [`run`] leaves out because they are slow.
///
/// # Errors
/// A combination does not compile without warnings, or the sources cannot be read.
pub(crate) fn slow_features() -> Result<(), Failure> {
    let (workspace, files) = (metadata::packages()?, files::read_all()?);
    features_one_by_one(&workspace, &files, is_slow)
}

/// Runs clippy for each selected combination: every package with no feature, and with each single
/// feature that changes its code.
fn features_one_by_one(
    workspace: &[Package],
    files: &[File],
    selected: impl Fn(&str, &str) -> bool,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (package, feature) in combinations(workspace, |package, feature| {
        changes_code(files, package, feature)
    })
    .into_iter()
    .filter(|(package, feature)| selected(package, feature))
    {
        // Clippy's `-D warnings` applies to our packages only. `cargo check` would need
        // `RUSTFLAGS`, which rebuilds the dependencies.
        let arguments = [
            "clippy",
            "--locked",
            "-p",
            package,
            "--no-default-features",
            "--features",
            feature,
            "--",
        ];
        if let Err(failure) = run_command(cargo(arguments).args(["-D", "warnings"])) {
            failures.push(failure);
        }
    }
    fail_with(failures)
}

/// Returns pairs of package and feature: each package with no feature (`""`) and with each single
/// feature that `changes_code`. Packages without features are left out, because the main clippy run
/// checks them. So are features that begin with `_`, which other features share and which do
/// nothing alone, and `faults`, the fault injection of tests, which are always built with it.
fn combinations(
    workspace: &[Package],
    changes_code: impl Fn(&str, &str) -> bool,
) -> Vec<(&str, &str)> {
    let alone =
        |feature: &&str| !["default", "faults"].contains(feature) && !feature.starts_with('_');
    let mut combinations = Vec::new();
    for package in workspace {
        let features: Vec<&str> = package
            .features
            .iter()
            .map(String::as_str)
            .filter(alone)
            .collect();
        if !features.is_empty() {
            let changing = features
                .into_iter()
                .filter(|feature| changes_code(&package.name, feature));
            combinations.extend(
                std::iter::once("")
                    .chain(changing)
                    .map(|it| (package.name.as_str(), it)),
            );
        }
    }
    combinations
}

/// Returns true if a feature changes code of the package itself, tests excluded. A feature that is
/// only forwarded is checked in the package that it is forwarded to.
fn changes_code(files: &[File], package: &str, feature: &str) -> bool {
    let source = format!(
        "crates/{}/src/",
        package.strip_prefix("adjutant-").unwrap_or(package)
    );
    let named = format!("feature = \"{feature}\"");
    files
        .iter()
        .filter(|file| file.path.starts_with(&source) && !file.path.contains("tests"))
        .any(|file| {
            file.text
                // The unit tests are the last module of a file, so everything before them is
                // product code.
                .split("#[cfg(test)]\nmod ")
                .next()
                .is_some_and(|code| code.contains(&named))
        })
}

fn spelling() -> Result<(), Failure> {
    let mut typos = Command::new("typos");
    typos.args(["--format", "brief"]).current_dir(root());
    if output(Command::new("typos").arg("--version")).is_err() {
        return Err(
            "typos is missing: cargo install --locked typos-cli@1.52.0 (prebuilt: see .ci/run)"
                .to_owned(),
        );
    }
    run_command(&mut typos)
}

fn deny() -> Result<(), Failure> {
    if output(&mut cargo(["deny", "--version"])).is_err() {
        return Err(
            "cargo-deny is missing: cargo install --locked cargo-deny@0.20.2 (prebuilt: see .ci/run)"
                .to_owned(),
        );
    }
    // Without `advisories`, which clones a database and so needs the internet.
    run_command(&mut cargo([
        "deny",
        "--all-features",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_combined_with_no_other() {
        let package = |name: &str, features: &[&str]| Package {
            name: name.to_owned(),
            features: features
                .iter()
                .map(|feature| (*feature).to_owned())
                .collect(),
            ..Package::default()
        };
        let workspace = [
            package("a", &["default", "faults", "x", "y", "_shared"]),
            package("b", &[]),
            package("c", &["faults"]),
        ];
        let all = |_: &str, _: &str| true;
        assert_eq!(
            combinations(&workspace, all),
            [("a", ""), ("a", "x"), ("a", "y")]
        );
        let some = |_: &str, feature: &str| feature == "y";
        assert_eq!(combinations(&workspace, some), [("a", ""), ("a", "y")]);
    }

    #[test]
    fn a_feature_that_only_tests_use_changes_no_code() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file(
                "crates/a/src/lib.rs",
                "#[cfg(feature = \"x\")]\nmod x;\n#[cfg(test)]\nmod tests { feature = \"y\" }",
            ),
            file("crates/a/src/x/tests.rs", "feature = \"z\""),
        ];
        let changes = |package: &str, feature: &str| changes_code(&files, package, feature);
        assert!(changes("adjutant-a", "x") && changes("a", "x"));
        assert!(
            !changes("adjutant-a", "y")
                && !changes("adjutant-a", "z")
                && !changes("adjutant-b", "x")
        );
    }
}
