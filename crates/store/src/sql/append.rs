//! What a conversation's new events change in the database: computed here for every database, and
//! written by statements or, where the database has functions of its own, by those.

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationKey, DecisionRecord, Event, LogContent, Recorded};
use jiff::Timestamp;

use super::{Connection, Failure, blob, log, values};
use crate::row::EventRow;
use crate::status::Status;

/// An event and the row it is stored as. Its place in the row is filled in when it is written.
pub(crate) type NewEvent = (EventRow, Recorded);

pub(super) fn new_event(at: Timestamp, event: &Event) -> Result<NewEvent, StoreError> {
    Ok((
        EventRow::of(0, at, event)?,
        Recorded {
            seq: 0,
            at,
            event: event.clone().into(),
        },
    ))
}

/// Fails with [`StoreError::Conflict`] unless the events have consecutive places.
pub(super) fn new_events(events: &[Recorded]) -> Result<Vec<NewEvent>, StoreError> {
    let row = |recorded: &Recorded| {
        let seq = i64::try_from(recorded.seq).map_err(|_| StoreError::Conflict)?;
        Ok((
            EventRow::of(seq, recorded.at, &recorded.event)?,
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

/// What follows from events that are written together, beside their own rows.
#[derive(Debug)]
pub(crate) struct Change {
    /// Turns that begin.
    pub(crate) turns: i64,
    /// Inputs that wait for the end of a turn from now on, and are not counted until then.
    pub(crate) queued: i64,
    /// Whether a turn ends, so that those inputs are counted again.
    pub(crate) counts_again: bool,
    pub(crate) status: Status,
    pub(crate) logs: log::Rows,
}

impl Change {
    /// Computes the change. The first event goes to the place `seq`; `status` is what it was
    /// before, and `decisions` are those of [`log::changed_turns`] that there are.
    pub(crate) fn of<'e>(
        key: &ConversationKey,
        seq: i64,
        (mut status, decisions): (Status, Vec<DecisionRecord>),
        events: impl Iterator<Item = &'e Recorded> + Clone,
        content: LogContent,
    ) -> Result<Self, StoreError> {
        let (mut turns, mut queued, mut counts_again) = (0, 0, false);
        for (seq, Recorded { event, .. }) in (seq..).zip(events.clone()) {
            match &**event {
                Event::TurnStarted { .. } => turns += 1,
                // While the turn waits, there is nothing to do with it.
                Event::InputQueued { .. } => queued += 1,
                Event::TurnFinished { .. } => (queued, counts_again) = (0, true),
                _ => {}
            }
            status.follow(seq, event);
        }
        let logs = log::follow(key, decisions, events, content)?;
        Ok(Self {
            turns,
            queued,
            counts_again,
            status,
            logs,
        })
    }
}

/// Writes the rows of events at consecutive places.
pub(super) async fn write_events<C: Connection>(
    rows: &mut C,
    conversation: i64,
    first: i64,
    events: &[NewEvent],
) -> Result<(), Failure> {
    for (seq, (row, _)) in (first..).zip(events) {
        insert_event(rows, conversation, seq, row).await?;
    }
    Ok(())
}

/// Takes the inputs that events at consecutive places take. Returns how many were there and not
/// taken.
pub(super) async fn take_inputs<C: Connection>(
    rows: &mut C,
    conversation: i64,
    first: i64,
    events: &[NewEvent],
) -> Result<i64, Failure> {
    let mut taken = 0;
    for (seq, (_, Recorded { event, .. })) in (first..).zip(events) {
        if let Some(input) = event.takes_input() {
            taken += i64::from(take_input(rows, conversation, input.as_str(), seq).await?);
        }
    }
    Ok(taken)
}

/// `false`: it was taken before, or never accepted.
async fn take_input<C: Connection>(
    rows: &mut C,
    conversation: i64,
    input: &str,
    seq: i64,
) -> Result<bool, Failure> {
    let taken = rows
        .execute(
            "UPDATE adjutant_inbox SET taken_seq = $1 WHERE conversation = $2 AND id = $3 AND taken_seq IS NULL",
            values![seq, conversation, input],
        )
        .await?;
    Ok(taken > 0)
}

/// Fails with [`StoreError::Conflict`] if the place is taken or the step has an event of this kind.
async fn insert_event<C: Connection>(
    rows: &mut C,
    conversation: i64,
    seq: i64,
    row: &EventRow,
) -> Result<(), Failure> {
    blob::insert(rows, conversation, &row.blobs).await?;
    rows.execute(
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
