//! Connecting, and bringing the schema up to date.

use std::borrow::Cow;
use std::time::Duration;

use adjutant_core::port::StoreError;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqlStr};

use super::Place;
use crate::sql::Failure;

/// How long a transaction waits for a connection: while the server restarts, or while all of them are busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "initial", include_str!("migrations/0001_initial.sql")),
    (2, "blob", include_str!("migrations/0002_blob.sql")),
    (3, "budget", include_str!("migrations/0003_budget.sql")),
    (4, "trace", include_str!("migrations/0004_trace.sql")),
    (5, "memory", include_str!("migrations/0005_memory.sql")),
    (6, "fingerprint", include_str!("migrations/0006_fingerprint.sql")),
    (7, "agent", include_str!("migrations/0007_agent.sql")),
];

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

/// Under PostgreSQL's advisory lock: of several processes that start at once, one does it and the others wait.
async fn migrate(connection: &mut PgConnection) -> Result<(), Failure> {
    let migrations = MIGRATIONS.iter().map(|(version, name, sql)| {
        Migration::new(*version, Cow::Borrowed(*name), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    match Migrator::with_migrations(migrations.collect()).run(connection).await {
        Ok(()) => Ok(()),
        Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => Err(error.into()),
        Err(MigrateError::VersionMissing(found)) => Err(StoreError::Unreadable {
            message: format!(
                "it has schema version {found}, this program knows up to {}; it is left as it is: use the newer program, or another database",
                MIGRATIONS.len()
            ),
        }
        .into()),
        Err(other) => {
            Err(StoreError::Unreadable { message: format!("the schema cannot be updated: {other}") }.into())
        }
    }
}
