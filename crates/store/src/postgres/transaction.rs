//! A transaction.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::columns::all_columns;
use super::literal::{Call, fill};
use super::pool::{Pool, Session};
use crate::row;
use crate::sql::{Columns, Connection, Failure, Value};

/// Begins a transaction that the server ends if nothing comes for a second: a process that stands
/// still, or a machine that is gone, would keep every other from the rows it has locked. It holds
/// for this transaction alone, so also behind a pooler.
pub(super) const BEGIN: &str = "BEGIN;SET LOCAL idle_in_transaction_session_timeout = 1000";

/// A connection inside a transaction.
pub struct Transaction {
    session: Session,
    /// What begins it, until that was sent: it goes with the first statement.
    begin: Option<&'static str>,
    is_undone: bool,
}

impl Transaction {
    /// Makes a transaction that `begin` begins.
    pub(super) fn new(session: Session, begin: &'static str) -> Self {
        Self {
            session,
            begin: Some(begin),
            is_undone: false,
        }
    }

    pub(super) async fn begin(pool: &Arc<Pool>, begin: &'static str) -> Result<Self, Failure> {
        Ok(Self::new(pool.open(pool.turn().await?).await?, begin))
    }

    /// Keeps the changes or not. What was wrong before matters more than that it could not be
    /// rolled back.
    pub(super) async fn end(mut self, is_done: bool) -> Result<(), Failure> {
        if self.begin.is_some() {
            return Ok(());
        }
        let end = if is_done && !self.is_undone {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        let told = self.session.tell(end.to_owned()).await;
        let ended = self.session.ended(told);
        if is_done {
            ended?;
        }
        Ok(())
    }

    /// Calls a function, and waits for whoever has locked what it needs.
    pub(super) async fn call(&mut self, call: Call) -> Result<Columns, Failure> {
        let statement = self.next(call.waiting());
        let row = all_columns(&self.session.ask(statement).await?)?
            .into_iter()
            .next();
        row.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The next statement to send.
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
        Ok(self.session.tell(statement).await?)
    }

    async fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let statement = self.next(fill(statement, values));
        all_columns(&self.session.ask(statement).await?)
    }

    /// As one message.
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
        self.session.tell(statements).await?;
        Ok(())
    }

    async fn wait<T: Send>(_: &Handle, until: impl Future<Output = T> + Send) -> T {
        until.await
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        let statements = self.next(statements.to_owned());
        self.session.tell(statements).await?;
        Ok(())
    }

    async fn now(&mut self) -> Result<Timestamp, Failure> {
        let statement =
            "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)";
        let micros = self
            .fetch_first(statement, &[])
            .await?
            .map(|mut columns| columns.int())
            .transpose()?;
        Ok(Timestamp::from_microsecond(micros.unwrap_or_default())
            .map_err(|error| row::unreadable("the server's clock", error))?)
    }

    async fn may_wait(&mut self) -> Result<(), Failure> {
        self.execute("SET LOCAL idle_in_transaction_session_timeout = 0", &[])
            .await
            .map(drop)
    }

    fn undo(&mut self) {
        self.is_undone = true;
    }

    /// Workers are on other machines: only the end of a claim tells.
    fn is_gone(_: &str) -> bool {
        false
    }
}
