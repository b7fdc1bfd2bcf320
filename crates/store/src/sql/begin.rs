//! The start of a turn: accepting an input, taking the lease, the first events, and the rows that
//! the worker has not read yet.

use std::num::NonZeroU32;
use std::time::Duration;

use adjutant_core::port::{Claim, Known, Newer, StoreError};
use adjutant_core::{ConversationKey, Input, LogContent};
use jiff::Timestamp;

use super::conversation_row::{
    CONVERSATION, conversation, create_conversation, read_conversation, save_conversation,
};
use super::history::{events, inbox, read_inbox};
use super::open_turn_cache::OpenTurn;
use super::projection::{NewEvent, Projection, take_inputs, write_events};
use super::snapshot::{self, RestorableRows};
use super::{Connection, Failure, blob, decode_all, key_values, log, values};
use crate::record::{ConversationRow, EventRow, InputRow};
use crate::status::Status;

/// Counts the inputs that start a turn and were not taken ([`InputBody::starts_turn`]), by the
/// beginning of their JSON.
pub(crate) const QUEUED: &str = r#"SELECT count(*) FROM adjutant_inbox WHERE conversation = $1 AND taken_seq IS NULL
     AND (body LIKE '{"kind":"message"%' OR body LIKE '{"kind":"call"%')"#;

/// An input that is to be accepted, with its encoded form.
#[derive(Debug)]
pub struct NewInput {
    pub(crate) input: Input,
    /// The input as it is stored.
    pub(crate) row: InputRow,
    /// Inputs that start a turn and may wait in the conversation.
    pub(crate) queued_max: NonZeroU32,
}

impl NewInput {
    pub(super) fn new(input: &Input, queued_max: NonZeroU32) -> Result<Self, StoreError> {
        Ok(Self {
            input: input.clone(),
            row: InputRow::from_input(input)?,
            queued_max,
        })
    }

    /// Returns how many inputs may wait including this one. `None` if it starts no turn, and is
    /// always accepted.
    pub(crate) fn queue_limit(&self) -> Option<i64> {
        self.input
            .body
            .starts_turn()
            .then(|| self.queued_max.get().into())
    }

    /// Returns the error for an input that does not fit into the queue.
    pub(crate) fn queue_full(&self) -> Failure {
        StoreError::QueueFull {
            limit: self.queued_max,
        }
        .into()
    }
}

/// Accepts an input. Returns true if a worker may hold the conversation's lease.
pub(super) async fn submit<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    arrival: &NewInput,
) -> Result<bool, Failure> {
    let mut conversation = match conversation(tx, key).await? {
        Some(conversation) => conversation,
        None => create_conversation(tx, key, arrival.input.at).await?,
    };
    // A repeated input changes nothing, so that its conversation does not move up in the list.
    if accept(tx, &mut conversation, arrival, None).await? {
        conversation.untaken += 1;
        save_conversation(tx, &conversation).await?;
    }
    Ok(conversation.lease_by.is_some())
}

/// Inserts an input into the inbox. `taken` is the sequence number of the event that takes it at
/// once. Returns false if it was accepted before.
async fn accept<C: Connection>(
    tx: &mut C,
    conversation: &mut ConversationRow,
    arrival: &NewInput,
    taken: Option<i64>,
) -> Result<bool, Failure> {
    let NewInput { input, row, .. } = arrival;
    let inserted = tx
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
    // A client repeats an input if it did not receive the answer that it was accepted.
    if inserted == 0 {
        is_repeat(tx, conversation.key, row).await?;
        return Ok(false);
    }
    if let Some(limit) = arrival.queue_limit().filter(|_| taken.is_none())
        && !fits_queue(tx, conversation, limit).await?
    {
        return Err(arrival.queue_full());
    }
    blob::insert(tx, conversation.key, &row.blobs).await?;
    // Inputs carry the times of several processes, whose clocks differ.
    conversation.updated_at = conversation.updated_at.max(input.at);
    if conversation.title.is_empty() {
        conversation.title = adjutant_core::title(&input.body).unwrap_or_default();
    }
    Ok(true)
}

