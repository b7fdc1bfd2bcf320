//! Operations for the operator of a store: status, consistency check, backup, retention, and
//! removal of users.

use std::fmt;
use std::path::Path;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, ConversationKey, UserId};
use jiff::Timestamp;
use serde::Serialize;

/// The maintenance operations of a store.
pub trait Maintenance: Send + Sync + 'static {
    /// Reads the status of the database.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn status(&self) -> BoxFuture<'_, Result<DatabaseStatus, StoreError>>;

    /// Returns the current load on the connections to the database.
    fn current_load(&self) -> Load;

    /// Tests whether this process is notified of other processes' writes. If not, it polls once a
    /// second while a caller waits for one.
    fn receives_notifications(&self) -> BoxFuture<'_, bool>;

    /// Reads how the server copies its commits to standbys, and whether it waits until they are on
    /// disk. `None` for SQLite.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn replication(&self) -> BoxFuture<'_, Result<Option<Replication>, StoreError>>;

    /// Checks the database: first its own integrity check, then every conversation's journal and
    /// derived columns. Changes nothing. An empty list means that no problem was found.
    ///
    /// # Errors
    /// [`StoreError`] if the check could not run. Damage is a finding, not an error.
    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>>;

    /// Returns every user with a task, a conversation, a fact or a memory change, in the byte order
    /// of their ids.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn users(&self) -> BoxFuture<'_, Result<Vec<UserId>, StoreError>>;

    /// Writes a copy of the whole database to a file, while the store stays in use. The file
    /// appears only when it is complete and was checked.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if a file of that name exists, permission or space is missing, or
    /// the database is in PostgreSQL: the message then has the command for PostgreSQL's own backup
    /// program.
    fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes conversations in which nothing has happened since `before`, with their events and
    /// logs. Also removes, of the same age: invocations outside of conversations, users' spending,
    /// idempotency keys, and the history of memory changes. Keys and history of the last seven days
    /// are kept, because a turn may be repeated for that time; so is the change that made a fact's
    /// present text.
    ///
    /// Never removes a task, nor a conversation that waits, runs, has an input that was not taken,
    /// or has a call in doubt.
    ///
    /// # Errors
    /// [`StoreError`]. What was removed before stays removed.
    fn remove_older_than(&self, before: Timestamp) -> BoxFuture<'_, Result<Removed, StoreError>>;

    /// Counts a user's rows by table: conversations, and rows outside of conversations. Tables
    /// without rows are included.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn count_rows_of<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<TableRows>, StoreError>>;

    /// Reads a user's rows that no other port returns, each with its table: spending, idempotency
    /// keys, memory changes and facts.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn rows_of<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Vec<UserRow>, StoreError>>;

    /// Returns a page of a user's conversations with all agents, in the order of their places,
    /// after `after`. Empty after the last page.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn conversations_of<'a>(
        &'a self,
        user: &'a UserId,
        after: i64,
    ) -> BoxFuture<'a, Result<Vec<StoredConversation>, StoreError>>;

    /// Revokes all tokens of a user. Returns how many were valid before.
    ///
    /// # Errors
    /// [`StoreError`] if the tokens cannot be changed.
    fn refuse_user<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Removes all data of a user: conversations in batches, then everything else at once. While a
    /// live worker runs one of the conversations, that one and everything outside of conversations
    /// stays, and the call has to be repeated. Totals of all users together are kept.
    ///
    /// # Errors
    /// [`StoreError`]. What was removed before stays removed, and repeating the call continues from
    /// there.
    fn remove_user<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserRemoved, StoreError>>;
}

/// A row of a user in a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserRow {
    /// The table's name, without the prefix `adjutant_`.
    pub table: &'static str,
    /// Names and values of the row, as JSON.
    #[serde(flatten)]
    pub columns: serde_json::Map<String, serde_json::Value>,
}

/// A conversation in the list of a user's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    /// The key that identifies the conversation.
    pub key: ConversationKey,
    /// The title. Empty until the first message.
    pub title: String,
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// Time at which the last input was accepted.
    pub updated_at: Timestamp,
    /// Number of turns that were started.
    pub turns: u64,
    /// Position in the order of [`Maintenance::conversations_of`].
    pub place: i64,
}

/// The result of [`Maintenance::remove_user`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRemoved {
    /// Number of conversations that were removed, with everything in them.
    pub conversations: u64,
    /// Conversations that were not removed because a live worker runs them.
    pub running: Vec<ConversationKey>,
    /// Rows outside of conversations that were removed, by table. Empty if `running` is not.
    pub rows: Vec<TableRows>,
}

