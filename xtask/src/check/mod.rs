//! `cargo xtask check`: rules that every commit keeps. The cheap ones run first, and all of them run
//! even if one fails.

mod arrows; // dependencies between crates
pub(crate) mod budget; // limits of crates, bytes and instructions
mod comments; // documentation and references
mod cycles; // import cycles between modules
mod files; // forbidden text
mod leak; // evaluation cases in prompts
mod packages; // metadata of packages, MSRV
mod repeats; // duplication between providers
mod unused; // unused dependencies

use std::process::Command;

use crate::command::{Failure, cargo, output, root, run as run_command};
use crate::metadata::SELECTION;
use crate::metadata::{self, Package};
use crate::steps::Steps;
use files::File;

/// Returns true if a combination is left to long runs: those with the engine and those of the program,
/// which bring together crates with features that no other check selects. They are more than half
/// of the time of all.
fn is_long(package: &str, feature: &str) -> bool {
    feature == "embedded" || package == "adjutant-cli"
}

/// Runs every check.
///
/// # Errors
/// If one fails, with the names of those that did.
pub(crate) fn run() -> Result<(), Failure> {
    let workspace = metadata::packages()?;
    let files = files::read()?;
    let steps = Steps::begin()?;
    steps.step("format", || {
        run_command(&mut cargo(["fmt", "--all", "--check"]))?;
        // A workspace of its own.
        run_command(&mut cargo([
            "fmt",
            "--check",
            "--manifest-path",
            "benches/Cargo.toml",
        ]))
    });
    steps.step("arrows between crates", || none(arrows::broken(&workspace)));
    steps.step("import cycles", || none(cycles::inside_crates(&files)));
    steps.step("packages", || none(packages::incomplete(&workspace)));
    steps.step("unused dependencies", || {
        none(unused::dependencies(&workspace, &files))
    });
    steps.step("minimum supported Rust version", || {
        none(packages::too_new(&workspace)?)
    });
    steps.step("spelling", spelling);
    steps.step("forbidden text", || {
        none(files::forbidden(&files, &files::this_machine()))
    });
    steps.step("documentation", || none(comments::unhelpful(&files)));
    steps.step("dead references", || {
        none(comments::dead_references(&files, &files::tracked()?))
    });
    steps.step("evaluation cases in prompts", || none(leak::leaks(&files)));
    steps.step("duplication between providers", || {
        none(repeats::between_vendors(&files))
    });
    steps.step("crates within the budget", budget::crates);
    steps.step("clippy", || {
        let mut clippy = cargo(["clippy", "--all-targets", "--locked"]);
        run_command(clippy.args(SELECTION).args(["--", "-D", "warnings"]))
    });
    steps.step("rustdoc", || {
        // With the examples, because only so cargo takes the features that tests add to
        // dependencies, and what clippy looked at is not looked at again with others.
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
            !is_long(package, feature)
        })
    });
    steps.step("dependencies and licences", deny);
    steps.finish()
}

/// Returns the findings as a failure, one a line; no findings are a success.
fn none(found: Vec<String>) -> Result<(), Failure> {
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("\n"))
    }
}

/// Checks the combinations of features that [`run`] leaves out.
///
/// # Errors
/// If one does not compile without a warning, or a file cannot be read.
pub(crate) fn other_features() -> Result<(), Failure> {
    let (workspace, files) = (metadata::packages()?, files::read()?);
    features_one_by_one(&workspace, &files, is_long)
}

/// Checks those `wanted` of every package with no feature, and with each alone that changes its
/// code.
fn features_one_by_one(
    workspace: &[Package],
    files: &[File],
    wanted: impl Fn(&str, &str) -> bool,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (package, feature) in combinations(workspace, |package, feature| {
        changes_code(files, package, feature)
    })
    .into_iter()
    .filter(|(package, feature)| wanted(package, feature))
    {
        // Clippy, not check: its `-D warnings` reaches our packages only, so that dependencies are
        // not built again.
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
    none(failures)
}

/// Returns packages, each with no feature (the empty word) and with each of its features alone that
/// `changes_code`. Packages without features are in the clippy run. A feature whose name begins
/// with `_` is shared by others, and of no use alone; self-destruction is for tests, which are
/// built with all of it.
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

/// Returns true if a feature of a package changes the code of that package itself, its tests not
/// counted. One that is only passed on is checked where it is passed to.
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
    fn findings_are_a_failure() {
        assert_eq!(none(Vec::new()), Ok(()));
        assert_eq!(
            none(vec!["a".to_owned(), "b".to_owned()]),
            Err("a\nb".to_owned())
        );
    }

    #[test]
    fn each_feature_stands_alone_once() {
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
    fn a_feature_that_only_tests_know_changes_no_code() {
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
