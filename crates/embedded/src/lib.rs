//! A language model that runs inside the process, in pure Rust.

pub mod catalogue;
mod constrain;
mod decode;
mod engine;
mod error;
mod model;
mod prefix;
pub mod pull;
mod sample;
mod template;
mod tokenizer;

pub use decode::{Answer, AnswerEnd, ChatRequest, Decoder, Listener};
pub use error::{DecodeError, LoadError};
pub use model::{EmbeddedModel, PROVIDER};
pub use sample::Sampling;
pub use template::{ChatTurn, Speaker};
