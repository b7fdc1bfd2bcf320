//! The library as its users see it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking, and so does a tool that is made to"
)]

#[cfg(any(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod faults; // what a faulty model answer leads to
mod plain_words; // what a person reads when something goes wrong
mod scripted; // faults on request
#[cfg(any(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
#[path = "../../../providers/tests/it/server.rs"]
#[expect(dead_code, reason = "the tests of the adapters use more of it")]
mod server; // a vendor for a test
#[cfg(all(feature = "ollama", feature = "openai"))]
mod slow; // servers of one's own that take their time
mod tool_macro;
