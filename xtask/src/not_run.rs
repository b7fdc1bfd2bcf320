//! Reports the tests that were not run, each with a reason, so that no test is skipped silently.
//!
//! A test that cannot run on a machine appends a line `NAME<tab>REASON` to the file that the
//! variable `ADJUTANT_NOT_RUN` names, and returns. Every run ends with the list of these lines. In
//! CI, each of them must be excused by [`EXCUSED`].

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::command::{Failure, not_run_file, root};
use crate::file_system::{entries, read, write};

/// Tests that CI may skip: the beginning of the test's name or of its reason, and why skipping it
/// loses no coverage.
const EXCUSED: &[(&str, &str)] = &[
    (
        "adjutant-cli terminal::speed::how_fast_it_is",
        "it is a measurement for BENCHMARKS.md, without assertions",
    ),
    (
        "adjutant-durability budgets::steps_a_second",
        "it is a measurement for BENCHMARKS.md, without assertions",
    ),
    (
        "adjutant-embedded heads::child",
        "another test runs it in a child process, and kills it",
    ),
    (
        "adjutant-providers environment::asks",
        "other tests run it in child processes, each with another environment",
    ),
    (
        "the model suite: the model itself",
        "it is a download of 1.1 GB from a host that not every machine can reach",
    ),
    (
        "recordings of other projects",
        "they may not be published here; our own recordings are tested",
    ),
    (
        "clients/ollama an address of version six",
        "not every machine has IPv6",
    ),
    (
        "a container for a terminal",
        "a test may not make a namespace of processes on every machine",
    ),
    (
        "the part of the soak with a full disk",
        "a test may not mount a file system on every machine",
    ),
];

/// A test or step that was not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NotRun {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Empties the file of notes.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn clear() -> Result<(), Failure> {
    write(not_run_file(), "")
}

/// Adds notes to the file, in the format that tests use.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn append_notes(found: &[NotRun]) -> Result<(), Failure> {
    let lines: String = found
        .iter()
        .map(|it| format!("{}\t{}\n", it.name, it.reason))
        .collect();
    let notes = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(not_run_file());
    notes
        .and_then(|mut notes| notes.write_all(lines.as_bytes()))
        .map_err(|error| format!("{}: {error}", not_run_file().display()))
}

/// Returns the notes that tests have written since [`clear`], and removes the file.
///
/// # Errors
/// A line is not in the format of a note.
pub(crate) fn take_notes() -> Result<Vec<NotRun>, Failure> {
    let notes = parse(&fs::read_to_string(not_run_file()).unwrap_or_default())?;
    // The file belongs to this process alone; if it is missing, no test has written a note.
    let _ = fs::remove_file(not_run_file());
    Ok(notes)
}

fn parse(notes: &str) -> Result<Vec<NotRun>, Failure> {
    let note = |line: &str| {
        let (name, reason) = line
            .split_once('\t')
            .ok_or_else(|| format!("malformed note of a test: {line:?}"))?;
        Ok(NotRun {
            name: name.trim().to_owned(),
            reason: reason.trim().to_owned(),
        })
    };
    notes.lines().map(note).collect()
}

/// Returns the tests of the workspace that have `#[ignore = "REASON"]`: they run only if asked for
/// by name.
///
/// # Errors
/// A file cannot be read, or a test is ignored without a reason.
pub(crate) fn ignored_tests() -> Result<Vec<NotRun>, Failure> {
    let mut found = Vec::new();
    let crates = root().join("crates");
    for package in entries(&crates)? {
        let name = package
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // The folder `core` is the package `adjutant-core`; only the facade has no prefix.
        let package_name = if name == "adjutant" {
            name
        } else {
            format!("adjutant-{name}")
        };
        for folder in ["src", "tests"] {
            ignored_below(
                &package.join(folder),
                &format!("{package_name} "),
                &mut found,
            )?;
        }
    }
    Ok(found)
}

fn ignored_below(folder: &Path, prefix: &str, found: &mut Vec<NotRun>) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in entries(folder)? {
        let name = entry
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if entry.is_dir() {
            // The folder `it` is the root of the integration tests' crate, so it is not part of the
            // test's path.
            let inside = if name == "it" {
                prefix.to_owned()
            } else {
                format!("{prefix}{name}::")
            };
            ignored_below(&entry, &inside, found)?;
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&entry)?;
            let module = match name.as_str() {
                "mod" | "lib" | "main" => prefix.to_owned(),
                _ => format!("{prefix}{name}::"),
            };
            let here =
                parse_ignored(&text).map_err(|error| format!("{}: {error}", entry.display()))?;
            found.extend(here.into_iter().map(|(test, reason)| NotRun {
                name: module.clone() + &test,
                reason,
            }));
        }
    }
    Ok(())
}

