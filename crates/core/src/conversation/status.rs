//! The work that is left in a conversation.

use jiff::Timestamp;

use crate::confirmation::PendingCall;
use crate::event::{Event, Recorded};
use crate::id::{InputId, TurnId};

/// The part of a conversation's state that tells what is left to do: the open turn, and calls that
/// wait.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Turn that started and has not ended.
    pub turn: Option<TurnId>,
    /// Sequence number of the [`Event::TurnParked`] that the turn waits with. `None`: it does not
    /// wait.
    pub parked_seq: Option<u64>,
    /// Calls of the open turn that are not answered.
    pub waiting: Vec<PendingCall>,
    /// Inputs that are queued until the open turn ends.
    pub queued: Vec<InputId>,
    /// Number of turns that were started.
    pub turns: u64,
    /// True if the person ended the session and nothing followed.
    pub session_ended: bool,
}

impl Status {
    /// Folds events in order into a new status.
    #[must_use]
    pub fn from_events(events: &[Recorded]) -> Self {
        let mut status = Self::default();
        for recorded in events {
            status.apply(recorded.seq, &recorded.event);
        }
        status
    }

    /// Updates the status by the event with sequence number `seq`.
    pub fn apply(&mut self, seq: u64, event: &Event) {
        // Whatever follows opens the session again.
        self.session_ended = matches!(event, Event::SessionEnded {});
        match event {
            Event::TurnStarted { turn, .. } => {
                self.turn = Some(*turn);
                self.turns += 1;
                self.waiting.clear();
                self.queued.clear();
            }
            // Replaces the list: a turn that waits again names everything that it waits for.
            Event::TurnParked { turn, pending, .. } if self.turn == Some(*turn) => {
                self.parked_seq = Some(seq);
                self.waiting.clone_from(pending);
            }
            Event::CallAnswered { call, .. } | Event::DoubtResolved { call, .. } => {
                self.waiting.retain(|waiting| waiting.call_id != *call);
            }
            Event::InputQueued { turn, input } if self.turn == Some(*turn) => {
                self.queued.push(input.clone());
            }
            Event::TurnFinished { .. } => {
                self.turn = None;
                self.waiting.clear();
                self.queued.clear();
            }
            // All other events occur while a turn runs, or do not change what it waits for.
            _ => {}
        }
        // Calls are answered one by one, and the last answer ends the wait.
        if self.waiting.is_empty() {
            self.parked_seq = None;
        }
    }

    /// Returns true if a turn is open and waits.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if a call that waits has expired.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.waiting.iter().any(|call| call.has_expired(now))
    }

    /// Returns true if an input is queued until the open turn ends.
    #[must_use]
    pub fn is_queued(&self, input: &InputId) -> bool {
        self.queued.contains(input)
    }

    /// Returns true if a turn is open and can proceed without a person.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.turn.is_some() && self.waiting.is_empty()
    }
}
