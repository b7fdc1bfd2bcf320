//! The beginning of a turn: an input that is accepted, the claim, the first event, and what whoever
//! claims it does not know yet.

use std::num::NonZeroU32;
use std::time::Duration;

use adjutant_core::port::{Claim, Known, Newer, StoreError};
use adjutant_core::{ConversationKey, Input, LogContent};
use jiff::Timestamp;

use super::append::{Change, NewEvent, take_inputs, write_events};
use super::conversation_row::{
    CONVERSATION, conversation, create_conversation, read_conversation, save_conversation,
};
use super::open_turns::Open;
use super::past::{events, inbox, read_inbox};
use super::snapshot::{self, RestorableRows};
use super::{Connection, Failure, blob, key_values, log, values};
use crate::row::{ConversationRow, EventRow, InputRow};
use crate::status::Status;

/// The number of inputs that start a turn and were not taken ([`InputBody::starts_turn`], by how
/// their JSON begins).
pub(crate) const QUEUED: &str = r#"SELECT count(*) FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL
     AND (body LIKE '{"kind":"message"%' OR body LIKE '{"kind":"call"%')"#;

/// An input to accept.
#[derive(Debug)]
pub struct Arrival {
    pub(crate) input: Input,
    /// The input as it is stored.
    pub(crate) row: InputRow,
    /// Inputs that start a turn which may wait in the conversation.
    pub(crate) queued_max: NonZeroU32,
}

impl Arrival {
    pub(super) fn of(input: &Input, queued_max: NonZeroU32) -> Result<Self, StoreError> {
        Ok(Self {
            input: input.clone(),
            row: InputRow::of(input)?,
            queued_max,
        })
    }

    /// Returns how many may wait with it. `None`: it starts no turn, and is always accepted.
    pub(crate) fn room(&self) -> Option<i64> {
        self.input
            .body
            .starts_turn()
            .then(|| self.queued_max.get().into())
    }

    /// Returns the error that it is if there is no room.
    pub(crate) fn refused(&self) -> Failure {
        StoreError::QueueFull {
            limit: self.queued_max,
        }
        .into()
    }
}

/// Accepts an input. Returns whether a worker may have the conversation.
pub(super) async fn submit<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    arrival: &Arrival,
) -> Result<bool, Failure> {
    let mut conversation = match conversation(rows, key).await? {
        Some(conversation) => conversation,
        None => create_conversation(rows, key, arrival.input.at).await?,
    };
    if accept(rows, &mut conversation, arrival, None).await? {
        conversation.untaken += 1;
        save_conversation(rows, &conversation).await?;
    }
    Ok(conversation.lease_by.is_some())
}

/// Puts an input into the inbox. `taken`: the place of the event that takes it at once. Returns
/// `false` if it was there before.
async fn accept<C: Connection>(
    rows: &mut C,
    conversation: &mut ConversationRow,
    arrival: &Arrival,
    taken: Option<i64>,
) -> Result<bool, Failure> {
    let Arrival { input, row, .. } = arrival;
    let inserted = rows
        .execute(
            "INSERT INTO adjutant_inbox (conversation, id, v, body, at, request_id, fingerprint, after_seq, taken_seq)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (conversation, id) DO NOTHING",
            values![
                conversation.key,
                &row.id,
                row.v,
                &row.body,
                &row.at,
                row.request_id.as_deref(),
                row.fingerprint.as_deref(),
                conversation.next_seq - 1,
                taken
            ],
        )
        .await?;
    if inserted == 0 {
        is_repeat(rows, conversation.key, row).await?;
        return Ok(false);
    }
    if let Some(room) = arrival.room().filter(|_| taken.is_none())
        && !has_room(rows, conversation, room).await?
    {
        return Err(arrival.refused());
    }
    blob::insert(rows, conversation.key, &row.blobs).await?;
    conversation.updated_at = conversation.updated_at.max(input.at);
    if conversation.title.is_empty() {
        conversation.title = adjutant_core::title(&input.body).unwrap_or_default();
    }
    Ok(true)
}

