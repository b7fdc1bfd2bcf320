//! Looking after a store: how it is, whether it is whole, a copy of it, and what is old.

use std::fmt;
use std::path::Path;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, UserId};
use jiff::Timestamp;
use serde::Serialize;

/// What whoever runs a store does with it.
pub trait Maintenance: Send + Sync + 'static {
    /// How the database is.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn status(&self) -> BoxFuture<'_, Result<DatabaseStatus, StoreError>>;

    /// Returns how busy the way to the database is at this moment.
    fn current_load(&self) -> Load;

    /// Tries whether this process is told at once what other processes do. If not, it looks once a second while somebody waits
    /// for that.
    fn hears_others(&self) -> BoxFuture<'_, bool>;

    /// Looks for what is damaged or does not fit together: all that the database itself can find, then conversation by
    /// conversation what a journal must be. Changes nothing. Empty: all is well.
    ///
    /// # Errors
    /// [`StoreError`] if it could not even look. Damage is a finding and not an error.
    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;

    /// Returns every user who has a task, a conversation or a change of a memory, in the order of their names' bytes.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn users(&self) -> BoxFuture<'_, Result<Vec<UserId>, StoreError>>;

    /// Writes a copy of the whole database to a file, while others go on working. The file is there when it is whole and
    /// was found to be sound, or not at all.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: a file of that name is there, no permission, no space; or the database is one of
    /// PostgreSQL, whose own program does this: the message has the command.
    fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes conversations in which nothing has happened since `before`, with their events and logs; and of the same age:
    /// rows of calls that people made without a model, what users had spent, the memory of changes that were made once,
    /// and the way back for notes and for facts that read otherwise by now or are gone (of both never one of the last seven
    /// days: a turn may be repeated so long). Why a fact is there that is there stays.
    ///
    /// Never what waits for somebody, runs, has an input nobody took, or is in doubt; and never a task.
    ///
    /// # Errors
    /// [`StoreError`]; what was removed before stays removed.
    fn remove_older_than(&self, before: Timestamp) -> BoxFuture<'_, Result<Removed, StoreError>>;
}

/// How busy a process's way to its database is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections that the process may have. `None`: there is no pool, but one thread that writes (SQLite).
    pub connections_max: Option<u32>,
    /// Connections in use.
    pub connections_busy: u32,
    /// Connections that are open and that nobody uses.
    pub connections_idle: u32,
    /// Calls that wait for a connection, or for the thread that writes.
    pub waiting: u32,
}

/// How a database is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// Which one, as a person would name it, without a password.
    pub place: String,
    /// Product and version, such as `SQLite 3.51.3`.
    pub product: String,
    /// The version of its schema.
    pub schema_version: u64,
    /// How SQLite keeps what is not yet in the file, such as `wal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_mode: Option<String>,
    /// What it takes on the disk, in bytes.
    pub bytes: u64,
    /// Rows of each table.
    pub tables: Vec<TableRows>,
    /// Conversations with work to do: an input nobody took, or a turn that neither ended nor waits.
    pub unsettled: u64,
    /// Conversations that wait for a person.
    pub waiting: u64,
    /// When the oldest conversation began.
    pub oldest: Option<Timestamp>,
    /// When the last input was accepted.
    pub newest: Option<Timestamp>,
}

/// How many rows a table has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRows {
    /// The table.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

/// Something that is damaged or does not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where: the file, a conversation, a task.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// What was removed because it is old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Conversations.
    pub conversations: u64,
    /// Their events.
    pub events: u64,
    /// Rows of calls that people made without a model.
    pub invocations: u64,
    /// Keys of changes that were made once.
    pub changes: u64,
    /// Days of users whose spending was kept.
    pub budget_days: u64,
    /// Changes of memories that say nothing about a fact as it is now.
    pub memory_changes: u64,
}

impl Removed {
    /// Whether there was nothing to remove.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}
