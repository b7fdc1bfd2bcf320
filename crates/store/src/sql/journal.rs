//! Inbox, events, claims, and what has work to do.

use std::time::Duration;

use adjutant_core::port::{Claim, Journal, Loaded, StoreError};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Event, Input, InputBody, InputId, LogContent, Recorded, UserId,
};
use jiff::Timestamp;

use super::{Backend, Columns, Connection, Failure, SqlStore, key_values, locking, log, values};
use crate::row::{self, ConversationRow, EventRow, InputRow};
use crate::status::Status;

/// Inputs that were not taken, in the order they were accepted.
pub(crate) const INBOX: &str = "SELECT id, v, body, at, request_id, fingerprint, after_seq FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL ORDER BY accepted";

/// What has work to do, claimed or not.
pub(crate) const UNSETTLED: &str = "SELECT agent, user_id, id, lease_by, lease_until FROM adjutant_conversation
     WHERE agent = $1 AND unsettled = 1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY updated_at, key";

/// What waits for a human with something whose time has run out, claimed or not.
pub(crate) const EXPIRED: &str = "SELECT agent, user_id, id, lease_by, lease_until FROM adjutant_conversation
     WHERE agent = $1 AND wake_at <= $3 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) ORDER BY wake_at, key";

/// The first cancellation that was not taken.
pub(crate) const CANCELLATION: &str =
    "SELECT inbox.id FROM adjutant_inbox AS inbox JOIN adjutant_conversation AS conversation ON conversation.key = inbox.conversation
     WHERE agent = $1 AND user_id = $2 AND conversation.id = $3 AND taken_seq IS NULL AND body = $4
     ORDER BY accepted LIMIT 1";

/// What each of a user's turns that wait was parked with.
pub(crate) const PARKED: &str =
    "SELECT agent, user_id, conversation.id, event.seq, event.v, event.kind, event.turn, event.step,
            COALESCE(blob.body, event.body), event.at
     FROM adjutant_conversation AS conversation JOIN adjutant_event AS event ON event.conversation = conversation.key AND event.seq = parked_seq
     LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
     WHERE agent = $1 AND (CAST($2 AS TEXT) IS NULL OR user_id = $2) AND parked_seq IS NOT NULL";

