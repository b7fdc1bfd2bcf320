//! Finding or making the database file, and bringing its schema up to date.

use std::path::Path;
use std::time::{Duration, Instant};

use adjutant_core::port::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool};

use super::error;
use crate::sql::Failure;
use crate::sql::migrate::{self, Dialect, Migrations};

/// How long one process waits for another's transaction.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that only read. Each is a thread.
const READERS: u32 = 4;

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
        (8, "fingerprint", include_str!("migrations/0008_fingerprint.sql")),
    ],
    prefix: (9, "agent", include_str!("migrations/0009_agent.sql")),
    schema: include_str!("migrations/schema.sql"),
    since: &[],
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

/// The connections of a store.
#[derive(Debug)]
pub(super) struct Pools {
    /// One connection: SQLite has one writer at a time anyway, and here it waits fairly.
    pub(super) writer: SqlitePool,
    /// The same as `writer` for a database in memory, which exists once per connection.
    pub(super) readers: SqlitePool,
    pub(super) version: String,
}

/// Opens a file, making it and its folder if they are not there.
pub(super) async fn file(path: &Path, busy_timeout: Duration) -> Result<Pools, Failure> {
    create(path)?;
    let mut plain = SqliteConnectOptions::new().filename(path).busy_timeout(busy_timeout);
    // Whatever is wrong with the file is found before anything could be written to it.
    let schema = match inspect(&plain).await {
        // In WAL mode SQLite needs two files beside the database, even to read it. Where they are not there and may not be
        // made, the database can only be read as one that nobody changes (sqlite.org/wal.html, "Read-Only Databases").
        Err(failure) if error::is_not_openable(&failure) && path.is_file() && holds_everything(path) => {
            plain = plain.read_only(true).immutable(true);
            inspect(&plain).await?
        }
        found => found?,
    };
    if schema == Schema::Old {
        migrate(&plain, busy_timeout).await?;
    }
    let options = plain.synchronous(SqliteSynchronous::Full);
    let writer = pool(1).after_release(|connection, _| Box::pin(is_still_good(connection)));
    let writer = writer.connect_with(options.clone()).await?;
    let readers = pool(READERS).connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(Pools { version: version(&writer).await?, writer, readers })
}

/// Makes a database that lives as long as the store.
pub(super) async fn memory() -> Result<Pools, Failure> {
    let pool = pool(1).connect_with(SqliteConnectOptions::new().in_memory(true)).await?;
    run_migrations(&mut *pool.acquire().await?, &MIGRATIONS).await?;
    Ok(Pools { version: version(&pool).await?, writer: pool.clone(), readers: pool })
}

fn pool(connections: u32) -> SqlitePoolOptions {
    // A connection to a file does not go stale, and one to memory must not be closed.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// SQLite rolls back by itself when the disk is full (sqlite.org/lang_transaction.html, 3). sqlx 0.9 does not notice: its
/// own rollback then fails, and it takes the connection to be inside a transaction for ever after. Such a connection is
/// replaced.
async fn is_still_good(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // The answer comes after the rollback that dropping the transaction has asked for.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

async fn version(pool: &SqlitePool) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("SELECT sqlite_version()").fetch_one(pool).await
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
        builder.create(folder).map_err(|error| unusable("its folder", error))?;
    }
    let mut options = std::fs::OpenOptions::new();
    // Never opens a file that is there: closing it again would release the locks SQLite holds on it in this process
    // (sqlite.org/howtocorrupt.html, 2.2).
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
async fn inspect(options: &SqliteConnectOptions) -> Result<Schema, Failure> {
    let mut connection = options.connect().await?;
    let schema = schema(&mut connection).await;
    connection.close().await?;
    schema
}

async fn schema(connection: &mut SqliteConnection) -> Result<Schema, Failure> {
    let tables: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(Schema::Old);
    }
    let application: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await?;
    if application != APPLICATION_ID {
        return Err(StoreError::Unusable {
            message: "it belongs to another program and is left as it is; choose another place".to_owned(),
        }
        .into());
    }
    let prefixed: i64 =
        sqlx::query_scalar(DIALECT.tables).bind("adjutant_migration").fetch_one(&mut *connection).await?;
    if prefixed == 0 {
        return Ok(Schema::Old);
    }
    let found: i64 =
        sqlx::query_scalar("SELECT max(version) FROM adjutant_migration").fetch_one(&mut *connection).await?;
    let newest = MIGRATIONS.newest();
    match found.cmp(&newest) {
        std::cmp::Ordering::Less => Ok(Schema::Old),
        std::cmp::Ordering::Equal => Ok(Schema::Current),
        std::cmp::Ordering::Greater => Err(migrate::too_new(found, newest).into()),
    }
}

/// Brings the schema up to date. Of several processes that start at once, one does it and the others wait.
async fn migrate(options: &SqliteConnectOptions, busy_timeout: Duration) -> Result<(), Failure> {
    let options = options.clone().journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    let patience = Instant::now() + busy_timeout;
    loop {
        let done = async {
            let mut connection = options.connect().await?;
            run_migrations(&mut connection, &MIGRATIONS).await?;
            Ok::<_, Failure>(connection.close().await?)
        };
        match done.await {
            // The change to WAL does not wait for locks by itself (sqlite.org/c3ref/busy_handler.html).
            Err(failure) if error::is_busy(&failure) && Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

/// A table that others refer to is made anew only while foreign keys are not enforced (sqlite.org/lang_altertable.html, 7),
/// and that cannot change inside a transaction. They are checked before it is committed.
pub(super) async fn run_migrations(
    connection: &mut SqliteConnection,
    migrations: &Migrations,
) -> Result<(), Failure> {
    sqlx::raw_sql("PRAGMA foreign_keys = OFF").execute(&mut *connection).await?;
    let done = run_all(connection, migrations).await;
    sqlx::raw_sql("PRAGMA foreign_keys = ON").execute(connection).await?;
    done
}

async fn run_all(connection: &mut SqliteConnection, migrations: &Migrations) -> Result<(), Failure> {
    let mut transaction = connection.begin_with("BEGIN EXCLUSIVE").await?;
    migrate::migrate(&mut *transaction, &DIALECT, migrations).await?;
    let broken = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut *transaction).await?;
    if !broken.is_empty() {
        let message = format!("{} of its rows belong to rows that are not there", broken.len());
        return Err(StoreError::Unreadable { message }.into());
    }
    Ok(transaction.commit().await?)
}
