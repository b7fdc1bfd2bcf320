//! What every SQL database is asked, written once: the statements, and a store over them.
//!
//! A backend runs what it is given inside a transaction, and has the words of its errors.
//! Statements are in the dialect that SQLite and PostgreSQL share: `$1` parameters, `ON CONFLICT`,
//! `RETURNING`. Columns are text, 64-bit integers and doubles; times are text (see [`crate::row`]).

pub(crate) mod append;
pub(crate) mod appending;
pub(crate) mod begin;
mod blob;
mod branch;
pub(crate) mod budget;
mod check;
pub(crate) mod conversation;
pub(crate) mod conversation_row;
pub(crate) mod copy;
pub(crate) mod fact;
pub(crate) mod journal;
pub(crate) mod log;
mod maintenance;
mod memory_ledger;
pub(crate) mod migrate;
pub(crate) mod open_turns;
pub(crate) mod operator;
pub(crate) mod passage;
pub(crate) mod past;
pub(crate) mod people;
mod removal;
pub(crate) mod snapshot;
pub(crate) mod task;
mod task_index;
mod token;
mod with_change;
pub(crate) mod work;

use std::borrow::Cow;
use std::future::Future;
use std::num::NonZeroU32;
use std::path::Path;

use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::port::{Alone, Relay, StoreError};
use adjutant_core::{BoxFuture, LogContent, StoreId};
use jiff::Timestamp;
use tokio::runtime::Handle;

use crate::maintenance::Load;
use crate::news::News;
use crate::row;

/// What a database says of itself.
#[derive(Debug)]
pub struct About {
    pub place: String,
    pub product: String,
    pub journal_mode: Option<String>,
    pub bytes: u64,
}

/// Counts are never negative.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Why a transaction was given up: what the database said, or what we found.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum Failure {
    #[cfg(feature = "postgres")]
    Postgres(sqlx::Error),
    #[cfg(feature = "sqlite")]
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl Failure {
    /// Work that ended with a panic.
    pub(crate) fn panicked() -> Self {
        let message = "a defect of this program ended what was asked of it; nothing of it was kept"
            .to_owned();
        Self::Store(StoreError::Unusable { message })
    }
}

#[cfg(feature = "postgres")]
impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Postgres(error)
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// An error with the database's name in it, where it is about the database.
pub(crate) fn placed(error: StoreError, place: &dyn std::fmt::Display) -> StoreError {
    match error {
        StoreError::Unreadable { message } => StoreError::Unreadable {
            message: format!("{place}: {message}"),
        },
        StoreError::Unusable { message } => StoreError::Unusable {
            message: format!("{place}: {message}"),
        },
        StoreError::Unavailable { message } => StoreError::Unavailable {
            message: format!("{place}: {message}"),
        },
        other => other,
    }
}

/// A parameter of a statement. It has its type even where it is NULL: PostgreSQL wants to know.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<Cow<'a, str>>),
}

impl Value<'_> {
    fn to_static(&self) -> Value<'static> {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Real(value) => Value::Real(*value),
            Self::Text(value) => {
                Value::Text(value.as_deref().map(|text| Cow::Owned(text.to_owned())))
            }
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<Option<f64>> for Value<'_> {
    fn from(value: Option<f64>) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value.map(Cow::Borrowed))
    }
}

/// The parameters of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// The parameters `$1` to `$3` that name a conversation: agent, user and id. Others follow.
macro_rules! key_values {
    ($key:expr $(, $value:expr)* $(,)?) => {
        &[
            $crate::sql::Value::from($key.agent.as_str()),
            $crate::sql::Value::from($key.user.as_str()),
            $crate::sql::Value::from(&$key.conversation.to_string()),
            $($crate::sql::Value::from($value)),*
        ]
    };
}
pub(crate) use key_values;

/// A column of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

