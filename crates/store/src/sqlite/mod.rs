//! One SQLite file: the default, no set-up. SQLite is built in.
//!
//! WAL with `synchronous=FULL`: what is confirmed survives a power failure. One connection writes, a few read.
//! Several processes may use one file on one machine; not over a network file system (sqlite.org/wal.html).

mod conversation;
mod error;
mod journal;
mod log;
mod open;
mod task;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::BoxFuture;
use adjutant_core::port::StoreError;
use sqlx::{Sqlite, Transaction};

use error::Failure;
use open::Pools;

/// Tasks, conversations, journal and logs in one SQLite database. A clone is the same store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
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
    /// A schema of an older version is brought up to date.
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
            Ok(pools) => Ok(Self { inner: Arc::new(Inner { place, pools }) }),
            Err(failure) => Err(failure.at(&place)),
        }
    }

    /// The file; `None`: the database is in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.inner.place {
            Place::File(path) => Some(path),
            Place::Memory => None,
        }
    }

    /// The version of the SQLite that is built in, such as `3.51.3`.
    #[must_use]
    pub fn version(&self) -> String {
        self.inner.pools.version.clone()
    }

    /// Waits for what is running, writes the WAL back into the file and closes it, for every clone. Nothing is lost
    /// without it.
    pub async fn close(&self) {
        self.inner.pools.readers.close().await;
        self.inner.pools.writer.close().await;
    }

    /// A transaction that nobody else writes beside. Rolled back unless committed.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>, Failure> {
        Ok(self.inner.pools.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// A transaction that sees one state of everything.
    async fn read(&self) -> Result<Transaction<'static, Sqlite>, Failure> {
        Ok(self.inner.pools.readers.begin().await?)
    }

    /// Gives what went wrong its words.
    fn run<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { work.await.map_err(|failure| failure.at(&self.inner.place)) })
    }
}

/// The store's one look at the clock: for the times of tasks and the ends of claims, which no caller hands in.
#[expect(clippy::disallowed_methods, reason = "a store does I/O, and these ports have no clock")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
