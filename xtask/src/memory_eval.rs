//! `cargo xtask memory-eval`: runs the program of `adjutant-evaluation`, which measures the recall
//! of memory retrieval. It is built in release mode: a debug build is 20 times slower.

use crate::command::{Failure, cargo};

/// Builds the program and runs it with these arguments. Unlike other steps it prints no command
/// line, so that `--json` leaves nothing but JSON on standard output.
///
/// # Errors
/// The program cannot be built or started, or its exit code is not 0.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = cargo([
        "run",
        "--quiet",
        "--locked",
        "--release",
        "--package",
        "adjutant-evaluation",
        "--",
    ]);
    // Relative paths are resolved against the developer's directory, not the workspace root.
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let status = command
        .args(arguments)
        .current_dir(here)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("memory-eval: {status}"))
    }
}
