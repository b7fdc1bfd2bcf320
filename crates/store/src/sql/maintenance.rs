//! How the database is, whether it is whole, and what is old.

use std::path::Path;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, UserId};
use jiff::{SignedDuration, Timestamp};

use super::{
    Backend, Connection, Failure, SqlStore, branch, check, count, people, removal, task, values,
};
use crate::maintenance::{
    DatabaseStatus, Finding, Load, Maintenance, Removed, StoredConversation, TableRows,
    UserRemoved, UserRow,
};
use crate::row;

/// A key is remembered at least as long as a turn may be repeated: as long as a confirmation can be
/// given, if nobody says otherwise. That of a turn which has not ended is remembered anyway.
const RECOVERY: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Conversations that are removed in one transaction, so that others wait for moments only.
const BATCH: u64 = 100;

impl<B: Backend> Maintenance for SqlStore<B> {
    fn current_load(&self) -> Load {
        self.0.current_load()
    }

    fn hears_others(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.0.hears_others())
    }

    fn status(&self) -> BoxFuture<'_, Result<DatabaseStatus, StoreError>> {
        self.run(async move {
            let stored = self.0.read((), |rows, ()| Box::pin(stored(rows))).await?;
            let about = self.0.about().await?;
            Ok(DatabaseStatus {
                place: about.place,
                product: about.product,
                journal_mode: about.journal_mode,
                bytes: about.bytes,
                ..stored
            })
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async move {
            let explain = |failure| self.0.explain(failure);
            let place = self.0.about().await.map_err(explain)?.place;
            // Where the database is damaged, reading on may fail: that is one more finding.
            let found = match self.0.verify().await.map_err(explain) {
                Err(StoreError::Unreadable { message }) => vec![message],
                done => done?,
            };
            let mut findings: Vec<Finding> = found
                .into_iter()
                .map(|problem| Finding {
                    place: place.clone(),
                    problem,
                })
                .collect();
            match check::rows(&*self.0, &mut findings).await.map_err(explain) {
                Err(StoreError::Unreadable { message }) => findings.push(Finding {
                    place,
                    problem: message,
                }),
                done => done?,
            }
            Ok(findings)
        })
    }

    fn users(&self) -> BoxFuture<'_, Result<Vec<UserId>, StoreError>> {
        self.run(async move {
            let names = self
                .0
                .fetch(
                    "SELECT user_id FROM adjutant_task UNION SELECT user_id FROM adjutant_conversation UNION SELECT user_id FROM adjutant_memory_change UNION SELECT user_id FROM adjutant_fact",
                    &[],
                )
                .await?;
            let mut users = Vec::new();
            for mut name in names {
                // One that is no name is what `check` finds.
                users.extend(UserId::new(name.text()?).ok());
            }
            // Databases have orders of their own.
            users.sort();
            Ok(users)
        })
    }

    fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(self.0.backup(to))
    }

    fn remove_older_than(&self, before: Timestamp) -> BoxFuture<'_, Result<Removed, StoreError>> {
        self.run(async move {
            let mut removed = Removed::default();
            loop {
                let gone = self
                    .0
                    .write(before, |rows, before| {
                        Box::pin(remove_conversations(rows, *before))
                    })
                    .await?;
                removed.conversations += gone.conversations;
                removed.events += gone.events;
                // Whatever was a branch may have been all that held another.
                if gone.conversations == 0 {
                    break;
                }
            }
            let others = self
                .0
                .write(before, |rows, before| {
                    Box::pin(remove_others(rows, *before))
                })
                .await?;
            Ok(Removed {
                conversations: removed.conversations,
                events: removed.events,
                ..others
            })
        })
    }

    fn kept_of<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<TableRows>, StoreError>> {
        self.run(async move {
            self.0
                .read(user.clone(), |rows, user| {
                    Box::pin(removal::kept(rows, user))
                })
                .await
        })
    }

    fn rows_of<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Vec<UserRow>, StoreError>> {
        self.run(async move {
            let read = self
                .0
                .read(user.clone(), |rows, user| {
                    Box::pin(removal::read(rows, user))
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
        self.run(async move {
            let data = (user.clone(), after);
            self.0
                .read(data, |rows, data| {
                    Box::pin(removal::conversations(rows, data))
                })
                .await
        })
    }

    fn refuse_user<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.run(async move {
            self.0
                .write(user.clone(), |rows, user| {
                    Box::pin(removal::refuse(rows, user))
                })
                .await
        })
    }

    fn remove_user<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<UserRemoved, StoreError>> {
        self.run(async move {
            let agents = self
                .0
                .read((), |rows, ()| Box::pin(people::agents(rows)))
                .await?;
            let mut removed = UserRemoved::default();
            for agent in agents {
                // Whatever was a branch may have been all that held another.
                loop {
                    let (before, mut after) = (removed.conversations, Some(0));
                    removed.running.retain(|key| key.agent.as_str() != agent);
                    while let Some(place) = after {
                        let data = (user.clone(), agent.clone(), place);
                        let portion = self.0.write(data, |rows, data| {
                            Box::pin(removal::remove_conversations(rows, data))
                        });
                        let portion = portion.await?;
                        after = portion.after;
                        removed.add(portion);
                    }
                    if removed.conversations == before {
                        break;
                    }
                }
            }
            if removed.running.is_empty() {
                removed.rows = self
                    .0
                    .write(user.clone(), |rows, user| {
                        Box::pin(removal::remove_others(rows, user))
                    })
                    .await?;
            }
            Ok(removed)
        })
    }
}

/// Counts the rows of the database.
async fn stored<C: Connection>(rows: &mut C) -> Result<DatabaseStatus, Failure> {
    let mut numbers = rows
        .fetch(
            "SELECT CAST(coalesce(max(version), 0) AS BIGINT), (SELECT count(*) FROM adjutant_conversation WHERE unsettled = 1),
             (SELECT count(*) FROM adjutant_conversation WHERE asks = 1),
             (SELECT min(created_at) FROM adjutant_conversation), (SELECT max(updated_at) FROM adjutant_conversation)
             FROM adjutant_migration",
            &[],
        )
        .await?;
    let Some(mut numbers) = numbers.pop() else {
        return Ok(status());
    };
    let time = |text: Option<String>| -> Result<Option<Timestamp>, StoreError> {
        text.map(|text| row::read_time(&text, "the time of a conversation"))
            .transpose()
    };
    let mut status = DatabaseStatus {
        schema_version: count(numbers.int()?),
        unsettled: count(numbers.int()?),
        waiting: count(numbers.int()?),
        oldest: time(numbers.maybe_text()?)?,
        newest: time(numbers.maybe_text()?)?,
        ..status()
    };
    let tables = rows
        .fetch(
            "SELECT 'task', count(*) FROM adjutant_task
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
    for mut table in tables {
        status.tables.push(TableRows {
            name: table.text()?,
            rows: count(table.int()?),
        });
    }
    Ok(status)
}

fn status() -> DatabaseStatus {
    DatabaseStatus {
        place: String::new(),
        product: String::new(),
        schema_version: 0,
        journal_mode: None,
        bytes: 0,
        tables: Vec::new(),
        unsettled: 0,
        waiting: 0,
        oldest: None,
        newest: None,
    }
}

/// The conversations that are old and settled.
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

/// Removes some of the conversations that are old and settled. What is theirs goes with them,
/// except what younger branches begin with.
async fn remove_conversations<C: Connection>(
    rows: &mut C,
    before: Timestamp,
) -> Result<Removed, Failure> {
    let before = row::time_text(before);
    // Said again outside of the selection: an input may have been accepted meanwhile.
    let gone = rows
        .fetch(
            concat!(
                "DELETE FROM adjutant_conversation AS conversation WHERE untaken = 0 AND turn IS NULL AND key IN (SELECT key ",
                old!(
                    "AND NOT EXISTS (SELECT 1 FROM adjutant_conversation AS branch WHERE branch.branched_from_key = conversation.key)
                     ORDER BY key LIMIT $2"
                ),
                ") RETURNING next_seq - 1 - COALESCE(branched_from_seq, 0)"
            ),
            values![&before, BATCH.cast_signed()],
        )
        .await?;
    let mut removed = Removed::default();
    for mut columns in gone {
        removed.conversations += 1;
        removed.events += count(columns.int()?);
    }
    if removed.conversations == 0 {
        // Only those with younger branches are left, and those that became old since.
        let left = rows
            .fetch(
                concat!("SELECT key, user_id ", old!("ORDER BY key LIMIT $2")),
                values![&before, BATCH.cast_signed()],
            )
            .await?;
        for mut columns in left {
            let (conversation, user) = (columns.int()?, columns.text()?);
            branch::lock_tree(rows, &user).await?;
            let given = branch::give_to_heir(rows, conversation).await?;
            let gone = rows
                .fetch_first(
                    "DELETE FROM adjutant_conversation WHERE key = $1 AND untaken = 0 AND turn IS NULL
                     RETURNING next_seq - 1, COALESCE(branched_from_seq, 0)",
                    values![conversation],
                )
                .await?;
            let Some(mut gone) = gone else { continue };
            removed.conversations += 1;
            let (last, from) = (gone.int()?, gone.int()?);
            removed.events += count(last - given.unwrap_or(from));
        }
    }
    Ok(removed)
}

async fn remove_others<C: Connection>(rows: &mut C, before: Timestamp) -> Result<Removed, Failure> {
    let mut removed = Removed::default();
    let now = rows.now().await?;
    let before = before.min(now);
    let until = row::time_text(before);
    removed.invocations += rows
        .execute(
            "DELETE FROM adjutant_tool_invocation WHERE conversation IS NULL AND at < $1",
            values![&until],
        )
        .await?;
    // Nobody can bring them back any more.
    rows.execute(
        "DELETE FROM adjutant_deleted_task WHERE deleted_at < $1",
        values![&task::gone_before(now)],
    )
    .await?;
    let forgotten = row::time_text(before.min(now.checked_sub(RECOVERY).unwrap_or(Timestamp::MIN)));
    removed.changes += rows
        .execute(
            "DELETE FROM adjutant_applied_change AS applied_change WHERE at < $1 AND NOT EXISTS (
               SELECT 1 FROM adjutant_conversation AS conversation WHERE conversation.user_id = applied_change.user_id
               AND (conversation.turn IS NOT NULL OR conversation.untaken > 0))",
            values![&forgotten],
        )
        .await?;
    // A change that made the present words of a fact stays: it is why the fact is there.
    removed.memory_changes += rows
        .execute(
            "DELETE FROM adjutant_memory_change AS memory_change WHERE at < $1 AND (after_hash IS NULL OR state IN ('undone', 'void')
               OR EXISTS (SELECT 1 FROM adjutant_memory_change AS later WHERE later.scope = memory_change.scope
                 AND later.before_hash = memory_change.after_hash AND later.seq > memory_change.seq
                 AND later.state NOT IN ('undone', 'void')))",
            values![&forgotten],
        )
        .await?;
    // A day is text that begins as its times do, and today is not over.
    let day = until.get(..10).unwrap_or_default();
    let days = rows
        .fetch_first(
            "SELECT count(*) FROM (SELECT day, user_id FROM adjutant_budget WHERE day < $1 AND user_id <> ''
             UNION SELECT day, user_id FROM adjutant_budget_booking WHERE day < $1) AS days",
            values![day],
        )
        .await?;
    removed.budget_days += days
        .map(|mut days| days.int())
        .transpose()?
        .map_or(0, count);
    for statement in [
        "DELETE FROM adjutant_budget WHERE day < $1",
        "DELETE FROM adjutant_budget_booking WHERE day < $1",
        "DELETE FROM adjutant_budget_block WHERE day < $1",
    ] {
        rows.execute(statement, values![day]).await?;
    }
    Ok(removed)
}
