//! The tables that are copied, and their columns.

use std::sync::LazyLock;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Real,
    Text,
}

/// A table to copy.
#[derive(Debug)]
pub(super) struct Table {
    /// The table's name without prefix.
    pub(super) name: &'static str,
    /// The number of columns, from the first on, in the primary key.
    pub(super) key: usize,
    /// True if the database generates the values of the first column.
    pub(super) is_numbered: bool,
    /// Rows per page: fewer where each may be large.
    pub(super) page: usize,
    pub(super) columns: &'static [(&'static str, Kind)],
}

/// Rows per page for small rows, and for rows with texts of up to a megabyte.
const MANY: usize = 500;
const FEW: usize = 32;

/// Describes tables: `name (key, is_numbered, page) { column: Kind, .. }`.
macro_rules! tables {
    ($($name:ident ($($option:ident: $value:expr),*) { $($column:ident: $kind:ident,)* })*) => {
        &[$(Table {
            name: stringify!($name),
            $($option: $value,)*
            columns: &[$((stringify!($column), Kind::$kind)),*],
        }),*]
    };
}

/// The tables in an order in which rows come after those that they refer to. The origin of a branch
/// (`branched_from_key`) is set when all conversations are there, because a branch may be older
/// than its origin: another takes the place of a conversation that is removed.
pub(super) const TABLES: &[Table] = tables! {
    task (key: 2, is_numbered: false, page: MANY) {
        user_id: Text, id: Int, description: Text, created_at: Text, updated_at: Text,
        completed_at: Text, from_others: Int,
    }
    deleted_task (key: 2, is_numbered: false, page: MANY) {
        user_id: Text, id: Int, description: Text, created_at: Text, updated_at: Text,
        completed_at: Text, deleted_at: Text, from_others: Int,
    }
    task_number (key: 2, is_numbered: false, page: FEW) {
        scope: Text, id: Int, user_id: Text, vault: Text, at: Text, v: Int, body: Text,
    }
    task_counter (key: 1, is_numbered: false, page: MANY) {
        user_id: Text, last_id: Int,
    }
    applied_change (key: 2, is_numbered: false, page: MANY) {
        user_id: Text, key: Text, outcome: Text, at: Text,
    }
    conversation (key: 1, is_numbered: true, page: MANY) {
        key: Int, agent: Text, user_id: Text, id: Text, title: Text, named: Int, created_at: Text, updated_at: Text, next_seq: Int, untaken: Int, turn: Text, parked_seq: Int,
        waiting: Text, wake_at: Text, turns: Int, lease_by: Text, lease_until: Text, epoch: Int, branched_from_seq: Int, parent: Text, indexed_to: Int, indexed_turns: Int,
        indexed_passages: Int, indexed_length: Int,
    }
    passage (key: 1, is_numbered: true, page: FEW) {
        key: Int, conversation: Int, seq: Int, number: Int, turn: Text, at: Text, length: Int, words: Text,
    }
    inbox (key: 1, is_numbered: true, page: FEW) {
        accepted: Int, conversation: Int, id: Text, v: Int, body: Text, at: Text, taken_seq: Int, request_id: Text, fingerprint: Text, after_seq: Int,
    }
    event (key: 2, is_numbered: false, page: MANY) {
        conversation: Int, seq: Int, v: Int, kind: Text, turn: Text, step: Text, body: Text,
        at: Text, blob: Text,
    }
    blob (key: 2, is_numbered: false, page: FEW) {
        conversation: Int, hash: Text, body: Text,
    }
    snapshot (key: 1, is_numbered: false, page: FEW) {
        conversation: Int, seq: Int, messages_from: Int, v: Int, digest: Text, body: Text,
    }
    decision (key: 1, is_numbered: true, page: FEW) {
        number: Int, conversation: Int, conversation_id: Text, user_id: Text, id: Text,
        agent: Text, version: Text, request_id: Text, started_at: Text, ended_at: Text,
        message: Text, message_chars: Int, intent: Text, kind: Text, outcome: Text, content: Text, model_provider: Text, model_name: Text, model_calls: Int, iterations: Int,
        input_tokens: Int, output_tokens: Int, cached_tokens: Int, cache_written_tokens: Int, thinking_tokens: Int, cost_usd: Real, notices: Text, model_ms: Int, tool_ms: Int, total_ms: Int, error_code: Text, raw_response: Text, feedback: Text,
        feedback_comment: Text, feedback_at: Text,
    }
    tool_invocation (key: 1, is_numbered: true, page: FEW) {
        number: Int, conversation: Int, user_id: Text, decision: Text, id: Text, tool: Text,
        arguments: Text, success: Int, data: Text, error: Text, ms: Int, attempt: Int, at: Text,
    }
    token (key: 1, is_numbered: false, page: MANY) {
        id: Text, digest: Text, user_id: Text, name: Text, created_at: Text, revoked_at: Text, role: Text, kind: Text, expires_at: Text, ends_at: Text, used_at: Text,
        parent: Text, scopes: Text,
    }
    budget (key: 2, is_numbered: false, page: MANY) {
        day: Text, user_id: Text, tokens: Int, model_calls: Int, tool_calls: Int, ms: Int,
        cost: Int,
    }
    budget_block (key: 1, is_numbered: false, page: MANY) {
        id: Text, day: Text, user_id: Text, worker: Text, epoch: Int, until: Text, tokens: Int, model_calls: Int, tool_calls: Int, ms: Int, cost: Int, booked_tokens: Int,
        booked_model_calls: Int, booked_tool_calls: Int, booked_ms: Int, booked_cost: Int,
    }
    budget_booking (key: 1, is_numbered: false, page: MANY) {
        id: Text, day: Text, user_id: Text, everyone_block: Text, own_block: Text,
        closes_everyone: Int, closes_own: Int, tokens: Int, model_calls: Int, tool_calls: Int, ms: Int, cost: Int, folding: Int,
    }
    memory_change (key: 1, is_numbered: true, page: FEW) {
        seq: Int, scope: Text, user_id: Text, vault: Text, id: Text, at: Text, call_key: Text, state: Text, before_hash: Text, after_hash: Text, v: Int, body: Text,
    }
    fact (key: 1, is_numbered: true, page: MANY) {
        key: Int, user_id: Text, text_hash: Text, text: Text, important: Int, created_at: Text, updated_at: Text, conversation: Text, turn: Text, call: Text, revision: Int,
    }
    fact_revision (key: 1, is_numbered: false, page: MANY) {
        user_id: Text, revision: Int,
    }
    user_setting (key: 1, is_numbered: false, page: MANY) {
        user_id: Text, time_zone: Text, allowed_tools: Text,
    }
};

