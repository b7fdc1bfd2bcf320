//! Reads of a conversation's past: its events behind a place, some of its turns, its inputs.

use adjutant_core::port::{AcceptedInput, StoreError, Turns};
use adjutant_core::{ConversationKey, Input, InputId};

use super::{Backend, Columns, Connection, Failure, key_values, values};
use crate::row::{self, EventRow, InputRow};

/// Inputs that were not taken, in the order they were accepted.
pub(crate) const INBOX: &str = "SELECT id, v, body, at, request_id, fingerprint, after_seq FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL ORDER BY accepted";

/// When a conversation was created.
const CREATED: &str =
    "SELECT key, created_at FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3";

/// The events from the beginning of the `$3`th turn (counted from 0, backwards) on that began before the place `$2`.
pub(crate) const TURNS: &str = "SELECT seq, v, kind, turn, step, COALESCE(blob.body, event.body), at
     FROM adjutant_event AS event LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
     WHERE event.conversation = $1 AND seq < $2 AND seq >= COALESCE(
       (SELECT first.seq FROM adjutant_event AS first
        WHERE first.conversation = $1 AND first.seq < $2 AND first.kind = 'turn_started'
        ORDER BY first.seq DESC LIMIT 1 OFFSET $3), 0)
     ORDER BY seq";

/// The place at which an input was taken.
pub(crate) const INPUT: &str =
    "SELECT taken_seq FROM adjutant_inbox AS inbox JOIN adjutant_conversation AS conversation ON conversation.key = inbox.conversation
     WHERE agent = $1 AND user_id = $2 AND conversation.id = $3 AND inbox.id = $4";

pub(super) async fn load_turns<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    before: Option<u64>,
    turns: u32,
) -> Result<Option<Turns>, Failure> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let behind = i64::from(turns.saturating_sub(1));
    let found = backend
        .read((key.clone(), before, behind), |rows, (key, before, behind)| {
            Box::pin(stored(rows, key, *before, *behind))
        })
        .await?;
    let Some((created_at, events, inbox)) = found else { return Ok(None) };
    let created_at = row::read_time(&created_at, &format!("conversation {}", key.conversation))?;
    let read = |columns| event(columns)?.read(key);
    let events = events.into_iter().map(read).collect::<Result<Vec<_>, StoreError>>()?;
    // Without an event there is nothing before that place.
    let after = events.first().map_or(0, |first| first.seq - 1);
    Ok(Some(Turns { created_at, after, events, inbox: read_inbox(key, inbox)? }))
}

/// Time of creation, events and inbox of a conversation, as they are stored.
async fn stored<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    before: i64,
    behind: i64,
) -> Result<Option<(String, Vec<Columns>, Vec<Columns>)>, Failure> {
    let Some(mut found) = rows.fetch_first(CREATED, key_values![key]).await? else { return Ok(None) };
    let (conversation, created_at) = (found.int()?, found.text()?);
    let events = rows.fetch(TURNS, values![conversation, before, behind]).await?;
    let inbox = rows.fetch(INBOX, values![conversation]).await?;
    Ok(Some((created_at, events, inbox)))
}

pub(super) async fn find_input<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    id: &InputId,
) -> Result<Option<AcceptedInput>, Failure> {
    let Some(mut found) = backend.fetch_first(INPUT, key_values![key, id.as_str()]).await? else {
        return Ok(None);
    };
    let taken_at = found.maybe_int()?.and_then(|seq| u64::try_from(seq).ok());
    Ok(Some(AcceptedInput { taken_at }))
}

pub(super) fn read_inbox(key: &ConversationKey, inbox: Vec<Columns>) -> Result<Vec<Input>, StoreError> {
    let read = |mut columns: Columns| {
        let row = InputRow {
            id: columns.text()?,
            v: columns.int()?,
            body: columns.text()?,
            at: columns.text()?,
            request_id: columns.maybe_text()?,
            fingerprint: columns.maybe_text()?,
            after: columns.maybe_int()?,
        };
        row.read(key)
    };
    inbox.into_iter().map(read).collect()
}

/// The events of a conversation behind a place, in order, as they are stored.
pub(super) async fn events<C: Connection>(
    rows: &mut C,
    conversation: i64,
    after: i64,
) -> Result<Vec<EventRow>, Failure> {
    let events = rows
        .fetch(
            "SELECT seq, v, kind, turn, step, COALESCE(blob.body, event.body), at
             FROM adjutant_event AS event LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob
             WHERE event.conversation = $1 AND seq > $2 ORDER BY seq",
            values![conversation, after],
        )
        .await?;
    Ok(events.into_iter().map(event).collect::<Result<_, _>>()?)
}

pub(super) fn event(mut columns: Columns) -> Result<EventRow, StoreError> {
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
