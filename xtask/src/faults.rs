//! Services under load of which, or of Restate before them, something breaks: no turn may be lost,
//! doubled or refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, root, run, target};

/// Rows that are run each time: one kind of fault of each, with several nodes too.
const SAMPLE: &[&str] = &[
    "the other service killed",
    "Restate killed",
    "one of two nodes of Restate killed",
];

/// Runs the rows of `benches/dispatch` with this binary, which has Restate built in: all of them,
/// or a sample.
///
/// # Errors
/// If a turn was lost, doubled or not answered; or without Restate's server, which the tests with
/// Restate get.
pub(crate) fn under_load(adjutant: &Path, all: bool) -> Result<(), Failure> {
    let mut rows = Command::new("python3");
    rows.current_dir(root())
        .arg("benches/dispatch/run.py")
        .arg("--check");
    rows.arg("--adjutant")
        .arg(adjutant)
        .arg("--restate")
        .arg(restate()?)
        .args(["--clients", "8"]);
    if all {
        rows.args(["--seconds", "4"]);
    } else {
        rows.args(["--seconds", "3", "--only-with", "--only"])
            .args(SAMPLE);
    }
    run(&mut rows)
}

/// Has a browser use the page of a service with Restate before it, and another one that does the
/// work.
///
/// # Errors
/// If something was not as it should be, or without Restate's server.
pub(crate) fn page(adjutant: &Path) -> Result<(), Failure> {
    let mut page = Command::new("node");
    page.current_dir(root().join("tests").join("browser"))
        .args(["run.mjs", "restate"]);
    page.env("ADJUTANT_BIN", adjutant)
        .env("RESTATE_SERVER", restate()?);
    run(&mut page)
}

/// The server that the tests keep in the target folder.
fn restate() -> Result<PathBuf, Failure> {
    let folders = |path: &Path| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    folders(&target().join("tmp"))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("restate-server-"))
        })
        .flat_map(|server| folders(&server.join("node_modules/@restatedev")).collect::<Vec<_>>())
        .map(|package| package.join("bin/restate-server"))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            "Restate's server is not in the target folder: the tests with Restate get it".to_owned()
        })
}
