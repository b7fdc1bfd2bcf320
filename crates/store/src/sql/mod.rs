//! The SQL statements, and a store over any database that can run them.
//!
//! A [`Backend`] runs work inside transactions and explains its driver's errors. Statements are in
//! the dialect that SQLite and PostgreSQL share: `$1` parameters, `ON CONFLICT`, `RETURNING`.
//! Columns are text, 64-bit integers and doubles; times are text (see [`crate::record`]).

pub(crate) mod append;
pub(crate) mod begin;
mod blob;
mod branch;
pub(crate) mod budget;
mod check;
pub(crate) mod conversation;
pub(crate) mod conversation_row;
pub(crate) mod copy;
pub(crate) mod fact;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod lease;
pub(crate) mod log;
mod maintenance;
mod memory_ledger;
pub(crate) mod migrate;
pub(crate) mod open_turn_cache;
pub(crate) mod operator;
pub(crate) mod passage;
pub(crate) mod projection;
mod result_row;
pub(crate) mod snapshot;
pub(crate) mod task;
mod task_change;
mod task_index;
mod token;
pub(crate) mod user_page;
mod user_removal;
mod user_setting;
mod value;

use std::future::Future;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::port::{Alone, Relay, StoreError};
use adjutant_core::{BoxFuture, LogContent, StoreId};
use jiff::Timestamp;
use tokio::runtime::Handle;

use crate::change_feed::ChangeFeed;
use crate::maintenance::{Load, Replication};
use crate::worker::Presence;
pub(crate) use result_row::Row;
pub(crate) use result_row::{Cell, FromCell, FromRow, count, decode_all, from_row};
pub(crate) use value::Value;
use value::to_static;
pub(crate) use value::{key_values, value_array, values};

/// A database's description of itself.
#[derive(Debug)]
pub struct About {
    /// The database as a person would name it, without a password.
    pub place: String,
    /// Product and version, such as `SQLite 3.51.3`.
    pub product: String,
    /// SQLite's journal mode, such as `wal`.
    pub journal_mode: Option<String>,
    /// Size on disk in bytes.
    pub bytes: u64,
}

