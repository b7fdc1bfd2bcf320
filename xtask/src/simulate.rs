//! `cargo xtask simulate`: runs of the engine over a simulated store, each decided by a seed
//! (`crates/simulation`).

use crate::command::{Failure, cargo, run};

/// Builds the simulation as it is released, which is quicker from some hundred seeds on, and hands
/// it the arguments.
///
/// # Errors
/// If a seed fails, or the arguments are none that it knows.
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
