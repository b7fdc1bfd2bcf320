//! Whether a conversation has work to do: a fold over its events.

use adjutant_core::{CallId, Event, PendingCall};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a conversation stands, as far as looking for work needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Status {
    /// The turn that has not ended.
    pub(crate) turn: Option<String>,
    /// Where the `TurnParked` is that the turn waits on.
    pub(crate) parked_seq: Option<i64>,
    /// The calls of it that nobody has answered.
    pub(crate) waiting: Vec<Waiting>,
}

/// A call that nobody has answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Waiting {
    /// With the time from which on an answer is too late.
    Until(CallId, Timestamp),
    /// As it was stored before anybody looked for what expired.
    Call(CallId),
}

impl Waiting {
    fn of(call: &PendingCall) -> Self {
        Self::Until(call.call_id.clone(), call.expires_at)
    }

    /// Whether it is the same call with the same time, or the same call as it was stored without one.
    pub(crate) fn stands_for(&self, other: &Self) -> bool {
        let (Self::Until(call, _) | Self::Call(call)) = self;
        self == other || (matches!(self, Self::Call(_)) && other.is(call))
    }

    fn is(&self, wanted: &CallId) -> bool {
        let (Self::Until(call, _) | Self::Call(call)) = self;
        call == wanted
    }
}

impl Status {
    /// When the first of the calls that wait expires.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        let until = |waiting: &Waiting| match waiting {
            Waiting::Until(_, at) => Some(*at),
            Waiting::Call(_) => None,
        };
        self.waiting.iter().filter_map(until).min()
    }

    /// The same as `adjutant_core::conversation::{open_turn, pending}`, one event at a time.
    pub(crate) fn follow(&mut self, seq: i64, event: &Event) {
        match event {
            Event::TurnStarted { turn, .. } => {
                self.turn = Some(turn.to_string());
                self.waiting.clear();
            }
            Event::TurnParked { pending, .. } => {
                self.parked_seq = Some(seq);
                self.waiting = pending.iter().map(Waiting::of).collect();
            }
            // The turn goes on when the last pending call is answered (`DESIGN.md` 5).
            Event::CallAnswered { call, .. } | Event::DoubtResolved { call, .. } => {
                self.waiting.retain(|waiting| !waiting.is(call));
            }
            Event::TurnFinished { .. } => {
                self.turn = None;
                self.waiting.clear();
            }
            // The others happen while a turn runs, or leave one waiting as it was.
            _ => {}
        }
        if self.waiting.is_empty() {
            self.parked_seq = None;
        }
    }
}
