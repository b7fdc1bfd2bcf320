//! Reads of a conversation's history: events after a place, some of its turns, its inputs.

use adjutant_core::port::{AcceptedInput, StoreError, Turns};
use adjutant_core::{ConversationKey, Input, InputId, StepId, TurnId};

use super::blob::References;
use super::{Backend, Connection, Failure, FromRow as _, Row, decode_all, key_values, values};
use crate::record::{self, EventRow, InputRow};

/// Selects the inputs that were not taken, in the order in which they were accepted, with the
/// columns of an [`InputRow`].
pub(crate) const INBOX: &str = "SELECT id, v, body, at, request_id, fingerprint, after_seq AS after FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL ORDER BY accepted";

/// Selects the creation time of a conversation, and its origin if it is a branch.
const CREATED: &str =
    "SELECT created_at, key, branched_from_key, branched_from_seq FROM adjutant_conversation
     WHERE agent = $1 AND user_id = $2 AND id = $3";

/// Selects the origin of a branch.
const ORIGIN: &str =
    "SELECT branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1";

/// Selects the columns of an [`EventRow`], with the body wherever it is stored.
// Earlier versions stored a long body as a whole in `adjutant_blob`; now only its long parts are
// there.
macro_rules! select_events {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT seq, v, kind, turn, step, COALESCE(blob.body, event.body) AS body, at, event.conversation FROM ",
            $from,
            " LEFT JOIN adjutant_blob AS blob ON blob.conversation = event.conversation AND blob.hash = event.blob ",
            $rest
        )
    };
}
pub(super) use select_events;

/// Selects the events of a branch after the place `$2`, and its origins' as far as they are its own.
/// The recursion goes no further back than events are asked for.
macro_rules! select_branch_events {
    ($condition:literal) => {
        concat!(
            "WITH RECURSIVE line (key, until, from_key, from_seq) AS (
               SELECT key, next_seq - 1, branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1
               UNION ALL
               SELECT origin.key, line.from_seq, origin.branched_from_key, origin.branched_from_seq
               FROM line JOIN adjutant_conversation AS origin ON origin.key = line.from_key
               WHERE line.from_seq > $2 AND (origin.branched_from_seq IS NULL OR origin.branched_from_seq < line.from_seq)
             ) ",
            select_events!(
                "line JOIN adjutant_event AS event ON event.conversation = line.key AND event.seq > $2 AND event.seq <= line.until",
                $condition
            )
        )
    };
}
pub(super) use select_branch_events;

const OF_BRANCH: &str = select_branch_events!("ORDER BY seq");

/// The events before the place `$2`, from the start of the `$3`th turn on (counted from 0,
/// backwards).
pub(crate) const TURNS: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq < $2 AND seq >= COALESCE(
       (SELECT first.seq FROM adjutant_event AS first
        WHERE first.conversation = $1 AND first.seq < $2 AND first.kind = 'turn_started'
        ORDER BY first.seq DESC LIMIT 1 OFFSET $3), 0)
     ORDER BY seq"
);

/// The events before the place `$2` of the turn with the step `$3`, up to the next turn.
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

/// The sequence number at which an input was taken.
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
            |tx, (key, before, behind)| Box::pin(stored(tx, key, *before, *behind)),
        )
        .await?;
    Ok(found.map(|turns| turns.decode(key)).transpose()?)
}

/// Some of a conversation's turns, as they are stored.
struct TurnRows {
    created_at: String,
    events: Vec<EventRow>,
    inbox: Vec<InputRow>,
}

impl TurnRows {
    fn decode(self, key: &ConversationKey) -> Result<Turns, StoreError> {
        let what = format!("conversation {}", key.conversation);
        let events = decode_all(self.events, |event| event.decode(key))?;
        Ok(Turns {
            created_at: record::parse_time(&self.created_at, &what)?,
            // Without an event there is nothing before that place.
            after: events.first().map_or(0, |first| first.seq - 1),
            events,
            inbox: read_inbox(key, self.inbox)?,
        })
    }
}

/// Reads some turns and the inbox of a conversation. A branch with too few turns of its own is
/// continued in its origin.
async fn stored<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    mut before: i64,
    mut behind: i64,
) -> Result<Option<TurnRows>, Failure> {
    let Some(mut place) = tx.fetch_optional(CREATED, key_values![key]).await? else {
        return Ok(None);
    };
    let (created_at, conversation) = (place.get("created_at")?, place.get("key")?);
    let (mut events, mut at) = (Vec::new(), conversation);
    loop {
        let found = tx.fetch_all(TURNS, values![at, before, behind]).await?;
        let mut found = event_rows(tx, found).await?;
        behind -= found
            .iter()
            .map(|event| i64::from(event.kind == "turn_started"))
            .sum::<i64>();
        found.append(&mut events);
        events = found;
        let (Some(origin), Some(from)) = origin(&mut place)? else {
            break;
        };
        // Enough turns were found.
        if behind < 0 {
            break;
        }
        // Events of the origin after the place are not the branch's.
        (at, before) = (origin, before.min(from + 1));
        let found = tx.fetch_optional(ORIGIN, values![at]).await?;
        place = found.ok_or(StoreError::Conflict)?;
    }
    let inbox = inbox(tx, conversation).await?;
    Ok(Some(TurnRows {
        created_at,
        events,
        inbox,
    }))
}

