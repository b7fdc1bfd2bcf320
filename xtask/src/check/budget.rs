//! Size limits of the library and the binary: number of dependencies, bytes of the binary,
//! instructions of a turn.
//!
//! A limit is raised only in the commit that needs it, whose message says what for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::command::{Failure, cargo, output, root};

/// The platform whose dependencies are counted, so that the number is the same on every machine.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Cargo arguments for the library with one provider, as a user adds it: `cargo add adjutant --no-default-features --features gemini`.
pub(crate) const LIBRARY: &[&str] = &[
    "--package",
    "adjutant",
    "--no-default-features",
    "--features",
    "gemini",
];

/// Limit of third-party crates of the library with one provider.
const LIBRARY_CRATES: usize = 150;
/// Limit of third-party crates of the binary with its default features. Four of them are
/// `tracing-subscriber` and its dependencies, for the log of `serve`.
const BINARY_CRATES: usize = 413;

/// Limit in bytes of the stripped binary of profile `release` with its default features. The growth
/// so far: `reqwest` and the adapters are optimised for speed (2 MB), and so are `adjutant-runtime`
/// and `adjutant-store`. Wake-ups, heartbeats, snapshots, branches and database copies added 2 MB;
/// budget reservations in blocks, streams from other replicas and long values 1 MB; events and
/// cancellation of turns that run elsewhere 0.7 MB. In the terminal: piped input and files,
/// permissions, interrupted turns, completions and daily notes in 44 languages, 1.4 MB. The page's
/// Markdown, colours and equations take 0.5 MB; sign-in, the log, operators' commands, client-side
/// tools, the Responses API and the agent as an MCP tool 4 MB; ranking, corrections, tasks in
/// notes, conversation search, facts in the database and the memory of the embedded model 2.7 MB;
/// provenance of text, commands and limits for MCP servers, the check of claims in five languages, and
/// classifiers and word lists for five languages 4.8 MB.
pub(crate) const RELEASE_BYTES: u64 = 76_500_000;
/// Limit in bytes of the stripped binary of profile `dist` with its default features.
pub(crate) const DIST_BYTES: u64 = 40_000_000;
/// Limit in bytes of the same binary without the feature `embedded`.
pub(crate) const DIST_WITHOUT_ENGINE_BYTES: u64 = 30_000_000;

/// Recorded instructions of a turn with two model calls and one tool call, in memory, as `cargo
/// xtask measure turn` prints them. The limit is a few percent higher
/// (`xtask/src/instructions.rs`); lower this number when a turn becomes cheaper. Before spans,
/// client-side tools, tool progress and ratings it was 223,500 (on SQLite 1,226,000).
pub(crate) const MEMORY_TURN_INSTRUCTIONS: u64 = 241_200;
/// Recorded instructions of the same turn on SQLite.
pub(crate) const SQLITE_TURN_INSTRUCTIONS: u64 = 1_282_600;
/// Recorded instructions of an early turn in memory, in the dev profile. Before dispositions, failed
/// calls and histories without words of the program it was 986,500 (on SQLite 5,951,000).
pub(crate) const MEMORY_TURN_INSTRUCTIONS_DEV: u64 = 1_201_300;
/// Recorded instructions of an early turn on SQLite, in the dev profile.
pub(crate) const SQLITE_TURN_INSTRUCTIONS_DEV: u64 = 6_595_300;

/// Minutes on two cores that the suites of `.ci/run` may take: the steps of `cargo xtask check` and
/// `cargo xtask test all` that follow each other, by the beginning of their names, in a clean clone.
/// Whoever adds tests to a full suite samples some of them, and runs all only in `cargo xtask test
/// long`. Steps that run beside others, such as downloads, have none.
pub(crate) const SUITE_MINUTES: &[(&str, f64)] = &[
    ("clippy", 3.5),
    ("rustdoc", 1.5),
    ("features one by one", 4.0),
    ("build of the tests", 8.5),
    ("tests", 11.0),
    ("documentation tests", 2.0),
    ("examples", 1.0),
    ("tests with Restate", 2.0),
    ("faults under load", 1.5),
    ("soak of attacks", 1.5),
    ("storms of faults", 1.0),
    ("the page with Restate", 1.0),
    ("instructions of a turn", 2.0),
    ("instructions of routes", 1.5),
];
/// Cores that the minutes are meant for.
const CORES: f64 = 2.0;
/// Factor by which a suite may exceed its minutes, as processor time, before CI fails: a machine is
/// sometimes half as fast as another.
const SUITE_TOLERANCE: f64 = 2.0;
/// Minutes of processor time that are allowed on top, for a short suite.
const SUITE_SLACK: f64 = 1.0;

/// Returns what to say of a step that took longer than its suite may, and true if CI fails for it.
/// It fails for processor time only: time that a suite waits for others, or for a machine that does
/// something else, is told and nothing more.
pub(crate) fn over_minutes(step: &str, seconds: f64, cpu_seconds: f64) -> Option<(String, bool)> {
    let (_, minutes) = SUITE_MINUTES.iter().find(|(suite, _)| *suite == step)?;
    let cpu_minutes_max = minutes * CORES * SUITE_TOLERANCE + SUITE_SLACK;
    let fails = cpu_seconds > cpu_minutes_max * 60.0;
    (fails || seconds > minutes * 60.0).then(|| {
        (
            format!("over its {minutes} minutes (xtask/src/check/budget.rs)"),
            fails,
        )
    })
}