impl<B: Backend> Journal for SqlStore<B> {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.0.write().await?;
            submit(&mut *rows, key, input).await?;
            Ok(rows.commit().await?)
        })
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.run(async move {
            let mut rows = self.0.read().await?;
            let found = rows
                .fetch_first(
                    "SELECT key FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
                    key_values![key],
                )
                .await?;
            let Some(mut found) = found else { return Ok(Loaded::default()) };
            let conversation = found.int()?;
            let events = events(&mut *rows, conversation).await?;
            let inbox = rows.fetch(INBOX, values![conversation]).await?;
            // The first that cannot be read fails the whole: a turn is never rebuilt from half a journal.
            let mut loaded = Loaded::default();
            for event in events {
                loaded.events.push(event.read(key)?);
            }
            for mut columns in inbox {
                let row = InputRow {
                    id: columns.text()?,
                    v: columns.int()?,
                    body: columns.text()?,
                    at: columns.text()?,
                    request_id: columns.maybe_text()?,
                    fingerprint: columns.maybe_text()?,
                    after: columns.maybe_int()?,
                };
                loaded.inbox.push(row.read(key)?);
            }
            Ok(loaded)
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
            let mut rows = self.0.write().await?;
            append(&mut *rows, key, next_seq, at, events, self.1).await?;
            Ok(rows.commit().await?)
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.run(async move {
            let mut rows = self.0.write().await?;
            let claimed = claim(&*self.0, &mut *rows, key, worker, ttl).await?;
            rows.commit().await?;
            Ok(claimed)
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(async move {
            let mut rows = self.0.write().await?;
            rows.execute(
                "UPDATE adjutant_conversation SET lease_by = NULL, lease_until = NULL
                 WHERE agent = $1 AND user_id = $2 AND id = $3 AND lease_by = $4",
                key_values![key, worker],
            )
            .await?;
            Ok(rows.commit().await?)
        })
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.run(async move {
            let mut rows = self.0.read().await?;
            let found = rows.fetch(UNSETTLED, values![agent.as_str(), user.map(UserId::as_str)]).await?;
            free(&*self.0, &mut *rows, found).await
        })
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        self.run(async move {
            let mut rows = self.0.read().await?;
            let now = row::time_text(now);
            let found = rows.fetch(EXPIRED, values![agent.as_str(), user.map(UserId::as_str), &now]).await?;
            free(&*self.0, &mut *rows, found).await
        })
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        self.run(async move {
            let body = InputRow::body_of(&InputBody::Cancel)?;
            let found = self.0.read().await?.fetch_first(CANCELLATION, key_values![key, &body]).await?;
            let Some(mut found) = found else { return Ok(None) };
            let id = InputId::new(found.text()?).map_err(|error| row::unreadable("an input", error))?;
            Ok(Some(id))
        })
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        self.run(async move {
            let values = values![agent.as_str(), user.map(UserId::as_str)];
            let rows = self.0.read().await?.fetch(PARKED, values).await?;
            let mut parked = Vec::with_capacity(rows.len());
            for mut columns in rows {
                let key = row::conversation_key(columns.text()?, columns.text()?, &columns.text()?)?;
                let event = event(columns)?.read(&key)?;
                parked.push((key, event));
            }
            parked.sort_by_key(|(key, event)| (event.at, key.conversation));
            Ok(parked)
        })
    }
}

/// Accepts an input. The caller commits.
async fn submit<C: Connection>(rows: &mut C, key: &ConversationKey, input: &Input) -> Result<(), Failure> {
    let mut conversation = match conversation(rows, key).await? {
        Some(conversation) => conversation,
        None => create_conversation(rows, key, input.at).await?,
    };
    let row = InputRow::of(input)?;
    let inserted = rows
        .execute(
            "INSERT INTO adjutant_inbox (conversation, id, v, body, at, request_id, fingerprint, after_seq)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (conversation, id) DO NOTHING",
            values![
                conversation.key,
                &row.id,
                row.v,
                &row.body,
                &row.at,
                row.request_id.as_deref(),
                row.fingerprint.as_deref(),
                conversation.next_seq - 1
            ],
        )
        .await?;
    if inserted == 0 {
        return is_repeat(rows, conversation.key, &row).await;
    }
    conversation.untaken += 1;
    conversation.updated_at = conversation.updated_at.max(input.at);
    if conversation.title.is_empty() {
        conversation.title = adjutant_core::title(&input.body).unwrap_or_default();
    }
    save_conversation(rows, &conversation).await
}

/// Fails with [`StoreError::Reused`] if the input of this id was made from another request.
async fn is_repeat<C: Connection>(rows: &mut C, conversation: i64, row: &InputRow) -> Result<(), Failure> {
    let Some(fingerprint) = &row.fingerprint else { return Ok(()) };
    let known = rows
        .fetch_first(
            "SELECT fingerprint FROM adjutant_inbox WHERE conversation = $1 AND id = $2",
            values![conversation, &row.id],
        )
        .await?;
    match known.map(|mut columns| columns.maybe_text()).transpose()?.flatten() {
        Some(known) if known != *fingerprint => Err(StoreError::Reused.into()),
        Some(_) | None => Ok(()),
    }
}

/// Adds events, takes their inputs, fills both logs. The caller commits; after an error it must not.
async fn append<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    next_seq: u64,
    at: Timestamp,
    events: &[Event],
    content: LogContent,
) -> Result<(), Failure> {
    // A conversation that is not there was deleted, or is another user's or agent's: either way not this writer's any more.
    let Some(mut conversation) = conversation(rows, key).await? else {
        return Err(StoreError::Conflict.into());
    };
    if i64::try_from(next_seq) != Ok(conversation.next_seq) {
        return Err(StoreError::Conflict.into());
    }
    for event in events {
        let seq = conversation.next_seq;
        insert_event(rows, conversation.key, &EventRow::of(seq, at, event)?).await?;
        if let Some(input) = event.takes_input()
            && take_input(rows, conversation.key, input, seq).await?
        {
            conversation.untaken -= 1;
        }
        match event {
            // While the turn waits, there is nothing to do with it.
            Event::InputQueued { .. } => conversation.untaken -= 1,
            Event::TurnStarted { .. } => conversation.turns += 1,
            Event::TurnFinished { .. } => conversation.untaken = untaken(rows, conversation.key).await?,
            _ => {}
        }
        log::follow(rows, conversation.key, key, at, event, content).await?;
        conversation.status.follow(seq, event);
        conversation.next_seq += 1;
    }
    save_conversation(rows, &conversation).await
}

async fn claim<B: Backend, C: Connection>(
    backend: &B,
    rows: &mut C,
    key: &ConversationKey,
    worker: &str,
    ttl: Duration,
) -> Result<Claim, Failure> {
    let statement = locking!(
        C,
        "SELECT key, lease_by, lease_by, lease_until FROM adjutant_conversation
         WHERE agent = $1 AND user_id = $2 AND id = $3"
    );
    let lease = rows.fetch_first(statement, key_values![key]).await?;
    let Some(mut lease) = lease else { return Ok(Claim::Refused) };
    let (conversation, now) = (lease.int()?, rows.now().await?);
    let holder = lease.maybe_text()?;
    if !is_free(backend, &mut lease, Some(worker), now)? {
        return Ok(Claim::Refused);
    }
    // A claim nobody could outwait ends with time itself.
    let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
    rows.execute(
        "UPDATE adjutant_conversation SET lease_by = $1, lease_until = $2 WHERE key = $3",
        values![worker, &row::time_text(until), conversation],
    )
    .await?;
    let is_anothers = holder.is_some_and(|holder| holder != worker);
    Ok(if is_anothers { Claim::TakenOver } else { Claim::Granted })
}

/// Those of the conversations that nobody alive has. The columns are `agent`, `user_id`, `id`, `lease_by`, `lease_until`.
async fn free<B: Backend, C: Connection>(
    backend: &B,
    rows: &mut C,
    found: Vec<Columns>,
) -> Result<Vec<ConversationKey>, Failure> {
    let now = rows.now().await?;
    let mut keys = Vec::new();
    for mut columns in found {
        let (agent, user, id) = (columns.text()?, columns.text()?, columns.text()?);
        if is_free(backend, &mut columns, None, now)? {
            keys.push(row::conversation_key(agent, user, &id)?);
        }
    }
    Ok(keys)
}

/// Nobody alive has it, or `worker` itself does. The next two columns are `lease_by` and `lease_until`.
pub(super) fn is_free<B: Backend>(
    backend: &B,
    lease: &mut Columns,
    worker: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (Some(by), Some(until)) = (lease.maybe_text()?, lease.maybe_text()?) else { return Ok(true) };
    let is_over = row::read_time(&until, "the end of a claim")? <= now;
    Ok(worker == Some(by.as_str()) || is_over || backend.is_gone(&by))
}

/// The conversation as it is, locked until the end of the transaction.
async fn conversation<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
) -> Result<Option<ConversationRow>, Failure> {
    let statement = locking!(
        C,
        "SELECT key, title, updated_at, next_seq, untaken, turns, turn, parked_seq, waiting
         FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3"
    );
    let found = rows.fetch_first(statement, key_values![key]).await?;
    let Some(mut columns) = found else { return Ok(None) };
    let what = format!("conversation {}", key.conversation);
    Ok(Some(ConversationRow {
        key: columns.int()?,
        title: columns.text()?,
        updated_at: row::read_time(&columns.text()?, &what)?,
        next_seq: columns.int()?,
        untaken: columns.int()?,
        turns: columns.int()?,
        status: Status {
            turn: columns.maybe_text()?,
            parked_seq: columns.maybe_int()?,
            waiting: row::read_waiting(&columns.text()?, &what)?,
        },
    }))
}