/// The reason for which a transaction was rolled back: an error of the driver, or one of ours.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum Failure {
    #[cfg(feature = "postgres")]
    Postgres(#[from] sqlx::Error),
    #[cfg(feature = "sqlite")]
    Sqlite(#[from] rusqlite::Error),
    Store(#[from] StoreError),
}

impl Failure {
    /// Returns the failure of work that panicked.
    pub(crate) fn panicked() -> Self {
        let message = "a defect of this program ended the transaction; none of it was kept";
        Self::Store(StoreError::unusable(message))
    }
}

/// Puts the database's name before an error's message, if the error is about the database.
pub(crate) fn add_place(mut error: StoreError, place: &dyn std::fmt::Display) -> StoreError {
    // The other errors are about the call and not about the database.
    if let StoreError::Unreadable { message, .. }
    | StoreError::Unusable { message, .. }
    | StoreError::Unavailable { message, .. } = &mut error
    {
        *message = format!("{place}: {message}");
    }
    error
}

/// A connection inside a transaction.
pub trait Connection: Send {
    /// True if other transactions write at the same time, so that rows about to change are locked
    /// when they are read.
    const LOCKS_ROWS: bool;

    /// True if the database numbers rows from sequences. A sequence does not notice a row that is
    /// inserted with its number.
    const HAS_SEQUENCES: bool;

    /// True if passages are searched with FTS5, false if with `tsvector`.
    const HAS_FTS5: bool;

    /// Runs a statement and returns the number of rows that it changed.
    fn execute(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Runs a statement and returns its rows.
    fn fetch_all(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Failure>> + Send;

    /// Runs a statement and returns its first row.
    fn fetch_optional(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Failure>> + Send {
        async move { Ok(self.fetch_all(statement, values).await?.into_iter().next()) }
    }

    /// Runs a statement whose rows are records of one type.
    fn fetch_records<T: FromRow>(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<T>, Failure>> + Send {
        async move {
            let rows = self.fetch_all(statement, values).await?;
            Ok(decode_all(rows, |mut row| T::from_row(&mut row))?)
        }
    }

    /// Runs a statement that returns one column of at most one row.
    fn fetch_scalar<T: FromCell>(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<T>, Failure>> + Send {
        async move {
            let row = self.fetch_optional(statement, values).await?;
            Ok(row.map(Row::scalar).transpose()?)
        }
    }

    /// Runs a statement once for each list of values.
    fn execute_each(
        &mut self,
        statement: &'static str,
        lists: &[Vec<Value<'static>>],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async move {
            for values in lists {
                self.execute(statement, values).await?;
            }
            Ok(())
        }
    }

    /// Waits for a future in the middle of this transaction, for example for the next page of a
    /// copy.
    fn wait<T: Send>(
        runtime: &Handle,
        until: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;

    /// Runs several statements without parameters.
    fn script(
        &mut self,
        statements: &'static str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Lifts the bound on the time between two statements, for a transaction that waits for
    /// something else meanwhile.
    fn may_wait(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Raises the bound on the time between two statements to a minute, for a transaction that reads
    /// through many or long texts meanwhile.
    fn may_compute(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the current time by the clock that all processes with this database share.
    fn now(&mut self) -> impl Future<Output = Result<Timestamp, Failure>> + Send;

    /// Rolls the transaction back at its end although the work in it succeeds.
    fn undo(&mut self);

    /// Returns what is known about a worker, or about its epoch, whatever its lease says. Unknown
    /// where workers are on other machines: there only the end of a lease or of a session tells.
    fn presence(_worker: &str, _epoch: Option<i64>) -> Presence {
        Presence::Unknown
    }

    /// Records that a worker has a lease in an epoch for this long from now.
    fn grant(_worker: &str, _epoch: i64, _lease: Duration) {}

    /// Extends an epoch by a clock that nobody can set. Returns false if the epoch is over, and
    /// `None` if only the database's clock can tell.
    fn extend(_worker: &str, _epoch: i64, _lease: Duration) -> Option<bool> {
        None
    }

    /// Ends an epoch, because one of its leases is taken by another worker.
    fn end(_worker: &str, _epoch: i64) {}
}

/// Adds `FOR UPDATE` to a statement where other transactions write at the same time.
macro_rules! locking {
    ($connection:ty, $statement:expr) => {
        if <$connection as $crate::sql::Connection>::LOCKS_ROWS {
            concat!($statement, " FOR UPDATE")
        } else {
            $statement
        }
    };
}

use locking;

/// Work inside one transaction: a function of the connection and of data that it owns. It captures
/// nothing, so another thread or task can run it after its caller has gone, and run it again after
/// a rollback.
pub(crate) type Work<C, D, T> = for<'a> fn(&'a mut C, &'a D) -> BoxFuture<'a, Result<T, Failure>>;

/// A database that holds a store.
pub trait Backend: Send + Sync + 'static {
    type Connection: Connection;

    /// Returns the current load on the connections.
    fn current_load(&self) -> Load;

    /// Runs work in a transaction that writes, and commits it if it succeeds and does not
    /// [undo](Connection::undo) its changes.
    ///
    /// Work that has begun is finished even if the caller is dropped. It may run twice: the first
    /// run is rolled back before the second.
    fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        work: Work<Self::Connection, D, T>,
    ) -> impl Future<Output = Result<T, Failure>> + Send;

    /// Runs work in a transaction that reads one snapshot of the database.
    fn read<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        work: Work<Self::Connection, D, T>,
    ) -> impl Future<Output = Result<T, Failure>> + Send;

    /// Runs a single statement in its own transaction and returns the number of rows that it
    /// changed.
    fn execute(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        // Copied, because the work may go on after its caller has gone.
        self.write((statement, to_static(values)), |tx, (statement, values)| {
            Box::pin(tx.execute(statement, values))
        })
    }

    /// Runs a single statement that changes nothing and returns its rows.
    fn fetch_all(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Failure>> + Send {
        self.read((statement, to_static(values)), |tx, (statement, values)| {
            Box::pin(tx.fetch_all(statement, values))
        })
    }

    /// Runs a single statement that changes nothing and returns its first row.
    fn fetch_optional(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Failure>> + Send {
        async move { Ok(self.fetch_all(statement, values).await?.into_iter().next()) }
    }

    /// Returns the feed of changes for subscribers in this process.
    fn change_feed(&self) -> &ChangeFeed;

    /// Starts to watch for writes of other processes, unless a watcher runs already. It ends when
    /// the last subscriber has gone.
    fn watch(self: &std::sync::Arc<Self>);

    /// Returns the relay of messages to other processes that share the database.
    fn relay(self: &std::sync::Arc<Self>) -> std::sync::Arc<dyn Relay> {
        std::sync::Arc::new(Alone)
    }

    /// Records that a worker of this process takes leases, so that other processes notice its end.
    /// Done in the background.
    fn note_worker(&self, _worker: &str) {}

    /// Ends the leases of workers that are known to be dead where [`Connection::presence`] cannot
    /// tell. Returns true if there were any.
    fn end_leases_of_dead_workers(&self) -> impl Future<Output = Result<bool, Failure>> + Send {
        async { Ok(false) }
    }

    /// Returns true if this process is notified of other processes' writes, false if it polls for
    /// them.
    fn receives_notifications(&self) -> impl Future<Output = bool> + Send;

    /// Returns how the server copies its commits to standbys. `None` where there are no standbys.
    fn replication(&self) -> impl Future<Output = Result<Option<Replication>, Failure>> + Send {
        async { Ok(None) }
    }

    /// Returns the database's description of itself.
    fn about(&self) -> impl Future<Output = Result<About, Failure>> + Send;

    /// Returns the damage that the database's own check finds.
    fn verify(&self) -> impl Future<Output = Result<Vec<String>, Failure>> + Send;

    /// Writes a copy of the whole database to a file.
    fn backup(&self, to: &Path) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Turns a failure into an error that names the database and the next step.
    fn explain(&self, failure: Failure) -> StoreError;
}

/// Tasks, conversations, journal and logs in one SQL database. Clones share the database.
#[derive(Debug)]
pub struct SqlStore<B> {
    pub(crate) backend: std::sync::Arc<B>,
    pub(crate) options: StoreOptions,
}

/// Options of one handle of a store. Other handles on the same database may have others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreOptions {
    /// Amount of message content that is written into the logs.
    pub(crate) log_content: LogContent,
    /// Messages that may wait in one conversation.
    pub(crate) messages_queued_max: NonZeroU32,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            log_content: LogContent::Full,
            messages_queued_max: MESSAGES_QUEUED_MAX,
        }
    }
}

// Not derived, which would require that the backend can be cloned.
impl<B> Clone for SqlStore<B> {
    fn clone(&self) -> Self {
        Self {
            backend: self.backend.clone(),
            options: self.options,
        }
    }
}

impl<B> SqlStore<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self {
            backend: std::sync::Arc::new(backend),
            options: StoreOptions::default(),
        }
    }

    /// Sets how much of the messages is written into the logs from now on, for this handle of the
    /// store. Default: [`LogContent::Full`].
    #[must_use]
    pub fn with_log_content(mut self, content: LogContent) -> Self {
        self.options.log_content = content;
        self
    }

    /// Sets how many messages may wait in one conversation, accepted and not taken, for this handle
    /// of the store. Default: [`MESSAGES_QUEUED_MAX`].
    #[must_use]
    pub fn with_messages_queued_max(mut self, messages: NonZeroU32) -> Self {
        self.options.messages_queued_max = messages;
        self
    }
}

impl<B: Backend> SqlStore<B> {
    /// Returns the identity of the database, which all clones share.
    fn id(&self) -> StoreId {
        StoreId::of(&*self.backend)
    }

    /// Runs work on the database, and turns its failure into an error that names the database and
    /// the next step.
    fn explained<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { work.await.map_err(|failure| self.backend.explain(failure)) })
    }

    /// Runs work in a transaction that writes ([`Backend::write`]).
    fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        work: Work<B::Connection, D, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        self.explained(self.backend.write(data, work))
    }

    /// Runs work in a transaction that only reads ([`Backend::read`]).
    fn read<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        work: Work<B::Connection, D, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        self.explained(self.backend.read(data, work))
    }
}
