//! The list of conversations.

use adjutant_core::port::{
    Alternatives, Branched, Branching, ConversationFilter, ConversationStore, ConversationSummary,
    Deleted, StoreError,
};
use adjutant_core::{AgentName, BoxFuture, ConversationKey, UserId};

use super::lease::{is_free, lease_until};
use super::{Backend, Connection, Failure, SqlStore, Value, branch, key_values, locking, values};
use crate::record;

/// Number of titles that are read at once in a search. Case is compared here and not by the
/// database, because SQLite knows upper and lower case of ASCII only.
const SEARCHED_AT_ONCE: i64 = 500;

/// Selects the columns that [`record::read_summary`] reads. The first message is only looked up for
/// a conversation without a title, in which nothing but greetings was said.
macro_rules! select_summaries {
    ($rest:literal) => {
        concat!(
            "SELECT conversation.id, title, named, created_at, updated_at, parked_seq, turns, last.kind AS last_kind, last.at AS last_at,
             (SELECT origin.id FROM adjutant_conversation AS origin WHERE origin.key = conversation.branched_from_key)
               AS branched_from, branched_from_seq,
             CASE WHEN title = '' THEN (SELECT body FROM adjutant_inbox WHERE accepted =
               (SELECT min(accepted) FROM adjutant_inbox AS message
                WHERE message.conversation = conversation.key AND message.body LIKE '{\"kind\":\"message\"%'))
             END AS first_message
             FROM adjutant_conversation AS conversation
             LEFT JOIN adjutant_event AS last ON last.conversation = conversation.key AND last.seq = conversation.next_seq - 1 ",
            $rest
        )
    };
}

/// A page of the list. UUIDs of version 8 (the 15th character) are conversations of single
/// requests, which are not listed.
pub(crate) const NEWEST: &str = select_summaries!(
    "WHERE agent = $1 AND user_id = $2 AND substr(id, 15, 1) <> '8'
     AND (CAST($3 AS TEXT) IS NULL OR (updated_at, id) < ($3, $4))
     ORDER BY updated_at DESC, id DESC LIMIT $5"
);

/// A page of the conversations whose title may contain the search text, `$6` in lower case. ASCII
/// is compared by the database; titles with other characters are all read, and compared here.
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
        let data = (agent.clone(), user.clone(), filter.clone());
        self.read(data, |tx, (agent, user, filter)| {
            Box::pin(list(tx, agent, user, filter))
        })
    }

    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<ConversationSummary>, StoreError>> {
        self.explained(async move {
            let found = self
                .backend
                .fetch_optional(
                    select_summaries!("WHERE agent = $1 AND user_id = $2 AND id = $3"),
                    key_values![key],
                )
                .await?;
            Ok(found
                .map(|mut row| record::read_summary(&mut row))
                .transpose()?)
        })
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.explained(async move {
            let renamed = self
                .backend
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
        self.explained(async move {
            let renamed = self
                .backend
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
        self.write(key.clone(), |tx, key| Box::pin(delete(tx, key)))
    }

    fn branch<'a>(
        &'a self,
        branching: Branching<'a>,
    ) -> BoxFuture<'a, Result<Branched, StoreError>> {
        self.explained(async move {
            // No conversation has so many events.
            let Ok(seq) = i64::try_from(branching.seq) else {
                return Ok(Branched::NotBetweenTurns);
            };
            let data = branch::NewBranch {
                from: branching.from.clone(),
                seq,
                id: branching.id,
                at: record::format_time(branching.at),
            };
            self.backend
                .write(data, |tx, new| Box::pin(branch::create(tx, new)))
                .await
        })
    }

    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>> {
        self.read(key.clone(), |tx, key| {
            Box::pin(branch::alternatives(tx, key))
        })
    }
}

async fn list<C: Connection>(
    tx: &mut C,
    agent: &AgentName,
    user: &UserId,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationSummary>, Failure> {
    let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let search = filter.search.as_deref().map(str::to_lowercase);
    let page = if search.is_some() {
        SEARCHED_AT_ONCE
    } else {
        i64::from(filter.limit)
    };
    let mut after = filter.after;
    let mut found = Vec::new();
    // A search is filtered here, so a page of rows may have fewer matches than are wanted.
    while found.len() < wanted {
        let (at, id) = record::cursor_columns(after);
        let mut values = values![agent.as_str(), user.as_str(), at, id, page].to_vec();
        values.extend(search.as_deref().map(Value::from));
        let statement = if search.is_some() { SEARCHED } else { NEWEST };
        let read = tx.fetch_all(statement, &values).await?;
        let last_page = i64::try_from(read.len()).unwrap_or(i64::MAX) < page;
        for mut columns in read {
            let summary = record::read_summary(&mut columns)?;
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

/// Deletes a conversation unless a live worker holds its lease. The row is locked, so no worker can
/// take it meanwhile.
async fn delete<C: Connection>(tx: &mut C, key: &ConversationKey) -> Result<Deleted, Failure> {
    // Before the lock of the row: creating a branch takes both locks in this order, too.
    branch::lock_tree(tx, key.user.as_str()).await?;
    let statement = locking!(
        C,
        concat!(
            "SELECT key, lease_by, epoch, ",
            lease_until!(),
            " AS lease_until FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3"
        )
    );
    let found = tx.fetch_optional(statement, key_values![key]).await?;
    let Some(mut found) = found else {
        return Ok(Deleted::NoSuchConversation);
    };
    let (conversation, now): (i64, _) = (found.get("key")?, tx.now().await?);
    if !is_free::<C>(&mut found, now)? {
        return Ok(Deleted::Running);
    }
    branch::move_to_heir(tx, conversation).await?;
    // Events, inbox and logs are deleted with it: every reference has ON DELETE CASCADE.
    tx.execute(
        "DELETE FROM adjutant_conversation WHERE key = $1",
        values![conversation],
    )
    .await?;
    // Idempotency keys of its calls begin with its id. The calls cannot be repeated any more.
    let prefix = format!("{}/", key.conversation);
    tx.execute(
        "DELETE FROM adjutant_applied_change WHERE user_id = $1 AND substr(key, 1, 37) = $2",
        values![key.user.as_str(), &prefix],
    )
    .await?;
    Ok(Deleted::Yes)
}
