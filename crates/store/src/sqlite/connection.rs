//! A connection to a database, as one thread uses it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use adjutant_core::port::StoreError;
use jiff::Timestamp;
use rusqlite::CachedStatement;
use rusqlite::types::ValueRef;
use tokio::runtime::Handle;

use crate::row;
use crate::sql::{Cell, Columns, Connection, Failure, Value, Work};
use crate::worker;

/// Prepared statements that are kept: more than there are in `sql`.
const STATEMENTS: usize = 256;

/// A connection, inside a transaction or not.
#[derive(Debug)]
pub struct Rows {
    pub(super) connection: rusqlite::Connection,
    /// Set if the changes of the work that runs are to be undone although it succeeds.
    pub(super) is_undone: bool,
    /// Bytes of text that were handed to statements since it was set to 0.
    pub(super) bytes: usize,
    /// The statements that were prepared, with their parameters as SQLite numbers them, by address
    /// and length.
    numbered: RefCell<HashMap<(usize, usize), String>>,
}

impl Rows {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            connection,
            is_undone: false,
            bytes: 0,
            numbered: RefCell::default(),
        }
    }

    /// Carries out a statement that begins or ends something.
    pub(super) fn say(&self, statement: &'static str) -> Result<(), Failure> {
        self.connection.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    /// Returns whether no transaction is open. SQLite ends one by itself after some errors, such as
    /// a full disk (sqlite.org/lang_transaction.html, 3).
    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Returns the number of rows that statements have changed since the connection was opened.
    pub(super) fn changes(&self) -> u64 {
        self.connection.total_changes()
    }

    /// Ends the transaction, if one is open, without its changes. SQLite's own answer to an error
    /// here is to end it as well.
    pub(super) fn roll_back(&self) {
        if !self.is_autocommit() {
            let _ = self.say("ROLLBACK");
        }
    }

    /// Does work that only reads, in a transaction of its own.
    pub(super) fn read<D, T>(&mut self, data: &D, work: Work<Self, D, T>) -> Result<T, Failure> {
        self.say("BEGIN")?;
        let done = at_once(work(self, data));
        self.roll_back();
        done
    }

    /// Returns the statement with its values. `$1` is a name for SQLite, numbered as the names
    /// first appear, and names are found by their text each time; so it is prepared with `?1`,
    /// which is a number.
    fn prepare(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, Failure> {
        let mut texts = self.numbered.borrow_mut();
        // A statement is in the program, and stays there: its address tells which it is.
        let address = (statement.as_ptr() as usize, statement.len());
        let text = texts
            .entry(address)
            .or_insert_with(|| statement.replace('$', "?"));
        let mut prepared = self.connection.prepare_cached(text)?;
        for parameter in 1..=prepared.parameter_count() {
            match values.get(parameter - 1) {
                Some(Value::Int(value)) => prepared.raw_bind_parameter(parameter, value)?,
                Some(Value::Real(value)) => prepared.raw_bind_parameter(parameter, value)?,
                Some(Value::Text(value)) => {
                    prepared.raw_bind_parameter(parameter, value.as_deref())?
                }
                None => {
                    let message = format!("a statement has no value for its parameter {parameter}");
                    return Err(StoreError::Unusable { message }.into());
                }
            }
        }
        Ok(prepared)
    }
}

impl Connection for Rows {
    const LOCKS_ROWS: bool = false;
    /// The highest number is remembered with every row.
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

    async fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let mut prepared = self.prepare(statement, values)?;
        let columns = prepared.column_count();
        let mut rows = prepared.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|at| cell(row.get_ref(at)?));
            found.push(Columns::new(cells.collect::<Result<_, Failure>>()?));
        }
        Ok(found)
    }

    /// The thread waits, which is there for nothing else.
    async fn wait<T: Send>(runtime: &Handle, until: impl Future<Output = T> + Send) -> T {
        runtime.block_on(until)
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        Ok(self.connection.execute_batch(statements)?)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a store does I/O, and these ports have no clock"
    )]
    async fn now(&mut self) -> Result<Timestamp, Failure> {
        Ok(Timestamp::now())
    }

    fn undo(&mut self) {
        self.is_undone = true;
    }

    /// All workers of a file are on this machine, so a dead one is known at once.
    fn is_gone(worker: &str) -> bool {
        worker::is_gone(worker)
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
            Err(error) => return Err(row::unreadable("a text", error).into()),
        },
        ValueRef::Blob(_) => {
            return Err(row::unreadable("a column", "it holds bytes and no text").into());
        }
    })
}

/// Runs work on a connection that never waits for anything to its end.
pub(super) fn at_once<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => {
            let message =
                "work inside a transaction waits for something else, which it must not".to_owned();
            Err(StoreError::Unusable { message }.into())
        }
    }
}