/// Makes a conversation. Somebody else may have been quicker: then it is theirs that is returned.
async fn create_conversation<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    at: Timestamp,
) -> Result<ConversationRow, Failure> {
    rows.execute(
        "INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at)
         VALUES ($1, $2, $3, '', $4, $4) ON CONFLICT (agent, user_id, id) DO NOTHING",
        key_values![key, &row::time_text(at)],
    )
    .await?;
    // It can only be gone if it was deleted in this very moment.
    conversation(rows, key).await?.ok_or_else(|| StoreError::Conflict.into())
}

async fn save_conversation<C: Connection>(rows: &mut C, row: &ConversationRow) -> Result<(), Failure> {
    rows.execute(
        "UPDATE adjutant_conversation SET title = $1, updated_at = $2, next_seq = $3, untaken = $4, turn = $5, parked_seq = $6,
         waiting = $7, wake_at = $8, turns = $9 WHERE key = $10",
        values![
            &row.title,
            &row::time_text(row.updated_at),
            row.next_seq,
            row.untaken,
            row.status.turn.as_deref(),
            row.status.parked_seq,
            &row::waiting_text(&row.status)?,
            row.status.wake_at().map(row::time_text).as_deref(),
            row.turns,
            row.key
        ],
    )
    .await?;
    Ok(())
}

