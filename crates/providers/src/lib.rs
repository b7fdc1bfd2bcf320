//! Who answers: one folder per LLM vendor, and the scripted model for tests and demos.
//!
//! Only this crate knows a vendor's JSON. Translation is pure; one transport holds the only sockets to vendors. No
//! environment variable is read here: whoever builds an adapter says what it needs.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "_http")]
mod assembly; // an answer from its pieces
#[cfg(feature = "_http")]
mod decode; // bytes to deltas
#[cfg(feature = "_http")]
mod error; // a vendor's failure as ours
#[cfg(feature = "_http")]
mod http; // the only vendor sockets
#[cfg(any(feature = "_http", feature = "scripted"))]
mod retry; // sending again
#[cfg(feature = "_http")]
mod sse; // one framing of streams

#[cfg(feature = "gemini")]
pub mod gemini; // Google
#[cfg(feature = "scripted")]
pub mod scripted; // answers from a script

#[cfg(feature = "_http")]
pub use http::{Transport, TransportError};
