//! The list of conversations.

use adjutant_core::port::{ConversationFilter, ConversationStore, ConversationSummary, Deleted, StoreError};
use adjutant_core::{AgentName, BoxFuture, ConversationKey, UserId};

use super::{Backend, Columns, Connection, Failure, SqlStore, key_values, locking, values, work};
use crate::row::{self, SummaryRow};

/// How many titles are looked through at once. What upper and lower case are is not left to the databases: SQLite knows it
/// of ASCII only.
const SEARCHED: i64 = 500;

/// The columns of a summary, in the order of [`summary_row`].
macro_rules! select_summaries {
    ($rest:literal) => {
        concat!(
            "SELECT id, title, created_at, updated_at, parked_seq,
             turns, last.kind, last.at
             FROM adjutant_conversation AS conversation
             LEFT JOIN adjutant_event AS last ON last.conversation = conversation.key AND last.seq = conversation.next_seq - 1 ",
            $rest
        )
    };
}

/// A page of the list. The version of a UUID is its 15th character; of 8 are the single requests that are not listed.
pub(crate) const NEWEST: &str = select_summaries!(
    "WHERE agent = $1 AND user_id = $2 AND substr(id, 15, 1) <> '8'
     AND (CAST($3 AS TEXT) IS NULL OR (updated_at, id) < ($3, $4))
     ORDER BY updated_at DESC, id DESC LIMIT $5"
);

impl<B: Backend> ConversationStore for SqlStore<B> {
    fn list<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        filter: &'a ConversationFilter,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>> {
        self.run(async move {
            let data = (agent.clone(), user.clone(), filter.clone());
            self.0.read(data, |rows, (agent, user, filter)| Box::pin(list(rows, agent, user, filter))).await
        })
    }

    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<ConversationSummary>, StoreError>> {
        self.run(async move {
            let found = self
                .0
                .fetch_first(
                    select_summaries!("WHERE agent = $1 AND user_id = $2 AND id = $3"),
                    key_values![key],
                )
                .await?;
            Ok(found.map(|columns| summary_row(columns)?.read()).transpose()?)
        })
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let renamed = self
                .0
                .execute(
                    "UPDATE adjutant_conversation SET title = $4 WHERE agent = $1 AND user_id = $2 AND id = $3",
                    key_values![key, title],
                )
                .await?;
            Ok(renamed > 0)
        })
    }

    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        self.run(async move { self.0.write(key.clone(), |rows, key| Box::pin(delete(rows, key))).await })
    }
}

async fn list<C: Connection>(
    rows: &mut C,
    agent: &AgentName,
    user: &UserId,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationSummary>, Failure> {
    let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let page = if filter.search.is_some() { SEARCHED } else { i64::from(filter.limit) };
    let mut after = filter.after;
    let mut found = Vec::new();
    while found.len() < wanted {
        let (at, id) = row::cursor_texts(after);
        let values = values![agent.as_str(), user.as_str(), at.as_deref(), id.as_deref(), page];
        let read = rows.fetch(NEWEST, values).await?;
        let last_page = i64::try_from(read.len()).unwrap_or(i64::MAX) < page;
        for columns in read {
            let summary = summary_row(columns)?.read()?;
            after = Some(summary.cursor());
            if filter.takes(&summary.title) {
                found.push(summary);
            }
        }
        if last_page {
            break;
        }
    }
    found.truncate(wanted);
    Ok(found)
}

/// Deletes a conversation nobody alive works on. The row is locked, so nobody begins to meanwhile.
async fn delete<C: Connection>(rows: &mut C, key: &ConversationKey) -> Result<Deleted, Failure> {
    let statement = locking!(
        C,
        "SELECT key, lease_by, lease_until FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3"
    );
    let found = rows.fetch_first(statement, key_values![key]).await?;
    let Some(mut found) = found else { return Ok(Deleted::NoSuchConversation) };
    let (conversation, now) = (found.int()?, rows.now().await?);
    if !work::is_free::<C>(&mut found, None, now)? {
        return Ok(Deleted::Running);
    }
    // Events, inbox and logs go with it: every reference says ON DELETE CASCADE.
    rows.execute("DELETE FROM adjutant_conversation WHERE key = $1", values![conversation]).await?;
    // What its calls changed once begins with its id; it cannot be repeated any more.
    let prefix = format!("{}/", key.conversation);
    rows.execute(
        "DELETE FROM adjutant_applied_change WHERE user_id = $1 AND substr(key, 1, 37) = $2",
        values![key.user.as_str(), &prefix],
    )
    .await?;
    Ok(Deleted::Yes)
}

fn summary_row(mut columns: Columns) -> Result<SummaryRow, StoreError> {
    Ok(SummaryRow {
        id: columns.text()?,
        title: columns.text()?,
        created_at: columns.text()?,
        updated_at: columns.text()?,
        pending: columns.maybe_int()?.is_some(),
        turns: columns.int()?,
        last_kind: columns.maybe_text()?,
        last_at: columns.maybe_text()?,
    })
}
