//! Whether a conversation has work to do: a fold over its events.

use adjutant_core::{Awaits, CallId, Event, PendingCall};
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
    /// For its result, with the time from which on that is too late and where it comes from.
    Result(CallId, Timestamp, Awaits),
    /// For a person, with the time from which on an answer is too late.
    Until(CallId, Timestamp),
    /// As it was stored before anybody looked for what expired.
    Call(CallId),
}

impl Waiting {
    fn of(call: &PendingCall) -> Self {
        match call.awaits {
            Some(awaits) => Self::Result(call.call_id.clone(), call.expires_at, awaits),
            None => Self::Until(call.call_id.clone(), call.expires_at),
        }
    }

    /// Returns whether it is the same call with the same time, or the same call as it was stored
    /// when less was noted of it.
    pub(crate) fn stands_for(&self, other: &Self) -> bool {
        let knew_less = match self {
            Self::Result(..) => false,
            Self::Until(_, at) => other.until() == Some(*at),
            Self::Call(_) => true,
        };
        self == other || (knew_less && other.is(self.call()))
    }

    /// Returns whether it waits for a person.
    pub(crate) fn is_asked(&self) -> bool {
        !matches!(self, Self::Result(..))
    }

    /// The time from which on an answer is too late, if it was noted.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Result(_, at, _) | Self::Until(_, at) => Some(*at),
            Self::Call(_) => None,
        }
    }

    fn call(&self) -> &CallId {
        let (Self::Result(call, ..) | Self::Until(call, _) | Self::Call(call)) = self;
        call
    }

    fn is(&self, wanted: &CallId) -> bool {
        self.call() == wanted
    }
}

impl Status {
    /// When the first of the calls that wait expires.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.waiting.iter().filter_map(Waiting::until).min()
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
            // The turn goes on when the last pending call is answered.
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
