//! Maintenance: status, consistency check, backup, retention and removal of users.

use std::path::Path;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, UserId};
use jiff::{SignedDuration, Timestamp};

use super::{
    Backend, Connection, Failure, SqlStore, branch, check, count, task, token, user_page,
    user_removal, values,
};
use crate::maintenance::{
    DatabaseStatus, Finding, Load, Maintenance, Removed, Replication, StoredConversation,
    TableRows, UserRemoved, UserRow,
};
use crate::record;

/// Time for which idempotency keys are kept at least: as long as a turn may be repeated, which is
/// the default time for confirmations. Keys of open turns are kept anyway.
const REPEATABLE_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Conversations that are removed in one transaction, so that other writers wait only for moments.
const BATCH: u64 = 100;

impl<B: Backend> Maintenance for SqlStore<B> {
    fn current_load(&self) -> Load {
        self.backend.current_load()
    }

    fn receives_notifications(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.backend.receives_notifications())
    }

    fn status(&self) -> BoxFuture<'_, Result<DatabaseStatus, StoreError>> {
        self.explained(async move {
            let stored = self.backend.read((), |tx, ()| Box::pin(stored(tx))).await?;
            let about = self.backend.about().await?;
            Ok(DatabaseStatus {
                place: about.place,
                product: about.product,
                journal_mode: about.journal_mode,
                bytes: about.bytes,
                ..stored
            })
        })
    }

    fn replication(&self) -> BoxFuture<'_, Result<Option<Replication>, StoreError>> {
        self.explained(self.backend.replication())
    }

    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async move {
            let explain = |failure| self.backend.explain(failure);
            let place = self.backend.about().await.map_err(explain)?.place;
            // Where the database is damaged, reading on may fail, which is one more finding.
            let found = match self.backend.verify().await.map_err(explain) {
                Err(StoreError::Unreadable { message, .. }) => vec![message],
                done => done?,
            };
            let mut findings: Vec<Finding> = found
                .into_iter()
                .map(|problem| Finding {
                    place: place.clone(),
                    problem,
                })
                .collect();
            match check::check_all(&*self.backend, &mut findings)
                .await
                .map_err(explain)
            {
                Err(StoreError::Unreadable { message, .. }) => findings.push(Finding {
                    place,
                    problem: message,
                }),
                done => done?,
            }
            Ok(findings)
        })
    }

    fn users(&self) -> BoxFuture<'_, Result<Vec<UserId>, StoreError>> {
        self.explained(async move {
            let names = self.backend
                .fetch_all(
                    "SELECT user_id FROM adjutant_task UNION SELECT user_id FROM adjutant_conversation UNION SELECT user_id FROM adjutant_memory_change UNION SELECT user_id FROM adjutant_fact",
                    &[],
                )
                .await?;
            let mut users = Vec::new();
            for mut name in names {
                // An invalid user id is a finding of `check`.
                users.extend(UserId::new(name.get::<String>("user_id")?).ok());
            }
            // Databases have different collations.
            users.sort();
            Ok(users)
        })
    }

    fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        self.explained(self.backend.backup(to))
    }

    fn remove_older_than(&self, before: Timestamp) -> BoxFuture<'_, Result<Removed, StoreError>> {
        self.explained(async move {
            let mut removed = Removed::default();
            loop {
                let gone = self
                    .backend
                    .write(before, |tx, before| {
                        Box::pin(remove_conversations(tx, *before))
                    })
                    .await?;
                removed.conversations += gone.conversations;
                removed.events += gone.events;
                // The removed conversations may have been the last branches of others, which can be
                // removed now.
                if gone.conversations == 0 {
                    break;
                }
            }
            let others = self
                .backend
                .write(before, |tx, before| Box::pin(remove_rest(tx, *before)))
                .await?;
            tracing::info!(
                %before,
                conversations = removed.conversations,
                events = removed.events,
                "old conversations were removed"
            );
            Ok(Removed {
                conversations: removed.conversations,
                events: removed.events,
                ..others
            })
        })
    }

    fn count_rows_of<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<TableRows>, StoreError>> {
        self.read(user.clone(), |tx, user| {
            Box::pin(user_removal::count_rows(tx, user))
        })
    }

    fn rows_of<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Vec<UserRow>, StoreError>> {
        self.explained(async move {
            let read = self
                .backend
                .read(user.clone(), |tx, user| {
                    Box::pin(user_removal::read_rows(tx, user))
                })
                .await?;
            Ok(read
                .into_iter()
                .map(|(table, columns)| UserRow { table, columns })
                .collect())
        })
    }

    fn conversations_of<'a>(
        &'a self,
        user: &'a UserId,
        after: i64,
    ) -> BoxFuture<'a, Result<Vec<StoredConversation>, StoreError>> {
        self.read((user.clone(), after), |tx, (user, after)| {
            Box::pin(user_removal::conversations(tx, user, *after))
        })
    }

    fn refuse_user<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.write(user.clone(), |tx, user| {
            Box::pin(token::revoke_all(tx, user, &None))
        })
    }

    fn remove_user<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserRemoved, StoreError>> {
        self.explained(async move {
            let agents = self
                .backend
                .read((), |tx, ()| Box::pin(user_page::agents(tx)))
                .await?;
            let mut removed = UserRemoved::default();
            for agent in agents {
                // The removed conversations may have been the last branches of others, which can be
                // removed now.
                loop {
                    let (before, mut after) = (removed.conversations, Some(0));
                    // What still runs is found again by each pass.
                    removed.running.retain(|key| key.agent.as_str() != agent);
                    while let Some(place) = after {
                        let data = (user.clone(), agent.clone(), place);
                        let batch = self.backend.write(data, |tx, (user, agent, after)| {
                            Box::pin(user_removal::remove_conversations(tx, user, agent, *after))
                        });
                        let batch = batch.await?;
                        after = batch.after;
                        removed.add(batch);
                    }
                    if removed.conversations == before {
                        break;
                    }
                }
            }
            if removed.running.is_empty() {
                removed.rows = self
                    .backend
                    .write(user.clone(), |tx, user| {
                        Box::pin(user_removal::remove_rest(tx, user))
                    })
                    .await?;
            }
            Ok(removed)
        })
    }
}

