//! Opens or creates the database file, and migrates its schema.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use adjutant_core::port::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::connection::{SqliteConnection, poll_ready};
use super::error;
use crate::sql::Failure;
use crate::sql::migrate::{self, Dialect, Migrations};

/// Time that one process waits for the lock of another.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// 'ADJT', as the first migration writes it into the file's header.
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
        (
            18,
            "fact revision",
            include_str!("migrations/0018_fact_revision.sql"),
        ),
        (
            19,
            "user setting",
            include_str!("migrations/0019_user_setting.sql"),
        ),
        (
            20,
            "token scopes",
            include_str!("migrations/0020_token_scopes.sql"),
        ),
        (
            21,
            "task from others",
            include_str!("migrations/0021_task_from_others.sql"),
        ),
        (
            22,
            "allowed tools",
            include_str!("migrations/0022_allowed_tools.sql"),
        ),
    ],
};

const DIALECT: Dialect = Dialect {
    all_tables: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'adjutant!_%' ESCAPE '!'",
    own_tables: &["adjutant_passage_words"],
    tables: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1",
    create: "CREATE TABLE adjutant_migration (
               version INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, checksum BLOB NOT NULL,
               installed_on TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
    applied: "SELECT version, lower(hex(checksum)) AS checksum FROM adjutant_migration ORDER BY version",
    note: "INSERT INTO adjutant_migration (version, description, checksum) VALUES ($1, $2, unhex($3))",
    first_applied: "SELECT version, lower(hex(checksum)) AS checksum FROM _sqlx_migrations ORDER BY version",
    first_note: "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES ($1, $2, TRUE, unhex($3), -1)",
};

/// The path of a database file and the way to open it.
#[derive(Debug, Clone)]
pub(super) struct FileOptions {
    path: PathBuf,
    busy_timeout: Duration,
    /// True if the file is opened read-only as one that no process changes.
    is_immutable: bool,
}

impl FileOptions {
    fn new(path: &Path, busy_timeout: Duration) -> Self {
        Self {
            path: path.to_owned(),
            busy_timeout,
            is_immutable: false,
        }
    }

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
            // One thread at a time uses a connection, so SQLite's own lock is not needed.
            Connection::open_with_flags(name, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(self.busy_timeout)?;
        // Each connection has to ask for it (sqlite.org/foreignkeys.html, 2).
        connection.pragma_update(None, "foreign_keys", true)?;
        // With NORMAL, WAL mode may lose confirmed commits in a power failure
        // (sqlite.org/pragma.html).
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    }

    pub(super) fn connect_reader(&self) -> Result<SqliteConnection, Failure> {
        let connection = self.connect()?;
        // Writes belong to the writer's thread; one that gets here by mistake fails.
        connection.pragma_update(None, "query_only", true)?;
        Ok(SqliteConnection::new(connection))
    }
}

/// Returns the URI that opens a file as immutable (sqlite.org/uri.html).
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

/// Opens a file for writing, creating it and its folder if needed.
pub(super) fn file(
    path: &Path,
    busy_timeout: Duration,
) -> Result<(SqliteConnection, FileOptions), Failure> {
    create(path)?;
    let mut options = FileOptions::new(path, busy_timeout);
    // The file is inspected first: a file that is not ours must not be written to.
    let schema = match inspect(&options) {
        // In WAL mode SQLite needs two files beside the database, even to read it. Where they do
        // not exist and may not be created, the database can only be read as immutable
        // (sqlite.org/wal.html, "Read-Only Databases").
        Err(failure)
            if error::is_not_openable(&failure) && path.is_file() && holds_everything(path) =>
        {
            options.is_immutable = true;
            inspect(&options)?
        }
        // A process that ended while it closed the database removed one of them.
        Err(failure)
            if error::is_not_openable(&failure)
                && path.is_file()
                && !beside(path, "-shm").exists() =>
        {
            let place = format_args!("the database {}", path.display());
            return Err(error::read_only(&place).into());
        }
        found => found?,
    };
    if schema == Schema::Old {
        migrate(&options)?;
    }
    Ok((SqliteConnection::new(options.connect()?), options))
}

/// Opens an existing file that has the current schema. `None` if it would have to be created or
/// migrated.
pub(super) fn as_it_is(
    path: &Path,
    busy_timeout: Duration,
) -> Result<Option<(SqliteConnection, FileOptions)>, Failure> {
    let options = FileOptions::new(path, busy_timeout);
    if !path.is_file() || inspect(&options)? == Schema::Old {
        return Ok(None);
    }
    Ok(Some((SqliteConnection::new(options.connect()?), options)))
}