/// The load on a process's connections to its database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Most connections that the process opens. `None` for SQLite, which has a writer thread and no
    /// pool.
    pub connections_max: Option<u32>,
    /// Connections that are in use.
    pub connections_busy: u32,
    /// Open connections that are not in use.
    pub connections_idle: u32,
    /// Calls that wait for a connection or for the writer thread.
    pub waiting: u32,
}

/// The way in which a server confirms commits, as far as this user may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replication {
    /// True if the server syncs its log to the disk (`fsync`).
    pub fsync: bool,
    /// The server's `synchronous_commit` for this user, such as `on` or `remote_apply`.
    pub synchronous_commit: String,
    /// The server's `synchronous_standby_names`. Empty: it waits for no standby.
    pub synchronous_standbys: String,
    /// Number of standbys and other receivers of the log that are connected.
    pub receivers: u64,
}

/// The reason for which a crash or a fail-over can take what was confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitRisk {
    /// A crash of the server's machine can damage the database.
    NoSync,
    /// A crash of the server takes the commits of the last moments.
    CommitsEarly,
    /// A fail-over to a standby takes the commits that it has not received.
    AsynchronousStandby,
}

impl Replication {
    /// Returns the reason for which what was confirmed may be lost, the worst first. `None`: what
    /// was confirmed survives a crash, and a fail-over if there is one.
    #[must_use]
    pub fn risk(&self) -> Option<CommitRisk> {
        let waits_for_standbys =
            !self.synchronous_standbys.trim().is_empty() && self.synchronous_commit != "local";
        if !self.fsync {
            Some(CommitRisk::NoSync)
        } else if self.synchronous_commit == "off" {
            Some(CommitRisk::CommitsEarly)
        } else if self.receivers > 0 && !waits_for_standbys {
            Some(CommitRisk::AsynchronousStandby)
        } else {
            None
        }
    }
}

/// A summary of a database for an operator: product, schema, size, and work to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// The database as a person would name it, without a password.
    pub place: String,
    /// Product and version, such as `SQLite 3.51.3`.
    pub product: String,
    /// Version of the schema: the last migration.
    pub schema_version: u64,
    /// SQLite's journal mode, such as `wal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_mode: Option<String>,
    /// Size on disk in bytes, with SQLite's WAL.
    pub bytes: u64,
    /// Number of rows in each table.
    pub tables: Vec<TableRows>,
    /// Conversations with work to do: an input that was not taken, or a turn that neither ended nor
    /// waits.
    pub unsettled: u64,
    /// Conversations that wait for a person.
    pub waiting: u64,
    /// Time at which the oldest conversation was created.
    pub oldest: Option<Timestamp>,
    /// Time at which the last input was accepted.
    pub newest: Option<Timestamp>,
}

/// The number of rows in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRows {
    /// The table's name, without the prefix `adjutant_`.
    pub name: String,
    /// Count at the time of the query.
    pub rows: u64,
}
crate::sql::from_row! { TableRows { name, rows } }

/// A problem found by [`Maintenance::check`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Location of the problem: the file, a conversation, a task.
    pub place: String,
    /// Explanation of the inconsistency, for an operator.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// The result of [`Maintenance::remove_older_than`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Number of conversations that were removed.
    pub conversations: u64,
    /// Number of events in the removed conversations.
    pub events: u64,
    /// Number of invocations outside of conversations that were removed.
    pub invocations: u64,
    /// Number of idempotency keys that were removed.
    pub changes: u64,
    /// Number of days of spending that were removed, counted for each user.
    pub budget_days: u64,
    /// Number of memory changes that were removed.
    pub memory_changes: u64,
}

impl Removed {
    /// Returns true if nothing was removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_that_is_not_waited_for_and_a_server_that_confirms_early_are_risks() {
        let risk = |fsync, commit: &str, standbys: &str, receivers| {
            let replication = Replication {
                fsync,
                synchronous_commit: commit.to_owned(),
                synchronous_standbys: standbys.to_owned(),
                receivers,
            };
            replication.risk()
        };
        assert_eq!(risk(true, "on", "", 0), None);
        assert_eq!(risk(true, "remote_apply", "ANY 1 (*)", 2), None);
        let is_asynchronous = Some(CommitRisk::AsynchronousStandby);
        assert_eq!(risk(true, "on", " ", 1), is_asynchronous);
        assert_eq!(risk(true, "local", "ANY 1 (*)", 1), is_asynchronous);
        assert_eq!(risk(true, "off", "", 1), Some(CommitRisk::CommitsEarly));
        assert_eq!(risk(false, "off", "", 1), Some(CommitRisk::NoSync));
    }
}
