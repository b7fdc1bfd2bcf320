//! Key facts about the owner of a memory, one line each, in the file `memory/facts.md` of a vault
//! or in a database.
//!
//! [`KeyFactStore`] has the operations. A change
//! ([`PlannedChange`](planned_change::PlannedChange)) is planned over
//! [`KnownFacts`](known_facts::KnownFacts), so that both backends have the same rules; `file_store`
//! and `database_store` carry it out. A file is read for each change; the facts of a database are
//! kept with an index of their words, and only what changed is read.

mod cache; // the facts of a file, as long as it is the same file
mod change; // the result of a change
mod corpus; // the facts read together, and their index
mod correction; // does a text correct or contradict a fact?
mod cue; // words that announce a correction
mod database_store; // facts in a database
mod document; // the file `facts.md`: parse and edit
mod fact; // a fact, its id and its line
mod file_store; // facts in the file
mod grammar; // subject and predicate of a sentence
mod history; // provenance and undo
mod in_memory_ledger; // a ledger of changes without a database
mod index_cache; // indexed facts of the users that changed theirs last
mod indexed_facts; // facts of a database by their ids and words
mod keywords; // the words that two facts are compared by
mod known_facts; // the facts that a change is planned over
mod lookup; // find a fact by id or text
mod planned_change; // a change, independent of the backend
mod prompt; // facts as a model reads them
mod property; // properties with one value
mod property_table; // how languages put them into words
mod recall; // the facts that fit a message
mod record; // a stored fact
mod snapshot; // facts and withdrawn texts of one moment
mod store; // the operations
mod words; // words with their punctuation and capitals

pub(crate) use cache::FactCache;
pub(crate) use index_cache::IndexCache;

pub use change::FactChange;
pub use fact::{FACT_CHARS_MAX, FactId, KeyFact};
pub use history::{FactProvenance, UndoneChange};
pub use in_memory_ledger::InMemoryLedger;
pub use prompt::{IMPORTANT_TOKENS_MAX, ImportantFacts};
pub use recall::{RecallLimits, RecalledFact};
pub use store::{KeyFactStore, NewFact};
