//! A PostgreSQL database that any number of processes share.
//!
//! The journal alone excludes: rows that are about to change are locked when they are read, and a second writer meets the
//! primary key. Times of claims are the server's, so that the clocks of the machines do not matter. PostgreSQL 13 or newer.

mod error;
mod open;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adjutant_core::LogContent;
use adjutant_core::port::StoreError;
use jiff::Timestamp;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::{Postgres, Row as _, TypeInfo as _, ValueRef as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::row;
use crate::sql::{About, Backend, Cell, Columns, Connection, Failure, SqlStore, Value, Work, count};

/// Connections of one process, if nothing else is said.
pub const POOL_MAX: u32 = 10;

/// Tasks, conversations, journal and logs in one PostgreSQL database. A clone is the same store.
pub type Store = SqlStore<PostgresDatabase>;

/// One PostgreSQL database and the connections to it.
#[derive(Debug)]
pub struct PostgresDatabase {
    place: Place,
    pool: PgPool,
    /// One permit for each connection.
    turns: Arc<Semaphore>,
}

/// The database as a person would name it: without the password.
#[derive(Debug, Clone)]
struct Place {
    database: String,
    host: String,
    port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the PostgreSQL database {} at {}:{}", self.database, self.host, self.port)
    }
}

impl Store {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (what is left out comes from the `PG…` variables, as with
    /// PostgreSQL's own programs) with at most `connections_max` connections, [`POOL_MAX`] if 0. A schema of an older
    /// version is brought up to date; of several processes that start at once, one does it and the others wait.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: the address is none, the server refuses the user, there is no such database, or it holds
    /// tables of another program. [`StoreError::Unavailable`]: the server cannot be reached.
    /// [`StoreError::Unreadable`]: the schema is of a newer version.
    pub async fn connect(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        let connections_max = if connections_max == 0 { POOL_MAX } else { connections_max };
        let (place, options) = open::options(url)?;
        match open::pool(options, connections_max).await {
            Ok(pool) => {
                let turns = Arc::new(Semaphore::new(usize::try_from(connections_max).unwrap_or(1)));
                Ok(Self(Arc::new(PostgresDatabase { place, pool, turns }), LogContent::Full))
            }
            Err(failure) => Err(error::at(failure, &place)),
        }
    }

    /// Waits for what is running and closes the connections, for every clone. Nothing is lost without it.
    pub async fn close(&self) {
        self.0.turns.close();
        self.0.pool.close().await;
    }
}

impl PostgresDatabase {
    /// Does work inside a transaction, in a task of its own: a caller that goes away leaves nothing half done. It waits for
    /// its turn before, so that a caller who goes away while it waits leaves nothing to do.
    async fn in_transaction<D, T>(
        &self,
        begin: &'static str,
        data: D,
        work: Work<Transaction, D, T>,
    ) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        let turn = match timeout(open::PATIENCE, self.turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed.into()),
            Err(_) => return Err(sqlx::Error::PoolTimedOut.into()),
        };
        let pool = self.pool.clone();
        let task = tokio::spawn(async move {
            let _turn = turn;
            let mut rows = Transaction::begin(&pool, begin).await?;
            let done = work(&mut rows, &data).await;
            rows.end(done.is_ok()).await?;
            done
        });
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Failure::panicked()),
            Err(_) => {
                let message = "this process is about to end".to_owned();
                Err(StoreError::Unavailable { message }.into())
            }
        }
    }
}

impl Backend for PostgresDatabase {
    type Connection = Transaction;

    async fn write<D, T>(&self, data: D, work: Work<Transaction, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.in_transaction("BEGIN", data, work).await
    }

    async fn read<D, T>(&self, data: D, work: Work<Transaction, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.in_transaction("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", data, work).await
    }

    async fn about(&self) -> Result<About, Failure> {
        let statement = "SELECT current_setting('server_version'), pg_database_size(current_database())";
        let mut found = self.fetch(statement, &[]).await?.into_iter();
        let (version, bytes) = match found.next() {
            Some(mut columns) => (columns.text()?, columns.int()?),
            None => (String::new(), 0),
        };
        Ok(About {
            place: self.place.to_string(),
            product: format!("PostgreSQL {version}"),
            journal_mode: None,
            bytes: count(bytes),
        })
    }

