//! Bringing the schema up to date.
//!
//! Applied migrations are noted in the table `adjutant_migration`. The first version kept it in
//! `_sqlx_migrations`, and its tables had no prefix: such a database goes on from there, and gets
//! one more row in that table, so that a program of the first version refuses it. A table
//! `_sqlx_migrations` of another program is left alone.

use adjutant_core::port::StoreError;
use ring::digest::{SHA384, digest};

use super::{Connection, Failure, values};
use crate::digest::hex;

/// A step of the schema: its version, its name, its statements.
pub(crate) type Migration = (i64, &'static str, &'static str);

/// The way to the schema of this version.
pub(crate) struct Migrations {
    /// The steps of the first version, in order.
    pub(crate) first: &'static [Migration],
    /// The step from there to the schema with prefixes.
    pub(crate) prefix: Migration,
    /// The schema that this step leads to, for a database that has none.
    pub(crate) schema: &'static str,
    /// The steps since, in order.
    pub(crate) since: &'static [Migration],
}

impl Migrations {
    /// Returns the version this program knows.
    #[cfg(feature = "sqlite")]
    pub(crate) fn newest(&self) -> i64 {
        self.since.last().unwrap_or(&self.prefix).0
    }
}

/// Statements that differ between the databases.
pub(crate) struct Dialect {
    /// Answers with the number of tables of the name `$1`.
    pub(crate) tables: &'static str,
    /// Makes the table `adjutant_migration`.
    pub(crate) create: &'static str,
    /// Answers with its versions and, in hexadecimal, checksums, in order.
    pub(crate) applied: &'static str,
    /// Notes a version, its name, and its checksum in hexadecimal.
    pub(crate) note: &'static str,
    /// `applied` for the table of the first version.
    pub(crate) first_applied: &'static str,
    /// `note` for the table of the first version.
    pub(crate) first_note: &'static str,
}

/// Carries out what was not yet. In one transaction, during which nobody else may do the same.
pub(crate) async fn migrate<C: Connection>(
    rows: &mut C,
    dialect: &Dialect,
    migrations: &Migrations,
) -> Result<(), Failure> {
    if !has_table(rows, dialect, "adjutant_migration").await? {
        rows.script(dialect.create).await?;
        if is_of_first_version(rows, dialect, migrations).await? {
            go_on(
                rows,
                dialect.first_applied,
                dialect.first_note,
                migrations.first,
            )
            .await?;
            let (version, _, statements) = migrations.prefix;
            rows.script(statements).await?;
            note(
                rows,
                dialect.first_note,
                &(version, "see adjutant_migration", statements),
            )
            .await?;
        } else {
            rows.script(migrations.schema).await?;
        }
        note(rows, dialect.note, &migrations.prefix).await?;
    }
    let mut steps = vec![migrations.prefix];
    steps.extend(migrations.since);
    go_on(rows, dialect.applied, dialect.note, &steps).await
}

/// Returns whether the database has the schema of the first version, whole or a part of it, by the
/// checksum of its first step.
async fn is_of_first_version<C: Connection>(
    rows: &mut C,
    dialect: &Dialect,
    migrations: &Migrations,
) -> Result<bool, Failure> {
    if !has_table(rows, dialect, "_sqlx_migrations").await? {
        return Ok(false);
    }
    let mut applied = applied(rows, dialect.first_applied).await?.into_iter();
    Ok(match (applied.next(), migrations.first.first()) {
        (Some((version, known)), Some(first)) => version == first.0 && known == checksum(first.2),
        _ => false,
    })
}

/// Carries out those of the steps that are not noted.
async fn go_on<C: Connection>(
    rows: &mut C,
    statement: &'static str,
    note_statement: &'static str,
    steps: &[Migration],
) -> Result<(), Failure> {
    let applied = applied(rows, statement).await?;
    // Somebody newer may have been quicker than our look at the schema.
    let newest = steps.last().map_or(0, |step| step.0);
    if let Some((found, _)) = applied.iter().find(|(version, _)| *version > newest) {
        return Err(too_new(*found, newest).into());
    }
    for step in steps {
        match applied.iter().find(|(version, _)| *version == step.0) {
            Some((_, known)) if *known == checksum(step.2) => {}
            Some(_) => {
                let message = format!(
                    "the schema cannot be updated: version {} of it is not ours",
                    step.0
                );
                return Err(StoreError::Unreadable { message }.into());
            }
            None => {
                rows.script(step.2).await?;
                note(rows, note_statement, step).await?;
            }
        }
    }
    Ok(())
}

async fn has_table<C: Connection>(
    rows: &mut C,
    dialect: &Dialect,
    name: &str,
) -> Result<bool, Failure> {
    let found = rows.fetch_first(dialect.tables, values![name]).await?;
    Ok(found
        .map(|mut columns| columns.int())
        .transpose()?
        .is_some_and(|tables| tables > 0))
}

async fn applied<C: Connection>(
    rows: &mut C,
    statement: &'static str,
) -> Result<Vec<(i64, String)>, Failure> {
    let mut applied = Vec::new();
    for mut columns in rows.fetch(statement, &[]).await? {
        applied.push((columns.int()?, columns.text()?));
    }
    Ok(applied)
}

async fn note<C: Connection>(
    rows: &mut C,
    statement: &'static str,
    (version, name, statements): &Migration,
) -> Result<(), Failure> {
    rows.execute(statement, values![*version, *name, &checksum(statements)])
        .await?;
    Ok(())
}

/// Returns a step's checksum as `sqlx` computes it, in hexadecimal.
fn checksum(statements: &str) -> String {
    hex(digest(&SHA384, statements.as_bytes()).as_ref())
}

pub(crate) fn too_new(found: i64, newest: i64) -> StoreError {
    StoreError::Unreadable {
        message: format!(
            "it has schema version {found}, this program knows up to {newest}; it is left as it is: use the newer program, or another database"
        ),
    }
}
