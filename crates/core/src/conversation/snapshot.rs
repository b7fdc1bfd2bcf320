//! Snapshots: stored states of a conversation, from which folding can start.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::history::{History, Outline};
use super::learned::{Learned, SummaryTries};
use super::provenance::Provenance;
use super::{Conversation, Status};
use crate::cost::Cost;
use crate::event::Recorded;
use crate::model::Usage;

/// Version of the format of [`Snapshot::body`] that is written, and the only one that is read.
pub const SNAPSHOT_VERSION: u32 = 2;

/// The state of a conversation between two turns, without messages. A cache: the events give the
/// same state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Sequence number of the last event in the state.
    pub seq: u64,
    /// Sequence number of the first event whose messages the next request needs; `seq + 1` if it
    /// needs none.
    pub messages_from: u64,
    /// The remaining state, as JSON.
    pub body: String,
}

/// The JSON form of [`Snapshot::body`].
#[derive(Serialize, Deserialize)]
struct Body {
    turns: u64,
    session_ended: bool,
    history: Outline,
    learned: Learned,
    summary_tries: SummaryTries,
    provenance: Provenance,
    usage: Usage,
    cost: Option<Cost>,
    started_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
}

impl Conversation {
    /// Returns a snapshot of the state. `None` while a turn is open, and without events.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] if the state cannot be serialised.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, serde_json::Error> {
        // The state of an open turn is its events. They are read anyway by the worker that
        // continues it.
        if self.open_turn().is_some() || self.seq == 0 {
            return Ok(None);
        }
        let body = serde_json::to_string(&Body {
            turns: self.status.turns,
            session_ended: self.status.session_ended,
            history: self.history.outline(),
            learned: self.learned.clone(),
            summary_tries: self.summary_tries.clone(),
            provenance: self.provenance.clone(),
            usage: self.usage,
            cost: self.cost,
            started_at: self.started_at,
            last_at: self.last_at,
        })?;
        let messages_from = self.history.begins_at().unwrap_or(self.seq + 1);
        Ok(Some(Snapshot {
            seq: self.seq,
            messages_from,
            body,
        }))
    }

    /// Restores the state from a snapshot, as [`Conversation::forget_finished_turn`] leaves it.
    /// `with_messages` are the events with messages ([`Event::has_messages`](crate::Event::has_messages))
    /// from [`Snapshot::messages_from`] to [`Snapshot::seq`], in order; other events among them are
    /// ignored. Returns `None` if the snapshot cannot be read or was made for another limit of
    /// messages; then all events have to be folded.
    #[must_use]
    pub fn restore(
        messages_max: Option<usize>,
        snapshot: &Snapshot,
        with_messages: impl IntoIterator<Item = Recorded>,
    ) -> Option<Self> {
        // A snapshot is a cache: an unreadable one costs a fold over all events and nothing else.
        let body: Body = serde_json::from_str(&snapshot.body).ok()?;
        Some(Self {
            seq: snapshot.seq,
            status: Status {
                turns: body.turns,
                session_ended: body.session_ended,
                ..Status::default()
            },
            history: History::restore(messages_max, body.history, with_messages)?,
            learned: body.learned,
            summary_tries: body.summary_tries,
            provenance: body.provenance,
            usage: body.usage,
            cost: body.cost,
            started_at: body.started_at,
            last_at: body.last_at,
            deferred: None,
            current: None,
        })
    }
}

impl Snapshot {
    /// Returns the limit of messages that the snapshot was made for, as passed to
    /// [`Conversation::new`]. `None`: it cannot be read.
    #[must_use]
    pub fn messages_max(&self) -> Option<Option<usize>> {
        let body: Body = serde_json::from_str(&self.body).ok()?;
        Some(body.history.messages_max())
    }
}
