//! Reads of a conversation's past: its events behind a place, some of its turns, its inputs.

use adjutant_core::port::{AcceptedInput, StoreError, Turns};
use adjutant_core::{ConversationKey, Input, InputId, StepId, TurnId};

use super::blob::Wanted;
use super::{Backend, Columns, Connection, Failure, key_values, values};
use crate::blob::Blobs;
use crate::row::{self, EventRow, InputRow};

/// Inputs that were not taken, in the order they were accepted: the columns of [`input`].
pub(crate) const INBOX: &str = "SELECT id, v, body, at, request_id, fingerprint, after_seq FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL ORDER BY accepted";

/// When a conversation was created, and where it comes from if it is a branch.
const CREATED: &str =
    "SELECT created_at, key, branched_from_key, branched_from_seq FROM adjutant_conversation
     WHERE agent = $1 AND user_id = $2 AND id = $3";

/// Where a conversation comes from.
const ORIGIN: &str =
    "SELECT branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1";

/// The columns of an event, in the order of [`event`], with the body wherever it is.
macro_rules! select_events {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT seq, v, kind, turn, step, COALESCE(blob.body, event.body), at, event.conversation FROM ",
            $from,
            " LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob ",
            $rest
        )
    };
}
pub(super) use select_events;

/// The events of a branch behind a place, in order. It is gone no further back than events are
/// asked for.
const OF_BRANCH: &str = concat!(
    "WITH RECURSIVE line (key, until, from_key, from_seq) AS (
       SELECT key, next_seq - 1, branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1
       UNION ALL
       SELECT origin.key, line.from_seq, origin.branched_from_key, origin.branched_from_seq
       FROM line JOIN adjutant_conversation AS origin ON origin.key = line.from_key
       WHERE line.from_seq > $2 AND (origin.branched_from_seq IS NULL OR origin.branched_from_seq < line.from_seq)
     ) ",
    select_events!(
        "line JOIN adjutant_event AS event ON event.conversation = line.key AND event.seq > $2 AND event.seq <= line.until",
        "ORDER BY seq"
    )
);

/// The events from the beginning of the `$3`th turn (counted from 0, backwards) on that began
/// before the place `$2`.
pub(crate) const TURNS: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq < $2 AND seq >= COALESCE(
       (SELECT first.seq FROM adjutant_event AS first
        WHERE first.conversation = $1 AND first.seq < $2 AND first.kind = 'turn_started'
        ORDER BY first.seq DESC LIMIT 1 OFFSET $3), 0)
     ORDER BY seq"
);

/// The events of a turn that began before the place `$2` and whose step is `$3`, up to that place
/// or the next turn.
pub(crate) const TURN: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq < $2 AND seq >=
       (SELECT first.seq FROM adjutant_event AS first
        WHERE first.conversation = $1 AND first.step = $3 AND first.kind = 'turn_started')
     AND seq < COALESCE(
       (SELECT next.seq FROM adjutant_event AS next WHERE next.conversation = $1 AND next.kind = 'turn_started' AND next.seq >
         (SELECT first.seq FROM adjutant_event AS first
          WHERE first.conversation = $1 AND first.step = $3 AND first.kind = 'turn_started')
        ORDER BY next.seq LIMIT 1), $2)
     ORDER BY seq"
);

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
    let before = before
        .and_then(|before| i64::try_from(before).ok())
        .unwrap_or(i64::MAX);
    let behind = i64::from(turns.saturating_sub(1));
    let found = backend
        .read(
            (key.clone(), before, behind),
            |rows, (key, before, behind)| Box::pin(stored(rows, key, *before, *behind)),
        )
        .await?;
    let Some((created_at, events, inbox)) = found else {
        return Ok(None);
    };
    let created_at = row::read_time(&created_at, &format!("conversation {}", key.conversation))?;
    let events = events
        .into_iter()
        .map(|event| event.read(key))
        .collect::<Result<Vec<_>, StoreError>>()?;
    // Without an event there is nothing before that place.
    let after = events.first().map_or(0, |first| first.seq - 1);
    Ok(Some(Turns {
        created_at,
        after,
        events,
        inbox: read_inbox(key, inbox)?,
    }))
}

/// Time of creation, events and inbox of a conversation, as they are stored. Where a branch has not
/// turns enough of its own, it is gone on where it comes from.
async fn stored<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    mut before: i64,
    mut behind: i64,
) -> Result<Option<(String, Vec<EventRow>, Vec<InputRow>)>, Failure> {
    let Some(mut place) = rows.fetch_first(CREATED, key_values![key]).await? else {
        return Ok(None);
    };
    let (created_at, conversation) = (place.text()?, place.int()?);
    let (mut events, mut at) = (Vec::new(), conversation);
    loop {
        let found = rows.fetch(TURNS, values![at, before, behind]).await?;
        let mut found = event_rows(rows, found).await?;
        behind -= found
            .iter()
            .map(|event| i64::from(event.kind == "turn_started"))
            .sum::<i64>();
        found.append(&mut events);
        events = found;
        let (Some(origin), Some(from)) = (place.maybe_int()?, place.maybe_int()?) else {
            break;
        };
        if behind < 0 {
            break;
        }
        (at, before) = (origin, before.min(from + 1));
        let found = rows.fetch_first(ORIGIN, values![at]).await?;
        place = found.ok_or(StoreError::Conflict)?;
    }
    let inbox = inbox(rows, conversation).await?;
    Ok(Some((created_at, events, inbox)))
}

