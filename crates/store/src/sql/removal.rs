//! Everything that is kept of a user: counted, read, and removed.

use std::sync::LazyLock;

use adjutant_core::{ConversationKey, UserId};
use serde_json::{Map, Value as Json};

use super::copy::columns_of;
use super::work::lease_until;
use super::{Cell, Connection, Failure, branch, budget, count, locking, people, values, work};
use crate::maintenance::{StoredConversation, TableRows, UserRemoved};
use crate::row;

/// Conversations that are looked at in one transaction, so that others wait for moments only.
const BATCH: i64 = 100;

/// A table with rows of users that are in no conversation of theirs, or beside it.
pub(super) struct OfUser {
    /// Its name, without the prefix.
    pub(super) table: &'static str,
    count: &'static str,
    delete: &'static str,
    /// True if its rows are read as they are: those of the others are read by the port they belong
    /// to.
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

/// Every table with a column `user_id` but that of the conversations, with which go events, inputs,
/// logs, long values and snapshots.
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
    of_user!("token", false),
    of_user!("budget", true),
    of_user!("budget_block", true),
    of_user!("budget_booking", true),
];

/// Reads the rows of a user in a table. They live as long as the process, as statements of a
/// backend have to.
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

/// Counts what is kept of a user, by table.
pub(super) async fn kept<C: Connection>(
    rows: &mut C,
    user: &UserId,
) -> Result<Vec<TableRows>, Failure> {
    let mut conversations = 0;
    for agent in people::agents(rows).await? {
        let found = rows
            .fetch_first(
                "SELECT count(*) FROM adjutant_conversation WHERE agent = $1 AND user_id = $2",
                values![&agent, user.as_str()],
            )
            .await?;
        conversations += found
            .map(|mut columns| columns.int())
            .transpose()?
            .map_or(0, count);
    }
    let mut kept = vec![TableRows {
        name: "conversation".to_owned(),
        rows: conversations,
    }];
    for of_user in OF_USER {
        let found = rows
            .fetch_first(of_user.count, values![user.as_str()])
            .await?;
        let rows = found
            .map(|mut columns| columns.int())
            .transpose()?
            .map_or(0, count);
        kept.push(TableRows {
            name: of_user.table.to_owned(),
            rows,
        });
    }
    Ok(kept)
}

