//! Bringing the schema up to date.
//!
//! What was done is kept in the table `_sqlx_migrations`, as `sqlx` keeps it: it made the schema of the first versions, and
//! they go on reading databases that this one has opened.

use adjutant_core::port::StoreError;
use ring::digest::{SHA384, digest};

use super::{Connection, Failure, values};
use crate::row;

/// A step of the schema: its version, its name, its statements.
pub(crate) type Migration = (i64, &'static str, &'static str);

/// How a database spells what the other one does not understand.
pub(crate) struct Dialect {
    /// Makes the table if it is not there.
    pub(crate) create: &'static str,
    /// Answers with versions and, in hexadecimal, checksums, in order.
    pub(crate) applied: &'static str,
    /// Notes a version, its name, and its checksum in hexadecimal.
    pub(crate) note: &'static str,
}

/// Carries out the migrations that were not yet. In one transaction, during which nobody else may do the same.
pub(crate) async fn migrate<C: Connection>(
    rows: &mut C,
    dialect: &Dialect,
    migrations: &[Migration],
) -> Result<(), Failure> {
    rows.script(dialect.create).await?;
    let mut applied = Vec::new();
    for mut columns in rows.fetch(dialect.applied, &[]).await? {
        applied.push((columns.int()?, columns.text()?));
    }
    // Somebody newer may have been quicker than our look at the schema.
    let newest = newest(migrations);
    if let Some((found, _)) = applied.iter().find(|(version, _)| *version > newest) {
        return Err(too_new(*found, newest).into());
    }
    for (version, name, statements) in migrations {
        let checksum = row::hex(digest(&SHA384, statements.as_bytes()).as_ref());
        match applied.iter().find(|(applied, _)| applied == version) {
            Some((_, known)) if *known == checksum => {}
            Some(_) => {
                let message = format!("the schema cannot be updated: version {version} of it is not ours");
                return Err(StoreError::Unreadable { message }.into());
            }
            None => {
                rows.script(statements).await?;
                rows.execute(dialect.note, values![*version, *name, &checksum]).await?;
            }
        }
    }
    Ok(())
}

pub(crate) fn newest(migrations: &[Migration]) -> i64 {
    migrations.iter().map(|(version, ..)| *version).max().unwrap_or_default()
}

pub(crate) fn too_new(found: i64, newest: i64) -> StoreError {
    StoreError::Unreadable {
        message: format!(
            "it has schema version {found}, this program knows up to {newest}; it is left as it is: use the newer program, or another database"
        ),
    }
}
