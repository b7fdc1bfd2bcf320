//! Looking after a store: how it is, whether it is whole, a copy of it, and what is old.

use std::fmt;
use std::path::Path;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, ConversationKey, UserId};
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

    /// Tries whether this process is told at once what other processes do. If not, it looks once a
    /// second while somebody waits for that.
    fn hears_others(&self) -> BoxFuture<'_, bool>;

    /// Looks for what is damaged or does not fit together: all that the database itself can find,
    /// then conversation by conversation what a journal must be. Changes nothing. Empty: all is
    /// well.
    ///
    /// # Errors
    /// [`StoreError`] if it could not even look. Damage is a finding and not an error.
    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;

    /// Returns every user who has a task, a conversation or a change of a memory, in the order of
    /// their names' bytes.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn users(&self) -> BoxFuture<'_, Result<Vec<UserId>, StoreError>>;

    /// Writes a copy of the whole database to a file, while others go on working. The file is there
    /// when it is whole and was found to be sound, or not at all.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: a file of that name is there, no permission, no space; or the database is one of
    /// PostgreSQL, whose own program does this: the message has the command.
    fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes conversations in which nothing has happened since `before`, with their events and
    /// logs; and of the same age: rows of calls that people made without a model, what users had
    /// spent, the memory of changes that were made once, and the way back for notes and for facts
    /// that read otherwise by now or are gone (of both never one of the last seven days: a turn may
    /// be repeated so long). Why a fact is there that is there stays.
    ///
    /// Never what waits for somebody, runs, has an input nobody took, or is in doubt; and never a
    /// task.
    ///
    /// # Errors
    /// [`StoreError`]; what was removed before stays removed.
    fn remove_older_than(&self, before: Timestamp) -> BoxFuture<'_, Result<Removed, StoreError>>;

    /// Counts what is kept of a user, by table: conversations, and what is in none of them. Tables
    /// without a row are there too.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn kept_of<'a>(&'a self, user: &'a UserId)
    -> BoxFuture<'a, Result<Vec<TableRows>, StoreError>>;

    /// Reads the rows of a user that no other port answers with, each with its table: what was
    /// spent, keys of changes, changes of a memory.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn rows_of<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Vec<UserRow>, StoreError>>;

    /// Returns some of a user's conversations, of all agents, in the order of their places, behind
    /// `after`. None: there are no more.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn conversations_of<'a>(
        &'a self,
        user: &'a UserId,
        after: i64,
    ) -> BoxFuture<'a, Result<Vec<StoredConversation>, StoreError>>;

    /// Refuses all tokens of a user from now on. Returns how many were not refused before.
    ///
    /// # Errors
    /// [`StoreError`].
    fn refuse_user<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Removes everything that is kept of a user, in portions of conversations and then the rest at
    /// once. Conversations that somebody alive works on stay, with everything that is in no
    /// conversation: then it is to be done again. What everybody has spent together stays as it is.
    ///
    /// # Errors
    /// [`StoreError`]; what was removed before stays removed, and doing it again goes on from
    /// there.
    fn remove_user<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserRemoved, StoreError>>;
}

/// A row of a user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserRow {
    /// Its table, without the prefix.
    pub table: &'static str,
    /// Its columns.
    #[serde(flatten)]
    pub columns: serde_json::Map<String, serde_json::Value>,
}

/// A conversation as the list of a user's has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    /// Its key.
    pub key: ConversationKey,
    /// Its title; empty until there are words.
    pub title: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its last change.
    pub updated_at: Timestamp,
    /// Turns that were begun.
    pub turns: u64,
    /// Its place in the order of [`Maintenance::conversations_of`].
    pub place: i64,
}

/// The result of removing a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRemoved {
    /// Conversations, with everything in them.
    pub conversations: u64,
    /// Conversations that stay, because somebody alive works on them.
    pub running: Vec<ConversationKey>,
    /// Rows beside them, by table. Empty while there is one that stays.
    pub rows: Vec<TableRows>,
}

/// The load on a process's connections to its database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections that the process may have. `None`: there is no pool, but one thread that writes
    /// (SQLite).
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
