//! Inbox, events, claims, and what has work to do.

use std::time::Duration;

use adjutant_core::port::{Journal, Loaded, StoreError};
use adjutant_core::{BoxFuture, ConversationKey, Event, Input, InputId, Recorded, TurnId, UserId};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection};

use super::error::Failure;
use super::{Store, log, now};
use crate::journal::{self, JournalRows};
use crate::row::{self, ConversationRow, DecisionRow, EventRow, InputRow, InvocationRow};
use crate::status::Status;
use crate::worker;

impl Journal for Store {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            journal::submit(&mut *rows, key, input).await?;
            Ok(rows.commit().await?)
        })
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.run(async move {
            let mut rows = self.read().await?;
            let Some(conversation) = rows.conversation(key).await? else { return Ok(Loaded::default()) };
            let events: Vec<EventColumns> = sqlx::query_as(
                "SELECT seq, v, kind, turn, step, body, at FROM event WHERE conversation = ? ORDER BY seq",
            )
            .bind(conversation.key)
            .fetch_all(&mut *rows)
            .await?;
            let inbox: Vec<(String, i64, String, String)> = sqlx::query_as(
                "SELECT id, v, body, at FROM inbox WHERE conversation = ? AND taken_seq IS NULL ORDER BY accepted",
            )
            .bind(conversation.key)
            .fetch_all(&mut *rows)
            .await?;
            let inbox = inbox.into_iter().map(|(id, v, body, at)| InputRow { id, v, body, at }).collect();
            Ok(journal::loaded(key, events.into_iter().map(event_row).collect(), inbox)?)
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        next_seq: u64,
        at: Timestamp,
        events: &'a [Event],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            journal::append(&mut *rows, key, next_seq, at, events).await?;
            Ok(rows.commit().await?)
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            let lease: Option<(i64, Option<String>, Option<String>)> = sqlx::query_as(
                "SELECT key, lease_by, lease_until FROM conversation WHERE user_id = ? AND id = ?",
            )
            .bind(key.user.as_str())
            .bind(key.conversation.to_string())
            .fetch_optional(&mut *rows)
            .await?;
            let Some((conversation, by, until)) = lease else { return Ok(false) };
            let now = now();
            if by.as_deref() != Some(worker) && !is_free(by.as_deref(), until.as_deref(), now)? {
                return Ok(false);
            }
            // A claim nobody could outwait ends with time itself.
            let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
            sqlx::query("UPDATE conversation SET lease_by = ?, lease_until = ? WHERE key = ?")
                .bind(worker)
                .bind(row::time_text(until))
                .bind(conversation)
                .execute(&mut *rows)
                .await?;
            rows.commit().await?;
            Ok(true)
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            sqlx::query(
                "UPDATE conversation SET lease_by = NULL, lease_until = NULL
                 WHERE user_id = ? AND id = ? AND lease_by = ?",
            )
            .bind(key.user.as_str())
            .bind(key.conversation.to_string())
            .bind(worker)
            .execute(&mut *rows)
            .await?;
            Ok(rows.commit().await?)
        })
    }

    fn unsettled<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.run(async move {
            let rows: Vec<(String, String, Option<String>, Option<String>)> = sqlx::query_as(
                "SELECT user_id, id, lease_by, lease_until FROM conversation
                 WHERE unsettled = 1 AND (?1 IS NULL OR user_id = ?1) ORDER BY updated_at, key",
            )
            .bind(user.map(UserId::as_str))
            .fetch_all(&mut *self.read().await?)
            .await?;
            let now = now();
            let mut keys = Vec::new();
            for (user, id, by, until) in rows {
                if is_free(by.as_deref(), until.as_deref(), now)? {
                    keys.push(row::conversation_key(user, &id)?);
                }
            }
            Ok(keys)
        })
    }

    fn parked<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        self.run(async move {
            let mut rows = self.read().await?;
            let waiting: Vec<(i64, String, i64)> = sqlx::query_as(
                "SELECT key, id, parked_seq FROM conversation WHERE user_id = ? AND parked_seq IS NOT NULL",
            )
            .bind(user.as_str())
            .fetch_all(&mut *rows)
            .await?;
            let mut parked = Vec::with_capacity(waiting.len());
            for (conversation, id, seq) in waiting {
                let columns: EventColumns = sqlx::query_as(
                    "SELECT seq, v, kind, turn, step, body, at FROM event WHERE conversation = ? AND seq = ?",
                )
                .bind(conversation)
                .bind(seq)
                .fetch_one(&mut *rows)
                .await?;
                let key = row::conversation_key(user.to_string(), &id)?;
                let event = event_row(columns).read(&key)?;
                parked.push((key, event));
            }
            parked.sort_by_key(|(key, event)| (event.at, key.conversation));
            Ok(parked)
        })
    }
}

