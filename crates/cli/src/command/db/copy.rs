//! `adjutant db copy`: copies a database of either kind into an empty one of either kind.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use adjutant_core::port::StoreError;
#[cfg(feature = "postgres")]
use adjutant_store::postgres;
use adjutant_store::{Finding, TableRows, copy, sqlite};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::config::{Database, Settings};
use crate::error::{CliError, Exit};
use crate::store;
use crate::terminal::screen::Screen;

/// Percent between two progress lines, where no bar is shown.
const LINE_EVERY: u64 = 10;

/// Copies the database of the settings, which has about `rows` rows, and verifies the copy.
///
/// # Errors
/// The address is malformed, a database cannot be used, or the target is not empty; then nothing is
/// left there. Findings of the verification are printed with exit code 1.
pub(super) async fn run(
    settings: &Settings,
    screen: &Screen,
    to: &str,
    rows: u64,
) -> Result<Exit, CliError> {
    let Some(to) = Database::parse(to) else {
        // The address may contain a password, so the error does not repeat it.
        return Err(CliError::usage(format!(
            "--to must be {}",
            Database::EXPECTED
        )));
    };
    let progress = RefCell::new(CopyProgress::new(screen, rows));
    let copied = copy_all(settings, &to, |rows| progress.borrow_mut().report(rows)).await;
    progress.into_inner().end();
    let tables = copied?;
    // Opened anew, so that the check reads what is on disk.
    let findings = store::open_at(&to, settings).await?.check().await?;
    print_result(screen, &to, &tables, &findings);
    if findings.is_empty() {
        return Ok(Exit::Ok);
    }
    screen.error(
        &CliError::failed(format!(
            "{} findings in the copy, which is as the database is that it was made of",
            findings.len()
        ))
        .or_try("adjutant db check    says whether they are in the database itself"),
    );
    Ok(Exit::Failed)
}

fn print_result(screen: &Screen, to: &Database, tables: &[TableRows], findings: &[Finding]) {
    if screen.json() {
        screen
            .answer_json(&json!({ "to": to.to_string(), "tables": tables, "findings": findings }));
        return;
    }
    for table in tables.iter().filter(|table| table.rows > 0) {
        screen.answer_line(&format!("{:16} {}", table.name, table.rows));
    }
    findings
        .iter()
        .for_each(|finding| screen.answer_line(&finding.to_string()));
    let whole = if findings.is_empty() {
        " All is well."
    } else {
        ""
    };
    screen.answer_line(&format!("The copy is in {to}.{whole}"));
}

/// Copies between all combinations of database kinds.
async fn copy_all(
    settings: &Settings,
    to: &Database,
    progress: impl Fn(&TableRows),
) -> Result<Vec<TableRows>, CliError> {
    // A file that was there before the copy is never removed.
    let made = match to {
        Database::Sqlite(path) if !path.exists() => Some(path),
        Database::Sqlite(_) | Database::Postgres(_) => None,
    };
    let copied = match (&settings.database, to) {
        (Database::Sqlite(from), Database::Sqlite(to)) => {
            let (from, to) = (
                sqlite::Store::open(from).await?,
                sqlite::Store::open(to).await?,
            );
            close_target(copy(&from, &to, progress).await, &to).await
        }
        #[cfg(feature = "postgres")]
        (Database::Sqlite(from), Database::Postgres(to)) => {
            let from = sqlite::Store::open(from).await?;
            copy(
                &from,
                &postgres::Store::connect(to, settings.pool_max).await?,
                progress,
            )
            .await
        }
        #[cfg(feature = "postgres")]
        (Database::Postgres(from), Database::Sqlite(to)) => {
            let from = postgres::Store::connect(from, settings.pool_max).await?;
            let to = sqlite::Store::open(to).await?;
            close_target(copy(&from, &to, progress).await, &to).await
        }
        #[cfg(feature = "postgres")]
        (Database::Postgres(from), Database::Postgres(to)) => {
            let from = postgres::Store::connect(from, settings.pool_max).await?;
            copy(
                &from,
                &postgres::Store::connect(to, settings.pool_max).await?,
                progress,
            )
            .await
        }
        #[cfg(not(feature = "postgres"))]
        (Database::Postgres(_), _) | (_, Database::Postgres(_)) => return Err(store::no_postgres()),
    };
    if let (Err(_), Some(path)) = (&copied, made) {
        remove_target(path);
    }
    copied.map_err(CliError::from)
}

/// Closes a SQLite file that was written, so that its write-ahead log is merged into it.
async fn close_target(
    copied: Result<Vec<TableRows>, StoreError>,
    to: &sqlite::Store,
) -> Result<Vec<TableRows>, StoreError> {
    to.close().await;
    copied
}

/// Removes a file that was created for a failed copy.
fn remove_target(path: &Path) {
    // SQLite keeps its write-ahead log and shared memory in files beside the database.
    for ending in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        // A file that does not exist needs no removal.
        let _ = fs::remove_file(name);
    }
}

/// Progress of a copy: a bar at a terminal, else a line now and then.
struct CopyProgress<'a> {
    screen: &'a Screen,
    bar: Option<ProgressBar>,
    total: u64,
    /// Rows of completed tables.
    before: u64,
    table: TableRows,
    printed_percent: u64,
}

impl<'a> CopyProgress<'a> {
    /// Creates the progress display for about `total` rows.
    fn new(screen: &'a Screen, total: u64) -> Self {
        let bar = screen.shows_progress().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            if let Ok(style) =
                ProgressStyle::with_template("{msg} {bar:24} {human_pos}/{human_len} rows {eta}")
            {
                bar.set_style(style);
            }
            bar
        });
        Self {
            screen,
            bar,
            total,
            before: 0,
            table: TableRows {
                name: String::new(),
                rows: 0,
            },
            printed_percent: 0,
        }
    }

    fn report(&mut self, rows: &TableRows) {
        if rows.name != self.table.name {
            self.before += self.table.rows;
        }
        self.table = rows.clone();
        let done = self.before + rows.rows;
        let total = self.total.max(done).max(1);
        if let Some(bar) = &self.bar {
            bar.set_message(rows.name.clone());
            bar.set_length(total);
            bar.set_position(done);
            return;
        }
        let percent = done * 100 / total;
        if percent >= self.printed_percent + LINE_EVERY {
            self.printed_percent = percent;
            self.screen.note(&format!(
                "{}: {done} of {total} rows ({percent} %)",
                rows.name
            ));
        }
    }

    fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
