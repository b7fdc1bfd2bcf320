//! Finds out what there is to do in a conversation.

use jiff::Timestamp;

use crate::confirmation::PendingCall;
use crate::event::{Event, Recorded};
use crate::id::{InputId, TurnId};

/// The part of a conversation's state that says what there is to do: the open turn, and what waits
/// for a human.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// The turn that has started and not finished.
    pub turn: Option<TurnId>,
    /// The place of the [`Event::TurnParked`] that the turn waits with. `None`: nothing waits.
    pub parked_seq: Option<u64>,
    /// The calls of the open turn that nobody has answered.
    pub waiting: Vec<PendingCall>,
    /// The inputs that wait for the end of the open turn.
    pub queued: Vec<InputId>,
    /// Turns that were started.
    pub turns: u64,
    /// Set if the person ended the session and nothing happened since.
    pub session_ended: bool,
}

impl Status {
    /// Folds events, in order.
    #[must_use]
    pub fn of(events: &[Recorded]) -> Self {
        let mut status = Self::default();
        for recorded in events {
            status.apply(recorded.seq, &recorded.event);
        }
        status
    }

    /// Takes the event at a place.
    pub fn apply(&mut self, seq: u64, event: &Event) {
        self.session_ended = matches!(event, Event::SessionEnded {});
        match event {
            Event::TurnStarted { turn, .. } => {
                self.turn = Some(*turn);
                self.turns += 1;
                self.waiting.clear();
                self.queued.clear();
            }
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
            // The others happen while a turn runs, or leave one waiting as it was.
            _ => {}
        }
        if self.waiting.is_empty() {
            self.parked_seq = None;
        }
    }

    /// Returns whether a turn is open and waits for a human.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether something that waits for a human has expired.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.waiting.iter().any(|call| call.has_expired(now))
    }

    /// Returns whether an input waits for the end of the open turn.
    #[must_use]
    pub fn is_queued(&self, input: &InputId) -> bool {
        self.queued.contains(input)
    }

    /// Returns whether a turn is open and can go on without a human.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.turn.is_some() && self.waiting.is_empty()
    }
}