/// Counts the rows of the database.
async fn stored<C: Connection>(tx: &mut C) -> Result<DatabaseStatus, Failure> {
    let mut numbers = tx
        .fetch_all(
            "SELECT CAST(coalesce(max(version), 0) AS BIGINT) AS schema_version,
             (SELECT count(*) FROM adjutant_conversation WHERE unsettled = 1) AS unsettled,
             (SELECT count(*) FROM adjutant_conversation WHERE asks = 1) AS waiting,
             (SELECT min(created_at) FROM adjutant_conversation) AS oldest,
             (SELECT max(updated_at) FROM adjutant_conversation) AS newest
             FROM adjutant_migration",
            &[],
        )
        .await?;
    let Some(mut numbers) = numbers.pop() else {
        return Ok(DatabaseStatus::default());
    };
    let what = "the time of a conversation";
    let mut status = DatabaseStatus {
        schema_version: numbers.get("schema_version")?,
        unsettled: numbers.get("unsettled")?,
        waiting: numbers.get("waiting")?,
        oldest: numbers.parse_optional("oldest", what)?,
        newest: numbers.parse_optional("newest", what)?,
        ..DatabaseStatus::default()
    };
    status.tables = tx
        .fetch_records(
            "SELECT 'task' AS name, count(*) AS rows FROM adjutant_task
             UNION ALL SELECT 'deleted_task', count(*) FROM adjutant_deleted_task
             UNION ALL SELECT 'task_number', count(*) FROM adjutant_task_number
             UNION ALL SELECT 'conversation', count(*) FROM adjutant_conversation
             UNION ALL SELECT 'inbox', count(*) FROM adjutant_inbox
             UNION ALL SELECT 'event', count(*) FROM adjutant_event
             UNION ALL SELECT 'blob', count(*) FROM adjutant_blob
             UNION ALL SELECT 'decision', count(*) FROM adjutant_decision
             UNION ALL SELECT 'tool_invocation', count(*) FROM adjutant_tool_invocation
             UNION ALL SELECT 'applied_change', count(*) FROM adjutant_applied_change
             UNION ALL SELECT 'budget', count(*) FROM adjutant_budget
             UNION ALL SELECT 'budget_block', count(*) FROM adjutant_budget_block
             UNION ALL SELECT 'budget_booking', count(*) FROM adjutant_budget_booking
             UNION ALL SELECT 'memory_change', count(*) FROM adjutant_memory_change
             UNION ALL SELECT 'fact', count(*) FROM adjutant_fact
             UNION ALL SELECT 'passage', count(*) FROM adjutant_passage
             UNION ALL SELECT 'token', count(*) FROM adjutant_token",
            &[],
        )
        .await?;
    Ok(status)
}

/// Selects conversations that are old and have no work to do.
macro_rules! old {
    ($rest:literal) => {
        concat!(
            "FROM adjutant_conversation AS conversation WHERE updated_at < $1 AND untaken = 0 AND turn IS NULL
             AND NOT EXISTS (SELECT 1 FROM adjutant_event AS event WHERE event.conversation = conversation.key AND event.at >= $1)
             AND NOT EXISTS (
               SELECT 1 FROM adjutant_event AS doubt WHERE doubt.conversation = conversation.key AND doubt.kind = 'call_in_doubt'
               AND NOT EXISTS (
                 SELECT 1 FROM adjutant_event AS known WHERE known.conversation = doubt.conversation
                 AND known.kind = 'doubt_resolved' AND known.step = doubt.step)) ",
            $rest
        )
    };
}