/// Returns whether no more inputs that start a turn wait than may, with the one that was just put
/// there.
async fn has_room<C: Connection>(
    rows: &mut C,
    conversation: &ConversationRow,
    room: i64,
) -> Result<bool, Failure> {
    // Those that wait for the end of an open turn are not counted in the row.
    if conversation.status.turn.is_none() && conversation.untaken < room {
        return Ok(true);
    }
    let found = rows.fetch_first(QUEUED, values![conversation.key]).await?;
    let queued = found
        .map(|mut columns| columns.int())
        .transpose()?
        .unwrap_or_default();
    Ok(queued <= room)
}

/// The first events of a turn, as they are stored; none: no turn is started.
#[derive(Debug)]
pub struct Start {
    pub(crate) turn: Vec<NewEvent>,
    /// The change that follows from them, if the first of them has the place 0.
    pub(crate) change: Change,
}

impl Start {
    pub(super) fn of(
        key: &ConversationKey,
        turn: Vec<NewEvent>,
        content: LogContent,
    ) -> Result<Self, StoreError> {
        // A turn is begun only where none is open; places are counted from its first event.
        let events = turn.iter().map(|(_, recorded)| recorded);
        let change = Change::of(key, 0, (Status::default(), Vec::new()), events, content)?;
        Ok(Self { turn, change })
    }
}

/// A request to go on with a conversation, as it is stored.
#[derive(Debug)]
pub struct Beginning {
    pub(crate) key: ConversationKey,
    pub(crate) arrival: Option<Arrival>,
    pub(crate) start: Start,
    pub(crate) first: Option<NewEvent>,
    pub(crate) worker: String,
    pub(crate) epoch: i64,
    pub(crate) lease: Duration,
    pub(crate) known: Option<Known>,
}

/// The answer to [`Beginning`], as it is stored.
#[derive(Debug)]
pub enum BegunRows {
    Nothing,
    Elsewhere,
    Claimed(Claim, NewerRows),
    Started(NewerRows, Open),
}

/// Accepts an input, claims the conversation, and starts the turn if there is nothing else to do.
pub(super) async fn start<C: Connection>(
    rows: &mut C,
    begin: &Beginning,
) -> Result<BegunRows, Failure> {
    let mut conversation = match (conversation(rows, &begin.key).await?, &begin.arrival) {
        (Some(conversation), _) => conversation,
        (None, Some(arrival)) => create_conversation(rows, &begin.key, arrival.input.at).await?,
        (None, None) => return Ok(BegunRows::Nothing),
    };
    let now = rows.now().await?;
    let claim = conversation.claim::<C>((&begin.worker, Some(begin.epoch)), begin.lease, now);
    let is_idle = conversation.untaken == 0 && conversation.status.turn.is_none();
    let first = begin.first.as_ref().filter(|_| conversation.next_seq == 1);
    let mut starts = claim.is_held() && is_idle && !begin.start.turn.is_empty();
    let start = conversation.next_seq + i64::from(first.is_some());
    if let Some(arrival) = &begin.arrival {
        let taken = starts.then_some(start);
        if accept(rows, &mut conversation, arrival, taken).await? {
            conversation.untaken += i64::from(!starts);
        } else {
            // What it led to before is what it leads to.
            starts = false;
        }
    }
    let mut open = None;
    if starts {
        let Beginning {
            key,
            start: Start { turn, change },
            ..
        } = begin;
        if let Some(first) = first {
            write_events(
                rows,
                conversation.key,
                conversation.next_seq,
                std::slice::from_ref(first),
            )
            .await?;
        }
        write_events(rows, conversation.key, start, turn).await?;
        if begin.arrival.is_none() {
            conversation.untaken -= take_inputs(rows, conversation.key, start, turn).await?;
        }
        log::write(rows, conversation.key, &key.user, &change.logs).await?;
        conversation.next_seq = i64::try_from(turn.len()).map_or(i64::MAX, |turn| start + turn);
        conversation.turns += change.turns;
        conversation.status = change.status.clone();
        conversation.status.parked_seq = change.status.parked_seq.map(|parked| start + parked);
        open = Some(Open {
            conversation: conversation.key,
            next_seq: conversation.next_seq,
            status: conversation.status.clone(),
            decisions: change.logs.known.clone(),
        });
    }
    save_conversation(rows, &conversation).await?;
    if !claim.is_held() {
        return Ok(BegunRows::Elsewhere);
    }
    let newer = newer_rows(rows, &conversation, begin.known).await?;
    Ok(match open {
        Some(open) => BegunRows::Started(newer, open),
        None => BegunRows::Claimed(claim, newer),
    })
}