/// A row, its columns read one after the other, in the order the statement names them.
#[derive(Debug)]
pub struct Columns(std::vec::IntoIter<Cell>);

impl Columns {
    pub(crate) fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    /// Returns whether the next column is this number.
    #[cfg(feature = "postgres")]
    pub(crate) fn first_is(&self, number: i64) -> bool {
        self.0.as_slice().first() == Some(&Cell::Int(number))
    }

    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.maybe_int()?.ok_or_else(|| unexpected(&Cell::Null))
    }

    pub(crate) fn maybe_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Int(value) => Ok(Some(value)),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn maybe_real(&mut self) -> Result<Option<f64>, StoreError> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Real(value) => Ok(Some(value)),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.maybe_text()?.ok_or_else(|| unexpected(&Cell::Null))
    }

    pub(crate) fn maybe_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Text(value) => Ok(Some(value)),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns all columns.
    pub(crate) fn cells(self) -> impl Iterator<Item = Cell> {
        self.0
    }

    fn next(&mut self) -> Cell {
        self.0.next().unwrap_or(Cell::Null)
    }
}

fn unexpected(cell: &Cell) -> StoreError {
    row::unreadable(
        "a row",
        format!("a column holds {cell:?}, which does not belong there"),
    )
}

/// A connection, inside a transaction.
pub trait Connection: Send {
    /// Whether others write beside this transaction, so that rows which are about to change are
    /// locked when they are read.
    const LOCKS_ROWS: bool;

    /// Whether the database numbers rows by sequences, which know nothing of a row that comes with
    /// its number.
    const HAS_SEQUENCES: bool;

    /// True if words in texts are looked for by FTS5, and not by `tsvector`.
    const HAS_FTS5: bool;

