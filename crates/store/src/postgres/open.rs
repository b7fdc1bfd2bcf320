//! Connecting, and bringing the schema up to date.

use std::time::Duration;

use adjutant_core::port::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use super::Place;
use crate::sql::Failure;
use crate::sql::migrate::{self, Dialect, Migrations};

/// How long a transaction waits for a connection: while the server restarts, or while all of them are busy.
const PATIENCE: Duration = Duration::from_secs(10);

const MIGRATIONS: Migrations = Migrations {
    first: &[
        (1, "initial", include_str!("migrations/0001_initial.sql")),
        (2, "blob", include_str!("migrations/0002_blob.sql")),
        (3, "budget", include_str!("migrations/0003_budget.sql")),
        (4, "trace", include_str!("migrations/0004_trace.sql")),
        (5, "memory", include_str!("migrations/0005_memory.sql")),
        (6, "fingerprint", include_str!("migrations/0006_fingerprint.sql")),
    ],
    prefix: (7, "agent", include_str!("migrations/0007_agent.sql")),
    schema: include_str!("migrations/schema.sql"),
    since: &[],
};

const DIALECT: Dialect = Dialect {
    tables: "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)",
    create: "CREATE TABLE adjutant_migration (
               version BIGINT PRIMARY KEY, description TEXT NOT NULL, checksum BYTEA NOT NULL,
               installed_on TIMESTAMPTZ NOT NULL DEFAULT now())",
    applied: "SELECT version, encode(checksum, 'hex') FROM adjutant_migration ORDER BY version",
    note: "INSERT INTO adjutant_migration (version, description, checksum) VALUES ($1, $2, decode($3, 'hex'))",
    first_applied: "SELECT version, encode(checksum, 'hex') FROM _sqlx_migrations ORDER BY version",
    first_note: "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES ($1, $2, TRUE, decode($3, 'hex'), -1)",
};

/// Where it is, and how to get there.
pub(super) fn options(url: &str) -> Result<(Place, PgConnectOptions), StoreError> {
    let options: PgConnectOptions = url.parse().map_err(|error| StoreError::Unusable {
        // The address may hold a password, so it is not repeated.
        message: format!(
            "the database's address is none ({error}); write postgres://USER@HOST:PORT/DATABASE"
        ),
    })?;
    let place = Place {
        database: options.get_database().unwrap_or(options.get_username()).to_owned(),
        host: options.get_host().to_owned(),
        port: options.get_port(),
    };
    Ok((place, options.application_name("adjutant")))
}

/// Connects once, so that what is wrong is found now; updates the schema.
pub(super) async fn pool(options: PgConnectOptions, connections_max: u32) -> Result<PgPool, Failure> {
    // Not through the pool, which would try again and again, and then only say that it took too long.
    let mut connection = options.connect().await?;
    migrate(&mut connection).await?;
    connection.close().await?;
    let pool = PgPoolOptions::new().max_connections(connections_max).acquire_timeout(PATIENCE);
    Ok(pool.connect_lazy_with(options))
}

/// In one transaction: of several processes that start at once, one does it and the others wait.
async fn migrate(connection: &mut PgConnection) -> Result<(), Failure> {
    let mut transaction = connection.begin().await?;
    // 'ADJT'. The lock ends with the transaction: one of the session would stay with a pooler's connection to the server.
    sqlx::raw_sql("SELECT pg_advisory_xact_lock(1094994516)").execute(&mut *transaction).await?;
    migrate::migrate(&mut *transaction, &DIALECT, &MIGRATIONS).await?;
    Ok(transaction.commit().await?)
}
