//! The rows of a turn in SQLite, written without a journal: a lower bound for the cost of the
//! database. One thread writes with prepared statements, and commits all waiting turns together, as
//! durably as the store does (WAL, `synchronous=FULL`).
//!
//! The rows come from a database in which Adjutant has run one turn. They are written again with
//! other ids, so their number, form and length follow any change of the schema.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Setup, Worker};
use crate::Result;

/// Length of a UUID as text.
const UUID_CHARS: usize = 36;

/// The rows of one turn, in an order that satisfies foreign keys.
#[derive(Debug, Default)]
struct Template {
    schema: Vec<String>,
    rows: Vec<Row>,
    /// Number of different UUIDs, which change from turn to turn.
    names: usize,
}

#[derive(Debug)]
struct Row {
    insert: String,
    fields: Vec<Field>,
}

/// The value of a column.
#[derive(Debug)]
enum Field {
    /// The id of the conversation's row.
    Conversation,
    /// An id that SQLite assigns.
    Chosen,
    /// A constant value.
    Same(Value),
    /// Text with UUIDs in it: the offset of each, and its index.
    Text(String, Vec<(usize, usize)>),
}

impl Template {
    fn read(file: &Path) -> Result<Self> {
        let database = Connection::open(file)?;
        let mut template = Self::default();
        let mut tables = Vec::new();
        let mut statement = database.prepare(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
             ORDER BY type = 'table' DESC, rowid",
        )?;
        let entries = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
            ))
        })?;
        for entry in entries {
            let (kind, name, sql) = entry?;
            template.schema.push(sql);
            if kind == "table" {
                tables.push(name);
            }
        }
        let is_root = |name: &&String| *name == "conversation" || name.ends_with("_conversation");
        let root = tables
            .iter()
            .find(is_root)
            .ok_or("the template has no conversations")?
            .clone();
        // Other tables have foreign keys to the conversation, so it is inserted first.
        tables.sort_by_key(|table| *table != root);
        let mut names = BTreeMap::new();
        for table in tables {
            template.read_table(&database, &root, &table, &mut names)?;
        }
        template.names = names.len();
        if template.rows.is_empty() {
            Err("the template has no rows".into())
        } else {
            Ok(template)
        }
    }

    fn read_table(
        &mut self,
        database: &Connection,
        root: &str,
        table: &str,
        names: &mut BTreeMap<String, usize>,
    ) -> Result<()> {
        let refers: Vec<String> = database
            .prepare(&format!(
                "SELECT \"from\" FROM pragma_foreign_key_list('{table}') WHERE \"table\" = '{root}'"
            ))?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        // A table without a foreign key to the conversation has no rows of a turn, such as that of
        // the migrations.
        if table != root && refers.is_empty() {
            return Ok(());
        }
        // Columns that are not generated: name, and true for an `INTEGER PRIMARY KEY`, which is an
        // alias of the row id.
        let rowid = !database.query_row(
            "SELECT sql LIKE '%WITHOUT ROWID%' FROM sqlite_master WHERE name = ?1",
            [table],
            |row| row.get::<_, bool>(0),
        )?;
        let columns: Vec<(String, bool)> = database
            .prepare(&format!(
                "SELECT name, type, pk FROM pragma_table_xinfo('{table}') WHERE hidden = 0"
            ))?
            .query_map([], |row| {
                let (kind, key): (String, i64) = (row.get(1)?, row.get(2)?);
                Ok((row.get(0)?, rowid && kind == "INTEGER" && key == 1))
            })?
            .collect::<rusqlite::Result<_>>()?;
        let listed = columns
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let places = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO \"{table}\" ({listed}) VALUES ({places})");
        let mut statement = database.prepare(&format!("SELECT {listed} FROM \"{table}\""))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut fields = Vec::new();
            for (index, (column, numbers)) in columns.iter().enumerate() {
                let value: Value = row.get(index)?;
                fields.push(match value {
                    _ if *numbers && table == root => Field::Conversation,
                    _ if *numbers => Field::Chosen,
                    Value::Integer(_) if refers.contains(column) => Field::Conversation,
                    Value::Text(text) => named(text, names),
                    value => Field::Same(value),
                });
            }
            self.rows.push(Row {
                insert: insert.clone(),
                fields,
            });
        }
        Ok(())
    }

    /// Returns the rows of another turn, for a new conversation with this id.
    fn rows(&self, conversation: i64) -> Vec<Vec<Value>> {
        let names: Vec<String> = (0..self.names)
            .map(|_| Uuid::now_v7().to_string())
            .collect();
        let value = |field: &Field| match field {
            Field::Conversation => Value::Integer(conversation),
            Field::Chosen => Value::Null,
            Field::Same(value) => value.clone(),
            Field::Text(text, places) => {
                let mut text = text.clone();
                for (at, name) in places {
                    text.replace_range(*at..at + UUID_CHARS, &names[*name]);
                }
                Value::Text(text)
            }
        };
        self.rows
            .iter()
            .map(|row| row.fields.iter().map(value).collect())
            .collect()
    }
}