/// Reads the conversation that another branches off, and at which event.
fn origin(row: &mut Row) -> Result<(Option<i64>, Option<i64>), StoreError> {
    Ok((row.get("branched_from_key")?, row.get("branched_from_seq")?))
}

pub(super) async fn load_turn<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    turn: TurnId,
) -> Result<Option<Turns>, Failure> {
    let step = StepId::Turn(turn).to_string();
    let found = backend
        .read((key.clone(), step), |tx, (key, step)| {
            Box::pin(stored_turn(tx, key, step))
        })
        .await?;
    let found = found.filter(|turns| !turns.events.is_empty());
    Ok(found.map(|turns| turns.decode(key)).transpose()?)
}

/// Reads one turn and the inbox of a conversation. A turn that a branch does not have is looked for
/// in its origin.
async fn stored_turn<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    step: &str,
) -> Result<Option<TurnRows>, Failure> {
    let Some(mut place) = tx.fetch_optional(CREATED, key_values![key]).await? else {
        return Ok(None);
    };
    let (created_at, conversation) = (place.get("created_at")?, place.get("key")?);
    let (mut at, mut before) = (conversation, i64::MAX);
    let events = loop {
        let found = tx.fetch_all(TURN, values![at, before, step]).await?;
        let (true, (Some(origin), Some(from))) = (found.is_empty(), origin(&mut place)?) else {
            break found;
        };
        (at, before) = (origin, before.min(from + 1));
        let found = tx.fetch_optional(ORIGIN, values![at]).await?;
        place = found.ok_or(StoreError::Conflict)?;
    };
    Ok(Some(TurnRows {
        created_at,
        events: event_rows(tx, events).await?,
        inbox: inbox(tx, conversation).await?,
    }))
}

pub(super) async fn find_input<B: Backend>(
    backend: &B,
    key: &ConversationKey,
    id: &InputId,
) -> Result<Option<AcceptedInput>, Failure> {
    let Some(mut found) = backend
        .fetch_optional(INPUT, key_values![key, id.as_str()])
        .await?
    else {
        return Ok(None);
    };
    Ok(Some(AcceptedInput {
        taken_at: found.get("taken_seq")?,
    }))
}

pub(super) fn read_inbox(
    key: &ConversationKey,
    inbox: Vec<InputRow>,
) -> Result<Vec<Input>, StoreError> {
    decode_all(inbox, |row| row.decode(key))
}

/// Reads the inputs of a conversation that were not taken, in the order in which they were
/// accepted.
pub(crate) async fn inbox<C: Connection>(
    tx: &mut C,
    conversation: i64,
) -> Result<Vec<InputRow>, Failure> {
    let mut inbox: Vec<InputRow> = tx.fetch_records(INBOX, values![conversation]).await?;
    whole_bodies(
        tx,
        inbox
            .iter_mut()
            .map(|row| (conversation, &mut row.body))
            .collect(),
    )
    .await?;
    Ok(inbox)
}

/// Replaces the references in bodies by the long values. A body with a missing value stays as it
/// is, and fails to decode later.
pub(super) async fn whole_bodies<C: Connection>(
    tx: &mut C,
    bodies: Vec<(i64, &mut String)>,
) -> Result<(), Failure> {
    let mut references = References::default();
    bodies
        .iter()
        .for_each(|(conversation, body)| references.add(*conversation, body));
    let blobs = references.read(tx).await?;
    if !blobs.is_empty() {
        for (_, body) in bodies {
            if let Ok(whole) = blobs.whole(body.clone()) {
                *body = whole;
            }
        }
    }
    Ok(())
}

/// Reads the events of a conversation after a place, in order. `branched_from_seq` is the place at
/// which it branches off another.
pub(super) async fn events<C: Connection>(
    tx: &mut C,
    conversation: i64,
    branched_from_seq: Option<i64>,
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
    let events = tx
        .fetch_all(statement, values![conversation, after])
        .await?;
    event_rows(tx, events).await
}

/// Decodes events and reads the long values that they refer to.
pub(super) async fn event_rows<C: Connection>(
    tx: &mut C,
    found: Vec<Row>,
) -> Result<Vec<EventRow>, Failure> {
    let mut events = Vec::with_capacity(found.len());
    for mut row in found {
        events.push((row.get("conversation")?, EventRow::from_row(&mut row)?));
    }
    whole_bodies(
        tx,
        events
            .iter_mut()
            .map(|(conversation, event)| (*conversation, &mut event.body))
            .collect(),
    )
    .await?;
    Ok(events.into_iter().map(|(_, event)| event).collect())
}
