//! Migration of the schema.
//!
//! Applied migrations are recorded in the table `adjutant_migration`. The first version recorded
//! them in `_sqlx_migrations`, and its tables had no prefix: such a database is migrated from
//! there, and gets one more row in that table, so that a program of the first version refuses it. A
//! table `_sqlx_migrations` of another program is left alone.

use adjutant_core::port::StoreError;
use ring::digest::{SHA384, digest};

use super::{Connection, Failure, values};
use crate::digest::hex;

/// A migration: its version, name and statements.
pub(crate) type Migration = (i64, &'static str, &'static str);

/// The migrations that lead to the current schema.
pub(crate) struct Migrations {
    /// The migrations of the first version, in order.
    pub(crate) first: &'static [Migration],
    /// The migration from there to tables with a prefix.
    pub(crate) prefix: Migration,
    /// The schema that `prefix` leads to, for an empty database.
    pub(crate) schema: &'static str,
    /// The migrations since, in order.
    pub(crate) since: &'static [Migration],
}

impl Migrations {
    /// Returns the version of the current schema.
    #[cfg(feature = "sqlite")]
    pub(crate) fn newest(&self) -> i64 {
        self.since.last().unwrap_or(&self.prefix).0
    }

    /// Returns the number of migrations that a database with the current schema has recorded.
    #[cfg(feature = "sqlite")]
    pub(crate) fn recorded(&self) -> usize {
        self.since.len() + 1
    }
}

/// The tables of every database.
const TABLES: [&str; 22] = [
    "adjutant_applied_change",
    "adjutant_blob",
    "adjutant_budget",
    "adjutant_budget_block",
    "adjutant_budget_booking",
    "adjutant_conversation",
    "adjutant_decision",
    "adjutant_deleted_task",
    "adjutant_event",
    "adjutant_fact",
    "adjutant_fact_revision",
    "adjutant_inbox",
    "adjutant_memory_change",
    "adjutant_passage",
    "adjutant_snapshot",
    "adjutant_task",
    "adjutant_task_counter",
    "adjutant_task_number",
    "adjutant_token",
    "adjutant_tool_invocation",
    "adjutant_user_setting",
    "adjutant_worker",
];

/// The statements that differ between the databases.
pub(crate) struct Dialect {
    /// Selects the names of all tables whose names begin with `adjutant_`.
    pub(crate) all_tables: &'static str,
    /// The tables of this database only.
    pub(crate) own_tables: &'static [&'static str],
    /// Counts the tables of the name `$1`.
    pub(crate) tables: &'static str,
    /// Creates the table `adjutant_migration`.
    pub(crate) create: &'static str,
    /// Selects the applied versions and their checksums in hexadecimal, in order.
    pub(crate) applied: &'static str,
    /// Records a version, its name, and its checksum in hexadecimal.
    pub(crate) note: &'static str,
    /// `applied` for the table of the first version.
    pub(crate) first_applied: &'static str,
    /// `note` for the table of the first version.
    pub(crate) first_note: &'static str,
}

/// Applies the migrations that are missing. Runs in one transaction, during which no other process
/// may migrate.
pub(crate) async fn migrate<C: Connection>(
    tx: &mut C,
    dialect: &Dialect,
    migrations: &Migrations,
) -> Result<(), Failure> {
    if !has_table(tx, dialect, "adjutant_migration").await? {
        tx.script(dialect.create).await?;
        if is_of_first_version(tx, dialect, migrations).await? {
            apply_missing(
                tx,
                dialect.first_applied,
                dialect.first_note,
                migrations.first,
            )
            .await?;
            let (version, _, statements) = migrations.prefix;
            tx.script(statements).await?;
            record(
                tx,
                dialect.first_note,
                &(version, "see adjutant_migration", statements),
            )
            .await?;
        } else {
            // A new database gets the whole schema in one step.
            tx.script(migrations.schema)
                .await
                .map_err(|failure| not_applied(failure, &migrations.prefix))?;
        }
        record(tx, dialect.note, &migrations.prefix).await?;
    }
    let mut steps = vec![migrations.prefix];
    steps.extend(migrations.since);
    apply_missing(tx, dialect.applied, dialect.note, &steps).await?;
    check_tables(tx, dialect).await
}

