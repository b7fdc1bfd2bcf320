//! A language model that runs inside the process, in pure Rust.
//!
//! [`EmbeddedModel`] implements core's [`LanguageModel`](adjutant_core::LanguageModel); [`pull`]
//! downloads its weights, and [`catalogue`] lists the models that can be downloaded by name.
//! [`Decoder`] is the same engine without thread, disk cache and the traits of core: a chat in,
//! text or JSON that conforms to a schema out.
//!
//! This crate never starts a download by itself and never prints. Its models are small, so they do
//! not call tools freely: they declare `weak_tools`, and core's constrained tool calling gives them
//! a schema of actions instead.
//!
//! # Speed
//! The beginning that a prompt shares with the one before is not computed again, so content that
//! never changes should come first. The processor's matrix kernels wait in busy loops: beside other
//! work on all cores, fewer threads are faster. `CANDLE_NUM_THREADS` and `RAYON_NUM_THREADS`
//! (default: the physical cores) are read once, before the first request; [`suggested_threads`]
//! returns a good value for them.
//!
//! # Memory
//! Weights are mapped from the file and repacked for the processor once. The 1.5B model needs about
//! 1.2 GB for them and 57 KB for every token of its context, see `examples/embedded_bench.rs`. The
//! file must not be truncated while a model uses it; replacing it by rename, as [`pull`] does, is
//! safe.

mod action_state; // the state that a classifier reads
pub mod catalogue; // models that can be downloaded, and installed ones
mod classifier; // probabilities of actions from a hidden state
mod constrain; // constrained decoding by JSON Schema
mod decode; // Decoder: generates answers
mod engine; // GGUF files, KV cache, forward pass
mod error; // LoadError, DecodeError
mod model; // EmbeddedModel
mod prefill; // chunks of a prompt, and the rate at which they are computed
mod prefix; // the prefix cache on disk
pub mod pull; // downloads models
mod sample; // chooses the next token
mod template; // the ChatML chat format
mod threads; // the number of threads to compute with
mod tokenizer; // text to tokens and back
mod verified; // digests of model files

pub use classifier::ActionClassifier;
pub use decode::{Answer, AnswerEnd, ChatRequest, Decoder, Listener};
pub use error::{ClassifierError, DecodeError, LoadError};
pub use model::{EmbeddedModel, PROVIDER};
pub use sample::Sampling;
pub use template::{ChatTurn, Speaker};
pub use threads::suggested_threads;