/// Checks the number of third-party crates of the library and of the binary.
///
/// # Errors
/// A limit is exceeded, or cargo fails.
pub(crate) fn crates() -> Result<(), Failure> {
    let library = check_crates(
        "library with one provider",
        crates_of(LIBRARY)?.len(),
        LIBRARY_CRATES,
    );
    let binary = check_crates(
        "binary",
        crates_of(&["--package", "adjutant-cli"])?.len(),
        BINARY_CRATES,
    );
    match (library, binary) {
        (Err(library), Err(binary)) => Err(format!("{library}\n{binary}")),
        (library, binary) => library.and(binary),
    }
}

/// Checks the size of a built binary.
///
/// # Errors
/// It has more than `limit` bytes, or cannot be read.
pub(crate) fn check_size(binary: &Path, limit: u64) -> Result<(), Failure> {
    let metadata =
        fs::metadata(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let bytes = metadata.len();
    println!("    {}: {bytes} bytes of {limit}", binary.display());
    if bytes > limit {
        return Err(format!(
            "{} has {bytes} bytes, {limit} are allowed",
            binary.display()
        ));
    }
    Ok(())
}

fn check_crates(name: &str, crates: usize, limit: usize) -> Result<(), Failure> {
    println!("    {name}: {crates} third-party crates of {limit}");
    if crates > limit {
        return Err(format!(
            "the {name} has {crates} third-party crates, {limit} are allowed"
        ));
    }
    Ok(())
}

/// Returns the third-party packages, with their versions, that are built for a selection of
/// packages and features.
///
/// # Errors
/// Cargo fails.
pub(crate) fn crates_of(selection: &[&str]) -> Result<BTreeSet<String>, Failure> {
    // Dependencies of tests (`dev`) do not reach the users of the library.
    let tree = [
        "tree", "--locked", "--target", PLATFORM, "--edges", "no-dev", "--prefix", "none",
        "--format", "{p}",
    ];
    let tree = output(&mut cargo(tree.iter().chain(selection).copied()))?;
    Ok(third_party(&tree, &root().display().to_string()))
}

/// Returns the packages in the output of `cargo tree`, without those of this workspace.
fn third_party(tree: &str, root: &str) -> BTreeSet<String> {
    tree.lines()
        // Cargo prints the path of packages of the workspace only.
        .filter(|line| !line.contains(root))
        .filter_map(|line| {
            // A third word is a mark, such as `(*)` for a package that was printed before.
            let mut words = line.split_whitespace();
            Some(format!("{} {}", words.next()?, words.next()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_once_and_ours_are_not() {
        let tree = "adjutant v0.1.0 (/x/crates/adjutant)\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\nserde v1.0.0 (*)\n\nsyn v1.0.0\nsyn v2.0.0\n";
        let crates = third_party(tree, "/x");
        assert_eq!(
            crates.iter().map(String::as_str).collect::<Vec<_>>(),
            [
                "serde v1.0.0",
                "serde_derive v1.0.0",
                "syn v1.0.0",
                "syn v2.0.0"
            ]
        );
    }

    #[test]
    fn one_crate_more_than_the_limit_is_a_failure() {
        assert_eq!(check_crates("library", 150, 150), Ok(()));
        let failure = check_crates("library", 151, 150).unwrap_err();
        assert!(
            failure.contains("151") && failure.contains("150"),
            "{failure}"
        );
    }

    #[test]
    fn the_minutes_of_all_suites_leave_room_for_the_other_steps() {
        const CI_MINUTES: f64 = 45.0;
        let all: f64 = SUITE_MINUTES.iter().map(|(_, minutes)| minutes).sum();
        assert!(all <= CI_MINUTES - 3.0, "{all} minutes");
    }

    #[test]
    fn a_suite_over_its_minutes_is_told_and_far_over_them_fails() {
        let fails = |minutes: f64, cpu_minutes: f64| {
            over_minutes("clippy", minutes * 60.0, cpu_minutes * 60.0).map(|(_, fails)| fails)
        };
        assert_eq!(fails(3.4, 6.0), None);
        assert_eq!(fails(3.6, 6.0), Some(false));
        assert_eq!(fails(60.0, 14.9), Some(false), "it waited");
        assert_eq!(fails(8.0, 15.1), Some(true));
        assert_eq!(over_minutes("a download", 10_000.0, 10_000.0), None);
    }

    #[test]
    fn one_byte_more_than_the_limit_is_a_failure() {
        let binary = std::env::temp_dir().join(format!("adjutant-budget-{}", std::process::id()));
        fs::write(&binary, [0; 11]).unwrap();
        let (enough, short) = (check_size(&binary, 11), check_size(&binary, 10));
        fs::remove_file(&binary).unwrap();
        assert_eq!(enough, Ok(()));
        assert!(short.unwrap_err().contains("11 bytes"));
        assert!(
            check_size(&binary, 11).is_err(),
            "a missing file is an error"
        );
    }
}
