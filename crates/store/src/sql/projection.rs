//! The projection of new events: the derived columns and log rows that they change. It is computed
//! once for all databases, and written by statements or by a database's own functions.

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationKey, DecisionRecord, Event, LogContent, Recorded};
use jiff::Timestamp;

use super::{Connection, Failure, blob, log, values};
use crate::record::EventRow;
use crate::status::Status;

/// An event and its row. The sequence number in the row is set when it is written.
pub(crate) type NewEvent = (EventRow, Recorded);

pub(super) fn new_event(at: Timestamp, event: &Event) -> Result<NewEvent, StoreError> {
    Ok((
        EventRow::from_event(0, at, event)?,
        Recorded {
            seq: 0,
            at,
            event: event.clone().into(),
        },
    ))
}

/// Encodes events. Fails with [`StoreError::Conflict`] unless their sequence numbers are
/// consecutive.
pub(super) fn new_events(events: &[Recorded]) -> Result<Vec<NewEvent>, StoreError> {
    let row = |recorded: &Recorded| {
        let seq = i64::try_from(recorded.seq).map_err(|_| StoreError::Conflict)?;
        Ok((
            EventRow::from_event(seq, recorded.at, &recorded.event)?,
            recorded.clone(),
        ))
    };
    let rows: Vec<NewEvent> = events.iter().map(row).collect::<Result<_, _>>()?;
    let places = rows.first().map_or(0, |(first, _)| first.seq)..;
    match places.zip(&rows).all(|(seq, (row, _))| row.seq == seq) {
        true => Ok(rows),
        false => Err(StoreError::Conflict),
    }
}

/// The changes that follow from events, besides the events' own rows.
#[derive(Debug)]
pub(crate) struct Projection {
    /// Turns that are started.
    pub(crate) turns: i64,
    /// Inputs that are queued until the end of the open turn, and not counted in `untaken` until
    /// then.
    pub(crate) queued: i64,
    /// True if a turn ends, so that the queued inputs are counted again.
    pub(crate) counts_again: bool,
    pub(crate) status: Status,
    pub(crate) logs: log::LogChanges,
}

impl Projection {
    /// Computes the projection. The first event has the sequence number `seq`, `status` is the
    /// state before it, and `decisions` are those of [`log::changed_turns`], as far as they exist.
    pub(crate) fn compute<'e>(
        key: &ConversationKey,
        seq: i64,
        mut status: Status,
        decisions: Vec<DecisionRecord>,
        events: impl Iterator<Item = &'e Recorded> + Clone,
        content: LogContent,
    ) -> Result<Self, StoreError> {
        let (mut turns, mut queued, mut counts_again) = (0, 0, false);
        for (seq, Recorded { event, .. }) in (seq..).zip(events.clone()) {
            match &**event {
                Event::TurnStarted { .. } => turns += 1,
                // While the open turn is parked, there is no work to do for this input.
                Event::InputQueued { .. } => queued += 1,
                // The statement counts the whole inbox again, with what was queued just before.
                Event::TurnFinished { .. } => (queued, counts_again) = (0, true),
                _ => {}
            }
            status.apply(seq, event);
        }
        let logs = log::compute(key, decisions, events, content)?;
        Ok(Self {
            turns,
            queued,
            counts_again,
            status,
            logs,
        })
    }
}

/// Inserts events at consecutive sequence numbers.
pub(super) async fn write_events<C: Connection>(
    tx: &mut C,
    conversation: i64,
    first: i64,
    events: &[NewEvent],
) -> Result<(), Failure> {
    for (seq, (row, _)) in (first..).zip(events) {
        insert_event(tx, conversation, seq, row).await?;
    }
    Ok(())
}

/// Marks the inputs as taken that the events take. Returns how many were there and not taken yet.
pub(super) async fn take_inputs<C: Connection>(
    tx: &mut C,
    conversation: i64,
    first: i64,
    events: &[NewEvent],
) -> Result<i64, Failure> {
    let mut taken = 0;
    for (seq, (_, Recorded { event, .. })) in (first..).zip(events) {
        if let Some(input) = event.takes_input() {
            taken += i64::from(take_input(tx, conversation, input.as_str(), seq).await?);
        }
    }
    Ok(taken)
}

/// Marks an input as taken. Returns false if it was taken before, or never accepted.
async fn take_input<C: Connection>(
    tx: &mut C,
    conversation: i64,
    input: &str,
    seq: i64,
) -> Result<bool, Failure> {
    let taken = tx
        .execute(
            "UPDATE adjutant_inbox SET taken_seq = $1 WHERE conversation = $2 AND id = $3 AND taken_seq IS NULL",
            values![seq, conversation, input],
        )
        .await?;
    Ok(taken > 0)
}

/// Inserts an event. Fails with [`StoreError::Conflict`] if the sequence number is used, or the
/// step has an event of this kind.
async fn insert_event<C: Connection>(
    tx: &mut C,
    conversation: i64,
    seq: i64,
    row: &EventRow,
) -> Result<(), Failure> {
    blob::insert(tx, conversation, &row.blobs).await?;
    tx.execute(
        "INSERT INTO adjutant_event (conversation, seq, v, kind, turn, step, body, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        values![
            conversation,
            seq,
            row.v,
            &row.kind,
            row.turn.as_deref(),
            row.step.as_deref(),
            &row.body,
            &row.at
        ],
    )
    .await?;
    Ok(())
}
