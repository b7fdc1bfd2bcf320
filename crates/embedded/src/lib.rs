//! A language model that runs inside the process, in pure Rust.
//!
//! [`EmbeddedModel`] is the model behind core's port, [`pull`] fetches its weights, [`catalogue`]
//! knows which there are. [`Decoder`] is the same engine without port, thread and disk: a chat in,
//! text or JSON that fits a schema out.
//!
//! What it refuses to do: it never starts a download by itself, never prints, and never calls tools
//! freely. It is a small model, so it declares `weak_tools` and is given a schema of actions by
//! core's policy instead.
//!
//! # Speed
//! The beginning that a prompt shares with the one before is not computed again, so whatever never
//! changes should come first. The processor's matrix kernels wait in busy loops: beside other work
//! on all cores, fewer threads are faster. `CANDLE_NUM_THREADS` and `RAYON_NUM_THREADS` (default:
//! the physical cores) are read once, before the first request; [`suggested_threads`] says what to
//! set them to.
//!
//! # Memory
//! Weights are mapped from the file and repacked for the processor once. The 1.5B model needs about 1.2
//! GB for them and 57 KB for every token it has read, see `examples/embedded_bench.rs`. The file
//! must not be truncated while a model uses it; replacing it by rename, as [`pull`] does, is safe.

pub mod catalogue; // which models there are
mod constrain; // answers that fit a schema
mod decode; // one answer after the other
mod engine; // the mathematics
mod error; // what can go wrong with a file and with computing
mod model; // core's port
mod pace; // chunks of a prompt
mod prefix; // heads of prompts, kept on disk
pub mod pull; // getting a model
mod sample; // the next token
mod template; // chats as the model knows them
mod threads; // how many of them
mod tokenizer; // text and tokens
mod verified; // the right bytes

pub use decode::{Answer, AnswerEnd, ChatRequest, Decoder, Listener};
pub use error::{DecodeError, LoadError};
pub use model::{EmbeddedModel, PROVIDER};
pub use sample::Sampling;
pub use template::{ChatTurn, Speaker};
pub use threads::suggested_threads;
