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
use sqlx::postgres::{PgArguments, PgPool};
use sqlx::{PgConnection, Postgres, Transaction};

use crate::row;
use crate::sql::{About, Backend, Columns, Connection, Failure, SqlStore, Value, count};

/// Connections of one process, if nothing else is said.
pub const POOL_MAX: u32 = 10;

/// Tasks, conversations, journal and logs in one PostgreSQL database. A clone is the same store.
pub type Store = SqlStore<PostgresDatabase>;

/// One PostgreSQL database and the connections to it.
#[derive(Debug)]
pub struct PostgresDatabase {
    place: Place,
    pool: PgPool,
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
            Ok(pool) => Ok(Self(Arc::new(PostgresDatabase { place, pool }), LogContent::Full)),
            Err(failure) => Err(error::at(failure, &place)),
        }
    }

    /// Waits for what is running and closes the connections, for every clone. Nothing is lost without it.
    pub async fn close(&self) {
        self.0.pool.close().await;
    }
}

impl Backend for PostgresDatabase {
    type Database = Postgres;

    async fn write(&self) -> Result<Transaction<'static, Postgres>, Failure> {
        Ok(self.pool.begin().await?)
    }

    async fn read(&self) -> Result<Transaction<'static, Postgres>, Failure> {
        Ok(self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?)
    }

    /// Workers are on other machines: only the end of a claim tells.
    fn is_gone(&self, _: &str) -> bool {
        false
    }

    async fn about(&self) -> Result<About, Failure> {
        let (version, bytes): (String, i64) =
            sqlx::query_as("SELECT current_setting('server_version'), pg_database_size(current_database())")
                .fetch_one(&self.pool)
                .await?;
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

impl Connection for PgConnection {
    const LOCKS_ROWS: bool = true;

    async fn execute(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        Ok(query(statement, values).execute(self).await?.rows_affected())
    }

    async fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let rows = query(statement, values).fetch_all(self).await?;
        rows.iter().map(|row| Ok(Columns::of(row, "INT8", "FLOAT8")?)).collect()
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(statements).execute(self).await?;
        Ok(())
    }

    async fn now(&mut self) -> Result<Timestamp, Failure> {
        let micros: i64 = sqlx::query_scalar(
            "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)",
        )
        .fetch_one(self)
        .await?;
        Ok(Timestamp::from_microsecond(micros)
            .map_err(|error| row::unreadable("the server's clock", error))?)
    }
}

fn query<'q>(statement: &'static str, values: &[Value<'q>]) -> sqlx::query::Query<'q, Postgres, PgArguments> {
    let query = sqlx::query(statement);
    values.iter().fold(query, |query, value| match *value {
        Value::Int(value) => query.bind(value),
        Value::Real(value) => query.bind(value),
        // The one character PostgreSQL cannot hold. Bodies are JSON and never have it; words for people may.
        Value::Text(Some(text)) if text.contains('\0') => query.bind(text.replace('\0', "\u{fffd}")),
        Value::Text(value) => query.bind(value),
    })
}