/// Returns name and reason of each ignored test in a source file.
fn parse_ignored(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut reason = None;
    // Line by line is enough, because rustfmt puts attributes and `fn` on lines of their own.
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[ignore") {
            let given = rest.split('"').nth(1).filter(|reason| !reason.is_empty());
            reason = Some(
                given
                    .ok_or("a test is ignored without a reason")?
                    .to_owned(),
            );
        } else if let Some((_, rest)) = line.split_once("fn ")
            && let Some(reason) = reason.take()
        {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            found.push((name.to_owned(), reason));
        }
    }
    Ok(found)
}

/// Returns true in CI (`CI` is set and not `0` or `false`), where a test may be skipped only with
/// an excuse.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Prints the list of tests that were not run.
///
/// # Errors
/// In CI, if one of them is not excused.
pub(crate) fn report(mut not_run: Vec<NotRun>, is_ci: bool) -> Result<(), Failure> {
    // A test that belongs to several runs has noted itself in each of them.
    not_run.sort();
    not_run.dedup();
    if !not_run.is_empty() {
        println!("\nNOT RUN:");
    }
    for it in &not_run {
        let excused = if is_excused(it) { " (excused)" } else { "" };
        println!("  {}: {}{excused}", it.name, it.reason);
    }
    if let Some(command) = installation(&not_run) {
        println!("\nWhat is missing comes with: {command}");
    }
    let missing = not_run.iter().filter(|it| !is_excused(it)).count();
    if is_ci && missing > 0 {
        return Err(format!(
            "{missing} not run and not excused by the list in xtask/src/not_run.rs"
        ));
    }
    Ok(())
}

/// Returns the one command that installs every Debian package that a reason names in the form `apt-get
/// install PACKAGE`. `None` if there is no such reason.
fn installation(not_run: &[NotRun]) -> Option<String> {
    const INSTALL: &str = "apt-get install ";
    let packages: BTreeSet<&str> = not_run
        .iter()
        .filter_map(|it| it.reason.split_once(INSTALL))
        .flat_map(|(_, rest)| rest.split([')', ',', ';']).next())
        .flat_map(str::split_whitespace)
        .collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    (!packages.is_empty()).then(|| format!("{INSTALL}{}", packages.join(" ")))
}

fn is_excused(it: &NotRun) -> bool {
    EXCUSED
        .iter()
        .any(|(start, _)| it.name.starts_with(start) || it.reason.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_run(name: &str) -> NotRun {
        NotRun {
            name: name.to_owned(),
            reason: "no such program here".to_owned(),
        }
    }

    #[test]
    fn a_test_that_was_not_run_fails_in_ci_only() {
        assert!(report(vec![not_run("a test")], true).is_err());
        assert_eq!(report(vec![not_run("a test")], false), Ok(()));
        assert_eq!(report(Vec::new(), true), Ok(()));
    }

    #[test]
    fn an_excused_test_passes_and_excuses_no_other() {
        let excused = not_run(EXCUSED[0].0);
        assert_eq!(report(vec![excused.clone()], true), Ok(()));
        assert!(report(vec![excused, not_run("a test")], true).is_err());
    }

    #[test]
    fn one_command_installs_all_missing_packages() {
        let because = |reason: &str| NotRun {
            name: "a test".to_owned(),
            reason: reason.to_owned(),
        };
        let missing = [
            because("it needs tmux (Debian: apt-get install tmux)"),
            because("it needs PostgreSQL (Debian: apt-get install postgresql)"),
            because("it needs PostgreSQL (Debian: apt-get install postgresql)"),
            because("a measurement"),
        ];
        assert_eq!(
            installation(&missing).as_deref(),
            Some("apt-get install postgresql tmux")
        );
        assert_eq!(installation(&missing[3..]), None);
    }

    #[test]
    fn notes_are_parsed_and_a_malformed_line_is_an_error() {
        assert_eq!(
            parse("a::b\tno such program here\n"),
            Ok(vec![not_run("a::b")])
        );
        assert_eq!(parse(""), Ok(Vec::new()));
        assert!(parse("cut off").is_err());
    }

    #[test]
    fn ignored_tests_are_found_with_their_reason() {
        let text = "#[test]\n#[ignore = \"slow\"]\n#[expect(x)]\nasync fn one() {}\n#[test]\nfn two() {}\n";
        assert_eq!(
            parse_ignored(text),
            Ok(vec![("one".to_owned(), "slow".to_owned())])
        );
        assert!(parse_ignored("#[ignore]\nfn one() {}").is_err());
    }

    #[test]
    fn every_ignored_test_of_the_workspace_is_excused() {
        let ignored = ignored_tests().expect("readable sources");
        assert!(
            !ignored.is_empty(),
            "some tests are measurements or run by other tests"
        );
        assert_eq!(report(ignored, true), Ok(()));
    }
}
