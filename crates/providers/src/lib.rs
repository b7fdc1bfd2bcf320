//! Adapters to language models: one folder per LLM vendor, the scripted model for tests and demos,
//! and [`FallbackModel`].
//!
//! Every adapter implements [`adjutant_core::LanguageModel`]. This is the only crate that knows a
//! vendor's JSON. Encoding and decoding are pure; [`Transport`] holds the only sockets to vendors.
//! No environment variable is read here: the caller passes keys and addresses in a
//! [`Connection`], and finds out from [`Provider`] which variables a vendor's users expect.
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
mod adapter; // HttpModel: a vendor's translation as a LanguageModel
#[cfg(feature = "_http")]
mod address; // addresses on this machine or a private network
#[cfg(feature = "_http")]
mod assembly; // joins the fragments of an answer
#[cfg(test)]
#[cfg(feature = "_http")]
mod chunked_streams; // cuts and damages streams, for tests
#[cfg(feature = "_http")]
mod connection; // API key, base URL, retries
#[cfg(feature = "_http")]
mod decode; // bytes of a stream to deltas
#[cfg(any(feature = "_http", feature = "scripted"))]
mod delay; // failures of a server that are waited for
#[cfg(feature = "_http")]
mod encode; // settings, images and losses, for every encoder
#[cfg(feature = "_http")]
mod error; // HTTP statuses and error bodies as ModelError
#[cfg(feature = "_http")]
mod error_fields; // message and codes of an error body, wherever they are
#[cfg(feature = "_http")]
mod error_kind; // the kind of an error by its codes and words
mod fallback; // another model if one is unavailable
#[cfg(feature = "_http")]
mod family; // limits and settings of model families
#[cfg(feature = "_http")]
mod http; // the sockets to vendors: TLS, bounds, statuses
#[cfg(feature = "openai")]
mod json; // writes JSON strings without a value in between
#[cfg(feature = "_http")]
mod ndjson; // newline-delimited JSON
#[cfg(feature = "_http")]
mod provider; // Provider: names, variables and defaults of a vendor
#[cfg(feature = "_http")]
mod read_timeout; // bounds on a server's silence
#[cfg(feature = "_http")]
mod registry; // every vendor of this build
#[cfg(any(feature = "_http", feature = "scripted"))]
mod retry; // sends a failed request again
#[cfg(feature = "_http")]
mod retry_after; // the wait that response headers ask for
#[cfg(feature = "_http")]
mod schema; // conversions of JSON Schema
#[cfg(feature = "_http")]
mod sse; // server-sent events
#[cfg(feature = "_http")]
mod text_calls; // tool calls and thinking that models write as text
#[cfg(feature = "openai")]
mod tools_cache; // the encoded tools of recent requests
#[cfg(feature = "_http")]
mod transcript; // the messages of a request as servers take them

#[cfg(feature = "anthropic")]
pub mod anthropic; // Claude, over the Messages API
#[cfg(feature = "gemini")]
pub mod gemini; // Google's Gemini API and Vertex AI
#[cfg(feature = "ollama")]
pub mod ollama; // an Ollama server, usually on the user's machine
#[cfg(feature = "openai")]
pub mod openai; // OpenAI's two APIs, and the vendors with the same API
#[cfg(feature = "scripted")]
pub mod scripted; // scripted answers for tests and demos

#[cfg(feature = "_http")]
pub use adapter::HttpModel;
#[cfg(feature = "_http")]
pub use connection::Connection;
pub use fallback::{CannotStandIn, FallbackModel};
#[cfg(feature = "_http")]
pub use http::{Transport, TransportError};
#[cfg(feature = "_http")]
pub use provider::Provider;
