//! What outlives a session: facts and notes, in plain markdown that belongs to its owner, or facts
//! in a database.
//!
//! Files are read fresh and written atomically; nothing that was not written here is changed. The
//! time, the settings and the history's database are handed in.
//!
//! ```no_run
//! # async fn example() -> Result<(), adjutant_memory::MemoryError> {
//! use std::sync::Arc;
//! use adjutant_core::UserId;
//! use adjutant_memory::{Cause, InMemoryLedger, Memory, MemoryOptions, Vault};
//!
//! let vault = Vault::open("Notes")?.with_work_folder("state/vault");
//! let clock = Arc::new(jiff::Zoned::now);
//! let ledger = Arc::new(InMemoryLedger::new());
//! let memory = Memory::new(vault, UserId::local(), MemoryOptions::default(), ledger, clock)?;
//! memory.facts().add("Josh prefers dark mode in all apps", true, &Cause::person()).await?;
//! let count = |text: &str| adjutant_core::turn::estimate_tokens(text);
//! assert!(memory.facts().instruction(&count).await?.text.contains("dark mode"));
//! # Ok(()) }
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod conversation; // conversations as notes
mod daily; // daily notes
mod error; // why not
mod key_fact; // facts
mod memories; // whose memory is where
mod memory; // all of it, of one person
mod notes; // notes
mod past; // past conversations
mod patch; // the way back to the byte
mod rank; // which text fits a question
mod recall; // looking for something in all of it
mod task_line; // a task as a line
mod told; // what a model is told
mod tool; // what a model may do
mod vault; // files
mod vault_task; // the tasks in the notes
mod words; // words, languages, stems

pub use conversation::{ConversationLog, Logged};
pub use daily::{
    Daily, DailyNotes, DailySettings, DailySource, LOCALES, Locale, UnknownLocale, format_moment,
    format_moment_in,
};
pub use error::{MemoryError, VaultError};
pub use key_fact::{
    FACT_CHARS_MAX, FactChange, FactId, IMPORTANT_TOKENS_MAX, ImportantFacts, InMemoryLedger,
    KeyFact, KeyFactStore, NewFact, ToldFact, ToldLimits, Undone, Why,
};
pub use memories::{DatabaseMemory, Memories};
pub use memory::{Cause, Clock, Memory, MemoryOptions};
pub use notes::{Notes, READ_CHARS_MAX, WRITE_CHARS_MAX, Written};
pub use past::{PastHit, PastOptions, PastSearch, index_past, search_past};
pub use recall::{Place, Recollection};
pub use told::TurnFacts;
pub use tool::{brief_tools, fact_tools, memory_tools, reading_tools};
pub use vault::{
    Filter, Found, Hit, Listed, NOTE_BYTES_MAX, Note, NotePath, NoteText, System, UserFolders,
    Vault, find_vaults,
};
pub use vault_task::{
    DeletedTask, InMemoryTaskIndex, TaskAddress, TaskEdit, TaskList, TaskStatus, TaskWritten,
    VaultTask, VaultTaskStore, VaultTasks,
};
