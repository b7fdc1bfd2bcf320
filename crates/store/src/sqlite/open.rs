//! Finding or making the database file, and bringing its schema up to date.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use adjutant_core::port::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::connection::{Rows, at_once};
use super::error;
use crate::sql::Failure;
use crate::sql::migrate::{self, Dialect, Migrations};

/// How long one process waits for another's transaction.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// 'ADJT', as the first migration writes it.
const APPLICATION_ID: i64 = 0x4144_4a54;

pub(super) const MIGRATIONS: Migrations = Migrations {
    first: &[
        (1, "initial", include_str!("migrations/0001_initial.sql")),
        (2, "cost", include_str!("migrations/0002_cost.sql")),
        (3, "token", include_str!("migrations/0003_token.sql")),
        (4, "blob", include_str!("migrations/0004_blob.sql")),
        (5, "budget", include_str!("migrations/0005_budget.sql")),
        (6, "trace", include_str!("migrations/0006_trace.sql")),
        (7, "memory", include_str!("migrations/0007_memory.sql")),
        (
            8,
            "fingerprint",
            include_str!("migrations/0008_fingerprint.sql"),
        ),
    ],
    prefix: (9, "agent", include_str!("migrations/0009_agent.sql")),
    schema: include_str!("migrations/schema.sql"),
    since: &[
        (10, "access", include_str!("migrations/0010_access.sql")),
        (11, "operator", include_str!("migrations/0011_operator.sql")),
        (12, "feedback", include_str!("migrations/0012_feedback.sql")),
        (13, "named", include_str!("migrations/0013_named.sql")),
        (14, "asks", include_str!("migrations/0014_asks.sql")),
        (15, "tasks", include_str!("migrations/0015_tasks.sql")),
        (16, "passage", include_str!("migrations/0016_passage.sql")),
        (17, "fact", include_str!("migrations/0017_fact.sql")),
    ],
};

const DIALECT: Dialect = Dialect {
    tables: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1",
    create: "CREATE TABLE adjutant_migration (
               version INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, checksum BLOB NOT NULL,
               installed_on TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
    applied: "SELECT version, lower(hex(checksum)) FROM adjutant_migration ORDER BY version",
    note: "INSERT INTO adjutant_migration (version, description, checksum) VALUES ($1, $2, unhex($3))",
    first_applied: "SELECT version, lower(hex(checksum)) FROM _sqlx_migrations ORDER BY version",
    first_note: "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES ($1, $2, TRUE, unhex($3), -1)",
};

/// The address of a file, and the way to open it.
#[derive(Debug, Clone)]
pub(super) struct How {
    path: PathBuf,
    busy_timeout: Duration,
    /// It can only be read, as one that nobody changes.
    is_immutable: bool,
}