    /// The server keeps its constraints and its checksums by itself.
    async fn verify(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let Place { database, host, port } = &self.place;
        Err(StoreError::Unusable {
            message: format!(
                "PostgreSQL's own program makes its backups: `pg_dump --format=custom --host={host} --port={port} \
                 --file={} {database}`, and `pg_restore --dbname={database} FILE` brings them back",
                to.display()
            ),
        }
        .into())
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::at(failure, &self.place)
    }
}

/// A connection inside a transaction. Only when the server has said that the transaction is over does the connection go
/// back to the pool; else it is closed, and the server rolls back. The driver's own transactions do not keep this promise:
/// it takes a connection to be outside of a transaction until the answer to `BEGIN` has been read.
pub struct Transaction {
    connection: PoolConnection<Postgres>,
    is_undone: bool,
    is_over: bool,
}

impl Transaction {
    async fn begin(pool: &PgPool, begin: &'static str) -> Result<Self, Failure> {
        let connection = pool.acquire().await?;
        let mut rows = Self { connection, is_undone: false, is_over: false };
        rows.say(begin).await?;
        Ok(rows)
    }

    /// Keeps the changes or not. What was wrong before matters more than that it could not be rolled back.
    async fn end(mut self, is_done: bool) -> Result<(), Failure> {
        let end = if is_done && !self.is_undone { "COMMIT" } else { "ROLLBACK" };
        let ended = self.say(end).await;
        self.is_over = ended.is_ok();
        if is_done { ended } else { Ok(()) }
    }

    async fn say(&mut self, statement: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(statement).execute(&mut *self.connection).await?;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close_on_drop();
        }
    }
}

impl Connection for Transaction {
    const LOCKS_ROWS: bool = true;

    async fn execute(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        Ok(query(statement, values).execute(&mut *self.connection).await?.rows_affected())
    }

    async fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let rows = query(statement, values).fetch_all(&mut *self.connection).await?;
        rows.iter().map(|row| Ok(columns(row)?)).collect()
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        self.say(statements).await
    }

    async fn now(&mut self) -> Result<Timestamp, Failure> {
        let statement = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)";
        let micros = self.fetch_first(statement, &[]).await?.map(|mut columns| columns.int()).transpose()?;
        Ok(Timestamp::from_microsecond(micros.unwrap_or_default())
            .map_err(|error| row::unreadable("the server's clock", error))?)
    }

    fn undo(&mut self) {
        self.is_undone = true;
    }

    /// Workers are on other machines: only the end of a claim tells.
    fn is_gone(_: &str) -> bool {
        false
    }
}

fn columns(row: &PgRow) -> Result<Columns, sqlx::Error> {
    let cells = (0..row.len()).map(|at| {
        let value = row.try_get_raw(at)?;
        Ok(match (value.is_null(), value.type_info().name()) {
            (true, _) => Cell::Null,
            (false, "INT8") => Cell::Int(row.try_get(at)?),
            (false, "FLOAT8") => Cell::Real(row.try_get(at)?),
            (false, _) => Cell::Text(row.try_get(at)?),
        })
    });
    Ok(Columns::new(cells.collect::<Result<Vec<_>, sqlx::Error>>()?))
}

fn query<'q>(
    statement: &'static str,
    values: &'q [Value<'_>],
) -> sqlx::query::Query<'q, Postgres, PgArguments> {
    // Without a name: one with a name would stay with a pooler's connection to the server, for another client to meet.
    let query = sqlx::query(statement).persistent(false);
    values.iter().fold(query, |query, value| match value {
        Value::Int(value) => query.bind(*value),
        Value::Real(value) => query.bind(*value),
        // The one character PostgreSQL cannot hold. Bodies are JSON and never have it; words for people may.
        Value::Text(Some(text)) if text.contains('\0') => query.bind(text.replace('\0', "\u{fffd}")),
        Value::Text(value) => query.bind(value.as_deref()),
    })
}