/// Returns the names of a table's columns. Empty if there is no such table.
pub(in crate::sql) fn columns_of(table: &str) -> Vec<&'static str> {
    let found = TABLES.iter().find(|known| known.name == table);
    found
        .map(|table| table.columns.iter().map(|(name, _)| *name).collect())
        .unwrap_or_default()
}

/// The statements for copying a table.
#[derive(Debug)]
pub(super) struct Statements {
    /// Selects the first page.
    pub(super) first: String,
    /// Selects the page after a key.
    pub(super) next: String,
    /// Inserts a row.
    pub(super) insert: String,
    /// Inserts a row with its number where the database generates numbers.
    pub(super) insert_numbered: String,
    /// Sets a sequence to continue after the highest number.
    pub(super) go_on: String,
    pub(super) count: String,
}

/// The statements for [`TABLES`], in the same order. They are static, because backends take static
/// statements.
pub(super) static STATEMENTS: LazyLock<Vec<Statements>> =
    LazyLock::new(|| TABLES.iter().map(Statements::of).collect());

impl Statements {
    fn of(table: &Table) -> Self {
        let Table {
            name,
            key,
            page,
            columns,
            ..
        } = table;
        let names = |columns: &[(&str, Kind)]| {
            columns
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let parameters = |number: usize| {
            (1..=number)
                .map(|at| format!("${at}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (all, key_names) = (names(columns), names(&columns[..*key]));
        let select = format!("SELECT {all} FROM adjutant_{name} AS {name}");
        let order = format!("ORDER BY {key_names} LIMIT {page}");
        let (insert, values) = (
            format!("INSERT INTO adjutant_{name} ({all})"),
            parameters(columns.len()),
        );
        let first_column = columns.first().map_or("", |(name, _)| name);
        Self {
            first: format!("{select} {order}"),
            next: format!(
                "{select} WHERE ({key_names}) > ({}) {order}",
                parameters(*key)
            ),
            insert: format!("{insert} VALUES ({values})"),
            insert_numbered: format!("{insert} OVERRIDING SYSTEM VALUE VALUES ({values})"),
            go_on: format!(
                "SELECT setval(pg_get_serial_sequence('adjutant_{name}', '{first_column}'),
                 (SELECT COALESCE(max({first_column}), 0) + 1 FROM adjutant_{name}), FALSE)"
            ),
            count: format!("SELECT count(*) FROM adjutant_{name} AS {name}"),
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sql::Backend as _;
    use crate::sqlite::Store;

    /// Tables that are not copied: migrations are the target's own, and a worker runs conversations
    /// in one database only.
    const LEFT_OUT: [&str; 2] = ["migration", "worker"];
    /// Prefix of the full-text index's tables, which are derived from the passages.
    const INDEX: &str = "passage_words";

    #[tokio::test]
    async fn every_column_of_the_schema_is_copied() {
        let store = Store::in_memory().await.unwrap();
        let schema = "SELECT substr(tables.name, 10) AS table_name, columns.name AS column_name FROM sqlite_schema AS tables
                      JOIN pragma_table_xinfo(tables.name) AS columns
                      WHERE tables.type = 'table' AND tables.name LIKE 'adjutant\\_%' ESCAPE '\\' AND columns.hidden = 0";
        let found = store
            .backend
            .fetch_all(schema, &[])
            .await
            .unwrap()
            .into_iter();
        let found = found.map(|mut row| {
            let name = |row: &mut crate::sql::Row, name| row.get::<String>(name).unwrap();
            (name(&mut row, "table_name"), name(&mut row, "column_name"))
        });
        let is_copied = |table: &str| !LEFT_OUT.contains(&table) && !table.starts_with(INDEX);
        let found: BTreeSet<_> = found.filter(|(table, _)| is_copied(table)).collect();
        let link = ("conversation".to_owned(), "branched_from_key".to_owned());
        let copied = TABLES.iter().flat_map(|table| {
            table
                .columns
                .iter()
                .map(|(column, _)| (table.name.to_owned(), (*column).to_owned()))
        });
        let copied: BTreeSet<_> = copied.chain([link]).collect();
        assert_eq!(copied, found);
    }
}
