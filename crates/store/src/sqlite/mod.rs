//! A store in one SQLite file: the default, without set-up. SQLite is compiled in.
//!
//! The journal mode is WAL with `synchronous=FULL`: what was confirmed survives a power failure.
//! One connection writes, on its own thread, which commits waiting calls together; up to four
//! others read. Several processes may use one file on one machine, but not over a network file
//! system (sqlite.org/wal.html).

mod backup;
mod connection;
mod error;
mod open;
mod readers;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::StoreError;
use tokio::task::spawn_blocking;

use crate::change_feed::ChangeFeed;
use crate::maintenance::Load;
use crate::sql::journal::Writes;
use crate::sql::open_turn_cache::OpenTurnCache;
use crate::sql::{About, Backend, Failure, SqlStore, Work, count};
use connection::SqliteConnection;
use open::FileOptions;
use readers::Readers;
use watch::Watched;
use writer::Writer;

/// Tasks, conversations, journal and logs in one SQLite database. Clones share the database.
pub type Store = SqlStore<SqliteFile>;

/// One SQLite database and the connections to it.
#[derive(Debug)]
pub struct SqliteFile {
    location: Location,
    /// The options to open the file, and the connections that read it. `None` for a database in
    /// memory: it exists only in the connection that writes.
    file: Option<(FileOptions, Readers)>,
    change_feed: ChangeFeed,
    open: OpenTurnCache,
    // Dropped last: the connection that closes last writes the WAL back and removes it.
    writer: Writer,
}

/// The connection that writes, and the options to open others to the same file.
type Opened = (SqliteConnection, Option<FileOptions>);

#[derive(Debug)]
enum Location {
    File(PathBuf),
    Memory,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the database {}", path.display()),
            Self::Memory => f.write_str("the database in memory"),
        }
    }
}

impl Store {
    /// Opens a database file, creating it and its folder if they do not exist, accessible to the
    /// owner only. An older schema is migrated. A database that may only be read is opened too;
    /// every write to it fails with [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// - [`StoreError::Unusable`]: no permission, no space, not a database, or another program's
    ///   database.
    /// - [`StoreError::Unreadable`]: damaged, or written by a newer version. The file is left as it
    ///   is.
    /// - [`StoreError::Unavailable`]: locked by another process for longer than five seconds.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use adjutant_store::sqlite::Store;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(folder.path().join("adjutant.db")).await?;
    /// assert!(store.path().is_some_and(|path| path.is_file()));
    /// store.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        // Absolute, so that neither a later change of the working directory nor a name that looks
        // like a URI matters.
        let location = Location::File(std::path::absolute(path).map_err(|error| {
            StoreError::unusable(format!(
                "{:?} cannot be a database's name: {error}",
                path.display()
            ))
            .with_source(error)
        })?);
        Self::open_location(location, open::BUSY_TIMEOUT).await
    }

    /// Opens an existing file without creating or migrating it, waiting at most `patience` for a
    /// lock. Returns `None` if it does not exist or its schema is older.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_existing(
        path: impl AsRef<Path>,
        patience: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref().to_owned();
        let location = Location::File(path.clone());
        Self::open_with(location, move || {
            let found = open::as_it_is(&path, patience)?;
            Ok(found.map(|(connection, options)| (connection, Some(options))))
        })
        .await
    }

    /// Opens a database in memory, which is dropped with the last clone of the store.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no memory.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let store = adjutant_store::sqlite::Store::in_memory().await?;
    /// assert_eq!(store.path(), None);
    /// # Ok::<(), adjutant_core::port::StoreError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::open_location(Location::Memory, open::BUSY_TIMEOUT).await
    }

    async fn open_location(location: Location, busy_timeout: Duration) -> Result<Self, StoreError> {
        let file = match &location {
            Location::File(path) => Some(path.clone()),
            Location::Memory => None,
        };
        let opened = Self::open_with(location, move || {
            Ok(Some(match file {
                Some(path) => {
                    let (connection, options) = open::file(&path, busy_timeout)?;
                    (connection, Some(options))
                }
                None => (open::memory()?, None),
            }))
        });
        let not_opened = || StoreError::unavailable("the database was not opened: try again");
        opened.await?.ok_or_else(not_opened)
    }

    /// Opens a database on a thread where it may block. `None` if `open` finds none to open, or the
    /// runtime is shutting down.
    async fn open_with(
        location: Location,
        open: impl FnOnce() -> Result<Option<Opened>, Failure> + Send + 'static,
    ) -> Result<Option<Self>, StoreError> {
        let opened = spawn_blocking(move || {
            let Some((connection, options)) = open()? else {
                return Ok(None);
            };
            let file = options.map(|options| (options.clone(), Readers::new(options)));
            Ok(Some((file, Writer::start(connection)?)))
        });
        let opened = opened.await.unwrap_or(Ok(None));
        match opened.map_err(|failure: Failure| error::explain(failure, &location))? {
            Some((file, writer)) => Ok(Some(Self::new(SqliteFile {
                location,
                file,
                change_feed: ChangeFeed::default(),
                open: OpenTurnCache::default(),
                writer,
            }))),
            None => Ok(None),
        }
    }

    /// Returns the path of the database file, or `None` for a database in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.backend.location {
            Location::File(path) => Some(path),
            Location::Memory => None,
        }
    }

    /// Returns the version of the SQLite that is compiled in, such as `3.51.3`.
    #[must_use]
    pub fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    /// Waits for running calls, writes the WAL back into the file and closes it, for every clone.
    /// Nothing is lost if this is not called.
    pub async fn close(&self) {
        if let Some((_, readers)) = &self.backend.file {
            readers.close().await;
        }
        self.backend.writer.close().await;
    }
}

