//! The list of conversations.

use adjutant_core::port::{
    Alternatives, Branched, Branching, ConversationFilter, ConversationStore, ConversationSummary,
    Deleted, StoreError,
};
use adjutant_core::{AgentName, BoxFuture, ConversationKey, UserId};

use super::{
    Backend, Columns, Connection, Failure, SqlStore, branch, key_values, locking, values, work,
};
use crate::row::{self, SummaryRow};

/// Number of titles read at once, of those that may hold what is searched. What upper and lower
/// case are is not left to the databases: SQLite knows it of ASCII only.
const SEARCHED_AT_ONCE: i64 = 500;

/// The columns of a summary, in the order of [`summary_row`].
macro_rules! select_summaries {
    ($rest:literal) => {
        concat!(
            "SELECT conversation.id, title, named, created_at, updated_at, parked_seq, turns, last.kind, last.at,
             (SELECT origin.id FROM adjutant_conversation AS origin WHERE origin.key = conversation.branched_from_key)
               AS branched_from, branched_from_seq
             FROM adjutant_conversation AS conversation
             LEFT JOIN adjutant_event AS last ON last.conversation = conversation.key AND last.seq = conversation.next_seq - 1 ",
            $rest
        )
    };
}

/// A page of the list. The version of a UUID is its 15th character; of 8 are the single requests
/// that are not listed.
pub(crate) const NEWEST: &str = select_summaries!(
    "WHERE agent = $1 AND user_id = $2 AND substr(id, 15, 1) <> '8'
     AND (CAST($3 AS TEXT) IS NULL OR (updated_at, id) < ($3, $4))
     ORDER BY updated_at DESC, id DESC LIMIT $5"
);

/// The same of those whose title may hold what is searched, in lower case: `$6`. Upper and lower
/// case of ASCII is the same to all databases; a title with other letters is read, and looked at
/// here.
pub(crate) const SEARCHED: &str = select_summaries!(
    "WHERE agent = $1 AND user_id = $2 AND substr(id, 15, 1) <> '8'
     AND (CAST($3 AS TEXT) IS NULL OR (updated_at, id) < ($3, $4))
     AND (replace(lower(title), $6, '') <> lower(title) OR octet_length(title) <> length(title))
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
            self.0
                .read(data, |rows, (agent, user, filter)| {
                    Box::pin(list(rows, agent, user, filter))
                })
                .await
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
            Ok(found
                .map(|columns| summary_row(columns)?.read())
                .transpose()?)
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
                    "UPDATE adjutant_conversation SET title = $4, named = 1
                     WHERE agent = $1 AND user_id = $2 AND id = $3",
                    key_values![key, title],
                )
                .await?;
            Ok(renamed > 0)
        })
    }

    fn retitle<'a>(
        &'a self,
        key: &'a ConversationKey,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let renamed = self
                .0
                .execute(
                    "UPDATE adjutant_conversation SET title = $5
                     WHERE agent = $1 AND user_id = $2 AND id = $3 AND title = $4 AND named = 0",
                    key_values![key, from, to],
                )
                .await?;
            Ok(renamed > 0)
        })
    }

    fn delete<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        self.run(async move {
            self.0
                .write(key.clone(), |rows, key| Box::pin(delete(rows, key)))
                .await
        })
    }

    fn branch<'a>(
        &'a self,
        branching: Branching<'a>,
    ) -> BoxFuture<'a, Result<Branched, StoreError>> {
        self.run(async move {
            // A place that no database can count to has nothing on it.
            let Ok(seq) = i64::try_from(branching.seq) else {
                return Ok(Branched::NotBetweenTurns);
            };
            let data = branch::NewBranch {
                from: branching.from.clone(),
                seq,
                id: branching.id,
                at: row::time_text(branching.at),
            };
            self.0
                .write(data, |rows, new| Box::pin(branch::make(rows, new)))
                .await
        })
    }

    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>> {
        self.run(async move {
            self.0
                .read(key.clone(), |rows, key| {
                    Box::pin(branch::alternatives(rows, key))
                })
                .await
        })
    }
}

async fn list<C: Connection>(
    rows: &mut C,
    agent: &AgentName,
    user: &UserId,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationSummary>, Failure> {
    let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let words = filter.search.as_deref().map(str::to_lowercase);
    let page = if words.is_some() {
        SEARCHED_AT_ONCE
    } else {
        i64::from(filter.limit)
    };
    let mut after = filter.after;
    let mut found = Vec::new();
    while found.len() < wanted {
        let (at, id) = row::cursor_texts(after);
        let (at, id) = (at.as_deref(), id.as_deref());
        let read = match words.as_deref() {
            None => {
                rows.fetch(NEWEST, values![agent.as_str(), user.as_str(), at, id, page])
                    .await?
            }
            Some(words) => {
                rows.fetch(
                    SEARCHED,
                    values![agent.as_str(), user.as_str(), at, id, page, words],
                )
                .await?
            }
        };
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

/// A conversation's number and claim.
macro_rules! claim_of {
    () => {
        concat!(
            "SELECT key, lease_by, ",
            work::lease_until!(),
            " FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3"
        )
    };
}

/// Deletes a conversation nobody alive works on. The row is locked, so nobody begins to meanwhile.
async fn delete<C: Connection>(rows: &mut C, key: &ConversationKey) -> Result<Deleted, Failure> {
    branch::lock_tree(rows, key.user.as_str()).await?;
    let statement = locking!(C, claim_of!());
    let found = rows.fetch_first(statement, key_values![key]).await?;
    let Some(mut found) = found else {
        return Ok(Deleted::NoSuchConversation);
    };
    let (conversation, now) = (found.int()?, rows.now().await?);
    if !work::is_free::<C>(&mut found, None, now)? {
        return Ok(Deleted::Running);
    }
    branch::give_to_heir(rows, conversation).await?;
    // Events, inbox and logs go with it: every reference says ON DELETE CASCADE.
    rows.execute(
        "DELETE FROM adjutant_conversation WHERE key = $1",
        values![conversation],
    )
    .await?;
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
        named: columns.int()? != 0,
        created_at: columns.text()?,
        updated_at: columns.text()?,
        pending: columns.maybe_int()?.is_some(),
        turns: columns.int()?,
        last_kind: columns.maybe_text()?,
        last_at: columns.maybe_text()?,
        branched_from: columns.maybe_text()?.zip(columns.maybe_int()?),
    })
}
