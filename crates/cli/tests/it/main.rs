//! The real binary, run as its users run it: own folders, scripted models, no network, no terminal.

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
