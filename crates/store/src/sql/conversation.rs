//! The list of conversations.

use adjutant_core::port::{
    Alternatives, Branched, Branching, ConversationFilter, ConversationStore, ConversationSummary,
    Deleted, Entries, StoreError, Versions,
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
    ($rest:expr) => {
        select_summaries!(
            "CAST(NULL AS TEXT) AS root, CAST(NULL AS BIGINT) AS versions",
            $rest
        )
    };
    ($versions:expr, $rest:expr) => {
        concat!(
            "SELECT conversation.id, title, named, created_at, updated_at, parked_seq, turns, last.kind AS last_kind, last.at AS last_at,
             CAST(CASE WHEN conversation.turn IS NOT NULL AND parked_seq IS NULL THEN 1 ELSE 0 END AS BIGINT) AS running,
             (SELECT origin.id FROM adjutant_conversation AS origin WHERE origin.key = conversation.branched_from_key)
               AS branched_from, branched_from_seq,
             CASE WHEN title = '' THEN (SELECT body FROM adjutant_inbox WHERE accepted =
               (SELECT min(accepted) FROM adjutant_inbox AS message
                WHERE message.conversation = conversation.key AND message.body LIKE '{\"kind\":\"message\"%'))
             END AS first_message, ",
            $versions,
            " FROM adjutant_conversation AS conversation
             LEFT JOIN adjutant_event AS last ON last.conversation = conversation.key AND last.seq = conversation.next_seq - 1 ",
            $rest
        )
    };
}

/// Begins a query over the versions of the conversation that `$start` selects: `line` has its
/// origins up to the root, which has no `origin`, and `tree` the root with all branches below it.
macro_rules! with_versions {
    ($start:expr, $rest:expr) => {
        concat!(
            "WITH RECURSIVE line (key, origin) AS (",
            $start,
            " UNION ALL
               SELECT above.key, above.branched_from_key FROM line JOIN adjutant_conversation AS above ON above.key = line.origin
             ), tree (key) AS (
               SELECT key FROM line WHERE origin IS NULL
               UNION ALL
               SELECT below.key FROM tree JOIN adjutant_conversation AS below ON below.branched_from_key = tree.key
             ) ",
            $rest
        )
    };
}

/// A subquery over the versions of the row `conversation`.
macro_rules! of_versions {
    ($rest:expr) => {
        concat!(
            "(",
            with_versions!(
                "SELECT conversation.key, conversation.branched_from_key",
                $rest
            ),
            ")"
        )
    };
}

/// A query over the versions of the conversation that `$1` to `$3` name.
macro_rules! versions_by_id {
    ($rest:expr) => {
        with_versions!(
            "SELECT key, branched_from_key FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
            $rest
        )
    };
}

/// The condition that a conversation is more than a branch in which nothing was said yet.
macro_rules! is_used {
    ($name:literal) => {
        concat!(
            "(",
            $name,
            ".branched_from_key IS NULL OR ",
            $name,
            ".next_seq - 1 > ",
            $name,
            ".branched_from_seq OR ",
            $name,
            ".untaken > 0)"
        )
    };
}

/// Selects the versions that an entry of the list stands for.
macro_rules! select_versions {
    () => {
        concat!(
            of_versions!("SELECT root.id FROM line JOIN adjutant_conversation AS root ON root.key = line.key WHERE line.origin IS NULL"),
            " AS root, ",
            of_versions!(concat!(
                "SELECT count(*) FROM tree JOIN adjutant_conversation AS version ON version.key = tree.key WHERE substr(version.id, 15, 1) <> '8' AND ",
                is_used!("version")
            )),
            " AS versions"
        )
    };
}

/// The condition that a conversation is, of all its versions, the one with the newest input.
macro_rules! is_newest_version {
    () => {
        concat!(
            is_used!("conversation"),
            " AND NOT EXISTS ",
            of_versions!(concat!(
                "SELECT 1 FROM tree JOIN adjutant_conversation AS version ON version.key = tree.key
                 WHERE (version.updated_at, version.id) > (conversation.updated_at, conversation.id)
                   AND substr(version.id, 15, 1) <> '8' AND ",
                is_used!("version")
            ))
        )
    };
}

/// Selects a page of the list. UUIDs of version 8 (the 15th character) are conversations of single
/// requests, which are not listed.
macro_rules! page {
    ($condition:expr) => {
        concat!(
            "WHERE agent = $1 AND user_id = $2 AND substr(conversation.id, 15, 1) <> '8'
             AND (CAST($3 AS TEXT) IS NULL OR (updated_at, id) < ($3, $4)) ",
            $condition,
            " ORDER BY updated_at DESC, id DESC LIMIT $5"
        )
    };
}