/// Removes a batch of old conversations without work to do. Their rows are deleted with them,
/// except the events that younger branches begin with.
async fn remove_conversations<C: Connection>(
    tx: &mut C,
    before: Timestamp,
) -> Result<Removed, Failure> {
    let before = record::format_time(before);
    // Repeated outside of the subquery: an input may have been accepted meanwhile.
    let gone = tx
        .fetch_all(
            concat!(
                "DELETE FROM adjutant_conversation AS conversation WHERE untaken = 0 AND turn IS NULL AND key IN (SELECT key ",
                old!(
                    "AND NOT EXISTS (SELECT 1 FROM adjutant_conversation AS branch WHERE branch.branched_from_key = conversation.key)
                     ORDER BY key LIMIT $2"
                ),
                ") RETURNING next_seq - 1 - COALESCE(branched_from_seq, 0) AS events"
            ),
            values![&before, BATCH.cast_signed()],
        )
        .await?;
    let mut removed = Removed::default();
    for mut row in gone {
        removed.conversations += 1;
        removed.events += row.get::<u64>("events")?;
    }
    if removed.conversations == 0 {
        // What is left has younger branches, or became old only since.
        let left = tx
            .fetch_all(
                concat!("SELECT key, user_id ", old!("ORDER BY key LIMIT $2")),
                values![&before, BATCH.cast_signed()],
            )
            .await?;
        for mut columns in left {
            let (conversation, user): (i64, String) =
                (columns.get("key")?, columns.get("user_id")?);
            branch::lock_tree(tx, &user).await?;
            let given = branch::move_to_heir(tx, conversation).await?;
            let gone = tx
                .fetch_optional(
                    "DELETE FROM adjutant_conversation WHERE key = $1 AND untaken = 0 AND turn IS NULL
                     RETURNING next_seq - 1 AS last, COALESCE(branched_from_seq, 0) AS own_after",
                    values![conversation],
                )
                .await?;
            let Some(mut gone) = gone else { continue };
            removed.conversations += 1;
            let (last, own_after): (i64, i64) = (gone.get("last")?, gone.get("own_after")?);
            removed.events += count(last - given.unwrap_or(own_after));
        }
    }
    Ok(removed)
}

async fn remove_rest<C: Connection>(tx: &mut C, before: Timestamp) -> Result<Removed, Failure> {
    let mut removed = Removed::default();
    let now = tx.now().await?;
    // A time in the future must not remove what is still being written.
    let before = before.min(now);
    let until = record::format_time(before);
    removed.invocations += tx
        .execute(
            "DELETE FROM adjutant_tool_invocation WHERE conversation IS NULL AND at < $1",
            values![&until],
        )
        .await?;
    // The time for restoring them is over.
    tx.execute(
        "DELETE FROM adjutant_deleted_task WHERE deleted_at < $1",
        values![&task::restorable_since(now)],
    )
    .await?;
    let forgotten =
        record::format_time(before.min(now.checked_sub(REPEATABLE_FOR).unwrap_or(Timestamp::MIN)));
    removed.changes += tx
        .execute(
            "DELETE FROM adjutant_applied_change AS applied_change WHERE at < $1 AND NOT EXISTS (
               SELECT 1 FROM adjutant_conversation AS conversation WHERE conversation.user_id = applied_change.user_id
               AND (conversation.turn IS NOT NULL OR conversation.untaken > 0))",
            values![&forgotten],
        )
        .await?;
    // A change that made the present text of a fact is kept, because it says where the fact comes
    // from.
    removed.memory_changes += tx
        .execute(
            "DELETE FROM adjutant_memory_change AS memory_change WHERE at < $1 AND (after_hash IS NULL OR state IN ('undone', 'void')
               OR EXISTS (SELECT 1 FROM adjutant_memory_change AS later WHERE later.scope = memory_change.scope
                 AND later.before_hash = memory_change.after_hash AND later.seq > memory_change.seq
                 AND later.state NOT IN ('undone', 'void')))",
            values![&forgotten],
        )
        .await?;
    // Days are stored as the first ten characters of a time. Today is not over, so it is kept.
    let day = until.get(..10).unwrap_or_default();
    let days: Option<u64> = tx
        .fetch_scalar(
            "SELECT count(*) FROM (SELECT day, user_id FROM adjutant_budget WHERE day < $1 AND user_id <> ''
             UNION SELECT day, user_id FROM adjutant_budget_booking WHERE day < $1) AS days",
            values![day],
        )
        .await?;
    removed.budget_days += days.unwrap_or(0);
    for statement in [
        "DELETE FROM adjutant_budget WHERE day < $1",
        "DELETE FROM adjutant_budget_booking WHERE day < $1",
        "DELETE FROM adjutant_budget_block WHERE day < $1",
    ] {
        tx.execute(statement, values![day]).await?;
    }
    Ok(removed)
}
