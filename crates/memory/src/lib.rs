//! The memory of an assistant: key facts, notes, daily notes and tasks in plain Markdown that
//! belongs to its owner, or key facts in a database.
//!
//! [`Memory`] is the memory of one user, [`Memories`] those of a service. [`KeyFactStore`] has the
//! facts, [`Notes`] the notes of a [`Vault`] (a folder of Markdown, such as Obsidian's), and
//! [`VaultTasks`] the tasks in them. [`memory_tools`] gives all of it to a model.
//!
//! Files are read again at every operation and replaced atomically; text that was not written here
//! is never changed. The crate reads no clock and no settings, and opens no database: time, options
//! and stores are handed in.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use adjutant_core::UserId;
//! use adjutant_core::turn::estimate_tokens;
//! use adjutant_memory::{Cause, InMemoryLedger, Memory, MemoryOptions, Vault};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let vault = Vault::open(folder.path())?;
//! let clock = Arc::new(jiff::Zoned::now);
//! let ledger = Arc::new(InMemoryLedger::new());
//! let memory = Memory::new(vault, UserId::local(), MemoryOptions::default(), ledger, clock)?;
//! memory.facts().add("Josh prefers dark mode in all apps", true, &Cause::person()).await?;
//! let instruction = memory.facts().instruction(&estimate_tokens).await?;
//! assert!(instruction.text.contains("dark mode"));
//! # Ok(()) }
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod automatic_recall; // facts for a message and for the instruction
mod backend; // facts in a vault or in a database
mod context; // options, causes and records of changes
mod conversation_log; // conversations written as notes
mod conversation_search; // index and search of past conversations
mod daily; // daily notes: path, template, entry
mod error; // error types
mod key_fact; // facts, in a file or a database
mod language; // tokens, stop words, stems
mod multi_user; // the memories of several users
mod notes; // operations on notes
mod outside_file; // files of others: kind and size first
mod patch; // undo to the byte
mod rank; // BM25
mod recall; // search in facts, notes and conversations
mod task_line; // a task as a line of Markdown
mod text; // edits by byte ranges
mod tool; // the tools for a model
mod user_memory; // the memory of one user
mod user_queue; // one change of a user's facts at a time
mod vault; // the folder: files, names, search
mod vault_memory; // changing a file of the vault
mod vault_task; // the tasks in the notes

pub use automatic_recall::TurnRecall;
pub use context::{Cause, Clock, MemoryOptions};
pub use conversation_log::{ConversationLog, LoggedConversation};
pub use conversation_search::{
    ConversationHit, ConversationSearchOptions, ConversationSearchResults, index_conversations,
    search_conversations,
};
pub use daily::{
    Daily, DailyNotes, DailySettings, DailySource, LOCALES, Locale, UnknownLocale, format_moment,
    format_moment_in,
};
pub use error::{MemoryError, VaultError};
pub use key_fact::{
    FACT_CHARS_MAX, FactChange, FactId, FactProvenance, IMPORTANT_TOKENS_MAX, ImportantFacts,
    InMemoryLedger, KeyFact, KeyFactStore, NewFact, RecallLimits, RecalledFact, UndoneChange,
};
pub use multi_user::{DatabaseMemory, Memories};
pub use notes::{NoteChange, Notes, READ_CHARS_MAX, WRITE_CHARS_MAX};
pub use outside_file::{open_regular_file, read_named_file, read_regular_file};
pub use recall::{RecallHit, RecallSource};
pub use tool::{brief_fact_tools, brief_tools, fact_tools, memory_tools, reading_tools};
pub use user_memory::Memory;
pub use vault::{
    NOTE_BYTES_MAX, Note, NoteFilter, NoteHit, NoteList, NotePath, NoteSearchResults, NoteText,
    System, UserFolders, Vault, find_vaults,
};
pub use vault_task::{
    DeletedTask, InMemoryTaskIndex, TaskAddress, TaskEdit, TaskList, TaskStatus, TaskWritten,
    VaultTask, VaultTaskStore, VaultTasks,
};
