//! `cargo xtask memory-eval`: runs the program of `adjutant-evaluation` as it is released: without
//! optimisation it is 20 times slower.

use crate::command::{Failure, cargo};

/// Builds the program, and runs it with these arguments. Its standard output stays its own.
///
/// # Errors
/// If it cannot be built or run, or does not end with 0.
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
    // Paths are meant from where the command was given.
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