impl SqliteFile {
    /// Runs `visit` on a connection outside of a transaction.
    async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match &self.file {
            Some((_, readers)) => readers.visit(visit).await,
            None => self.writer.visit(visit).await,
        }
    }
}

impl Writes for SqliteFile {
    fn open_turn_cache(&self) -> &OpenTurnCache {
        &self.open
    }
}

impl Watched for SqliteFile {
    async fn version(&self) -> Result<i64, Failure> {
        let ask = |connection: &mut SqliteConnection| {
            Ok(connection
                .raw
                .query_row("PRAGMA data_version", [], |row| row.get(0))?)
        };
        self.writer.visit(ask).await
    }
}

impl Backend for SqliteFile {
    type Connection = SqliteConnection;

    fn current_load(&self) -> Load {
        Load {
            waiting: u32::try_from(self.writer.waiting()).unwrap_or(u32::MAX),
            ..Load::default()
        }
    }

    async fn write<D, T>(&self, data: D, work: Work<SqliteConnection, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.writer.write(data, work).await
    }

    async fn read<D, T>(&self, data: D, work: Work<SqliteConnection, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.visit(move |connection| connection.read(&data, work))
            .await
    }

    fn change_feed(&self) -> &ChangeFeed {
        &self.change_feed
    }

    fn watch(self: &Arc<Self>) {
        // A database in memory is visible to no other process.
        if self.file.is_some() && self.change_feed.start_watching() {
            tokio::spawn(watch::watch(Arc::downgrade(self)));
        }
    }

    async fn receives_notifications(&self) -> bool {
        false
    }

    async fn about(&self) -> Result<About, Failure> {
        let asked = self.visit(|connection| {
            let mode = connection
                .raw
                .query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))?;
            let size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
            Ok((
                mode,
                connection
                    .raw
                    .query_row(size, [], |row| row.get::<_, i64>(0))?,
            ))
        });
        let (mode, bytes) = asked.await?;
        let beside = |ending: &str| match &self.location {
            Location::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(ending);
                std::fs::metadata(name).map_or(0, |file| file.len())
            }
            Location::Memory => 0,
        };
        Ok(About {
            place: self.location.to_string(),
            product: format!("SQLite {}", rusqlite::version()),
            journal_mode: Some(mode),
            // What was committed since the last checkpoint is only in the WAL.
            bytes: count(bytes) + beside("-wal"),
        })
    }

    async fn verify(&self) -> Result<Vec<String>, Failure> {
        let found = self
            .visit(|connection| backup::damages(&connection.raw))
            .await;
        match found.map_err(|failure| self.explain(failure)) {
            // The file is so damaged that SQLite cannot even say where.
            Err(StoreError::Unreadable { message, .. }) => Ok(vec![message]),
            found => Ok(found?),
        }
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let Some((options, _)) = &self.file else {
            let message = "it is gone with this process and cannot be copied to a file".to_owned();
            return Err(StoreError::unusable(message).into());
        };
        let (options, to) = (options.clone(), to.to_owned());
        spawn_blocking(move || backup::write(&options, &to))
            .await
            .unwrap_or_else(|_| Err(Failure::panicked()))
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::explain(failure, &self.location)
    }
}
