//! Copying everything into another database, of the same or the other kind.
//!
//! Two transactions run at the same time: one reads a snapshot of the source page by page, the
//! other writes into the target. At most two pages wait in between. The target gets everything or
//! nothing.

mod tables;

use std::sync::Mutex;

use adjutant_core::port::StoreError;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Backend, Cell, Connection, Failure, Row, SqlStore, Value, values};
use crate::lock::lock;
use crate::maintenance::TableRows;
use crate::record;
pub(super) use tables::columns_of;
use tables::{Kind, STATEMENTS, TABLES, Table};

/// Pages that are read and not yet written.
const WAITING: usize = 2;

/// Selects branches after a key with their origins.
const LINKS: &str = "SELECT key, branched_from_key FROM adjutant_conversation AS conversation
                     WHERE branched_from_key IS NOT NULL AND key > $1 ORDER BY key LIMIT 500";
const SET_LINK: &str = "UPDATE adjutant_conversation SET branched_from_key = $2 WHERE key = $1";

type Values = Vec<Value<'static>>;

/// A message from the reading transaction to the writing one.
enum Page {
    /// Rows of a table, by its index in [`TABLES`].
    Rows(usize, Vec<Values>),
    /// Branches with their origins.
    Links(Vec<Values>),
    /// The end of the data.
    End,
}

struct Source {
    pages: mpsc::Sender<Page>,
    runtime: Handle,
}

struct Target {
    /// Taken by the first attempt: a retry cannot read the pages again.
    pages: Mutex<Option<mpsc::Receiver<Page>>>,
    progress: mpsc::UnboundedSender<TableRows>,
    runtime: Handle,
}

/// Copies everything in one database into another that is empty: tasks, conversations, journal,
/// logs, tokens, budgets and memory changes. Keys and numbers stay the same, and both databases
/// continue after the highest. The list of running workers is not copied. The source may be in use:
/// the copy has its state at the beginning. `progress` is called after each page with the number of
/// rows written of its table. Returns the rows of each table.
///
/// PostgreSQL cannot store the character NUL, which becomes U+FFFD there. In JSON it is escaped,
/// and stays as it is.
///
/// # Errors
/// [`StoreError::Unusable`] if the target is not empty, or another process wrote to it meanwhile;
/// otherwise the [`StoreError`] of either database. The target is left empty then.
///
/// # Examples
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use adjutant_store::sqlite::Store;
///
/// let (from, to) = (Store::in_memory().await?, Store::in_memory().await?);
/// let rows = adjutant_store::copy(&from, &to, |table| println!("{}", table.name)).await?;
/// assert!(rows.iter().all(|table| table.rows == 0));
/// # Ok::<(), adjutant_core::port::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn copy<A: Backend, B: Backend>(
    from: &SqlStore<A>,
    to: &SqlStore<B>,
    progress: impl Fn(&TableRows),
) -> Result<Vec<TableRows>, StoreError> {
    let (pages, received) = mpsc::channel(WAITING);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let runtime = Handle::current();
    let source = Source {
        pages,
        runtime: runtime.clone(),
    };
    let target = Target {
        pages: Mutex::new(Some(received)),
        progress: sender,
        runtime,
    };
    let reporting = async {
        while let Some(rows) = receiver.recv().await {
            progress(&rows);
        }
    };
    let (read, written, ()) = tokio::join!(
        from.backend
            .read(source, |tx, source| Box::pin(read_all(tx, source))),
        to.backend
            .write(target, |tx, target| Box::pin(write_all(tx, target))),
        reporting,
    );
    // If one side fails, the other ends without an error.
    let written = written.map_err(|failure| to.backend.explain(failure))?;
    read.map_err(|failure| from.backend.explain(failure))?;
    written.ok_or_else(|| StoreError::unusable("the copy broke off; nothing of it was kept"))
}

/// Sends every row to the writer. Returns early if the writer has gone.
async fn read_all<C: Connection>(tx: &mut C, source: &Source) -> Result<(), Failure> {
    for (at, (table, statements)) in TABLES.iter().zip(STATEMENTS.iter()).enumerate() {
        let mut after: Option<Values> = None;
        loop {
            let found = match &after {
                None => tx.fetch_all(&statements.first, &[]).await?,
                Some(key) => tx.fetch_all(&statements.next, key).await?,
            };
            let is_last = found.len() < table.page;
            let page = found
                .into_iter()
                .map(|row| read_row(table, row))
                .collect::<Result<Vec<_>, _>>()?;
            // The next page begins after the last key: an offset would read all rows before it
            // again.
            let Some(last) = page.last() else { break };
            after = Some(last.iter().take(table.key).cloned().collect());
            if !hand_over::<C>(source, Page::Rows(at, page)).await {
                return Ok(());
            }
            if is_last {
                break;
            }
        }
    }
    let mut after = Some(i64::MIN);
    while let Some(key) = after.take() {
        let mut links = Vec::new();
        for mut row in tx.fetch_all(LINKS, values![key]).await? {
            let (branch, origin): (i64, i64) = (row.get("key")?, row.get("branched_from_key")?);
            after = Some(branch);
            links.push(vec![branch.into(), origin.into()]);
        }
        if !links.is_empty() && !hand_over::<C>(source, Page::Links(links)).await {
            return Ok(());
        }
    }
    hand_over::<C>(source, Page::End).await;
    Ok(())
}