/// The rows behind a known place.
#[derive(Debug)]
pub struct NewerRows {
    /// The row of the conversation.
    pub(crate) conversation: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) restorable: Option<RestorableRows>,
    pub(crate) after: i64,
    pub(crate) events: Vec<EventRow>,
    pub(crate) inbox: Vec<InputRow>,
}

impl NewerRows {
    pub(super) fn read(self, key: &ConversationKey) -> Result<Newer, StoreError> {
        Ok(Newer {
            created_at: self.created_at,
            restorable: self
                .restorable
                .map(|rows| rows.read(key))
                .transpose()?
                .flatten(),
            after: u64::try_from(self.after).unwrap_or_default(),
            events: self
                .events
                .into_iter()
                .map(|event| event.read(key))
                .collect::<Result<_, _>>()?,
            inbox: read_inbox(key, self.inbox)?,
        })
    }
}

/// The rows of a conversation behind a known place. `None`: there is no such conversation.
pub(crate) async fn newer<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    known: Option<Known>,
) -> Result<Option<NewerRows>, Failure> {
    let found = rows.fetch_first(CONVERSATION, key_values![key]).await?;
    let Some(found) = found else { return Ok(None) };
    let conversation = read_conversation(found, key)?;
    newer_rows(rows, &conversation, known).await.map(Some)
}

async fn newer_rows<C: Connection>(
    rows: &mut C,
    conversation: &ConversationRow,
    known: Option<Known>,
) -> Result<NewerRows, Failure> {
    let known = known.filter(|known| known.created_at == conversation.created_at);
    let seq = known.and_then(|known| i64::try_from(known.seq).ok());
    let seq = seq.filter(|seq| *seq < conversation.next_seq);
    let place = (conversation.key, conversation.branched_from_seq);
    let restorable = match seq {
        // Before its first turn has ended, it has none.
        None if conversation.turns > 1 => {
            snapshot::restorable(rows, place, conversation.next_seq).await?
        }
        Some(_) | None => None,
    };
    let after = seq.unwrap_or_else(|| restorable.as_ref().map_or(0, |found| found.snapshot.seq));
    let is_new = after + 1 < conversation.next_seq;
    let events = if is_new {
        events(rows, place, after).await?
    } else {
        Vec::new()
    };
    // Those that wait for the end of the open turn are not counted.
    let waits = conversation.untaken > 0 || conversation.status.turn.is_some();
    let inbox = if waits {
        inbox(rows, conversation.key).await?
    } else {
        Vec::new()
    };
    let (conversation, created_at) = (conversation.key, conversation.created_at);
    Ok(NewerRows {
        conversation,
        created_at,
        restorable,
        after,
        events,
        inbox,
    })
}

/// Fails with [`StoreError::Reused`] if the input of this id was made from another request.
async fn is_repeat<C: Connection>(
    rows: &mut C,
    conversation: i64,
    row: &InputRow,
) -> Result<(), Failure> {
    let Some(fingerprint) = &row.fingerprint else {
        return Ok(());
    };
    let known = rows
        .fetch_first(
            "SELECT fingerprint FROM adjutant_inbox WHERE conversation = $1 AND id = $2",
            values![conversation, &row.id],
        )
        .await?;
    match known
        .map(|mut columns| columns.maybe_text())
        .transpose()?
        .flatten()
    {
        Some(known) if known != *fingerprint => Err(StoreError::Reused.into()),
        Some(_) | None => Ok(()),
    }
}
