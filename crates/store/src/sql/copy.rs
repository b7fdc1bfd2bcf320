//! A copy of everything in another database, whatever the kind of each.
//!
//! Two transactions run beside each other: one reads the one database as it is at this moment, page
//! by page, the other writes into the other database. Between them are two pages at most. Either
//! everything is in the other database at the end, or nothing.

mod tables;

use std::sync::{Mutex, PoisonError};

use adjutant_core::port::StoreError;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Backend, Cell, Columns, Connection, Failure, SqlStore, Value, count, values};
use crate::maintenance::TableRows;
use crate::row;
pub(super) use tables::columns_of;
use tables::{Kind, STATEMENTS, TABLES, Table};

/// Pages that are read and not yet written.
const WAITING: usize = 2;

/// The branches behind a key, and where each goes on from.
const LINKS: &str = "SELECT key, branched_from_key FROM adjutant_conversation AS conversation
                     WHERE branched_from_key IS NOT NULL AND key > $1 ORDER BY key LIMIT 500";
const SET_LINK: &str = "UPDATE adjutant_conversation SET branched_from_key = $2 WHERE key = $1";

type Row = Vec<Value<'static>>;

/// What one transaction hands to the other.
enum Page {
    /// Rows of a table, by its place in [`TABLES`].
    Rows(usize, Vec<Row>),
    /// Branches, and where each goes on from.
    Links(Vec<Row>),
    /// That was all.
    End,
}

struct Source {
    pages: mpsc::Sender<Page>,
    runtime: Handle,
}

struct Target {
    /// Taken by the first try: what was read is not read a second time.
    pages: Mutex<Option<mpsc::Receiver<Page>>>,
    progress: mpsc::UnboundedSender<TableRows>,
    runtime: Handle,
}

/// Copies everything that one database holds into another that is empty: tasks, conversations,
/// journal, logs, tokens, budgets, changes of memories. Keys and numbers stay what they are, and
/// both go on behind the highest. Not copied is the list of running processes. The database that is
/// read may be in use: the copy has what was there when it began. `progress` hears after each page
/// how many rows of its table were written. Returns the rows of each table.
///
/// PostgreSQL holds no character NUL: there it becomes U+FFFD. In JSON it stands as an escape,
/// which stays as it is.
///
/// # Errors
/// [`StoreError::Unusable`]: the other database has something in it already, or somebody wrote to it meanwhile. [`StoreError`] of
/// either database. Nothing is left in the other database then.
pub async fn copy<A: Backend, B: Backend>(
    from: &SqlStore<A>,
    to: &SqlStore<B>,
    progress: impl Fn(&TableRows),
) -> Result<Vec<TableRows>, StoreError> {
    let (pages, received) = mpsc::channel(WAITING);
    let (tell, mut told) = mpsc::unbounded_channel();
    let runtime = Handle::current();
    let source = Source {
        pages,
        runtime: runtime.clone(),
    };
    let target = Target {
        pages: Mutex::new(Some(received)),
        progress: tell,
        runtime,
    };
    let telling = async {
        while let Some(rows) = told.recv().await {
            progress(&rows);
        }
    };
    let (read, written, ()) = tokio::join!(
        from.0
            .read(source, |rows, source| Box::pin(read_all(rows, source))),
        to.0.write(target, |rows, target| Box::pin(write_all(rows, target))),
        telling,
    );
    // Where one of them broke off, the other has ended without an error of its own.
    let written = written.map_err(|failure| to.0.explain(failure))?;
    read.map_err(|failure| from.0.explain(failure))?;
    written.ok_or_else(|| StoreError::Unusable {
        message: "the copy broke off; nothing of it was kept".to_owned(),
    })
}

/// Hands over every row. Returns early if nobody takes them any more.
async fn read_all<C: Connection>(rows: &mut C, source: &Source) -> Result<(), Failure> {
    for (at, (table, statements)) in TABLES.iter().zip(STATEMENTS.iter()).enumerate() {
        let mut after: Option<Row> = None;
        loop {
            let found = match &after {
                None => rows.fetch(&statements.first, &[]).await?,
                Some(key) => rows.fetch(&statements.next, key).await?,
            };
            let is_last = found.len() < table.page;
            let page = found
                .into_iter()
                .map(|row| read_row(table, row))
                .collect::<Result<Vec<_>, _>>()?;
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
        for mut columns in rows.fetch(LINKS, values![key]).await? {
            let (branch, origin) = (columns.int()?, columns.int()?);
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

/// Returns whether somebody takes the page.
async fn hand_over<C: Connection>(source: &Source, page: Page) -> bool {
    C::wait(&source.runtime, source.pages.send(page))
        .await
        .is_ok()
}

fn read_row(table: &Table, row: Columns) -> Result<Row, StoreError> {
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
                return Err(row::unreadable(
                    &place,
                    format!("it holds {other:?}, which does not belong there"),
                ));
            }
        })
    };
    table.columns.iter().zip(row.cells()).map(value).collect()
}

/// Writes what is handed over. `None`, and nothing is kept: it broke off before the end.
async fn write_all<C: Connection>(
    rows: &mut C,
    target: &Target,
) -> Result<Option<Vec<TableRows>>, Failure> {
    let pages = target
        .pages
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(mut pages) = pages else {
        let message = "the copy was undone, and cannot be gone on with; begin it again".to_owned();
        return Err(StoreError::Unavailable { message }.into());
    };
    rows.may_wait().await?;
    for (table, statements) in TABLES.iter().zip(STATEMENTS.iter()) {
        if counted(rows, &statements.count).await? > 0 {
            let message = format!(
                "it is not empty (adjutant_{}), and was left as it is; name a database with nothing of adjutant in it",
                table.name
            );
            return Err(StoreError::Unusable { message }.into());
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
                let is_numbered = TABLES.get(at).is_some_and(|table| table.is_numbered);
                let insert = if is_numbered && C::HAS_SEQUENCES {
                    &statements.insert_numbered
                } else {
                    &statements.insert
                };
                rows.execute_each(insert, &page).await?;
                written.rows += page.len() as u64;
                // Whoever listened may have left.
                let _ = target.progress.send(written.clone());
            }
            Some(Page::Links(links)) => rows.execute_each(SET_LINK, &links).await?,
            Some(Page::End) => break,
            None => {
                rows.undo();
                return Ok(None);
            }
        }
    }
    for ((table, statements), written) in TABLES.iter().zip(STATEMENTS.iter()).zip(&written) {
        if table.is_numbered && C::HAS_SEQUENCES {
            rows.fetch(&statements.go_on, &[]).await?;
        }
        let found = counted(rows, &statements.count).await?;
        if found != written.rows {
            let message = format!(
                "adjutant_{} has {found} rows where {} were copied: somebody else writes to it; nothing of the copy was kept",
                table.name, written.rows
            );
            return Err(StoreError::Unusable { message }.into());
        }
    }
    Ok(Some(written))
}

async fn counted<C: Connection>(rows: &mut C, statement: &'static str) -> Result<u64, Failure> {
    let found = rows
        .fetch_first(statement, &[])
        .await?
        .map(|mut columns| columns.int())
        .transpose()?;
    Ok(count(found.unwrap_or_default()))
}