/// The condition that a title may contain the search text, `$6` in lower case. ASCII is compared by
/// the database; titles with other characters are all read, and compared here.
macro_rules! may_match {
    () => {
        "AND (replace(lower(title), $6, '') <> lower(title) OR octet_length(title) <> length(title))"
    };
}

/// A page of the list, with an entry for each version of a conversation.
pub(crate) const NEWEST: &str = select_summaries!(page!(""));

/// The same of those whose title may contain the search text.
pub(crate) const SEARCHED: &str = select_summaries!(page!(may_match!()));

/// A page of the list, with one entry for all versions of a conversation.
pub(crate) const NEWEST_CONVERSATIONS: &str = select_summaries!(
    select_versions!(),
    page!(concat!("AND ", is_newest_version!()))
);

/// The same of those whose title may contain the search text.
pub(crate) const SEARCHED_CONVERSATIONS: &str = select_summaries!(
    select_versions!(),
    page!(concat!(may_match!(), " AND ", is_newest_version!()))
);

/// The versions of a conversation: the one with the newest input first, those in which nothing was
/// said last.
pub(crate) const VERSIONS: &str = versions_by_id!(concat!(
    "SELECT version.id, CAST(CASE WHEN version.branched_from_key IS NULL THEN 1 ELSE 0 END AS BIGINT) AS is_root
     FROM tree JOIN adjutant_conversation AS version ON version.key = tree.key
     ORDER BY CASE WHEN ",
    is_used!("version"),
    " THEN 0 ELSE 1 END, version.updated_at DESC, version.id DESC"
));

/// Deletes all versions in one statement, because they refer to each other.
const DELETE_VERSIONS: &str = concat!(
    "DELETE FROM adjutant_conversation WHERE key IN (",
    versions_by_id!("SELECT key FROM tree"),
    ")"
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

    fn delete_versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        self.write(key.clone(), |tx, key| Box::pin(delete_versions(tx, key)))
    }

    fn versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Versions>, StoreError>> {
        self.read(key.clone(), |tx, key| Box::pin(versions(tx, key)))
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
        let statement = match (filter.entries, &search) {
            (Entries::Versions, None) => NEWEST,
            (Entries::Versions, Some(_)) => SEARCHED,
            (Entries::Conversations, None) => NEWEST_CONVERSATIONS,
            (Entries::Conversations, Some(_)) => SEARCHED_CONVERSATIONS,
        };
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
    forget_calls(tx, key, &key.conversation.to_string()).await?;
    Ok(Deleted::Yes)
}

/// Deletes all versions of a conversation unless a live worker holds the lease of one of them.
async fn delete_versions<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
) -> Result<Deleted, Failure> {
    // Before the locks of the rows, as in `delete`.
    branch::lock_tree(tx, key.user.as_str()).await?;
    let statement = locking!(
        C,
        concat!(
            "SELECT id, lease_by, epoch, ",
            lease_until!(),
            " AS lease_until FROM adjutant_conversation WHERE key IN (",
            versions_by_id!("SELECT key FROM tree"),
            ")"
        )
    );
    let found = tx.fetch_all(statement, key_values![key]).await?;
    if found.is_empty() {
        return Ok(Deleted::NoSuchConversation);
    }
    let now = tx.now().await?;
    let mut ids: Vec<String> = Vec::with_capacity(found.len());
    for mut version in found {
        if !is_free::<C>(&mut version, now)? {
            return Ok(Deleted::Running);
        }
        ids.push(version.get("id")?);
    }
    tx.execute(DELETE_VERSIONS, key_values![key]).await?;
    for id in &ids {
        forget_calls(tx, key, id).await?;
    }
    Ok(Deleted::Yes)
}

/// Deletes the idempotency keys of a deleted conversation's calls, which begin with its id: the
/// calls cannot be repeated any more.
async fn forget_calls<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    id: &str,
) -> Result<(), Failure> {
    let prefix = format!("{id}/");
    tx.execute(
        "DELETE FROM adjutant_applied_change WHERE user_id = $1 AND substr(key, 1, 37) = $2",
        values![key.user.as_str(), &prefix],
    )
    .await?;
    Ok(())
}

async fn versions<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
) -> Result<Option<Versions>, Failure> {
    let (mut root, mut ids) = (None, Vec::new());
    for mut row in tx.fetch_all(VERSIONS, key_values![key]).await? {
        let id = row.parse("id", "the id of a version")?;
        if row.get("is_root")? {
            root = Some(id);
        }
        ids.push(id);
    }
    Ok(root.map(|root| Versions { root, ids }))
}
