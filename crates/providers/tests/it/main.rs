//! The adapters against a server on the loopback interface, and against recorded traffic.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail a test by panicking and say aloud what is skipped"
)]

mod cassette; // recordings of other projects
#[cfg(feature = "gemini")]
mod environment; // what the transport takes from it
mod faults; // what any vendor may do to us
mod rebuild; // what vendors were asked
mod recordings; // what vendors did
mod server; // a vendor for a test

#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "openai")]
mod openai_chat;
#[cfg(feature = "openai")]
mod openai_responses;
