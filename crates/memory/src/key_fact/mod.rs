//! What is known about the vault's owner, one line each, in `memory/facts.md`.

pub(crate) mod document; // the file, read and changed
mod fact; // one fact
mod history; // why, and the way back
mod keywords; // what a fact is about
mod ledger; // the history in memory
mod prompt; // what a model is told
mod store; // the operations

pub use fact::{FACT_CHARS_MAX, FactId, KeyFact};
pub use history::{Undone, Why};
pub use ledger::InMemoryLedger;
pub use store::{FactChange, KeyFactStore};
