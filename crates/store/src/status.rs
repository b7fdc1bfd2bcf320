//! The status columns of a conversation: a fold over its events, one event at a time.

use adjutant_core::{Awaits, CallId, Event, PendingCall};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The state of a conversation, as far as the search for due work needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Status {
    /// The open turn.
    pub(crate) turn: Option<String>,
    /// The sequence number of the `TurnParked` event that the turn waits at.
    pub(crate) parked_seq: Option<i64>,
    /// The open turn's pending calls that were not answered yet.
    pub(crate) waiting: Vec<WaitingCall>,
}

/// A pending call that was not answered yet. The untagged variants are the formats of earlier
/// versions, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum WaitingCall {
    /// A call that waits for a result: the time at which it expires, and the source of the result.
    Result(CallId, Timestamp, Awaits),
    /// A call that waits for a person: the time at which an answer comes too late.
    Until(CallId, Timestamp),
    /// A call as versions stored it that did not record its expiry.
    Call(CallId),
}

impl WaitingCall {
    fn new(call: &PendingCall) -> Self {
        match call.awaits {
            Some(awaits) => Self::Result(call.call_id.clone(), call.expires_at, awaits),
            None => Self::Until(call.call_id.clone(), call.expires_at),
        }
    }

    /// Returns true if both are the same call with the same expiry, or `self` is the same call in
    /// an older format that recorded less.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let knew_less = match self {
            Self::Result(..) => false,
            Self::Until(_, at) => other.expires_at() == Some(*at),
            Self::Call(_) => true,
        };
        self == other || (knew_less && other.is_call(self.call()))
    }

    /// Returns true if the call waits for a person.
    pub(crate) fn asks_person(&self) -> bool {
        !matches!(self, Self::Result(..))
    }

    /// Returns the time at which the call expires, if it was recorded.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Result(_, at, _) | Self::Until(_, at) => Some(*at),
            Self::Call(_) => None,
        }
    }

    fn call(&self) -> &CallId {
        let (Self::Result(call, ..) | Self::Until(call, _) | Self::Call(call)) = self;
        call
    }

    fn is_call(&self, wanted: &CallId) -> bool {
        self.call() == wanted
    }
}

impl Status {
    /// Returns the time at which the first pending call expires.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.waiting
            .iter()
            .filter_map(WaitingCall::expires_at)
            .min()
    }

    /// Applies one event. The result equals `adjutant_core::conversation::{open_turn, pending}`
    /// over all events.
    pub(crate) fn apply(&mut self, seq: i64, event: &Event) {
        match event {
            Event::TurnStarted { turn, .. } => {
                self.turn = Some(turn.to_string());
                self.waiting.clear();
            }
            Event::TurnParked { pending, .. } => {
                self.parked_seq = Some(seq);
                self.waiting = pending.iter().map(WaitingCall::new).collect();
            }
            // The turn continues when the last pending call is answered.
            Event::CallAnswered { call, .. } | Event::DoubtResolved { call, .. } => {
                self.waiting.retain(|waiting| !waiting.is_call(call));
            }
            Event::TurnFinished { .. } => {
                self.turn = None;
                self.waiting.clear();
            }
            // The other events happen while a turn runs, or do not change what it waits for.
            _ => {}
        }
        if self.waiting.is_empty() {
            self.parked_seq = None;
        }
    }
}