/// Nobody alive has it. All workers of a file are on this machine, so a dead one is known at once.
fn is_free(by: Option<&str>, until: Option<&str>, now: Timestamp) -> Result<bool, StoreError> {
    let (Some(by), Some(until)) = (by, until) else { return Ok(true) };
    Ok(row::read_time(until, "the end of a claim")? <= now || worker::is_gone(by))
}

type EventColumns = (i64, i64, String, Option<String>, Option<String>, String, String);

fn event_row((seq, v, kind, turn, step, body, at): EventColumns) -> EventRow {
    EventRow { seq, v, kind, turn, step, body, at }
}

impl JournalRows for SqliteConnection {
    type Error = Failure;

    async fn conversation(&mut self, key: &ConversationKey) -> Result<Option<ConversationRow>, Failure> {
        let row = sqlx::query(
            "SELECT key, title, updated_at, next_seq, untaken, turn, parked_seq, waiting
             FROM conversation WHERE user_id = ? AND id = ?",
        )
        .bind(key.user.as_str())
        .bind(key.conversation.to_string())
        .fetch_optional(&mut *self)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let what = format!("conversation {}", key.conversation);
        Ok(Some(ConversationRow {
            key: row.try_get("key")?,
            title: row.try_get("title")?,
            updated_at: row::read_time(row.try_get("updated_at")?, &what)?,
            next_seq: row.try_get("next_seq")?,
            untaken: row.try_get("untaken")?,
            status: Status {
                turn: row.try_get("turn")?,
                parked_seq: row.try_get("parked_seq")?,
                waiting: row::read_waiting(row.try_get("waiting")?, &what)?,
            },
        }))
    }

    async fn create_conversation(
        &mut self,
        key: &ConversationKey,
        at: Timestamp,
    ) -> Result<ConversationRow, Failure> {
        let row = sqlx::query_scalar(
            "INSERT INTO conversation (user_id, id, title, created_at, updated_at) VALUES (?1, ?2, '', ?3, ?3)
             RETURNING key",
        )
        .bind(key.user.as_str())
        .bind(key.conversation.to_string())
        .bind(row::time_text(at))
        .fetch_one(&mut *self)
        .await?;
        Ok(ConversationRow::new(row, at))
    }

    async fn save_conversation(&mut self, row: &ConversationRow) -> Result<(), Failure> {
        sqlx::query(
            "UPDATE conversation SET title = ?, updated_at = ?, next_seq = ?, untaken = ?, turn = ?, parked_seq = ?,
             waiting = ? WHERE key = ?",
        )
        .bind(row.title.as_str())
        .bind(row::time_text(row.updated_at))
        .bind(row.next_seq)
        .bind(row.untaken)
        .bind(row.status.turn.as_deref())
        .bind(row.status.parked_seq)
        .bind(row::waiting_text(&row.status)?)
        .bind(row.key)
        .execute(&mut *self)
        .await?;
        Ok(())
    }

    async fn insert_input(&mut self, conversation: i64, row: &InputRow) -> Result<bool, Failure> {
        let inserted = sqlx::query(
            "INSERT INTO inbox (conversation, id, v, body, at) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (conversation, id) DO NOTHING",
        )
        .bind(conversation)
        .bind(row.id.as_str())
        .bind(row.v)
        .bind(row.body.as_str())
        .bind(row.at.as_str())
        .execute(&mut *self)
        .await?;
        Ok(inserted.rows_affected() > 0)
    }

    async fn take_input(&mut self, conversation: i64, input: &InputId, seq: i64) -> Result<bool, Failure> {
        let taken = sqlx::query(
            "UPDATE inbox SET taken_seq = ? WHERE conversation = ? AND id = ? AND taken_seq IS NULL",
        )
        .bind(seq)
        .bind(conversation)
        .bind(input.as_str())
        .execute(&mut *self)
        .await?;
        Ok(taken.rows_affected() > 0)
    }

    async fn insert_event(&mut self, conversation: i64, row: &EventRow) -> Result<(), Failure> {
        sqlx::query(
            "INSERT INTO event (conversation, seq, v, kind, turn, step, body, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(conversation)
        .bind(row.seq)
        .bind(row.v)
        .bind(row.kind.as_str())
        .bind(row.turn.as_deref())
        .bind(row.step.as_deref())
        .bind(row.body.as_str())
        .bind(row.at.as_str())
        .execute(&mut *self)
        .await?;
        Ok(())
    }

    async fn decision(&mut self, user: &UserId, id: TurnId) -> Result<Option<DecisionRow>, Failure> {
        log::decision(self, user, id).await
    }

    async fn insert_decision(&mut self, conversation: i64, row: &DecisionRow) -> Result<(), Failure> {
        log::insert_decision(self, conversation, row).await
    }

    async fn update_decision(&mut self, row: &DecisionRow) -> Result<(), Failure> {
        log::update_decision(self, row).await
    }

    async fn insert_invocation(
        &mut self,
        conversation: i64,
        user: &UserId,
        row: &InvocationRow,
    ) -> Result<(), Failure> {
        log::insert_invocation(self, Some(conversation), user, row).await
    }
}
