//! Fault injection under load: Adjutant services and Restate servers are killed or cut off while
//! clients send requests. No turn may be lost, run twice or refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, root, run, target};

/// The rows of `benches/dispatch` that every run includes: one of each kind of fault, and one with
/// several Restate nodes.
const SAMPLE: &[&str] = &[
    "the other service killed",
    "Restate killed",
    "one of two nodes of Restate killed",
];

/// Runs `benches/dispatch/run.py --check` with a binary that has the feature `restate`: all rows (4
/// seconds each), or the sample (3 seconds each).
///
/// # Errors
/// A turn was lost, run twice or not answered, or Restate's server is not installed yet (the tests
/// with Restate download it).
pub(crate) fn under_load(adjutant: &Path, all: bool) -> Result<(), Failure> {
    let mut rows = Command::new("python3");
    rows.current_dir(root())
        .arg("benches/dispatch/run.py")
        .arg("--check");
    rows.arg("--adjutant")
        .arg(adjutant)
        .arg("--restate")
        .arg(restate_server()?)
        .args(["--clients", "8"]);
    if all {
        rows.args(["--seconds", "4"]);
    } else {
        rows.args(["--seconds", "3", "--only-with", "--only"])
            .args(SAMPLE);
    }
    run(&mut rows)
}

/// Tests the web page in a browser against two services behind Restate: one that serves the page,
/// and one that runs the turns.
///
/// # Errors
/// The browser's program fails, or Restate's server is not installed yet.
pub(crate) fn browser_with_restate(adjutant: &Path) -> Result<(), Failure> {
    let mut browser = Command::new("node");
    browser
        .current_dir(root().join("tests").join("browser"))
        .args(["run.mjs", "restate"]);
    browser
        .env("ADJUTANT_BIN", adjutant)
        .env("RESTATE_SERVER", restate_server()?);
    run(&mut browser)
}

/// Finds the Restate server that the tests have downloaded into the target folder.
fn restate_server() -> Result<PathBuf, Failure> {
    let entries = |path: &Path| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    entries(&target().join("tmp"))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("restate-server-"))
        })
        .flat_map(|server| entries(&server.join("node_modules/@restatedev")).collect::<Vec<_>>())
        .map(|package| package.join("bin/restate-server"))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            "Restate's server is not in the target folder: run the tests with Restate, which download it".to_owned()
        })
}
