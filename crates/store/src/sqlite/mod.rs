//! One SQLite file: the default, no set-up. SQLite is built in.
//!
//! WAL with `synchronous=FULL`: what is confirmed survives a power failure. One connection writes,
//! on a thread of its own that commits together what waits together; a few read. SQLite writes the
//! log back into the file by itself. Several processes may use one file on one machine; not over a
//! network file system (sqlite.org/wal.html).

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

use crate::maintenance::Load;
use crate::news::News;
use crate::sql::journal::Writes;
use crate::sql::open_turns::OpenTurns;
use crate::sql::{About, Backend, Failure, SqlStore, StoreOptions, Work, count};
use connection::Rows;
use open::How;
use readers::Readers;
use watch::Watched;
use writer::Writer;

/// Tasks, conversations, journal and logs in one SQLite database. A clone is the same store.
pub type Store = SqlStore<SqliteFile>;

/// One SQLite database and the connections to it.
#[derive(Debug)]
pub struct SqliteFile {
    place: Place,
    /// The file's address, and the connections that read it. A database in memory exists once per
    /// connection: there is only the one that writes.
    file: Option<(How, Readers)>,
    news: News,
    open: OpenTurns,
    // Closed last, so that it is the one that tidies up.
    writer: Writer,
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
    /// Opens the file, making it if it is not there: for its owner's eyes only, as is its folder if
    /// that is new. A schema of an older version is brought up to date. A database that may only be
    /// read is opened all the same: whatever would write to it fails with [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: no permission, no space, not a database, another program's database.
    /// [`StoreError::Unreadable`]: damaged, or written by a newer version. The file is then left as it is.
    /// [`StoreError::Unavailable`]: locked by another process for longer than five seconds.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        // Absolute, so that neither a later change of the working directory nor a name that looks
        // like a URI matters.
        let place =
            Place::File(
                std::path::absolute(path).map_err(|error| StoreError::Unusable {
                    message: format!("{:?} cannot be a database's name: {error}", path.display()),
                })?,
            );
        Self::with(place, open::BUSY_TIMEOUT).await
    }

    /// Opens the file for a quick look, waiting at most `patience` for others. It is neither made
    /// nor brought up to date: `None` if that would be needed.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_as_it_is(
        path: impl AsRef<Path>,
        patience: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref().to_owned();
        let place = Place::File(path.clone());
        let opened = spawn_blocking(move || {
            let opened = open::as_it_is(&path, patience);
            let store = opened.and_then(|found| {
                found
                    .map(|(rows, how)| {
                        Ok((Some((how.clone(), Readers::new(how))), Writer::start(rows)?))
                    })
                    .transpose()
            });
            store.map_err(|failure: crate::sql::Failure| error::at(failure, &Place::File(path)))
        });
        let opened = opened.await.unwrap_or(Ok(None))?;
        Ok(opened.map(|(file, writer)| Self::of_file(place, file, writer)))
    }

    /// A database in memory, gone with the last clone of the store.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no memory.
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::with(Place::Memory, open::BUSY_TIMEOUT).await
    }

    async fn with(place: Place, busy_timeout: Duration) -> Result<Self, StoreError> {
        let opened = spawn_blocking(move || {
            let opened = match &place {
                Place::File(path) => {
                    open::file(path, busy_timeout).map(|(rows, how)| (rows, Some(how)))
                }
                Place::Memory => open::memory().map(|rows| (rows, None)),
            };
            let store = opened.and_then(|(rows, how)| {
                let file = how.map(|how| (how.clone(), Readers::new(how)));
                Ok((file, Writer::start(rows)?))
            });
            match store {
                Ok((file, writer)) => Ok((place, file, writer)),
                Err(failure) => Err(error::at(failure, &place)),
            }
        });
        let opened = opened.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                message: "the database was not opened: try again".to_owned(),
            })
        });
        let (place, file, writer) = opened?;
        Ok(Self::of_file(place, file, writer))
    }

    fn of_file(place: Place, file: Option<(open::How, Readers)>, writer: Writer) -> Self {
        let file = SqliteFile {
            place,
            file,
            news: News::default(),
            open: OpenTurns::default(),
            writer,
        };
        Self(Arc::new(file), StoreOptions::default())
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
        rusqlite::version().to_owned()
    }

    /// Waits for what is running, writes the WAL back into the file and closes it, for every clone.
    /// Nothing is lost without it.
    pub async fn close(&self) {
        if let Some((_, readers)) = &self.0.file {
            readers.close().await;
        }
        self.0.writer.close().await;
    }
}

impl SqliteFile {
    /// Does something with a connection outside of a transaction.
    async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut Rows) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match &self.file {
            Some((_, readers)) => readers.visit(visit).await,
            None => self.writer.visit(visit).await,
        }
    }
}

impl Writes for SqliteFile {
    fn open_turns(&self) -> &OpenTurns {
        &self.open
    }
}

impl Watched for SqliteFile {
    async fn version(&self) -> Result<i64, Failure> {
        let ask = |rows: &mut Rows| {
            Ok(rows
                .connection
                .query_row("PRAGMA data_version", [], |row| row.get(0))?)
        };
        self.writer.visit(ask).await
    }
}

impl Backend for SqliteFile {
    type Connection = Rows;

    fn current_load(&self) -> Load {
        Load {
            waiting: u32::try_from(self.writer.waiting()).unwrap_or(u32::MAX),
            ..Load::default()
        }
    }

    async fn write<D, T>(&self, data: D, work: Work<Rows, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.writer.write(data, work).await
    }

    async fn read<D, T>(&self, data: D, work: Work<Rows, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.visit(move |rows| rows.read(&data, work)).await
    }

    fn news(&self) -> &News {
        &self.news
    }

    fn watch(self: &Arc<Self>) {
        // What is in memory is seen by no other process.
        if self.file.is_some() && self.news.begin_to_watch() {
            tokio::spawn(watch::watch(Arc::downgrade(self)));
        }
    }

    async fn hears_others(&self) -> bool {
        false
    }

    async fn about(&self) -> Result<About, Failure> {
        let asked = self.visit(|rows| {
            let mode = rows
                .connection
                .query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))?;
            let size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
            Ok((
                mode,
                rows.connection
                    .query_row(size, [], |row| row.get::<_, i64>(0))?,
            ))
        });
        let (mode, bytes) = asked.await?;
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
            product: format!("SQLite {}", rusqlite::version()),
            journal_mode: Some(mode),
            bytes: count(bytes) + beside("-wal"),
        })
    }

    async fn verify(&self) -> Result<Vec<String>, Failure> {
        let found = self.visit(|rows| backup::damages(&rows.connection)).await;
        match found.map_err(|failure| self.explain(failure)) {
            // So damaged that SQLite cannot even say where.
            Err(StoreError::Unreadable { message }) => Ok(vec![message]),
            found => Ok(found?),
        }
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let Some((how, _)) = &self.file else {
            let message = "it is gone with this process and cannot be copied to a file".to_owned();
            return Err(StoreError::Unusable { message }.into());
        };
        let (how, to) = (how.clone(), to.to_owned());
        spawn_blocking(move || backup::write(&how, &to))
            .await
            .unwrap_or_else(|_| Err(Failure::panicked()))
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::at(failure, &self.place)
    }
}
