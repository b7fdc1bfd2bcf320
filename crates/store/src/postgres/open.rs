//! Connecting to the server, and migrating the schema.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::address::Address;
use super::pool::Pool;
use super::transaction::Transaction;
use crate::sql::migrate::{self, Dialect, Migrations};
use crate::sql::{Connection as _, Failure};

const MIGRATIONS: Migrations = Migrations {
    first: &[
        (1, "initial", include_str!("migrations/0001_initial.sql")),
        (2, "blob", include_str!("migrations/0002_blob.sql")),
        (3, "budget", include_str!("migrations/0003_budget.sql")),
        (4, "trace", include_str!("migrations/0004_trace.sql")),
        (5, "memory", include_str!("migrations/0005_memory.sql")),
        (
            6,
            "fingerprint",
            include_str!("migrations/0006_fingerprint.sql"),
        ),
    ],
    prefix: (7, "agent", include_str!("migrations/0007_agent.sql")),
    schema: include_str!("migrations/schema.sql"),
    since: &[
        (
            8,
            "functions",
            include_str!("migrations/0008_functions.sql"),
        ),
        (9, "session", include_str!("migrations/0009_session.sql")),
        (10, "begin", include_str!("migrations/0010_begin.sql")),
        (11, "access", include_str!("migrations/0011_access.sql")),
        (12, "operator", include_str!("migrations/0012_operator.sql")),
        (13, "feedback", include_str!("migrations/0013_feedback.sql")),
        (14, "named", include_str!("migrations/0014_named.sql")),
        (15, "asks", include_str!("migrations/0015_asks.sql")),
        (16, "tasks", include_str!("migrations/0016_tasks.sql")),
        (17, "passage", include_str!("migrations/0017_passage.sql")),
        (18, "fact", include_str!("migrations/0018_fact.sql")),
        (
            19,
            "fact revision",
            include_str!("migrations/0019_fact_revision.sql"),
        ),
        (
            20,
            "user setting",
            include_str!("migrations/0020_user_setting.sql"),
        ),
        (
            21,
            "token scopes",
            include_str!("migrations/0021_token_scopes.sql"),
        ),
        (
            22,
            "task from others",
            include_str!("migrations/0022_task_from_others.sql"),
        ),
        (
            23,
            "allowed tools",
            include_str!("migrations/0023_allowed_tools.sql"),
        ),
    ],
};

const DIALECT: Dialect = Dialect {
    // As `to_regclass` below: the tables that a name without a schema finds.
    all_tables: "SELECT CAST(relname AS TEXT) AS name FROM pg_class
                 WHERE relkind IN ('r', 'p') AND starts_with(relname, 'adjutant_') AND pg_table_is_visible(oid)",
    own_tables: &["adjutant_worker_session"],
    tables: "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)",
    create: "CREATE TABLE adjutant_migration (
               version BIGINT PRIMARY KEY, description TEXT NOT NULL, checksum BYTEA NOT NULL,
               installed_on TIMESTAMPTZ NOT NULL DEFAULT now())",
    applied: "SELECT version, encode(checksum, 'hex') AS checksum FROM adjutant_migration ORDER BY version",
    note: "INSERT INTO adjutant_migration (version, description, checksum) VALUES ($1, $2, decode($3, 'hex'))",
    first_applied: "SELECT version, encode(checksum, 'hex') AS checksum FROM _sqlx_migrations ORDER BY version",
    first_note:
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES ($1, $2, TRUE, decode($3, 'hex'), -1)",
};

/// Parses a connection address.
pub(super) fn options(url: &str) -> Result<(Address, PgConnectOptions), StoreError> {
    let options: PgConnectOptions = url.parse().map_err(|error: sqlx::Error| {
        // The address may contain a password, so it is not repeated.
        StoreError::unusable(format!(
            "the database's address is none ({error}); write postgres://USER@HOST:PORT/DATABASE"
        ))
        .with_source(error)
    })?;
    let place = Address {
        database: options
            .get_database()
            .unwrap_or(options.get_username())
            .to_owned(),
        host: options.get_host().to_owned(),
        port: options.get_port(),
    };
    // Each transaction may run on another connection of a pooler, so nothing may outlive one: no
    // named statement, and no session setting that a pooler does not know. Doubles are received in
    // binary, so `extra_float_digits` does not matter.
    let options = options.statement_cache_capacity(0).extra_float_digits(None);
    // An operator sees in `pg_stat_activity` whose sessions they are; the address may set a more
    // specific name.
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("adjutant"),
    };
    // Values are part of the statements, and people's messages must not get into this program's
    // log.
    Ok((place, options.disable_statement_logging()))
}

/// Connects once, so that a wrong address fails now, and migrates the schema.
pub(super) async fn pool(
    options: PgConnectOptions,
    connections_max: u32,
) -> Result<Arc<Pool>, Failure> {
    // Not through the pool, which would retry and finally report only a timeout.
    options.connect().await?.close().await?;
    let pool = Pool::new(options, connections_max);
    let mut rows = Transaction::begin(&pool, "BEGIN").await?;
    let migrated = migrate(&mut rows).await;
    rows.end(migrated.is_ok()).await?;
    migrated.map(|()| pool)
}

/// Migrates the schema. If several processes start at once, one migrates and the others wait.
async fn migrate(rows: &mut Transaction) -> Result<(), Failure> {
    // 'ADJT'. The lock ends with the transaction: a session's lock would stay with a pooler's
    // connection to the server.
    rows.script("SELECT pg_advisory_xact_lock(1094994516)")
        .await?;
    migrate::migrate(rows, &DIALECT, &MIGRATIONS).await
}