/// Returns true if the writer accepts the page.
async fn hand_over<C: Connection>(source: &Source, page: Page) -> bool {
    C::wait(&source.runtime, source.pages.send(page))
        .await
        .is_ok()
}

fn read_row(table: &Table, row: Row) -> Result<Values, StoreError> {
    let value = |((name, kind), cell): (&(&str, Kind), Cell)| {
        Ok(match (kind, cell) {
            (Kind::Int, Cell::Int(value)) => Value::Int(Some(value)),
            (Kind::Int, Cell::Null) => Value::Int(None),
            (Kind::Real, Cell::Real(value)) => Value::Real(Some(value)),
            (Kind::Real, Cell::Null) => Value::Real(None),
            (Kind::Text, Cell::Text(value)) => Value::Text(Some(value.into())),
            (Kind::Text, Cell::Null) => Value::Text(None),
            (_, other) => {
                let place = format!("the column {name} of adjutant_{}", table.name);
                return Err(record::unreadable(
                    &place,
                    format!("it holds {other:?}, which does not belong there"),
                ));
            }
        })
    };
    table
        .columns
        .iter()
        .zip(row.into_cells())
        .map(value)
        .collect()
}

/// Writes the pages. Returns `None`, and rolls back, if the reader breaks off before the end.
async fn write_all<C: Connection>(
    tx: &mut C,
    target: &Target,
) -> Result<Option<Vec<TableRows>>, Failure> {
    let Some(mut pages) = lock(&target.pages).take() else {
        let message = "the copy was undone, and cannot be gone on with; begin it again".to_owned();
        return Err(StoreError::unavailable(message).into());
    };
    // The reader may be slow, and PostgreSQL would end a transaction that is idle for a second.
    tx.may_wait().await?;
    for (table, statements) in TABLES.iter().zip(STATEMENTS.iter()) {
        if counted(tx, &statements.count).await? > 0 {
            let message = format!(
                "it is not empty (adjutant_{}), and was left as it is; name a database with nothing of adjutant in it",
                table.name
            );
            return Err(StoreError::unusable(message).into());
        }
    }
    let mut written: Vec<TableRows> = TABLES
        .iter()
        .map(|table| TableRows {
            name: table.name.to_owned(),
            rows: 0,
        })
        .collect();
    loop {
        match C::wait(&target.runtime, pages.recv()).await {
            Some(Page::Rows(at, page)) => {
                let (Some(statements), Some(written)) = (STATEMENTS.get(at), written.get_mut(at))
                else {
                    continue;
                };
                // PostgreSQL refuses a number in a column that it numbers, unless the statement
                // says so.
                let is_numbered = TABLES.get(at).is_some_and(|table| table.is_numbered);
                let insert = if is_numbered && C::HAS_SEQUENCES {
                    &statements.insert_numbered
                } else {
                    &statements.insert
                };
                tx.execute_each(insert, &page).await?;
                written.rows += page.len() as u64;
                // The caller may have been dropped.
                let _ = target.progress.send(written.clone());
            }
            Some(Page::Links(links)) => tx.execute_each(SET_LINK, &links).await?,
            Some(Page::End) => break,
            None => {
                tx.undo();
                return Ok(None);
            }
        }
    }
    for ((table, statements), written) in TABLES.iter().zip(STATEMENTS.iter()).zip(&written) {
        if table.is_numbered && C::HAS_SEQUENCES {
            tx.fetch_all(&statements.go_on, &[]).await?;
        }
        // Counted again at the end: other processes may write to the target, which is not locked.
        let found = counted(tx, &statements.count).await?;
        if found != written.rows {
            let message = format!(
                "adjutant_{} has {found} rows where {} were copied: another process writes to it; nothing of the copy was kept",
                table.name, written.rows
            );
            return Err(StoreError::unusable(message).into());
        }
    }
    Ok(Some(written))
}

async fn counted<C: Connection>(tx: &mut C, statement: &'static str) -> Result<u64, Failure> {
    Ok(tx.fetch_scalar(statement, &[]).await?.unwrap_or(0))
}
