//! The adapters against a server on the loopback interface, and against recorded traffic.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail a test by panicking and say aloud what is skipped"
)]

mod cassette; // recordings of other projects
mod faults; // what a vendor may do to us
mod recordings; // what vendors did
mod server; // a vendor for a test
