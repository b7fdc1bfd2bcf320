//! Appending events to a conversation on behalf of the worker that holds its lease.

use adjutant_core::port::{Booking, StoreError, Writer};
use adjutant_core::{ConversationKey, LogContent};

use super::budget::book;
use super::open_turn_cache::OpenTurn;
use super::projection::{NewEvent, Projection, take_inputs, write_events};
use super::snapshot::{self, SnapshotRow};
use super::{Connection, Failure, FromRow as _, from_row, key_values, log, values};
use crate::record;

/// Events to append to a conversation, and what happens to the worker's lease.
#[derive(Debug)]
pub struct AppendRequest {
    pub(crate) key: ConversationKey,
    /// The events, if there are any.
    pub(crate) added: Option<AddedEvents>,
    /// The worker that holds the lease, and its epoch when it took it.
    pub(crate) worker: Option<(String, i64)>,
    /// True if the lease is released unless inputs wait.
    pub(crate) releases: bool,
    /// The snapshot of the conversation including the events.
    pub(crate) snapshot: Option<SnapshotRow>,
    /// Budget bookings of the same commit.
    pub(crate) spent: Vec<Booking>,
}

/// Events to append, encoded, with their projection.
#[derive(Debug)]
pub(crate) struct AddedEvents {
    /// The key of the conversation row that the projection was computed for.
    pub(crate) conversation: i64,
    /// The sequence number of the first event, and the one after the last.
    pub(crate) seq: i64,
    pub(crate) next_seq: i64,
    /// The events at consecutive sequence numbers.
    pub(crate) events: Vec<NewEvent>,
    pub(crate) change: Projection,
}

/// The result of [`append`].
#[derive(Debug)]
pub struct Appended {
    /// The row of the conversation.
    pub(crate) conversation: i64,
    /// Inputs of the conversation that no turn has taken yet.
    pub(crate) untaken: i64,
}
from_row! { Appended { conversation, untaken } }

impl AppendRequest {
    /// Creates a request without events.
    pub(super) fn new(key: &ConversationKey, writer: Option<Writer<'_>>) -> Self {
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

impl AddedEvents {
    /// Computes what events change in a conversation in this state, and the state after them.
    pub(super) fn compute(
        open: OpenTurn,
        key: &ConversationKey,
        events: Vec<NewEvent>,
        content: LogContent,
    ) -> Result<(Self, OpenTurn), StoreError> {
        let OpenTurn {
            conversation,
            next_seq: seq,
            status,
            decisions,
        } = open;
        let recorded = events.iter().map(|(_, recorded)| recorded);
        let change = Projection::compute(key, seq, status, decisions, recorded, content)?;
        let next_seq = events.last().map_or(seq, |(last, _)| last.seq + 1);
        let (status, decisions) = (change.status.clone(), change.logs.known.clone());
        let after = OpenTurn {
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

/// Updates a conversation's row if it is the right one, its next sequence number is that of the
/// first event, and the worker holds the lease. `$1` is the number of inputs to subtract from
/// `untaken`.
macro_rules! update_conversation {
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

const UPDATE: &str = update_conversation!("", "untaken - $1");
/// The same for events that end a turn: the inputs that were queued until then are counted again.
const UPDATE_AT_END: &str = update_conversation!(
    "FROM (SELECT count(*) AS number FROM adjutant_inbox WHERE conversation = $9 AND taken_seq IS NULL) AS waiting_inputs",
    "waiting_inputs.number - $1"
);

/// Releases the lease if `$4` is 1 and no inputs wait.
const RELEASE: &str = "UPDATE adjutant_conversation SET
       lease_by = CASE WHEN $4 = 1 AND untaken <= 0 THEN NULL ELSE lease_by END,
       lease_until = CASE WHEN $4 = 1 AND untaken <= 0 THEN NULL ELSE lease_until END
     WHERE agent = $1 AND user_id = $2 AND id = $3
     AND (CAST($5 AS TEXT) IS NULL OR (lease_by = $5 AND epoch = $6)) RETURNING key AS conversation, untaken";

/// Appends events, and releases the lease if requested unless inputs wait.
pub(super) async fn append<C: Connection>(
    tx: &mut C,
    AppendRequest {
        key,
        added,
        worker,
        releases,
        snapshot,
        spent,
    }: &AppendRequest,
) -> Result<Appended, Failure> {
    let (worker, epoch) = worker
        .as_ref()
        .map(|(worker, epoch)| (worker.as_str(), *epoch))
        .unzip();
    let releases = i64::from(*releases);
    let Some(AddedEvents {
        conversation,
        seq,
        next_seq,
        events,
        change,
    }) = added
    else {
        let found = tx
            .fetch_optional(RELEASE, key_values![key, releases, worker, epoch])
            .await?;
        let mut found = found.ok_or(StoreError::Conflict)?;
        book(tx, spent).await?;
        return Ok(Appended::from_row(&mut found)?);
    };
    let conversation = *conversation;
    // Before the update of the row, which stores how many inputs are left.
    let taken = take_inputs(tx, conversation, *seq, events).await?;
    let Projection {
        turns,
        queued,
        counts_again,
        status,
        logs,
    } = change;
    let (statement, fewer) = match counts_again {
        true => (UPDATE_AT_END, *queued),
        false => (UPDATE, queued + taken),
    };
    // The sequence number in the condition proves that the state still holds from which the changes
    // were computed.
    let untaken = tx
        .fetch_scalar(
            statement,
            values![
                fewer,
                *next_seq,
                *turns,
                status.turn.as_deref(),
                status.parked_seq,
                &record::to_json(&status.waiting)?,
                status.wake_at().map(record::format_time).as_deref(),
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
    // The conversation was deleted, the sequence number is used, or the worker has lost the lease.
    let untaken = untaken.ok_or(StoreError::Conflict)?;
    write_events(tx, conversation, *seq, events).await?;
    log::write(tx, conversation, &key.user, logs).await?;
    if let Some(snapshot) = snapshot {
        snapshot::write(tx, conversation, snapshot).await?;
    }
    // In the commit of the events that it was used for: neither is there without the other.
    book(tx, spent).await?;
    Ok(Appended {
        conversation,
        untaken,
    })
}
