//! A SQLite connection that implements [`Connection`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adjutant_core::port::StoreError;
use jiff::Timestamp;
use rusqlite::CachedStatement;
use rusqlite::types::ValueRef;
use tokio::runtime::Handle;

use crate::record;
use crate::sql::{Cell, Connection, Failure, Row, Value, Work};
use crate::worker::{self, Presence};

/// Prepared statements that are cached: more than there are in the module `sql`.
const STATEMENTS: usize = 256;

/// A connection, inside a transaction or not.
#[derive(Debug)]
pub struct SqliteConnection {
    pub(super) raw: rusqlite::Connection,
    /// Set if the changes of the running work are to be rolled back although it succeeds.
    pub(super) is_undone: bool,
    /// Bytes of text that were bound to statements since it was set to 0.
    pub(super) bytes: usize,
    /// Statements with parameters as SQLite numbers them (`?1` for `$1`), by the original.
    numbered: RefCell<HashMap<Address, String>>,
    /// The names of the columns that each statement returns.
    columns: RefCell<HashMap<Address, Arc<[String]>>>,
}

/// The place in memory and the length of a statement's text. Statements are `'static`, so this
/// identifies one without hashing the text.
type Address = (usize, usize);

fn address(statement: &'static str) -> Address {
    (statement.as_ptr() as usize, statement.len())
}

impl SqliteConnection {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        // A statement that falls out of the cache would be compiled again by every turn.
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            raw: connection,
            is_undone: false,
            bytes: 0,
            numbered: RefCell::default(),
            columns: RefCell::default(),
        }
    }

    /// Runs a statement without parameters, such as `BEGIN` or `COMMIT`.
    pub(super) fn run(&self, statement: &'static str) -> Result<(), Failure> {
        self.raw.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    /// Returns true if no transaction is open. SQLite ends one by itself after some errors, such as
    /// a full disk (sqlite.org/lang_transaction.html, 3).
    pub(super) fn is_autocommit(&self) -> bool {
        self.raw.is_autocommit()
    }

    /// Returns the number of rows that were changed since the connection was opened.
    pub(super) fn changes(&self) -> u64 {
        self.raw.total_changes()
    }

    /// Rolls the transaction back, if one is open. After an error here SQLite has rolled it back
    /// itself.
    pub(super) fn roll_back(&self) {
        if !self.is_autocommit() {
            let _ = self.run("ROLLBACK");
        }
    }

    /// Runs work that only reads, in a transaction of its own.
    pub(super) fn read<D, T>(&mut self, data: &D, work: Work<Self, D, T>) -> Result<T, Failure> {
        self.run("BEGIN")?;
        let done = poll_ready(work(self, data));
        // A read has changed nothing, and a rollback ends it even after an error.
        self.roll_back();
        done
    }

    /// Prepares a statement and binds its values. To SQLite `$1` is a named parameter, which it
    /// looks up by text for each binding; `?1` is a number, so the statement is prepared with that.
    fn prepare(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, Failure> {
        let mut texts = self.numbered.borrow_mut();
        let text = texts
            .entry(address(statement))
            .or_insert_with(|| statement.replace('$', "?"));
        let mut prepared = self.raw.prepare_cached(text)?;
        for parameter in 1..=prepared.parameter_count() {
            match values.get(parameter - 1) {
                Some(Value::Int(value)) => prepared.raw_bind_parameter(parameter, value)?,
                Some(Value::Real(value)) => prepared.raw_bind_parameter(parameter, value)?,
                Some(Value::Text(value)) => {
                    prepared.raw_bind_parameter(parameter, value.as_deref())?
                }
                None => {
                    let message = format!("a statement has no value for its parameter {parameter}");
                    return Err(StoreError::unusable(message).into());
                }
            }
        }
        Ok(prepared)
    }

    /// Returns the names of the columns that `prepared` returns. A turn runs the same statements
    /// again and again, so they are copied once for each.
    fn column_names(
        &self,
        statement: &'static str,
        prepared: &CachedStatement<'_>,
    ) -> Arc<[String]> {
        let copied = || prepared.column_names().into_iter().map(str::to_owned);
        let mut columns = self.columns.borrow_mut();
        columns
            .entry(address(statement))
            .or_insert_with(|| copied().collect())
            .clone()
    }
}

impl Connection for SqliteConnection {
    const LOCKS_ROWS: bool = false;
    /// `AUTOINCREMENT` remembers the highest number with every row, also of one that came with its
    /// number.
    const HAS_SEQUENCES: bool = false;
    const HAS_FTS5: bool = true;

    async fn execute(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Failure> {
        self.bytes += values.iter().map(bytes).sum::<usize>();
        let changed = self.prepare(statement, values)?.raw_execute()?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    async fn fetch_all(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let mut prepared = self.prepare(statement, values)?;
        let names = self.column_names(statement, &prepared);
        let mut rows = prepared.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..names.len()).map(|column| cell(row.get_ref(column)?));
            found.push(Row::new(&names, cells.collect::<Result<_, Failure>>()?));
        }
        Ok(found)
    }

    /// Blocks the thread, which serves only this connection.
    async fn wait<T: Send>(runtime: &Handle, until: impl Future<Output = T> + Send) -> T {
        runtime.block_on(until)
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        Ok(self.raw.execute_batch(statements)?)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a store does I/O, and these ports have no clock"
    )]
    async fn now(&mut self) -> Result<Timestamp, Failure> {
        Ok(crate::faults::stepped(Timestamp::now()))
    }

    fn undo(&mut self) {
        self.is_undone = true;
    }

    /// All workers with this file are on this machine, so a dead one is noticed at once, and a
    /// living one keeps its leases.
    fn presence(worker: &str, epoch: Option<i64>) -> Presence {
        worker::presence(worker, epoch)
    }

    fn grant(worker: &str, epoch: i64, lease: Duration) {
        worker::grant(worker, epoch, lease);
    }

    fn extend(worker: &str, epoch: i64, lease: Duration) -> Option<bool> {
        worker::extend(worker, epoch, lease)
    }

    fn end(worker: &str, epoch: i64) {
        worker::end(worker, epoch);
    }
}

fn bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(Some(text)) => text.len(),
        _ => 0,
    }
}

fn cell(value: ValueRef<'_>) -> Result<Cell, Failure> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(error) => return Err(record::unreadable("a text", error).into()),
        },
        ValueRef::Blob(_) => {
            return Err(record::unreadable("a column", "it holds bytes and no text").into());
        }
    })
}

/// Runs work on a SQLite connection, whose futures never wait, to its end.
pub(super) fn poll_ready<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => {
            let message =
                "work inside a transaction waits for something else, which it must not".to_owned();
            Err(StoreError::unusable(message).into())
        }
    }
}