/// Fails if a table is missing that the schema has. Without this, only the commands that use the
/// table would fail, long after the loss.
pub(crate) async fn check_tables<C: Connection>(
    tx: &mut C,
    dialect: &Dialect,
) -> Result<(), Failure> {
    let mut found = Vec::new();
    for mut row in tx.fetch_all(dialect.all_tables, &[]).await? {
        found.push(row.get::<String>("name")?);
    }
    let missing: Vec<&str> = TABLES
        .iter()
        .chain(dialect.own_tables)
        .copied()
        .filter(|table| !found.iter().any(|found| found == table))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the table {} is missing; something else has removed it, and what was in it is lost: put a backup in the database's place",
        missing.join(", the table ")
    );
    Err(StoreError::unreadable(message).into())
}

/// Returns true if the database has the schema of the first version, or a part of it, by the
/// checksum of its first migration.
async fn is_of_first_version<C: Connection>(
    tx: &mut C,
    dialect: &Dialect,
    migrations: &Migrations,
) -> Result<bool, Failure> {
    if !has_table(tx, dialect, "_sqlx_migrations").await? {
        return Ok(false);
    }
    let mut applied = applied(tx, dialect.first_applied).await?.into_iter();
    Ok(match (applied.next(), migrations.first.first()) {
        (Some((version, known)), Some(first)) => version == first.0 && known == checksum(first.2),
        _ => false,
    })
}

/// Applies those of the migrations that are not recorded.
async fn apply_missing<C: Connection>(
    tx: &mut C,
    statement: &'static str,
    record_statement: &'static str,
    steps: &[Migration],
) -> Result<(), Failure> {
    let applied = applied(tx, statement).await?;
    // A newer program may have migrated since the schema was inspected.
    let newest = steps.last().map_or(0, |step| step.0);
    if let Some((found, _)) = applied.iter().find(|(version, _)| *version > newest) {
        return Err(too_new(*found, newest).into());
    }
    let Some((last, _)) = applied.last() else {
        let message = "no version of its schema is recorded; something else has emptied the table of migrations: put a backup in the database's place";
        return Err(StoreError::unreadable(message).into());
    };
    for step in steps {
        match applied.iter().find(|(version, _)| *version == step.0) {
            Some((_, known)) if *known == checksum(step.2) => {}
            Some(_) => {
                let message = format!(
                    "the schema cannot be updated: version {} of it is not ours",
                    step.0
                );
                return Err(StoreError::unreadable(message).into());
            }
            None if step.0 < *last => {
                let message = format!(
                    "version {} of its schema is not recorded although version {last}, which builds on it, is; something else has changed the table of migrations: put a backup in the database's place",
                    step.0
                );
                return Err(StoreError::unreadable(message).into());
            }
            None => {
                tracing::info!(
                    version = step.0,
                    name = step.1,
                    "applying a migration of the schema"
                );
                // In the same transaction as its record: a migration is applied and recorded, or
                // neither.
                tx.script(step.2)
                    .await
                    .map_err(|failure| not_applied(failure, step))?;
                record(tx, record_statement, step).await?;
            }
        }
    }
    Ok(())
}

/// Explains a migration that was applied before, although it is not recorded.
fn not_applied(failure: Failure, (version, ..): &Migration) -> Failure {
    let words = failure.to_string();
    if !(words.contains("already exists") || words.contains("duplicate column")) {
        return failure;
    }
    let message = format!(
        "version {version} of its schema is there and not recorded ({words}): it belongs to another program, or something else has changed the table of migrations; use another database, or put a backup in its place"
    );
    StoreError::unreadable(message).into()
}

async fn has_table<C: Connection>(
    tx: &mut C,
    dialect: &Dialect,
    name: &str,
) -> Result<bool, Failure> {
    let tables: Option<i64> = tx.fetch_scalar(dialect.tables, values![name]).await?;
    Ok(tables.is_some_and(|tables| tables > 0))
}

async fn applied<C: Connection>(
    tx: &mut C,
    statement: &'static str,
) -> Result<Vec<(i64, String)>, Failure> {
    let mut applied = Vec::new();
    for mut row in tx.fetch_all(statement, &[]).await? {
        applied.push((row.get("version")?, row.get("checksum")?));
    }
    Ok(applied)
}

async fn record<C: Connection>(
    tx: &mut C,
    statement: &'static str,
    (version, name, statements): &Migration,
) -> Result<(), Failure> {
    tx.execute(statement, values![*version, *name, &checksum(statements)])
        .await?;
    Ok(())
}

/// Returns the checksum of a migration as `sqlx` computes it, in hexadecimal.
fn checksum(statements: &str) -> String {
    hex(digest(&SHA384, statements.as_bytes()).as_ref())
}

pub(crate) fn too_new(found: i64, newest: i64) -> StoreError {
    StoreError::unreadable(format!(
        "it has schema version {found}, this program knows up to {newest}; it is left as it is: use the newer program, or another database"
    ))
}
