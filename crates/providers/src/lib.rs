//! Who answers: one folder per LLM vendor, and the scripted model for tests and demos.
//!
//! Only this crate knows a vendor's JSON. Translation is pure; one transport holds the only sockets
//! to vendors. No environment variable is read here: whoever builds an adapter says what it needs.
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(
    not(all(
        feature = "anthropic",
        feature = "gemini",
        feature = "ollama",
        feature = "openai"
    )),
    allow(
        dead_code,
        reason = "what the vendors share is more than each of them needs"
    )
)]

#[cfg(feature = "_http")]
mod adapter; // a translation as a model
#[cfg(feature = "_http")]
mod assembly; // an answer from its pieces
#[cfg(feature = "_http")]
mod connection; // how to reach a vendor
#[cfg(feature = "_http")]
mod decode; // bytes to deltas
#[cfg(feature = "_http")]
mod encode; // what every encoder needs
#[cfg(feature = "_http")]
mod error; // a vendor's failure as ours
mod fallback; // one in another's place
#[cfg(feature = "_http")]
mod family; // what differs between models
#[cfg(feature = "_http")]
mod http; // the only vendor sockets
#[cfg(feature = "openai")]
mod json; // JSON without a value in between
#[cfg(feature = "_http")]
mod ndjson; // one framing of streams
#[cfg(feature = "_http")]
mod patience; // how long a server may be silent
#[cfg(feature = "openai")]
mod per_tools; // what is made of tools once
#[cfg(test)]
#[cfg(feature = "_http")]
mod pieces; // streams for the tests of every decoder
#[cfg(feature = "_http")]
mod provider; // the vendors by name
#[cfg(any(feature = "_http", feature = "scripted"))]
mod retry; // sending again
#[cfg(feature = "_http")]
mod sse; // another framing
#[cfg(feature = "_http")]
mod text_calls; // calls and thinking that come as text
#[cfg(feature = "_http")]
mod wait; // how long a vendor asks to wait

#[cfg(feature = "anthropic")]
pub mod anthropic; // Claude
#[cfg(feature = "gemini")]
pub mod gemini; // Google
#[cfg(feature = "ollama")]
pub mod ollama; // a server on the user's own machine
#[cfg(feature = "openai")]
pub mod openai; // OpenAI, and everybody who speaks its language
#[cfg(feature = "scripted")]
pub mod scripted; // answers from a script

#[cfg(feature = "_http")]
pub use adapter::HttpModel;
#[cfg(feature = "_http")]
pub use connection::Connection;
pub use fallback::{CannotStandIn, FallbackModel};
#[cfg(feature = "_http")]
pub use http::{Transport, TransportError};
#[cfg(feature = "_http")]
pub use provider::Provider;