/// Reads the rows of a user that belong to no port, by table.
pub(super) async fn read<C: Connection>(
    rows: &mut C,
    user: &UserId,
) -> Result<Vec<(&'static str, Map<String, Json>)>, Failure> {
    let mut read = Vec::new();
    for (table, statement) in &*READ {
        for columns in rows.fetch(statement, values![user.as_str()]).await? {
            let cells = columns.cells().map(|cell| match cell {
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

/// Reads a page of a user's conversations, of all agents.
pub(super) async fn conversations<C: Connection>(
    rows: &mut C,
    (user, after): &(UserId, i64),
) -> Result<Vec<StoredConversation>, Failure> {
    let mut page = Vec::new();
    for agent in people::agents(rows).await? {
        let found = rows
            .fetch(
                "SELECT key, agent, user_id, id, title, created_at, updated_at, turns FROM adjutant_conversation
                 WHERE agent = $1 AND user_id = $2 AND key > $3 ORDER BY key LIMIT $4",
                values![&agent, user.as_str(), *after, BATCH],
            )
            .await?;
        for mut columns in found {
            let place = columns.int()?;
            let (agent, user, id) = (columns.text()?, columns.text()?, columns.text()?);
            page.push(StoredConversation {
                key: row::conversation_key(agent, user, &id)?,
                title: columns.text()?,
                created_at: row::read_time(&columns.text()?, "a conversation")?,
                updated_at: row::read_time(&columns.text()?, "a conversation")?,
                turns: count(columns.int()?),
                place,
            });
        }
    }
    page.sort_by_key(|conversation| conversation.place);
    page.truncate(usize::try_from(BATCH).unwrap_or(usize::MAX));
    Ok(page)
}

/// Refuses a user's tokens from now on.
pub(super) async fn refuse<C: Connection>(rows: &mut C, user: &UserId) -> Result<u64, Failure> {
    let now = row::time_text(rows.now().await?);
    rows.execute(
        "UPDATE adjutant_token SET revoked_at = $1 WHERE user_id = $2 AND revoked_at IS NULL",
        values![&now, user.as_str()],
    )
    .await
}

/// A user's conversations with their claims, behind a place.
macro_rules! claims {
    () => {
        concat!(
            "SELECT key, id, lease_by, ",
            lease_until!(),
            " FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND key > $3
              AND NOT EXISTS (SELECT 1 FROM adjutant_conversation AS branch WHERE branch.branched_from_key = adjutant_conversation.key)
              ORDER BY key LIMIT $4"
        )
    };
}

/// A portion of a removal: what it removed, whom it passed over, and where the next one begins.
pub(super) struct Portion {
    pub(super) removed: u64,
    pub(super) running: Vec<ConversationKey>,
    pub(super) after: Option<i64>,
}

/// Removes some of the conversations of a user with one agent that nothing branches from, unless
/// somebody alive works on them. Their rows are locked, so nobody begins to meanwhile.
pub(super) async fn remove_conversations<C: Connection>(
    rows: &mut C,
    (user, agent, after): &(UserId, String, i64),
) -> Result<Portion, Failure> {
    branch::lock_tree(rows, user.as_str()).await?;
    let statement = locking!(C, claims!());
    let found = rows
        .fetch(statement, values![agent, user.as_str(), *after, BATCH])
        .await?;
    let is_last = i64::try_from(found.len()).unwrap_or(BATCH) < BATCH;
    let now = rows.now().await?;
    let mut portion = Portion {
        removed: 0,
        running: Vec::new(),
        after: None,
    };
    for mut columns in found {
        let (place, id) = (columns.int()?, columns.text()?);
        portion.after = Some(place).filter(|_| !is_last);
        if work::is_free::<C>(&mut columns, None, now)? {
            // Events, inbox and logs go with it: every reference says ON DELETE CASCADE.
            portion.removed += rows
                .execute(
                    "DELETE FROM adjutant_conversation WHERE key = $1",
                    values![place],
                )
                .await?;
        } else {
            portion.running.push(row::conversation_key(
                agent.clone(),
                user.as_str().to_owned(),
                &id,
            )?);
        }
    }
    Ok(portion)
}

/// Removes everything else of a user. Of the budgets, what everybody has spent together stays: it
/// names nobody.
pub(super) async fn remove_others<C: Connection>(
    rows: &mut C,
    user: &UserId,
) -> Result<Vec<TableRows>, Failure> {
    let days = rows
        .fetch(
            "SELECT DISTINCT day FROM adjutant_budget_booking WHERE user_id = $1",
            values![user.as_str()],
        )
        .await?;
    for mut day in days {
        budget::fold(rows, &day.text()?, Some(user.as_str())).await?;
    }
    let mut removed = Vec::new();
    for of_user in OF_USER {
        let rows = rows.execute(of_user.delete, values![user.as_str()]).await?;
        removed.push(TableRows {
            name: of_user.table.to_owned(),
            rows,
        });
    }
    Ok(removed)
}

impl UserRemoved {
    /// Adds a portion to what was removed before.
    pub(super) fn add(&mut self, portion: Portion) {
        self.conversations += portion.removed;
        self.running.extend(portion.running);
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
        let found = store.0.fetch(schema, &[]).await.unwrap().into_iter();
        let found: BTreeSet<String> = found.map(|mut row| row.text().unwrap()).collect();
        let known = OF_USER
            .iter()
            .map(|of_user| of_user.table.to_owned())
            .chain(["conversation".to_owned()]);
        assert_eq!(known.collect::<BTreeSet<_>>(), found);
    }
}