/// Returns true if no more inputs that start a turn wait than may, including the one that was just
/// inserted.
async fn fits_queue<C: Connection>(
    tx: &mut C,
    conversation: &ConversationRow,
    limit: i64,
) -> Result<bool, Failure> {
    // Inputs that are queued until the end of an open turn are not counted in the row.
    if conversation.status.turn.is_none() && conversation.untaken < limit {
        return Ok(true);
    }
    let queued = tx.fetch_scalar(QUEUED, values![conversation.key]).await?;
    Ok(queued.unwrap_or(0) <= limit)
}

/// The first events of a turn. Empty if no turn is to be started.
#[derive(Debug)]
pub struct TurnStart {
    pub(crate) turn: Vec<NewEvent>,
    /// The projection of the events, computed as if the first of them had the sequence number 0.
    pub(crate) change: Projection,
}

impl TurnStart {
    pub(super) fn new(
        key: &ConversationKey,
        turn: Vec<NewEvent>,
        content: LogContent,
    ) -> Result<Self, StoreError> {
        // A turn is started only where none is open, so the status before is the default.
        let events = turn.iter().map(|(_, recorded)| recorded);
        let change = Projection::compute(key, 0, Status::default(), Vec::new(), events, content)?;
        Ok(Self { turn, change })
    }
}

/// A request to continue a conversation, encoded.
#[derive(Debug)]
pub struct BeginRequest {
    pub(crate) key: ConversationKey,
    pub(crate) arrival: Option<NewInput>,
    pub(crate) start: TurnStart,
    pub(crate) first: Option<NewEvent>,
    pub(crate) worker: String,
    pub(crate) epoch: i64,
    pub(crate) lease: Duration,
    pub(crate) known: Option<Known>,
}

/// The result of a [`BeginRequest`], as stored rows.
#[derive(Debug)]
pub enum BeginResult {
    Nothing,
    Elsewhere,
    Claimed(Claim, NewerRows),
    Started(NewerRows, OpenTurn),
}

/// Accepts an input, takes the lease, and starts the turn if there is no other work to do.
pub(super) async fn start<C: Connection>(
    tx: &mut C,
    begin: &BeginRequest,
) -> Result<BeginResult, Failure> {
    let mut conversation = match (conversation(tx, &begin.key).await?, &begin.arrival) {
        (Some(conversation), _) => conversation,
        (None, Some(arrival)) => create_conversation(tx, &begin.key, arrival.input.at).await?,
        (None, None) => return Ok(BeginResult::Nothing),
    };
    let now = tx.now().await?;
    // The row is locked, so no other worker can take the lease before the commit.
    let claim = conversation.claim::<C>(&begin.worker, Some(begin.epoch), begin.lease, now);
    let is_idle = conversation.untaken == 0 && conversation.status.turn.is_none();
    let first = begin.first.as_ref().filter(|_| conversation.next_seq == 1);
    // Earlier inputs come first, and an open turn is continued, not followed by another one.
    let mut starts = claim.is_held() && is_idle && !begin.start.turn.is_empty();
    let start = conversation.next_seq + i64::from(first.is_some());
    if let Some(arrival) = &begin.arrival {
        // The event that starts the turn takes the input at once, so it never waits in the inbox.
        let taken = starts.then_some(start);
        if accept(tx, &mut conversation, arrival, taken).await? {
            conversation.untaken += i64::from(!starts);
        } else {
            // The input was accepted before, and what it led to is in the journal already.
            starts = false;
        }
    }
    let mut open = None;
    if starts {
        let BeginRequest {
            key,
            start: TurnStart { turn, change },
            ..
        } = begin;
        if let Some(first) = first {
            write_events(
                tx,
                conversation.key,
                conversation.next_seq,
                std::slice::from_ref(first),
            )
            .await?;
        }
        write_events(tx, conversation.key, start, turn).await?;
        // An arrival was inserted as taken above.
        if begin.arrival.is_none() {
            conversation.untaken -= take_inputs(tx, conversation.key, start, turn).await?;
        }
        log::write(tx, conversation.key, &key.user, &change.logs).await?;
        conversation.next_seq = i64::try_from(turn.len()).map_or(i64::MAX, |turn| start + turn);
        conversation.turns += change.turns;
        conversation.status = change.status.clone();
        conversation.status.parked_seq = change.status.parked_seq.map(|parked| start + parked);
        open = Some(OpenTurn {
            conversation: conversation.key,
            next_seq: conversation.next_seq,
            status: conversation.status.clone(),
            decisions: change.logs.known.clone(),
        });
    }
    save_conversation(tx, &conversation).await?;
    // The input is accepted all the same: the worker with the lease finds it in the inbox.
    if !claim.is_held() {
        return Ok(BeginResult::Elsewhere);
    }
    let newer = newer_rows(tx, &conversation, begin.known).await?;
    Ok(match open {
        Some(open) => BeginResult::Started(newer, open),
        None => BeginResult::Claimed(claim, newer),
    })
}

