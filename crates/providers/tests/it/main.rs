//! The adapters against a server on the loopback interface, and against recorded traffic.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests fail a test by panicking and say aloud what is not run"
)]

mod cassette; // recordings, our own and other projects'
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod cuts; // streams cut into other pieces
#[cfg(feature = "gemini")]
mod environment; // what the transport takes from it
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod error_bodies; // errors in the vendors' words
mod faults; // what any vendor may do to us
mod rebuild; // what vendors were asked
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod record; // our own recordings, made
mod recordings; // what vendors did
mod server; // a vendor for a test
#[path = "../../../../tests/size.rs"]
mod size; // how many cases
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod vendor_defaults; // tool choice, storage and silence as each vendor has them
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
#[path = "../wire/mod.rs"]
#[expect(dead_code, reason = "the fault table of `adjutant` uses more of it")]
mod wire; // answers in each vendor's form

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