/// Opens a database that lives as long as its connection.
pub(super) fn memory() -> Result<SqliteConnection, Failure> {
    let connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let mut connection = SqliteConnection::new(connection);
    run_migrations(&mut connection, &MIGRATIONS)?;
    Ok(connection)
}

/// Creates the file, accessible to the owner only. The permissions of an existing file or folder
/// stay as they are.
fn create(path: &Path) -> Result<(), StoreError> {
    if path.to_str().is_none() {
        return Err(StoreError::unusable(
            "SQLite takes only names in Unicode; choose another",
        ));
    }
    let unusable = |what: &str, error: std::io::Error| {
        StoreError::unusable(format!(
            "{what} cannot be made: {error}; choose another place, or get the right to write there"
        ))
        .with_source(error)
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
    // Never opens an existing file: closing it again would release the locks that SQLite holds on
    // it in this process (sqlite.org/howtocorrupt.html, 2.2).
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(_) if path.exists() => Ok(()),
        Err(error) => Err(unusable("it", error)),
    }
}

/// Returns the place of a file that SQLite keeps beside the database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns true if the file alone is the whole database, because its WAL is empty.
fn holds_everything(path: &Path) -> bool {
    match std::fs::metadata(beside(path, "-wal")) {
        Ok(log) => log.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Schema {
    Current,
    Old,
}

/// Reads the file's state without writing to it.
fn inspect(options: &FileOptions) -> Result<Schema, Failure> {
    let connection = options.connect()?;
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(Schema::Old);
    }
    if number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(StoreError::unusable(
            "it belongs to another program and is left as it is; choose another place".to_owned(),
        )
        .into());
    }
    let prefixed = number(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'adjutant_migration'",
    )?;
    if prefixed == 0 {
        return Ok(Schema::Old);
    }
    let found = number("SELECT coalesce(max(version), 0) FROM adjutant_migration")?;
    let newest = MIGRATIONS.newest();
    if found > newest {
        return Err(migrate::too_new(found, newest).into());
    }
    let recorded = number("SELECT count(*) FROM adjutant_migration")?;
    // With a gap in its records a schema is not current: the migration reports it.
    if found < newest || usize::try_from(recorded) != Ok(MIGRATIONS.recorded()) {
        return Ok(Schema::Old);
    }
    let mut connection = SqliteConnection::new(connection);
    poll_ready(migrate::check_tables(&mut connection, &DIALECT))?;
    Ok(Schema::Current)
}

/// Migrates the schema. If several processes start at once, one migrates and the others wait.
fn migrate(options: &FileOptions) -> Result<(), Failure> {
    let patience = Instant::now() + options.busy_timeout;
    loop {
        let done = || {
            let connection = options.connect()?;
            write_ahead(&connection)?;
            run_migrations(&mut SqliteConnection::new(connection), &MIGRATIONS)
        };
        match done() {
            // The change to WAL mode does not wait for locks by itself
            // (sqlite.org/c3ref/busy_handler.html).
            Err(failure) if error::is_busy(&failure) && Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

/// Switches to WAL mode, in which others read while one writes.
pub(super) fn write_ahead(connection: &Connection) -> Result<(), Failure> {
    // The pragma returns the new mode as a row.
    Ok(connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?)
}

/// Runs migrations in an exclusive transaction. Foreign keys are off meanwhile, because a table
/// that others refer to can only be rebuilt so (sqlite.org/lang_altertable.html, 7); the pragma has
/// no effect inside a transaction. They are checked before the commit.
pub(super) fn run_migrations(
    connection: &mut SqliteConnection,
    migrations: &Migrations,
) -> Result<(), Failure> {
    connection.raw.pragma_update(None, "foreign_keys", false)?;
    connection.run("BEGIN EXCLUSIVE")?;
    match run_all(connection, migrations) {
        Ok(()) => connection.run("COMMIT")?,
        Err(failure) => {
            // The first error is the one to report.
            let _ = connection.run("ROLLBACK");
            return Err(failure);
        }
    }
    Ok(connection.raw.pragma_update(None, "foreign_keys", true)?)
}

fn run_all(connection: &mut SqliteConnection, migrations: &Migrations) -> Result<(), Failure> {
    poll_ready(migrate::migrate(connection, &DIALECT, migrations))?;
    let mut check = connection.raw.prepare("PRAGMA foreign_key_check")?;
    let broken = check.query_map([], |_| Ok(()))?.count();
    if broken > 0 {
        let message = format!("{broken} of its rows belong to rows that are not there");
        return Err(StoreError::unreadable(message).into());
    }
    Ok(())
}