pub(super) async fn load_turn<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    turn: TurnId,
) -> Result<Option<Turns>, Failure> {
    let step = StepId::Turn(turn).to_string();
    let found = backend
        .read((key.clone(), step), |rows, (key, step)| {
            Box::pin(stored_turn(rows, key, step))
        })
        .await?;
    let Some((created_at, events, inbox)) = found else {
        return Ok(None);
    };
    let created_at = row::read_time(&created_at, &format!("conversation {}", key.conversation))?;
    let events = events
        .into_iter()
        .map(|event| event.read(key))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let Some(first) = events.first() else {
        return Ok(None);
    };
    Ok(Some(Turns {
        created_at,
        after: first.seq - 1,
        events,
        inbox: read_inbox(key, inbox)?,
    }))
}

/// Time of creation, the events of one turn and the inbox of a conversation, as they are stored.
/// What a branch has not itself is looked for where it comes from.
async fn stored_turn<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    step: &str,
) -> Result<Option<(String, Vec<EventRow>, Vec<InputRow>)>, Failure> {
    let Some(mut place) = rows.fetch_first(CREATED, key_values![key]).await? else {
        return Ok(None);
    };
    let (created_at, conversation) = (place.text()?, place.int()?);
    let (mut at, mut before) = (conversation, i64::MAX);
    let events = loop {
        let found = rows.fetch(TURN, values![at, before, step]).await?;
        let (origin, from) = (place.maybe_int()?, place.maybe_int()?);
        let (true, Some(origin), Some(from)) = (found.is_empty(), origin, from) else {
            break found;
        };
        (at, before) = (origin, before.min(from + 1));
        let found = rows.fetch_first(ORIGIN, values![at]).await?;
        place = found.ok_or(StoreError::Conflict)?;
    };
    let events = event_rows(rows, events).await?;
    let inbox = inbox(rows, conversation).await?;
    Ok(Some((created_at, events, inbox)))
}

pub(super) async fn find_input<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    id: &InputId,
) -> Result<Option<AcceptedInput>, Failure> {
    let Some(mut found) = backend
        .fetch_first(INPUT, key_values![key, id.as_str()])
        .await?
    else {
        return Ok(None);
    };
    let taken_at = found.maybe_int()?.and_then(|seq| u64::try_from(seq).ok());
    Ok(Some(AcceptedInput { taken_at }))
}

pub(super) fn read_inbox(
    key: &ConversationKey,
    inbox: Vec<InputRow>,
) -> Result<Vec<Input>, StoreError> {
    inbox.into_iter().map(|row| row.read(key)).collect()
}

/// Reads the inputs of a conversation that were not taken, in the order they were accepted.
pub(crate) async fn inbox<C: Connection>(
    rows: &mut C,
    conversation: i64,
) -> Result<Vec<InputRow>, Failure> {
    let found = rows.fetch(INBOX, values![conversation]).await?;
    let mut inbox = found
        .into_iter()
        .map(|mut columns| input(&mut columns))
        .collect::<Result<Vec<_>, StoreError>>()?;
    whole_bodies(
        rows,
        inbox
            .iter_mut()
            .map(|row| (conversation, &mut row.body))
            .collect(),
    )
    .await?;
    Ok(inbox)
}

/// Reads the columns of an input.
pub(super) fn input(columns: &mut Columns) -> Result<InputRow, StoreError> {
    Ok(InputRow {
        id: columns.text()?,
        v: columns.int()?,
        body: columns.text()?,
        at: columns.text()?,
        request_id: columns.maybe_text()?,
        fingerprint: columns.maybe_text()?,
        after: columns.maybe_int()?,
        blobs: Blobs::default(),
    })
}

/// Puts what bodies refer to into them. A body of which something is missing stays as it is: who
/// reads it says so.
pub(super) async fn whole_bodies<C: Connection>(
    rows: &mut C,
    bodies: Vec<(i64, &mut String)>,
) -> Result<(), Failure> {
    let mut wanted = Wanted::default();
    bodies
        .iter()
        .for_each(|(conversation, body)| wanted.add(*conversation, body));
    let blobs = wanted.read(rows).await?;
    if !blobs.is_empty() {
        for (_, body) in bodies {
            if let Ok(whole) = blobs.whole(body.clone()) {
                *body = whole;
            }
        }
    }
    Ok(())
}

/// The events of a conversation behind a place, in order, as they are stored. `branched_from_seq`:
/// the place at which it branches off another, if it does.
pub(super) async fn events<C: Connection>(
    rows: &mut C,
    (conversation, branched_from_seq): (i64, Option<i64>),
    after: i64,
) -> Result<Vec<EventRow>, Failure> {
    let statement = match branched_from_seq {
        Some(from) if after < from => OF_BRANCH,
        Some(_) | None => {
            select_events!(
                "adjutant_event AS event",
                "WHERE event.conversation = $1 AND seq > $2 ORDER BY seq"
            )
        }
    };
    let events = rows.fetch(statement, values![conversation, after]).await?;
    event_rows(rows, events).await
}

/// Reads the rows of events, with what they refer to.
pub(super) async fn event_rows<C: Connection>(
    rows: &mut C,
    found: Vec<Columns>,
) -> Result<Vec<EventRow>, Failure> {
    let mut events = Vec::with_capacity(found.len());
    for mut columns in found {
        let event = EventRow {
            seq: columns.int()?,
            v: columns.int()?,
            kind: columns.text()?,
            turn: columns.maybe_text()?,
            step: columns.maybe_text()?,
            body: columns.text()?,
            blobs: Blobs::default(),
            at: columns.text()?,
        };
        events.push((columns.int()?, event));
    }
    whole_bodies(
        rows,
        events
            .iter_mut()
            .map(|(conversation, event)| (*conversation, &mut event.body))
            .collect(),
    )
    .await?;
    Ok(events.into_iter().map(|(_, event)| event).collect())
}