/// The rows after a sequence number that the worker knows.
#[derive(Debug)]
pub struct NewerRows {
    /// The key of the conversation's row.
    pub(crate) conversation: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) restorable: Option<RestorableRows>,
    pub(crate) after: i64,
    pub(crate) events: Vec<EventRow>,
    pub(crate) inbox: Vec<InputRow>,
}

impl NewerRows {
    pub(super) fn decode(self, key: &ConversationKey) -> Result<Newer, StoreError> {
        Ok(Newer {
            created_at: self.created_at,
            restorable: self
                .restorable
                .map(|rows| rows.decode(key))
                .transpose()?
                .flatten(),
            after: u64::try_from(self.after).unwrap_or_default(),
            events: decode_all(self.events, |event| event.decode(key))?,
            inbox: read_inbox(key, self.inbox)?,
        })
    }
}

/// Reads the rows after a known sequence number. `None` if the conversation does not exist.
pub(crate) async fn newer<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    known: Option<Known>,
) -> Result<Option<NewerRows>, Failure> {
    let found = tx.fetch_optional(CONVERSATION, key_values![key]).await?;
    let Some(found) = found else { return Ok(None) };
    let conversation = read_conversation(found, key)?;
    newer_rows(tx, &conversation, known).await.map(Some)
}

async fn newer_rows<C: Connection>(
    tx: &mut C,
    conversation: &ConversationRow,
    known: Option<Known>,
) -> Result<NewerRows, Failure> {
    // A conversation that was deleted and created again has the same id and other events.
    let known = known.filter(|known| known.created_at == conversation.created_at);
    let seq = known.and_then(|known| i64::try_from(known.seq).ok());
    let seq = seq.filter(|seq| *seq < conversation.next_seq);
    let branched_from_seq = conversation.branched_from_seq;
    let restorable = match seq {
        // A snapshot is written at the end of a turn, so the first turn has none.
        None if conversation.turns > 1 => {
            snapshot::restorable(
                tx,
                conversation.key,
                branched_from_seq,
                conversation.next_seq,
            )
            .await?
        }
        Some(_) | None => None,
    };
    let after = seq.unwrap_or_else(|| restorable.as_ref().map_or(0, |found| found.snapshot.seq));
    let is_new = after + 1 < conversation.next_seq;
    let events = if is_new {
        events(tx, conversation.key, branched_from_seq, after).await?
    } else {
        Vec::new()
    };
    // Inputs that are queued until the end of the open turn are not counted in `untaken`.
    let waits = conversation.untaken > 0 || conversation.status.turn.is_some();
    let inbox = if waits {
        inbox(tx, conversation.key).await?
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
    tx: &mut C,
    conversation: i64,
    row: &InputRow,
) -> Result<(), Failure> {
    let Some(fingerprint) = &row.fingerprint else {
        return Ok(());
    };
    let known = tx
        .fetch_scalar::<Option<String>>(
            "SELECT fingerprint FROM adjutant_inbox WHERE conversation = $1 AND id = $2",
            values![conversation, &row.id],
        )
        .await?;
    match known.flatten() {
        Some(known) if known != *fingerprint => Err(StoreError::Reused.into()),
        Some(_) | None => Ok(()),
    }
}
