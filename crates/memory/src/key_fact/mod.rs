//! What is known about the owner of a memory, one line each: in `memory/facts.md`, or in a
//! database.

mod change; // what became of a fact
mod correction; // which known fact new words correct
pub(crate) mod document; // the file, read and changed
mod fact; // one fact
mod grammar; // who a sentence is about, and what it says
mod history; // why, and the way back
mod in_database; // the facts of a database
mod in_file; // the facts of a vault
mod kept; // the facts as they were read last
mod keywords; // what a fact is about
mod known; // a fact as it is kept
mod ledger; // the history in memory
mod plan; // what is to become of the facts
mod prompt; // what a model is told
mod snapshot; // the facts as they were read at once
mod store; // the operations
mod told; // what a model is told with one message

pub(crate) use kept::Kept;

pub use change::FactChange;
pub use fact::{FACT_CHARS_MAX, FactId, KeyFact};
pub use history::{Undone, Why};
pub use ledger::InMemoryLedger;
pub use prompt::{IMPORTANT_TOKENS_MAX, ImportantFacts};
pub use store::{KeyFactStore, NewFact};
pub use told::{ToldFact, ToldLimits};
