//! Lists tests that were not run, with the reason: nothing is left out in silence.
//!
//! A test that cannot run here appends the line `NAME<tab>REASON` to the file that
//! `ADJUTANT_NOT_RUN` names, and returns. The end of every run lists those lines; in CI each has to
//! be excused by [`EXCUSED`].

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::command::{Failure, not_run_file, root};

/// Tests that CI may leave out: the beginning of the name or of the reason, and why that is no
/// loss.
const EXCUSED: &[(&str, &str)] = &[
    (
        "adjutant-cli terminal::speed::how_fast_it_is",
        "it measures for BENCHMARKS.md and asserts nothing",
    ),
    (
        "adjutant-durability budgets::steps_a_second",
        "it measures for BENCHMARKS.md and asserts nothing",
    ),
    (
        "adjutant-embedded heads::child",
        "the tests beside it start it as a process of their own, and kill it",
    ),
    (
        "adjutant-providers environment::asks",
        "the tests beside it run it, each in another environment",
    ),
    (
        "the model suite: the model itself",
        "1.1 GB from a place that not every machine reaches",
    ),
    (
        "recordings of other projects",
        "they may not be published here; those of our own are read",
    ),
    (
        "clients/ollama an address of version six",
        "not every machine has IPv6",
    ),
    (
        "the part of the soak with a full disk",
        "not every machine lets a test mount a file system",
    ),
];

/// Something that was not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NotRun {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Begins without notes.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn clear() -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", not_run_file().display());
    not_run_file()
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(failed)?;
    fs::write(not_run_file(), "").map_err(failed)
}

/// Notes what is not run because of how it is written, as a test would that finds it cannot run.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn note(found: &[NotRun]) -> Result<(), Failure> {
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

/// Takes what tests noted since [`clear`].
///
/// # Errors
/// If there is a line that is no note.
pub(crate) fn noted() -> Result<Vec<NotRun>, Failure> {
    let notes = parse(&fs::read_to_string(not_run_file()).unwrap_or_default())?;
    // Every process has a file of its own; it was made by nobody else.
    let _ = fs::remove_file(not_run_file());
    Ok(notes)
}

fn parse(notes: &str) -> Result<Vec<NotRun>, Failure> {
    let note = |line: &str| {
        let (name, reason) = line
            .split_once('\t')
            .ok_or_else(|| format!("no note of a test: {line:?}"))?;
        Ok(NotRun {
            name: name.trim().to_owned(),
            reason: reason.trim().to_owned(),
        })
    };
    notes.lines().map(note).collect()
}

/// The tests of the workspace that are not run unless they are asked for by name: those with
/// `#[ignore = "REASON"]`.
///
/// # Errors
/// If a file cannot be read, or one is ignored without a reason.
pub(crate) fn ignored() -> Result<Vec<NotRun>, Failure> {
    let mut found = Vec::new();
    let crates = root().join("crates");
    for package in entries(&crates)? {
        let name = package
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
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
            // The folder of the integration tests is their crate, and no module.
            let inside = if name == "it" {
                prefix.to_owned()
            } else {
                format!("{prefix}{name}::")
            };
            ignored_below(&entry, &inside, found)?;
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry)
                .map_err(|error| format!("{}: {error}", entry.display()))?;
            let module = match name.as_str() {
                "mod" | "lib" | "main" => prefix.to_owned(),
                _ => format!("{prefix}{name}::"),
            };
            let here =
                ignored_in(&text).map_err(|error| format!("{}: {error}", entry.display()))?;
            found.extend(here.into_iter().map(|(test, reason)| NotRun {
                name: module.clone() + &test,
                reason,
            }));
        }
    }
    Ok(())
}

/// Names and reasons of the ignored tests in a file.
fn ignored_in(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut reason = None;
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

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut entries = entries
        .map(|entry| Ok(entry.map_err(failed)?.path()))
        .collect::<Result<Vec<_>, Failure>>()?;
    entries.sort();
    Ok(entries)
}

/// Says whether this is CI, where what is not excused must be run.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Prints what was not run.
///
/// # Errors
/// In CI, if something was not run that is not excused.
pub(crate) fn report(mut not_run: Vec<NotRun>, in_ci: bool) -> Result<(), Failure> {
    not_run.sort();
    not_run.dedup();
    if !not_run.is_empty() {
        println!("\nNOT RUN:");
    }
    for it in &not_run {
        let excused = if excuse(it).is_some() {
            " (excused)"
        } else {
            ""
        };
        println!("  {}: {}{excused}", it.name, it.reason);
    }
    let missing = not_run.iter().filter(|it| excuse(it).is_none()).count();
    if in_ci && missing > 0 {
        return Err(format!(
            "{missing} not run, and not excused by the list in xtask/src/not_run.rs"
        ));
    }
    Ok(())
}

fn excuse(it: &NotRun) -> Option<&'static str> {
    let is_it =
        |beginning: &str| it.name.starts_with(beginning) || it.reason.starts_with(beginning);
    EXCUSED
        .iter()
        .find(|(beginning, _)| is_it(beginning))
        .map(|(_, why)| *why)
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
    fn what_is_left_out_fails_ci_and_only_ci() {
        assert!(report(vec![not_run("a test")], true).is_err());
        assert_eq!(report(vec![not_run("a test")], false), Ok(()));
        assert_eq!(report(Vec::new(), true), Ok(()));
    }

    #[test]
    fn what_is_excused_passes_and_excuses_nothing_else() {
        let excused = not_run(EXCUSED[0].0);
        assert_eq!(report(vec![excused.clone()], true), Ok(()));
        assert!(report(vec![excused, not_run("a test")], true).is_err());
    }

    #[test]
    fn notes_are_read_and_what_is_none_is_a_failure() {
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
            ignored_in(text),
            Ok(vec![("one".to_owned(), "slow".to_owned())])
        );
        assert!(ignored_in("#[ignore]\nfn one() {}").is_err());
    }

    #[test]
    fn every_ignored_test_of_the_workspace_is_excused() {
        let ignored = ignored().expect("readable sources");
        assert!(!ignored.is_empty(), "two measure or are run by others");
        assert_eq!(report(ignored, true), Ok(()));
    }
}