impl How {
    pub(super) fn connect(&self) -> Result<Connection, Failure> {
        let (name, access) = if self.is_immutable {
            (
                uri(&self.path),
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            )
        } else {
            // Absolute, so it is never taken for a URI.
            (self.path.clone(), OpenFlags::SQLITE_OPEN_READ_WRITE)
        };
        let connection =
            Connection::open_with_flags(name, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(self.busy_timeout)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    }

    pub(super) fn connect_reader(&self) -> Result<Rows, Failure> {
        let connection = self.connect()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(Rows::new(connection))
    }
}

/// A file that nobody changes (sqlite.org/uri.html).
fn uri(path: &Path) -> PathBuf {
    let mut uri = "file://".to_owned();
    let path = path.to_string_lossy();
    if !path.starts_with('/') {
        uri.push('/');
    }
    for character in path.chars() {
        match character {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            '\\' if cfg!(windows) => uri.push('/'),
            other => uri.push(other),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

/// Opens a file, making it and its folder if they are not there; the connection that writes to it.
pub(super) fn file(path: &Path, busy_timeout: Duration) -> Result<(Rows, How), Failure> {
    create(path)?;
    let mut how = How {
        path: path.to_owned(),
        busy_timeout,
        is_immutable: false,
    };
    // Whatever is wrong with the file is found before anything could be written to it.
    let schema = match inspect(&how) {
        // In WAL mode SQLite needs two files beside the database, even to read it. Where they are
        // not there and may not be made, the database can only be read as one that nobody changes
        // (sqlite.org/wal.html, "Read-Only Databases").
        Err(failure)
            if error::is_not_openable(&failure) && path.is_file() && holds_everything(path) =>
        {
            how.is_immutable = true;
            inspect(&how)?
        }
        found => found?,
    };
    if schema == Schema::Old {
        migrate(&how)?;
    }
    Ok((Rows::new(how.connect()?), how))
}

/// Opens a file that is there and whose schema is of this version. `None`: it would have to be made
/// or changed first.
pub(super) fn as_it_is(
    path: &Path,
    busy_timeout: Duration,
) -> Result<Option<(Rows, How)>, Failure> {
    let how = How {
        path: path.to_owned(),
        busy_timeout,
        is_immutable: false,
    };
    if !path.is_file() || inspect(&how)? == Schema::Old {
        return Ok(None);
    }
    Ok(Some((Rows::new(how.connect()?), how)))
}

/// Makes a database that lives as long as its connection.
pub(super) fn memory() -> Result<Rows, Failure> {
    let connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let mut rows = Rows::new(connection);
    run_migrations(&mut rows, &MIGRATIONS)?;
    Ok(rows)
}

/// What we make is for the owner's eyes only; what is there already is left as the owner made it.
fn create(path: &Path) -> Result<(), StoreError> {
    if path.to_str().is_none() {
        return Err(StoreError::Unusable {
            message: "SQLite takes only names in Unicode; choose another".to_owned(),
        });
    }
    let unusable = |what: &str, error: std::io::Error| StoreError::Unusable {
        message: format!(
            "{what} cannot be made: {error}; choose another place, or get the right to write there"
        ),
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(folder)
            .map_err(|error| unusable("its folder", error))?;
    }
    let mut options = std::fs::OpenOptions::new();
    // Never opens a file that is there: closing it again would release the locks SQLite holds on it
    // in this process (sqlite.org/howtocorrupt.html, 2.2).
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(_) if path.exists() => Ok(()),
        Err(error) => Err(unusable("it", error)),
    }
}

/// Whether the file alone is the whole database: no other file has what was written last.
fn holds_everything(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match std::fs::metadata(log) {
        Ok(log) => log.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Schema {
    Current,
    Old,
}

/// Reads what the file is, and writes nothing.
fn inspect(how: &How) -> Result<Schema, Failure> {
    let connection = how.connect()?;
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(Schema::Old);
    }
    if number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(StoreError::Unusable {
            message: "it belongs to another program and is left as it is; choose another place"
                .to_owned(),
        }
        .into());
    }
    let prefixed = number(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'adjutant_migration'",
    )?;
    if prefixed == 0 {
        return Ok(Schema::Old);
    }
    let found = number("SELECT max(version) FROM adjutant_migration")?;
    let newest = MIGRATIONS.newest();
    match found.cmp(&newest) {
        std::cmp::Ordering::Less => Ok(Schema::Old),
        std::cmp::Ordering::Equal => Ok(Schema::Current),
        std::cmp::Ordering::Greater => Err(migrate::too_new(found, newest).into()),
    }
}

/// Brings the schema up to date. Of several processes that start at once, one does it and the
/// others wait.
fn migrate(how: &How) -> Result<(), Failure> {
    let patience = Instant::now() + how.busy_timeout;
    loop {
        let done = || {
            let connection = how.connect()?;
            write_ahead(&connection)?;
            run_migrations(&mut Rows::new(connection), &MIGRATIONS)
        };
        match done() {
            // The change to WAL does not wait for locks by itself
            // (sqlite.org/c3ref/busy_handler.html).
            Err(failure) if error::is_busy(&failure) && Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

/// Lets others read beside whoever writes.
pub(super) fn write_ahead(connection: &Connection) -> Result<(), Failure> {
    // A pragma that answers with a row.
    Ok(connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?)
}

/// A table that others refer to is made anew only while foreign keys are not enforced
/// (sqlite.org/lang_altertable.html, 7), and that cannot change inside a transaction. They are
/// checked before it is committed.
pub(super) fn run_migrations(rows: &mut Rows, migrations: &Migrations) -> Result<(), Failure> {
    rows.connection.pragma_update(None, "foreign_keys", false)?;
    rows.say("BEGIN EXCLUSIVE")?;
    match run_all(rows, migrations) {
        Ok(()) => rows.say("COMMIT")?,
        Err(failure) => {
            // What went wrong first is what is told.
            let _ = rows.say("ROLLBACK");
            return Err(failure);
        }
    }
    Ok(rows.connection.pragma_update(None, "foreign_keys", true)?)
}

fn run_all(rows: &mut Rows, migrations: &Migrations) -> Result<(), Failure> {
    at_once(migrate::migrate(rows, &DIALECT, migrations))?;
    let mut check = rows.connection.prepare("PRAGMA foreign_key_check")?;
    let broken = check.query_map([], |_| Ok(()))?.count();
    if broken > 0 {
        let message = format!("{broken} of its rows belong to rows that are not there");
        return Err(StoreError::Unreadable { message }.into());
    }
    Ok(())
}