/// Finds the UUIDs in a text.
fn named(text: String, names: &mut BTreeMap<String, usize>) -> Field {
    let mut places = Vec::new();
    let mut at = 0;
    while at + UUID_CHARS <= text.len() {
        let piece = text
            .get(at..at + UUID_CHARS)
            .filter(|piece| Uuid::try_parse(piece).is_ok());
        let Some(piece) = piece else {
            at += 1;
            continue;
        };
        let next = names.len();
        places.push((at, *names.entry(piece.to_owned()).or_insert(next)));
        at += UUID_CHARS;
    }
    if places.is_empty() {
        Field::Same(Value::Text(text))
    } else {
        Field::Text(text, places)
    }
}

/// A turn that waits for its commit, notified through this channel.
type Job = oneshot::Sender<rusqlite::Result<()>>;

/// A worker that sends its turns to the writing thread.
pub(super) struct Writer(Sender<Job>);

impl Worker for Writer {
    async fn turn(&mut self) -> Result<()> {
        let (done, waits) = oneshot::channel();
        self.0.send(done).map_err(|_| "the writer is gone")?;
        Ok(waits.await??)
    }
}

/// Creates the database and the thread that writes to it.
pub(super) fn workers(setup: &Setup) -> Result<Vec<Writer>> {
    let template = Template::read(setup.template.as_deref().ok_or("no template")?)?;
    let database = Connection::open(&setup.database)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
    )?;
    for sql in &template.schema {
        database.execute_batch(sql)?;
    }
    let (jobs, waiting) = channel();
    let template = Arc::new(template);
    std::thread::spawn(move || write(&database, &template, &waiting));
    Ok((0..setup.at_once).map(|_| Writer(jobs.clone())).collect())
}

/// Writes and commits waiting turns until all senders are gone.
fn write(database: &Connection, template: &Template, waiting: &Receiver<Job>) {
    let mut conversation = 0;
    database.set_prepared_statement_cache_capacity(64);
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter());
        let written = commit(database, template, jobs.len(), &mut conversation);
        match written {
            // A worker that has been stopped does not receive its result.
            Ok(()) => jobs.into_iter().for_each(|job| drop(job.send(Ok(())))),
            Err(error) => {
                let _ = database.execute_batch("ROLLBACK");
                let words = error.to_string();
                let failed = || rusqlite::Error::ToSqlConversionFailure(words.clone().into());
                jobs.into_iter()
                    .for_each(|job| drop(job.send(Err(failed()))));
            }
        }
    }
}

fn commit(
    database: &Connection,
    template: &Template,
    turns: usize,
    conversation: &mut i64,
) -> rusqlite::Result<()> {
    database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for _ in 0..turns {
        *conversation += 1;
        for (row, values) in template.rows.iter().zip(template.rows(*conversation)) {
            database
                .prepare_cached(&row.insert)?
                .execute(params_from_iter(values))?;
        }
    }
    database.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
