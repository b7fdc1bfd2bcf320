//! One SQLite file: the default, no set-up. SQLite is built in.
//!
//! WAL with `synchronous=FULL`: what is confirmed survives a power failure. One connection writes, a few read.
//! Several processes may use one file on one machine; not over a network file system (sqlite.org/wal.html).

mod backup;
mod error;
mod open;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::LogContent;
use adjutant_core::port::StoreError;
use jiff::Timestamp;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection, Transaction};

use crate::sql::{About, Backend, Columns, Connection, Failure, SqlStore, Value, count};
use crate::worker;
use open::Pools;

/// Tasks, conversations, journal and logs in one SQLite database. A clone is the same store.
pub type Store = SqlStore<SqliteFile>;

/// One SQLite database and the connections to it.
#[derive(Debug)]
pub struct SqliteFile {
    place: Place,
    pools: Pools,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Memory,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the database {}", path.display()),
            Self::Memory => f.write_str("the database in memory"),
        }
    }
}

impl Store {
    /// Opens the file, making it if it is not there: for its owner's eyes only, as is its folder if that is new.
    /// A schema of an older version is brought up to date. A database that may only be read is opened all the same: whatever
    /// would write to it fails with [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: no permission, no space, not a database, another program's database.
    /// [`StoreError::Unreadable`]: damaged, or written by a newer version. The file is then left as it is.
    /// [`StoreError::Unavailable`]: locked by another process for longer than five seconds.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        // Absolute, so that neither a later change of the working directory nor a name that looks like a URI matters.
        let place = Place::File(std::path::absolute(path).map_err(|error| StoreError::Unusable {
            message: format!("{:?} cannot be a database's name: {error}", path.display()),
        })?);
        Self::with(place, open::BUSY_TIMEOUT).await
    }

    /// A database in memory, gone with the last clone of the store.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no memory.
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::with(Place::Memory, open::BUSY_TIMEOUT).await
    }

    async fn with(place: Place, busy_timeout: Duration) -> Result<Self, StoreError> {
        let pools = match &place {
            Place::File(path) => open::file(path, busy_timeout).await,
            Place::Memory => open::memory().await,
        };
        match pools {
            Ok(pools) => Ok(Self(Arc::new(SqliteFile { place, pools }), LogContent::Full)),
            Err(failure) => Err(error::at(failure, &place)),
        }
    }

    /// The file; `None`: the database is in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0.place {
            Place::File(path) => Some(path),
            Place::Memory => None,
        }
    }

    /// The version of the SQLite that is built in, such as `3.51.3`.
    #[must_use]
    pub fn version(&self) -> String {
        self.0.pools.version.clone()
    }

    /// Waits for what is running, writes the WAL back into the file and closes it, for every clone. Nothing is lost
    /// without it.
    pub async fn close(&self) {
        self.0.pools.readers.close().await;
        self.0.pools.writer.close().await;
    }
}

impl Backend for SqliteFile {
    type Database = Sqlite;

    /// Nobody else writes beside it.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>, Failure> {
        Ok(self.pools.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    async fn read(&self) -> Result<Transaction<'static, Sqlite>, Failure> {
        Ok(self.pools.readers.begin().await?)
    }

    /// All workers of a file are on this machine, so a dead one is known at once.
    fn is_gone(&self, worker: &str) -> bool {
        worker::is_gone(worker)
    }

    async fn about(&self) -> Result<About, Failure> {
        let mut connection = self.pools.readers.acquire().await?;
        let (mode,): (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut *connection).await?;
        let (bytes,): (i64,) =
            sqlx::query_as("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
                .fetch_one(&mut *connection)
                .await?;
        let beside = |ending: &str| match &self.place {
            Place::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(ending);
                std::fs::metadata(name).map_or(0, |file| file.len())
            }
            Place::Memory => 0,
        };
        Ok(About {
            place: self.place.to_string(),
            product: format!("SQLite {}", self.pools.version),
            journal_mode: Some(mode),
            bytes: count(bytes) + beside("-wal"),
        })
    }

    async fn verify(&self) -> Result<Vec<String>, Failure> {
        let mut connection = self.pools.readers.acquire().await?;
        match backup::damages(&mut connection).await.map_err(|failure| self.explain(failure)) {
            // So damaged that SQLite cannot even say where.
            Err(StoreError::Unreadable { message }) => Ok(vec![message]),
            found => Ok(found?),
        }
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        match &self.place {
            Place::File(_) => backup::write(&self.pools.writer.connect_options(), to).await,
            Place::Memory => {
                let message = "it is gone with this process and cannot be copied to a file".to_owned();
                Err(StoreError::Unusable { message }.into())
            }
        }
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::at(failure, &self.place)
    }
}

impl Connection for SqliteConnection {
    const LOCKS_ROWS: bool = false;

    async fn execute(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        Ok(query(statement, values).execute(self).await?.rows_affected())
    }

    async fn fetch(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let rows = query(statement, values).fetch_all(self).await?;
        rows.iter().map(|row| Ok(Columns::of(row, "INTEGER", "REAL")?)).collect()
    }

    async fn script(&mut self, statements: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(statements).execute(self).await?;
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a store does I/O, and these ports have no clock")]
    async fn now(&mut self) -> Result<Timestamp, Failure> {
        Ok(Timestamp::now())
    }
}

fn query<'q>(
    statement: &'static str,
    values: &[Value<'q>],
) -> sqlx::query::Query<'q, Sqlite, SqliteArguments> {
    let query = sqlx::query(statement);
    values.iter().fold(query, |query, value| match *value {
        Value::Int(value) => query.bind(value),
        Value::Real(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
    })
}
