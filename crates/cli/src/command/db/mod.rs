//! `adjutant db`: status, check, backup and copy of the database, and the removal of old logs.

mod copy; // copy into another database
mod users; // users whose names are easily confused

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use adjutant_store::{DatabaseStatus, Removed};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::args::Db;
use crate::clock;
use crate::config::{Database, Settings};
use crate::error::{CliError, Exit};
use crate::store::{self, Store};
use crate::terminal::display::{json_line, local, plural, shown_path};
use crate::terminal::screen::Screen;

/// Old logs are removed at most once in this time.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Interval at which a service checks if it is time to remove old logs.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Times of the last removal by database, in the state folder.
const DONE: &str = "removed-old.json";

/// Runs one subcommand.
///
/// # Errors
/// The database cannot be opened or read, or the copy fails. Findings of `check` are printed with
/// exit code 1.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Db,
) -> Result<Exit, CliError> {
    // A mistyped path must not become an empty database that all seems well with.
    if let (Database::Sqlite(file), false) = (&settings.database, matches!(command, Db::Migrate))
        && !file.exists()
    {
        return Err(
            CliError::configuration(format!("there is no database at {}", file.display()))
                .or_try("adjutant db migrate    makes an empty one; so does whatever needs one")
                .or_try("adjutant config path    says where it is looked for"),
        );
    }
    // Opening it brings its schema up to date, as every start does.
    let store = store::open(settings).await?;
    match command {
        Db::Status => {
            let status = store.status().await?;
            if screen.json() {
                screen.answer_json(&status)
            } else {
                print(screen, &status)
            }
        }
        Db::Migrate => {
            let status = store.status().await?;
            screen.result(
                &json!({ "place": status.place, "schema_version": status.schema_version }),
                || {
                    format!(
                        "{} is up to date: schema version {}.",
                        status.place, status.schema_version
                    )
                },
            );
        }
        Db::Check => {
            let findings = store.check().await?;
            // In a damaged database this may fail; the damage itself is among the findings.
            for notice in users::notices(&store.users().await.unwrap_or_default()) {
                screen.note(&notice);
            }
            if screen.json() {
                screen.answer_json(&findings);
            } else if findings.is_empty() {
                screen.answer_line("All is well.");
            } else {
                findings
                    .iter()
                    .for_each(|finding| screen.answer_line(&finding.to_string()));
            }
            if !findings.is_empty() {
                screen.error(
                    &CliError::failed(format!("{} findings; nothing was changed", findings.len()))
                        .or_try("adjutant db backup FILE, before anything else"),
                );
                return Ok(Exit::Failed);
            }
        }
        Db::Backup { file } => {
            store.backup(&file).await?;
            let file = std::path::absolute(&file).unwrap_or(file);
            screen.result(&json!({ "file": file.to_string_lossy() }), || {
                format!("The copy is in {}.", shown_path(&file))
            });
        }
        Db::Copy { to } => {
            let rows = store
                .status()
                .await?
                .tables
                .iter()
                .map(|table| table.rows)
                .sum();
            return copy::run(settings, screen, &to, rows).await;
        }
    }
    Ok(Exit::Ok)
}

fn print(screen: &Screen, status: &DatabaseStatus) {
    let field = |name: &str, value: &str| screen.answer_line(&format!("{name:14} {value}"));
    field("where", &status.place);
    field("product", &status.product);
    field("schema", &format!("version {}", status.schema_version));
    if let Some(mode) = &status.journal_mode {
        field("journal mode", mode);
    }
    field("size", &format!("{:.1} MB", status.bytes as f64 / 1e6));
    field(
        "open",
        &format!(
            "{} to go on with, {} wait for a person",
            status.unsettled, status.waiting
        ),
    );
    if let (Some(oldest), Some(newest)) = (status.oldest, status.newest) {
        field(
            "conversations",
            &format!("from {} to {}", local(oldest), local(newest)),
        );
    }
    for table in &status.tables {
        field(&format!("  {}", table.name), &table.rows.to_string());
    }
}

/// Removes logs older than `log.keep`, if the last removal was a day ago. An error is printed and
/// retried a day later.
pub(crate) async fn remove_old(settings: &Settings, store: &dyn Store, screen: &Screen) {
    let Some(keep) = settings
        .keep
        .and_then(|keep| SignedDuration::try_from(keep).ok())
    else {
        return;
    };
    let now = clock::now();
    let done = settings.dirs.state.join(DONE);
    let place = settings.database.to_string();
    if load_times(&done)
        .get(&place)
        // A time in the future is from a clock that was wrong, and would put the removal off for as
        // long.
        .is_some_and(|at| now.duration_since(*at) < DAY && *at <= now)
    {
        return;
    }
    let Ok(before) = now.checked_sub(keep) else {
        return;
    };
    match store.remove_older_than(before).await {
        Ok(removed) => {
            if screen.verbose() {
                screen.note(&describe(removed, before));
            }
            // If the time cannot be stored, the removal is repeated at the next start, which does
            // no harm.
            let _ = save_time(&done, &place, now);
        }
        Err(error) => screen.error(&CliError::from(error)),
    }
}

/// Calls [`remove_old`] every day; never returns.
pub(crate) async fn remove_old_daily(settings: &Settings, store: &dyn Store, screen: &Screen) {
    loop {
        remove_old(settings, store, screen).await;
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

fn describe(removed: Removed, before: Timestamp) -> String {
    let day = before.strftime("%Y-%m-%d");
    if removed.is_empty() {
        return format!("nothing is older than {day} (log.keep)");
    }
    format!(
        "removed what is older than {day} (log.keep): {} with {}, {}, {}, {}, {}",
        plural(removed.conversations, "conversation", "conversations"),
        plural(removed.events, "event", "events"),
        plural(removed.invocations, "call by hand", "calls by hand"),
        plural(removed.changes, "key of a change", "keys of changes"),
        plural(removed.budget_days, "day of budgets", "days of budgets"),
        plural(
            removed.memory_changes,
            "change of memories",
            "changes of memories"
        )
    )
}

/// Loads the times of the last removal by database; empty if they cannot be read.
fn load_times(file: &Path) -> BTreeMap<String, Timestamp> {
    fs::read(file)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn save_time(file: &Path, place: &str, now: Timestamp) -> std::io::Result<()> {
    let mut all = load_times(file);
    all.insert(place.to_owned(), now);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, json_line(&all))
}
