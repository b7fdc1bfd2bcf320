//! Budgets of the library and the binary: crates in the tree, bytes of the binary, instructions of
//! a turn.
//!
//! A limit is raised only in the commit that makes it necessary, and that commit says what for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::command::{Failure, cargo, output, root};

/// The platform whose crates are counted: the same wherever the check runs.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The library as a user adds it: `cargo add adjutant --no-default-features --features gemini`.
pub(crate) const LIBRARY: &[&str] = &[
    "--package",
    "adjutant",
    "--no-default-features",
    "--features",
    "gemini",
];

/// Third-party crates of the library with one provider.
const LIBRARY_CRATES: usize = 150;
/// Third-party crates of the binary with its default features. The last four are
/// `tracing-subscriber` and what it keeps spans with, of the log of `serve`.
const BINARY_CRATES: usize = 413;

/// Bytes of the stripped binary of profile `release` with its default features. The path of a model
/// call (`reqwest`, the adapters) is optimised for speed, which takes 2 MB; so are
/// `adjutant-runtime` and `adjutant-store`, to which wake-ups, signs of life, snapshots, branches
/// and copies of databases added 2 MB, budgets in blocks, streams from other replicas and long
/// values another one, and what a turn tells that runs elsewhere (its events, its stop, who is
/// gone) 0.7 MB. What the terminal got with input from pipes and files, permissions, interrupted
/// turns, completions and daily notes in 44 languages takes 1.4 MB. The page's Markdown, colours
/// and equations (0.5 MB), sign-in, the log, the operator's commands, tools of callers, the
/// Responses API and the agent as an MCP tool are 4 MB; ranking, corrections, tasks in notes, the
/// index of what was said, facts in the database and the memory of the model in the process are the
/// last 2.7 MB.
pub(crate) const RELEASE_BYTES: u64 = 71_000_000;
/// Bytes of the stripped binary of profile `dist` with its default features.
pub(crate) const DIST_BYTES: u64 = 40_000_000;
/// Bytes of the stripped binary of profile `dist` with its default features but `embedded`.
pub(crate) const DIST_WITHOUT_ENGINE_BYTES: u64 = 30_000_000;

/// Instructions of a turn with two model calls and one tool call, in memory:
/// `cargo xtask measure turn`. Some percent more are allowed (`xtask/src/instructions.rs`); when it
/// becomes less, so does this. Before spans, tools of callers, progress of tools and ratings it was
/// 223,500 (SQLite: 1,226,000).
pub(crate) const MEMORY_TURN_INSTRUCTIONS: u64 = 241_200;
/// The same on SQLite.
pub(crate) const SQLITE_TURN_INSTRUCTIONS: u64 = 1_282_600;

/// Counts the crates of the library and of the binary.
///
/// # Errors
/// If there are more than there may be, with their number; if cargo fails.
pub(crate) fn crates() -> Result<(), Failure> {
    let library = within(
        "library with one provider",
        crates_of(LIBRARY)?.len(),
        LIBRARY_CRATES,
    );
    let binary = within(
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
/// If it has more than `limit` bytes, or cannot be read.
pub(crate) fn size(binary: &Path, limit: u64) -> Result<(), Failure> {
    let about = fs::metadata(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let bytes = about.len();
    println!("    {}: {bytes} bytes of {limit}", binary.display());
    if bytes > limit {
        return Err(format!(
            "{} has {bytes} bytes, {limit} are allowed",
            binary.display()
        ));
    }
    Ok(())
}

fn within(what: &str, crates: usize, limit: usize) -> Result<(), Failure> {
    println!("    {what}: {crates} third-party crates of {limit}");
    if crates > limit {
        return Err(format!(
            "the {what} has {crates} third-party crates, {limit} are allowed"
        ));
    }
    Ok(())
}

/// Returns the third-party packages that are built for a selection, each with its version.
///
/// # Errors
/// If cargo fails.
pub(crate) fn crates_of(selection: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let tree = [
        "tree", "--locked", "--target", PLATFORM, "--edges", "no-dev", "--prefix", "none",
        "--format", "{p}",
    ];
    let tree = output(&mut cargo(tree.iter().chain(selection).copied()))?;
    Ok(third_party(&tree, &root().display().to_string()))
}

/// The packages of a `cargo tree` without those of this workspace.
fn third_party(tree: &str, root: &str) -> BTreeSet<String> {
    tree.lines()
        .filter(|line| !line.contains(root))
        .filter_map(|line| {
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
        assert_eq!(within("library", 150, 150), Ok(()));
        let failure = within("library", 151, 150).unwrap_err();
        assert!(
            failure.contains("151") && failure.contains("150"),
            "{failure}"
        );
    }

    #[test]
    fn one_byte_more_than_the_limit_is_a_failure() {
        let binary = std::env::temp_dir().join(format!("adjutant-budget-{}", std::process::id()));
        fs::write(&binary, [0; 11]).unwrap();
        let (enough, short) = (size(&binary, 11), size(&binary, 10));
        fs::remove_file(&binary).unwrap();
        assert_eq!(enough, Ok(()));
        assert!(short.unwrap_err().contains("11 bytes"));
        assert!(size(&binary, 11).is_err(), "what is not there has no size");
    }
}
