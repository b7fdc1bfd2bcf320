//! All data of a user: counted, exported and removed.

use std::sync::LazyLock;

use adjutant_core::{ConversationKey, UserId};
use serde_json::{Map, Value as Json};

use super::copy::columns_of;
use super::lease::{is_free, lease_until};
use super::{Cell, Connection, Failure, branch, budget, locking, user_page, values};
use crate::maintenance::{StoredConversation, TableRows, UserRemoved};
use crate::record;

/// Conversations that are handled in one transaction, so that other writers wait only for moments.
const BATCH: i64 = 100;

/// A table with rows of users outside of conversations.
pub(super) struct OfUser {
    /// The table's name without prefix.
    pub(super) table: &'static str,
    count: &'static str,
    delete: &'static str,
    /// True if its rows are exported as they are. Other tables are exported through their ports.
    is_read: bool,
}

macro_rules! of_user {
    ($table:literal, $is_read:literal) => {
        OfUser {
            table: $table,
            count: concat!(
                "SELECT count(*) FROM adjutant_",
                $table,
                " WHERE user_id = $1"
            ),
            delete: concat!("DELETE FROM adjutant_", $table, " WHERE user_id = $1"),
            is_read: $is_read,
        }
    };
}

/// Every table with a column `user_id` except `conversation`. Events, inputs, logs, long values and
/// snapshots are deleted with their conversation.
pub(super) const OF_USER: &[OfUser] = &[
    of_user!("task", false),
    of_user!("deleted_task", true),
    of_user!("task_number", true),
    of_user!("task_counter", true),
    of_user!("applied_change", true),
    of_user!("decision", false),
    of_user!("tool_invocation", false),
    of_user!("memory_change", true),
    of_user!("fact", true),
    of_user!("fact_revision", true),
    of_user!("user_setting", true),
    of_user!("token", false),
    of_user!("budget", true),
    of_user!("budget_block", true),
    of_user!("budget_booking", true),
];

/// The statements that read a user's rows. They are static, because backends take static
/// statements.
static READ: LazyLock<Vec<(&'static str, String)>> = LazyLock::new(|| {
    let read = OF_USER.iter().filter(|of_user| of_user.is_read);
    read.map(|of_user| {
        let columns = columns_of(of_user.table).join(", ");
        let statement = format!(
            "SELECT {columns} FROM adjutant_{} WHERE user_id = $1 ORDER BY 1, 2",
            of_user.table
        );
        (of_user.table, statement)
    })
    .collect()
});

/// Counts a user's rows by table.
pub(super) async fn count_rows<C: Connection>(
    tx: &mut C,
    user: &UserId,
) -> Result<Vec<TableRows>, Failure> {
    let mut conversations = 0;
    for agent in user_page::agents(tx).await? {
        let found: Option<u64> = tx
            .fetch_scalar(
                "SELECT count(*) FROM adjutant_conversation WHERE agent = $1 AND user_id = $2",
                values![&agent, user.as_str()],
            )
            .await?;
        conversations += found.unwrap_or(0);
    }
    let mut kept = vec![TableRows {
        name: "conversation".to_owned(),
        rows: conversations,
    }];
    for of_user in OF_USER {
        let rows = tx
            .fetch_scalar(of_user.count, values![user.as_str()])
            .await?;
        kept.push(TableRows {
            name: of_user.table.to_owned(),
            rows: rows.unwrap_or(0),
        });
    }
    Ok(kept)
}

/// Reads a user's rows that no port returns, by table.
pub(super) async fn read_rows<C: Connection>(
    tx: &mut C,
    user: &UserId,
) -> Result<Vec<(&'static str, Map<String, Json>)>, Failure> {
    let mut read = Vec::new();
    for (table, statement) in &*READ {
        for columns in tx.fetch_all(statement, values![user.as_str()]).await? {
            let cells = columns.into_cells().map(|cell| match cell {
                Cell::Null => Json::Null,
                Cell::Int(number) => number.into(),
                Cell::Real(number) => number.into(),
                Cell::Text(text) => text.into(),
            });
            read.push((
                *table,
                columns_of(table)
                    .into_iter()
                    .map(str::to_owned)
                    .zip(cells)
                    .collect(),
            ));
        }
    }
    Ok(read)
}

/// Reads a page of a user's conversations with all agents.
pub(super) async fn conversations<C: Connection>(
    tx: &mut C,
    user: &UserId,
    after: i64,
) -> Result<Vec<StoredConversation>, Failure> {
    let mut page = Vec::new();
    for agent in user_page::agents(tx).await? {
        let found = tx
            .fetch_all(
                "SELECT key, agent, user_id, id, title, created_at, updated_at, turns FROM adjutant_conversation
                 WHERE agent = $1 AND user_id = $2 AND key > $3 ORDER BY key LIMIT $4",
                values![&agent, user.as_str(), after, BATCH],
            )
            .await?;
        for mut row in found {
            page.push(StoredConversation {
                created_at: row.parse("created_at", "a conversation")?,
                updated_at: row.parse("updated_at", "a conversation")?,
                key: record::read_key(&mut row)?,
                title: row.get("title")?,
                turns: row.get("turns")?,
                place: row.get("key")?,
            });
        }
    }
    // Each agent gave up to a page after the key; only the first of all are on this page.
    page.sort_by_key(|conversation| conversation.place);
    page.truncate(usize::try_from(BATCH).unwrap_or(usize::MAX));
    Ok(page)
}

