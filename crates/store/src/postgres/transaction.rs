//! A transaction that implements [`Connection`].

use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::literal::{Call, fill};
use super::pool::{Pool, Session};
use super::result::to_rows;
use crate::record;
use crate::sql::{Connection, Failure, Row, Value};

/// Begins a transaction that the server ends if no statement comes for a second: otherwise a
/// process that hangs, or a machine that is gone, would keep its row locks. `SET LOCAL` ends with
/// the transaction, so it works behind a pooler.
pub(super) const BEGIN: &str = "BEGIN;SET LOCAL idle_in_transaction_session_timeout = 1000";

/// Begins a transaction that reads one snapshot. Statements are not compiled: the server
/// overestimates what recursive ones read, and compiling the list of conversations takes seconds
/// where running it takes milliseconds.
pub(super) const BEGIN_READING: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;SET LOCAL jit = off";

/// A connection inside a transaction.
pub struct Transaction {
    session: Session,
    /// The statement that begins the transaction. It is sent with the first statement, to save a
    /// round trip.
    begin: Option<&'static str>,
    is_undone: bool,
}

impl Transaction {
    /// Creates a transaction that `begin` begins.
    pub(super) fn new(session: Session, begin: &'static str) -> Self {
        Self {
            session,
            begin: Some(begin),
            is_undone: false,
        }
    }

    pub(super) async fn begin(pool: &Arc<Pool>, begin: &'static str) -> Result<Self, Failure> {
        Ok(Self::new(pool.connect(pool.acquire().await?).await?, begin))
    }

    /// Commits or rolls back. If the work has failed, its error matters more than one of the
    /// rollback.
    pub(super) async fn end(mut self, is_done: bool) -> Result<(), Failure> {
        // No statement was sent, so there is no transaction to end.
        if self.begin.is_some() {
            return Ok(());
        }
        let end = if is_done && !self.is_undone {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        let result = self.session.execute(end.to_owned()).await;
        let ended = self.session.release_after(result);
        if is_done {
            ended?;
        }
        Ok(())
    }

    /// Calls a function, waiting for locks.
    pub(super) async fn call(&mut self, call: Call) -> Result<Row, Failure> {
        let statement = self.next(call.with_wait());
        let row = to_rows(&self.session.fetch_all(statement).await?)?
            .into_iter()
            .next();
        row.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Returns the next message to send.
    fn next(&mut self, statement: String) -> String {
        match self.begin.take() {
            Some(begin) => format!("{begin};{statement}"),
            None => statement,
        }
    }
}

impl Connection for Transaction {
    const LOCKS_ROWS: bool = true;
    const HAS_SEQUENCES: bool = true;
    const HAS_FTS5: bool = false;

    async fn execute(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Failure> {
        let statement = self.next(fill(statement, values));
        Ok(self.session.execute(statement).await?)
    }

    async fn fetch_all(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let statement = self.next(fill(statement, values));
        to_rows(&self.session.fetch_all(statement).await?)
    }

    /// Sends all statements as one message.
    async fn execute_each(
        &mut self,
        statement: &'static str,
        lists: &[Vec<Value<'static>>],
    ) -> Result<(), Failure> {
        if lists.is_empty() {
            return Ok(());
        }
        let filled: Vec<String> = lists.iter().map(|values| fill(statement, values)).collect();
        let statements = self.next(filled.join(";"));
        self.session.execute(statements).await?;
        Ok(())
    }

    async fn wait<T: Send>(_: &Handle, until: impl Future<Output = T> + Send) -> T {
        until.await
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        let statements = self.next(statements.to_owned());
        self.session.execute(statements).await?;
        Ok(())
    }

    async fn now(&mut self) -> Result<Timestamp, Failure> {
        let statement =
            // Not `now()`, which is the time at which the transaction began, before it waited for
            // locks.
            "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)";
        let micros: Option<i64> = self.fetch_scalar(statement, &[]).await?;
        Ok(Timestamp::from_microsecond(micros.unwrap_or_default())
            .map_err(|error| record::unreadable("the server's clock", error))?)
    }

    async fn may_wait(&mut self) -> Result<(), Failure> {
        self.execute("SET LOCAL idle_in_transaction_session_timeout = 0", &[])
            .await
            .map(drop)
    }

    async fn may_compute(&mut self) -> Result<(), Failure> {
        self.execute("SET LOCAL idle_in_transaction_session_timeout = 60000", &[])
            .await
            .map(drop)
    }

    fn undo(&mut self) {
        self.is_undone = true;
    }
}
