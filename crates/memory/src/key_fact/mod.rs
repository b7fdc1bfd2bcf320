//! What is known about the vault's owner, one line each, in `memory/facts.md`.

mod correction; // which known fact new words correct
pub(crate) mod document; // the file, read and changed
mod fact; // one fact
mod grammar; // who a sentence is about, and what it says
mod history; // why, and the way back
mod kept; // the file as it was read last
mod keywords; // what a fact is about
mod ledger; // the history in memory
mod prompt; // what a model is told
mod store; // the operations
mod told; // what a model is told with one message

pub(crate) use kept::Kept;

pub use fact::{FACT_CHARS_MAX, FactId, KeyFact};
pub use history::{Undone, Why};
pub use ledger::InMemoryLedger;
pub use prompt::{IMPORTANT_TOKENS_MAX, ImportantFacts};
pub use store::{FactChange, KeyFactStore, NewFact};
pub use told::{ToldFact, ToldLimits};