/// Selects a user's conversations with their leases, after a key.
macro_rules! leases {
    () => {
        concat!(
            "SELECT key, id, lease_by, epoch, ",
            lease_until!(),
            " AS lease_until FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND key > $3
              AND NOT EXISTS (SELECT 1 FROM adjutant_conversation AS branch WHERE branch.branched_from_key = adjutant_conversation.key)
              ORDER BY key LIMIT $4"
        )
    };
}

/// The result of one transaction: what was removed, which conversations are running, and where the
/// next batch begins.
pub(super) struct RemovedBatch {
    pub(super) removed: u64,
    pub(super) running: Vec<ConversationKey>,
    pub(super) after: Option<i64>,
}

/// Removes a batch of a user's conversations with one agent, without those that have branches or
/// whose lease a live worker holds. Their rows are locked, so no worker can take them meanwhile.
pub(super) async fn remove_conversations<C: Connection>(
    tx: &mut C,
    user: &UserId,
    agent: &str,
    after: i64,
) -> Result<RemovedBatch, Failure> {
    // No branch may be created from a conversation between the look for branches and its removal.
    branch::lock_tree(tx, user.as_str()).await?;
    let statement = locking!(C, leases!());
    let found = tx
        .fetch_all(statement, values![agent, user.as_str(), after, BATCH])
        .await?;
    let is_last = i64::try_from(found.len()).unwrap_or(BATCH) < BATCH;
    let now = tx.now().await?;
    let mut batch = RemovedBatch {
        removed: 0,
        running: Vec::new(),
        after: None,
    };
    for mut columns in found {
        let (place, id): (i64, String) = (columns.get("key")?, columns.get("id")?);
        batch.after = Some(place).filter(|_| !is_last);
        if is_free::<C>(&mut columns, now)? {
            // Events, inbox and logs are deleted with it: every reference has ON DELETE CASCADE.
            batch.removed += tx
                .execute(
                    "DELETE FROM adjutant_conversation WHERE key = $1",
                    values![place],
                )
                .await?;
        } else {
            batch.running.push(record::conversation_key(
                agent.to_owned(),
                user.as_str().to_owned(),
                &id,
            )?);
        }
    }
    Ok(batch)
}

/// Removes a user's remaining rows. The totals of all users together name no user, and are kept.
pub(super) async fn remove_rest<C: Connection>(
    tx: &mut C,
    user: &UserId,
) -> Result<Vec<TableRows>, Failure> {
    let days = tx
        .fetch_all(
            "SELECT DISTINCT day FROM adjutant_budget_booking WHERE user_id = $1",
            values![user.as_str()],
        )
        .await?;
    // Folded first, so that the total of all users keeps what this user has spent.
    for day in days {
        budget::fold(tx, &day.scalar::<String>()?, Some(user.as_str())).await?;
    }
    let mut removed = Vec::new();
    for of_user in OF_USER {
        let rows = tx.execute(of_user.delete, values![user.as_str()]).await?;
        removed.push(TableRows {
            name: of_user.table.to_owned(),
            rows,
        });
    }
    Ok(removed)
}

impl UserRemoved {
    /// Adds a batch to what was removed before.
    pub(super) fn add(&mut self, batch: RemovedBatch) {
        self.conversations += batch.removed;
        self.running.extend(batch.running);
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::collections::BTreeSet;

    use super::OF_USER;
    use crate::sql::Backend as _;
    use crate::sqlite::Store;

    #[tokio::test]
    async fn every_table_with_a_user_is_known() {
        let store = Store::in_memory().await.unwrap();
        let schema = "SELECT substr(tables.name, 10) FROM sqlite_schema AS tables
                      JOIN pragma_table_xinfo(tables.name) AS columns
                      WHERE tables.type = 'table' AND tables.name LIKE 'adjutant\\_%' ESCAPE '\\' AND columns.name = 'user_id'";
        let found = store
            .backend
            .fetch_all(schema, &[])
            .await
            .unwrap()
            .into_iter();
        let found: BTreeSet<String> = found.map(|row| row.scalar().unwrap()).collect();
        let known = OF_USER
            .iter()
            .map(|of_user| of_user.table.to_owned())
            .chain(["conversation".to_owned()]);
        assert_eq!(known.collect::<BTreeSet<_>>(), found);
    }
}
