//! The state of a conversation as it is stored, so that a process that knows nothing of it need not
//! fold all events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::history::{History, Outline};
use super::learned::{Learned, SummaryTries};
use super::{Conversation, Status};
use crate::cost::Cost;
use crate::event::Recorded;
use crate::model::Usage;

/// The format of [`Snapshot::body`] that this version writes, and the only one it reads.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The state of a conversation between two turns, without the messages. It is a cache: the events
/// come to the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The place of the last event that is in it.
    pub seq: u64,
    /// The place of the first event whose messages the next request needs; `seq + 1` if it needs
    /// none.
    pub messages_from: u64,
    /// The rest, as JSON.
    pub body: String,
}

/// What the body says.
#[derive(Serialize, Deserialize)]
struct Body {
    turns: u64,
    session_ended: bool,
    history: Outline,
    learned: Learned,
    summary_tries: SummaryTries,
    usage: Usage,
    cost: Option<Cost>,
    started_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
}

impl Conversation {
    /// Returns the state as it is stored. `None` while a turn is open, and if nothing has happened.
    ///
    /// # Errors
    /// [`serde_json::Error`] if it cannot be written as JSON.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, serde_json::Error> {
        if self.open_turn().is_some() || self.seq == 0 {
            return Ok(None);
        }
        let body = serde_json::to_string(&Body {
            turns: self.status.turns,
            session_ended: self.status.session_ended,
            history: self.history.outline(),
            learned: self.learned.clone(),
            summary_tries: self.summary_tries.clone(),
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

    /// Returns the state that a snapshot was made of, as [`Conversation::forget_finished_turn`]
    /// leaves it. `said`: the events from [`Snapshot::messages_from`] to [`Snapshot::seq`] that
    /// have messages ([`Event::has_messages`](crate::Event::has_messages)), in order; others among
    /// them change nothing. `None`: it cannot be read, or was made for another number of messages;
    /// then all events are to be folded.
    #[must_use]
    pub fn restore(
        messages_max: Option<usize>,
        snapshot: &Snapshot,
        said: impl IntoIterator<Item = Recorded>,
    ) -> Option<Self> {
        let body: Body = serde_json::from_str(&snapshot.body).ok()?;
        Some(Self {
            seq: snapshot.seq,
            status: Status {
                turns: body.turns,
                session_ended: body.session_ended,
                ..Status::default()
            },
            history: History::restore(messages_max, body.history, said)?,
            learned: body.learned,
            summary_tries: body.summary_tries,
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
    /// Returns the number of messages that it was made for, as it was given to
    /// [`Conversation::new`]. `None`: it cannot be read.
    #[must_use]
    pub fn messages_max(&self) -> Option<Option<usize>> {
        let body: Body = serde_json::from_str(&self.body).ok()?;
        Some(body.history.messages_max())
    }
}