    /// Carries out a statement; returns how many rows it changed.
    fn execute(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Carries out a statement that answers with rows.
    fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Columns>, Failure>> + Send;

    /// The same for at most one row.
    fn fetch_first(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Columns>, Failure>> + Send {
        async move { Ok(self.fetch(statement, values).await?.into_iter().next()) }
    }

    /// Carries out a statement once for each list of values.
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

    /// Waits for somebody else in the midst of this transaction.
    fn wait<T: Send>(
        runtime: &Handle,
        until: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;

    /// Carries out several statements that have no parameters.
    fn script(
        &mut self,
        statements: &'static str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Says that the transaction waits for something else between its statements, as long as it
    /// takes.
    fn may_wait(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }

    /// What time it is for whoever shares this database.
    fn now(&mut self) -> impl Future<Output = Result<Timestamp, Failure>> + Send;

    /// Lets the transaction end without its changes, although the work in it succeeds.
    fn undo(&mut self);

    /// Returns whether the worker of a claim certainly does not run any more, whatever its claim
    /// says.
    fn is_gone(worker: &str) -> bool;
}

/// A statement that locks the rows it reads where somebody else may write beside it.
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

/// Work inside one transaction: a function of the connection and of data that it owns. So it can be
/// done by another thread or task, after its caller has gone away, and a second time.
pub(crate) type Work<C, D, T> = for<'a> fn(&'a mut C, &'a D) -> BoxFuture<'a, Result<T, Failure>>;

/// A database that keeps a store.
pub trait Backend: Send + Sync + 'static {
    type Connection: Connection;

    /// Returns how busy the way to the database is.
    fn current_load(&self) -> Load;

    /// Does work in a transaction for changes. They are kept if it succeeds and does not
    /// [undo](Connection::undo) them.
    ///
    /// Work that has begun ends, whether or not somebody still waits for what comes out of it. It
    /// may be done twice: what the first time did is undone before.
    fn write<D, T>(
        &self,
        data: D,
        work: Work<Self::Connection, D, T>,
    ) -> impl Future<Output = Result<T, Failure>> + Send
    where
        D: Send + Sync + 'static,
        T: Send + 'static;

    /// Does work in a transaction that sees one state of everything.
    fn read<D, T>(
        &self,
        data: D,
        work: Work<Self::Connection, D, T>,
    ) -> impl Future<Output = Result<T, Failure>> + Send
    where
        D: Send + Sync + 'static,
        T: Send + 'static;

    /// Carries out a single statement; returns how many rows it changed.
    fn execute(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        self.write(
            (statement, to_static(values)),
            |rows, (statement, values)| Box::pin(rows.execute(statement, values)),
        )
    }

    /// Carries out a single statement that answers with rows and changes nothing.
    fn fetch(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Columns>, Failure>> + Send {
        self.read(
            (statement, to_static(values)),
            |rows, (statement, values)| Box::pin(rows.fetch(statement, values)),
        )
    }

    /// The same for at most one row.
    fn fetch_first(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Columns>, Failure>> + Send {
        self.read(
            (statement, to_static(values)),
            |rows, (statement, values)| Box::pin(rows.fetch_first(statement, values)),
        )
    }

    /// The news of what is written, for those in this process that wait for something.
    fn news(&self) -> &News;

    /// Begins to watch what other processes write, unless that is done already, and as long as
    /// somebody listens to the news.
    fn watch(self: &std::sync::Arc<Self>);

    /// Returns the way to other processes that share the database, if there is one.
    fn relay(self: &std::sync::Arc<Self>) -> std::sync::Arc<dyn Relay> {
        std::sync::Arc::new(Alone)
    }

    /// Notes that a worker of this process makes claims, so that others learn of its end. Nothing
    /// waits for it.
    fn note_worker(&self, _worker: &str) {}

    /// Ends the claims of workers that are known to be gone, where [`Connection::is_gone`] cannot
    /// say it. Returns whether there were any.
    fn end_claims_of_the_gone(&self) -> impl Future<Output = Result<bool, Failure>> + Send {
        async { Ok(false) }
    }

    /// Returns whether what other processes do is told here at once, not seen by looking.
    fn hears_others(&self) -> impl Future<Output = bool> + Send;

    /// What the database says of itself.
    fn about(&self) -> impl Future<Output = Result<About, Failure>> + Send;

    /// What the database itself finds wrong with what it holds.
    fn verify(&self) -> impl Future<Output = Result<Vec<String>, Failure>> + Send;

    /// Writes a copy of everything to a file.
    fn backup(&self, to: &Path) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Gives what went wrong its words.
    fn explain(&self, failure: Failure) -> StoreError;
}

fn to_static(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().map(Value::to_static).collect()
}

/// Tasks, conversations, journal and logs in one SQL database. A clone is the same store.
#[derive(Debug)]
pub struct SqlStore<B>(pub(crate) std::sync::Arc<B>, pub(crate) StoreOptions);

/// How one handle of a store writes, whatever others on the same database do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreOptions {
    /// How much of what is said is written into the logs.
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

impl<B> Clone for SqlStore<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1)
    }
}

impl<B> SqlStore<B> {
    /// The same store, which writes so much of what is said into its logs from now on. Default:
    /// [`LogContent::Full`].
    #[must_use]
    pub fn with_log_content(self, content: LogContent) -> Self {
        Self(
            self.0,
            StoreOptions {
                log_content: content,
                ..self.1
            },
        )
    }

    /// The same store, which lets so many messages wait in one conversation from now on, accepted
    /// and not taken. Default: [`MESSAGES_QUEUED_MAX`].
    #[must_use]
    pub fn with_messages_queued_max(self, messages: NonZeroU32) -> Self {
        Self(
            self.0,
            StoreOptions {
                messages_queued_max: messages,
                ..self.1
            },
        )
    }
}

impl<B: Backend> SqlStore<B> {
    /// Clones have the same.
    fn id(&self) -> StoreId {
        StoreId::of(&*self.0)
    }

    fn run<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { work.await.map_err(|failure| self.0.explain(failure)) })
    }
}
