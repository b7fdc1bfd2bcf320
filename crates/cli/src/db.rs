//! `adjutant db`: how the database is, whether it is whole, and copies of it; and what is old goes.

mod copy; // everything in another database
mod users; // whose names could be taken for each other

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use adjutant_store::{DatabaseStatus, Removed};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::args::Db;
use crate::config::{Database, Settings};
use crate::display::{json_line, local, plural};
use crate::error::{CliError, Exit};
use crate::screen::Screen;
use crate::store::{self, Store};

/// What is old is looked for once in this time.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How often a process that runs for long looks whether it is time.
const LOOK: Duration = Duration::from_secs(3600);
/// When it was done last, by database. In the state folder.
const DONE: &str = "removed-old.json";

/// Tells about the database, or copies it.
///
/// # Errors
/// It cannot be opened or read; or there is no copy, and why. `check` finds something: exit code 1
/// and the list.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Db,
    json: bool,
) -> Result<Exit, CliError> {
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
            if json {
                screen.answer_line(&json_line(&status))
            } else {
                tell(screen, &status)
            }
        }
        Db::Migrate => {
            let status = store.status().await?;
            if json {
                screen.answer_line(&json_line(
                    &json!({ "place": status.place, "schema_version": status.schema_version }),
                ));
            } else {
                screen.answer_line(&format!(
                    "{} is up to date: schema version {}.",
                    status.place, status.schema_version
                ));
            }
        }
        Db::Check => {
            let findings = store.check().await?;
            // Where the database is damaged, reading them may fail: that is among the findings.
            for notice in users::notices(&store.users().await.unwrap_or_default()) {
                screen.note(&notice);
            }
            if json {
                screen.answer_line(&json_line(&findings));
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
            if json {
                screen.answer_line(&json_line(&json!({ "file": file.to_string_lossy() })));
            } else {
                screen.answer_line(&format!("The copy is in {}.", file.display()));
            }
        }
        Db::Copy { to } => {
            let rows = store
                .status()
                .await?
                .tables
                .iter()
                .map(|table| table.rows)
                .sum();
            return copy::run(settings, screen, &to, rows, json).await;
        }
    }
    Ok(Exit::Ok)
}

fn tell(screen: &Screen, status: &DatabaseStatus) {
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

/// Removes what is older than `log.keep`, if a day has passed since that was done last. What goes
/// wrong is told and stops nothing: the next day comes.
pub(crate) async fn remove_old(settings: &Settings, store: &dyn Store, screen: &Screen) {
    let Some(keep) = settings
        .keep
        .and_then(|keep| SignedDuration::try_from(keep).ok())
    else {
        return;
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "how old something is has to be told by somebody"
    )]
    let now = Timestamp::now();
    let done = settings.dirs.state.join(DONE);
    let place = settings.database.to_string();
    if read(&done)
        .get(&place)
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
                screen.note(&words(removed, before));
            }
            // Not remembered, it is done again with the next start: no harm.
            let _ = remember(&done, &place, now);
        }
        Err(error) => screen.error(&CliError::from(error)),
    }
}

/// [`remove_old`], every day. Never ends.
pub(crate) async fn remove_old_daily(settings: &Settings, store: &dyn Store, screen: &Screen) {
    loop {
        remove_old(settings, store, screen).await;
        tokio::time::sleep(LOOK).await;
    }
}

fn words(removed: Removed, before: Timestamp) -> String {
    let day = before.strftime("%Y-%m-%d");
    if removed.is_nothing() {
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

/// When it was done, by database; nothing if that is not known.
fn read(file: &Path) -> BTreeMap<String, Timestamp> {
    fs::read(file)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn remember(file: &Path, place: &str, now: Timestamp) -> std::io::Result<()> {
    let mut all = read(file);
    all.insert(place.to_owned(), now);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, json_line(&all))
}
