//! What others implement: the language model, and what survives a crash.

mod conversation;
mod journal;
mod language_model;
mod task;

pub use conversation::{ConversationStore, ConversationSummary};
pub use journal::{Journal, Loaded, LogStore, StoreError};
pub use language_model::{DeltaStream, LanguageModel};
pub use task::TaskStore;
