//! The real binary, run as its users run it: own folders, scripted models, no network, no terminal.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod answers;
mod config;
mod confirmation;
#[cfg(feature = "faults")]
mod crash;
mod eval;
mod harness;
mod input;
mod log;
mod scenarios;
mod tasks;
