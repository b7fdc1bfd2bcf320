//! Checks of the database: access, integrity and size.

use std::sync::Arc;
use std::time::Duration;

use adjutant_store::CommitRisk;

use super::folders::nearest_existing;
use super::{Check, Group};
use crate::config::{Database, Settings};
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::shell_quoted;

const GROUP: Group = Group("data");
const NAME: &str = "database";

/// Time that a database server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size in bytes above which a warning is given.
const LARGE: u64 = 2_000_000_000;
/// In older versions, a crash while the write-ahead log is reset can damage the file.
const SQLITE_NEEDED: [u64; 3] = [3, 51, 3];

/// Checks the database, and returns it if it can be used.
pub(super) async fn checks(settings: &Settings) -> (Vec<Check>, Option<Arc<dyn Store>>) {
    if let Database::Sqlite(file) = &settings.database
        && !file.exists()
    {
        let can_be_made = nearest_existing(file).is_some_and(std::path::Path::is_dir);
        let file_name = file.display();
        let check = if can_be_made {
            Some(GROUP.ok(
                NAME,
                format!("{file_name} (not there yet: made when needed)"),
            ))
        } else if file.starts_with(&settings.dirs.data) {
            // The check of the data folder reports it already.
            None
        } else {
            let check = GROUP.fail(NAME, format!("{file_name} cannot be made"));
            Some(
                check
                    .because("a file stands where its folder belongs")
                    .with_remedy(
                        "set store.path to another place: adjutant config set store.path FILE",
                    ),
            )
        };
        return (check.into_iter().collect(), None);
    }
    // An address that leads nowhere is given up by the operating system after minutes only.
    let opened = tokio::time::timeout(PATIENCE, store::open(settings))
        .await
        .unwrap_or_else(|_| {
            Err(
                CliError::configuration(format!("{} does not answer", settings.database))
                    .because(format!("nothing came within {} s", PATIENCE.as_secs())),
            )
        });
    match opened {
        Ok(store) => {
            let mut checks = vec![store_checks(&*store).await];
            if matches!(settings.database, Database::Postgres(_)) {
                checks.push(notifications(&*store).await);
                checks.push(confirmed_commits(&*store).await);
            }
            (checks, Some(store))
        }
        Err(error) => (vec![not_opened(settings, &error)], None),
    }
}

/// Checks that this process is notified of changes by others, such as a cancelled turn.
async fn notifications(store: &dyn Store) -> Check {
    let name = "database.listen_url";
    match store.receives_notifications().await {
        true => GROUP.ok(name, "changes by other processes arrive here at once"),
        false => GROUP.warn(name, "changes by other processes are seen here within a second, and their runs cannot be followed here")
            .because("notifications do not arrive: a pooler that gives every transaction another connection hands none on")
            .with_remedy("adjutant config set database.listen_url postgres://USER@HOST:PORT/DATABASE    (the server itself)"),
    }
}

/// Checks that what the server confirms survives a crash and a fail-over: on that rests that
/// nothing is done twice.
async fn confirmed_commits(store: &dyn Store) -> Check {
    let name = "confirmed commits";
    let replication = match store.replication().await {
        Ok(replication) => replication.unwrap_or_default(),
        Err(error) => {
            return GROUP
                .warn(name, "it cannot be told whether they survive")
                .because(error);
        }
    };
    let (cause, remedy) = match replication.risk() {
        None if replication.receivers > 0 => {
            return GROUP.ok(
                name,
                "they survive a crash, and a fail-over to a synchronous standby",
            );
        }
        None => return GROUP.ok(name, "they survive a crash; no standby is connected"),
        Some(CommitRisk::NoSync) => (
            "fsync is off: a crash of the server's machine can take what was confirmed, and damage the database",
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();    (in the server, as its administrator)",
        ),
        Some(CommitRisk::CommitsEarly) => (
            "synchronous_commit is off: a crash of the server takes the last moments, and what was done in them may be done again",
            "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();    (and no other value for this user or database)",
        ),
        Some(CommitRisk::AsynchronousStandby) => (
            "a standby is connected that the server does not wait for: after a fail-over to it the last moments are missing, and what was done in them may be done again",
            "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf();    (docs/scale.md#standbys)",
        ),
    };
    GROUP
        .warn(name, "a crash or a fail-over can take some of them")
        .because(cause)
        .with_remedy(remedy)
}

fn not_opened(settings: &Settings, error: &CliError) -> Check {
    let cause = error.cause.as_ref().unwrap_or(&error.message);
    let remedy = match &settings.database {
        Database::Sqlite(file) if cause.contains("newer") => {
            format!("use the newer adjutant that made {}, or set store.path to another file", file.display())
        }
        Database::Sqlite(file) => {
            let file = file.to_string_lossy();
            format!(
                "mv {} {}    (then put your backup in its place, or begin anew)",
                shell_quoted(&file),
                shell_quoted(&format!("{file}.damaged"))
            )
        }
        Database::Postgres(_) => {
            "start the server, or correct serve.database_url (DATABASE_URL): adjutant config show --origin tells where it is from".to_owned()
        }
    };
    Check {
        cause: error.cause.clone(),
        ..GROUP.fail(NAME, &error.message).with_remedy(remedy)
    }
}

async fn store_checks(store: &dyn Store) -> Check {
    let status = match store.status().await {
        Ok(status) => status,
        Err(error) => {
            return GROUP
                .fail(NAME, "it cannot be read")
                .because(error)
                .with_remedy("adjutant db check");
        }
    };
    let size = format!("{:.1} MB", status.bytes as f64 / 1e6);
    let shown = format!(
        "{} · {} · schema {} · {size}",
        status.place, status.product, status.schema_version
    );
    // Before the check of all pages, which takes long in a large file.
    if let Some(version) = status.product.strip_prefix("SQLite ")
        && numbers(version) < SQLITE_NEEDED
    {
        return GROUP
            .fail(NAME, shown)
            .because(
                "SQLite before 3.51.3 can damage a file when a crash meets the reset of its log",
            )
            .with_remedy("use an adjutant that was built with its own SQLite");
    }
    match store.check().await {
        Err(error) => GROUP
            .fail(NAME, "it cannot be looked through")
            .because(error)
            .with_remedy("adjutant db check"),
        Ok(findings) => match findings.first() {
            Some(first) => GROUP
                .fail(NAME, format!("{shown} · {} findings", findings.len()))
                .because(first)
                .with_remedy("adjutant db backup FILE, then adjutant db check"),
            None if status.bytes > LARGE => GROUP
                .warn(NAME, shown)
                .because("it grows with every conversation")
                .with_remedy("adjutant config set log.keep 365d"),
            None => GROUP.ok(NAME, shown),
        },
    }
}

/// Parses the three numbers of a version.
fn numbers(version: &str) -> [u64; 3] {
    let mut numbers = version
        .split('.')
        .map(|part| part.parse().unwrap_or_default());
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("3.51.2") < SQLITE_NEEDED && numbers("3.9.9") < SQLITE_NEEDED);
        assert!(
            numbers("3.51.3") >= SQLITE_NEEDED
                && numbers("3.100.0") >= SQLITE_NEEDED
                && numbers("4") >= SQLITE_NEEDED
        );
    }
}
