//! Adding events to a conversation, in the name of the worker that has it.

use adjutant_core::port::{Booking, StoreError, Writer};
use adjutant_core::{ConversationKey, LogContent};

use super::append::{Change, NewEvent, take_inputs, write_events};
use super::budget::book;
use super::open_turns::Open;
use super::snapshot::{self, SnapshotRow};
use super::{Connection, Failure, key_values, log, values};
use crate::row;

/// Events that a worker adds to a conversation, and what it does with its claim.
#[derive(Debug)]
pub struct Appending {
    pub(crate) key: ConversationKey,
    /// `None`: no events.
    pub(crate) added: Option<Added>,
    /// The worker that has the conversation, and its epoch at the claim.
    pub(crate) worker: Option<(String, i64)>,
    /// True if it gives its claim back.
    pub(crate) releases: bool,
    /// The snapshot of the conversation with the events.
    pub(crate) snapshot: Option<SnapshotRow>,
    /// Bookings of the same commit.
    pub(crate) spent: Vec<Booking>,
}

/// Events to add, as they are stored.
#[derive(Debug)]
pub(crate) struct Added {
    /// The conversation that the change was computed for.
    pub(crate) conversation: i64,
    /// The places of the first of them, and behind the last.
    pub(crate) seq: i64,
    pub(crate) next_seq: i64,
    /// At consecutive places.
    pub(crate) events: Vec<NewEvent>,
    pub(crate) change: Change,
}

impl Appending {
    /// Adds no events.
    pub(super) fn of(key: &ConversationKey, writer: Option<Writer<'_>>) -> Self {
        Self {
            key: key.clone(),
            added: None,
            worker: writer.map(|Writer { worker, .. }| (worker.id.to_owned(), worker.epoch)),
            releases: false,
            snapshot: None,
            spent: writer
                .map(|writer| writer.spent.to_vec())
                .unwrap_or_default(),
        }
    }
}

impl Added {
    /// Returns what events add to a conversation in this state, and its state behind them.
    pub(super) fn behind(
        open: Open,
        key: &ConversationKey,
        events: Vec<NewEvent>,
        content: LogContent,
    ) -> Result<(Self, Open), StoreError> {
        let Open {
            conversation,
            next_seq: seq,
            status,
            decisions,
        } = open;
        let recorded = events.iter().map(|(_, recorded)| recorded);
        let change = Change::of(key, seq, (status, decisions), recorded, content)?;
        let next_seq = events.last().map_or(seq, |(last, _)| last.seq + 1);
        let (status, decisions) = (change.status.clone(), change.logs.known.clone());
        let after = Open {
            conversation,
            next_seq,
            status,
            decisions,
        };
        Ok((
            Self {
                conversation,
                seq,
                next_seq,
                events,
                change,
            },
            after,
        ))
    }
}

/// Changes a conversation with events, if it is the one that is named, its next place is that of
/// the first of them, and the worker has it. `$1`: inputs that are not counted any more.
macro_rules! change_conversation {
    ($from:literal, $untaken:literal) => {
        concat!(
            "UPDATE adjutant_conversation SET next_seq = $2, untaken = ",
            $untaken,
            ", turns = turns + $3, turn = $4,
             parked_seq = $5, waiting = $6, wake_at = $7,
             lease_by = CASE WHEN $8 = 1 AND ",
            $untaken,
            " <= 0 THEN NULL ELSE lease_by END,
             lease_until = CASE WHEN $8 = 1 AND ",
            $untaken,
            " <= 0 THEN NULL ELSE lease_until END ",
            $from,
            " WHERE key = $9 AND agent = $10 AND user_id = $11 AND id = $12 AND next_seq = $13
             AND (CAST($14 AS TEXT) IS NULL OR (lease_by = $14 AND epoch = $15)) RETURNING untaken"
        )
    };
}
const CHANGE: &str = change_conversation!("", "untaken - $1");
/// The same where a turn ends: what waited for that is counted again.
const CHANGE_AT_END: &str = change_conversation!(
    "FROM (SELECT count(*) AS number FROM adjutant_inbox WHERE conversation = $9 AND taken_seq IS NULL) AS waiting_inputs",
    "waiting_inputs.number - $1"
);

/// Gives the claim back, if `$4` is 1 and no inputs wait.
const RELEASE: &str = "UPDATE adjutant_conversation SET
       lease_by = CASE WHEN $4 = 1 AND untaken <= 0 THEN NULL ELSE lease_by END,
       lease_until = CASE WHEN $4 = 1 AND untaken <= 0 THEN NULL ELSE lease_until END
     WHERE agent = $1 AND user_id = $2 AND id = $3
     AND (CAST($5 AS TEXT) IS NULL OR (lease_by = $5 AND epoch = $6)) RETURNING key, untaken";

/// Adds events, and gives the claim of a worker back unless inputs wait.
pub(super) async fn append<C: Connection>(
    rows: &mut C,
    Appending {
        key,
        added,
        worker,
        releases,
        snapshot,
        spent,
    }: &Appending,
) -> Result<(i64, i64), Failure> {
    let (worker, epoch) = worker
        .as_ref()
        .map(|(worker, epoch)| (worker.as_str(), *epoch))
        .unzip();
    let releases = i64::from(*releases);
    let Some(Added {
        conversation,
        seq,
        next_seq,
        events,
        change,
    }) = added
    else {
        let found = rows
            .fetch_first(RELEASE, key_values![key, releases, worker, epoch])
            .await?;
        let mut found = found.ok_or(StoreError::Conflict)?;
        book(rows, spent).await?;
        return Ok((found.int()?, found.int()?));
    };
    let conversation = *conversation;
    let taken = take_inputs(rows, conversation, *seq, events).await?;
    let Change {
        turns,
        queued,
        counts_again,
        status,
        logs,
    } = change;
    let (statement, fewer) = match counts_again {
        true => (CHANGE_AT_END, *queued),
        false => (CHANGE, queued + taken),
    };
    let changed = rows
        .fetch_first(
            statement,
            values![
                fewer,
                *next_seq,
                *turns,
                status.turn.as_deref(),
                status.parked_seq,
                &row::waiting_text(status)?,
                status.wake_at().map(row::time_text).as_deref(),
                releases,
                conversation,
                key.agent.as_str(),
                key.user.as_str(),
                &key.conversation.to_string(),
                *seq,
                worker,
                epoch
            ],
        )
        .await?;
    // It was deleted, the place is taken, or the claim is not this worker's any more.
    let untaken = changed.ok_or(StoreError::Conflict)?.int()?;
    write_events(rows, conversation, *seq, events).await?;
    log::write(rows, conversation, &key.user, logs).await?;
    if let Some(snapshot) = snapshot {
        snapshot::write(rows, conversation, snapshot).await?;
    }
    book(rows, spent).await?;
    Ok((conversation, untaken))
}
