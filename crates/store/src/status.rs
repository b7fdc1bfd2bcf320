//! Whether a conversation has work to do: a fold over its events.

use adjutant_core::{CallId, Event};

/// Where a conversation stands, as far as looking for work needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Status {
    /// The turn that has not ended.
    pub(crate) turn: Option<String>,
    /// Where the `TurnParked` is that the turn waits on.
    pub(crate) parked_seq: Option<i64>,
    /// The calls of it that nobody has answered.
    pub(crate) waiting: Vec<CallId>,
}

impl Status {
    /// The same as `adjutant_core::conversation::{open_turn, pending}`, one event at a time.
    pub(crate) fn follow(&mut self, seq: i64, event: &Event) {
        match event {
            Event::TurnStarted { turn, .. } => {
                self.turn = Some(turn.to_string());
                self.waiting.clear();
            }
            Event::TurnParked { pending, .. } => {
                self.parked_seq = Some(seq);
                self.waiting = pending.iter().map(|call| call.call_id.clone()).collect();
            }
            // The turn goes on when the last pending call is answered (`DESIGN.md` 5).
            Event::CallAnswered { call, .. } => self.waiting.retain(|waiting| waiting != call),
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
