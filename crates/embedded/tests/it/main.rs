//! The embedded model from outside. Everything but `weights` runs on a tiny model of random numbers
//! made here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test helpers fail by panicking"
)]

mod answers;
mod files;
mod heads;
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod port;
mod tiny;
mod weights;
