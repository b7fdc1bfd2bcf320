//! `cargo xtask simulate`: deterministic simulation of several agents (`crates/simulation`). Each
//! seed stands for one schedule, clock and sequence of faults.

use crate::command::{Failure, cargo, run};

/// Builds `adjutant-simulation` in release mode, which pays off from a few hundred seeds on, and
/// passes the arguments to it.
///
/// # Errors
/// A seed fails, an argument is unknown, or the program cannot be built.
pub(crate) fn simulate(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = cargo([
        "run",
        "--quiet",
        "--locked",
        "--release",
        "--package",
        "adjutant-simulation",
        "--",
    ]);
    run(command.args(arguments))
}
