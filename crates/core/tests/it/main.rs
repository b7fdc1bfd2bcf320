//! The rules of the vocabulary and the gate, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod answers;
mod confirmation;
mod gate;
mod repair;
mod session;
mod trace;
mod vocabulary;