/// How many inputs nobody has taken, with those that waited for the end of a turn.
async fn untaken<C: Connection>(rows: &mut C, conversation: i64) -> Result<i64, Failure> {
    let counted = rows
        .fetch_first(
            "SELECT count(*) FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL",
            values![conversation],
        )
        .await?;
    Ok(counted.map(|mut columns| columns.int()).transpose()?.unwrap_or_default())
}

/// `false`: it was taken before, or never accepted.
async fn take_input<C: Connection>(
    rows: &mut C,
    conversation: i64,
    input: &InputId,
    seq: i64,
) -> Result<bool, Failure> {
    let taken = rows
        .execute(
            "UPDATE adjutant_inbox SET taken_seq = $1 WHERE conversation = $2 AND id = $3 AND taken_seq IS NULL",
            values![seq, conversation, input.as_str()],
        )
        .await?;
    Ok(taken > 0)
}

/// Fails with [`StoreError::Conflict`] if the place is taken or the step has an event of this kind.
async fn insert_event<C: Connection>(rows: &mut C, conversation: i64, row: &EventRow) -> Result<(), Failure> {
    let blob = row.blob();
    if let Some((hash, body)) = &blob {
        rows.execute(
            "INSERT INTO adjutant_blob (conversation, hash, body) VALUES ($1, $2, $3)
             ON CONFLICT (conversation, hash) DO NOTHING",
            values![conversation, hash, *body],
        )
        .await?;
    }
    let (hash, body) = match &blob {
        Some((hash, _)) => (Some(hash.as_str()), ""),
        None => (None, row.body.as_str()),
    };
    rows.execute(
        "INSERT INTO adjutant_event (conversation, seq, v, kind, turn, step, body, at, blob)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        values![
            conversation,
            row.seq,
            row.v,
            &row.kind,
            row.turn.as_deref(),
            row.step.as_deref(),
            body,
            &row.at,
            hash
        ],
    )
    .await?;
    Ok(())
}

/// The events of a conversation in order, as they are stored.
pub(super) async fn events<C: Connection>(rows: &mut C, conversation: i64) -> Result<Vec<EventRow>, Failure> {
    let events = rows
        .fetch(
            "SELECT seq, v, kind, turn, step, COALESCE(blob.body, event.body), at
             FROM adjutant_event AS event LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
             WHERE event.conversation = $1 ORDER BY seq",
            values![conversation],
        )
        .await?;
    Ok(events.into_iter().map(event).collect::<Result<_, _>>()?)
}

fn event(mut columns: Columns) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        seq: columns.int()?,
        v: columns.int()?,
        kind: columns.text()?,
        turn: columns.maybe_text()?,
        step: columns.maybe_text()?,
        body: columns.text()?,
        at: columns.text()?,
    })
}
