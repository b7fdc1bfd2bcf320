//! The state of conversations with an open turn, as it was written last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adjutant_core::{ConversationKey, DecisionRecord};

use crate::status::Status;

/// Open turns whose state is kept.
const OPEN_MAX: usize = 4096;

/// What conversations with open turns are in the database, as far as this process wrote it last. It is nothing but what their
/// events come to, and the place of the next event says whether it still holds: who writes from an older state is
/// refused like anybody whose place is taken.
#[derive(Debug, Default)]
pub(super) struct OpenTurns(Mutex<HashMap<ConversationKey, Open>>);

impl OpenTurns {
    pub(super) fn take(&self, key: &ConversationKey) -> Option<Open> {
        self.turns().remove(key)
    }

    /// Keeps the state if a turn is open. One that is left out is read again when it is needed.
    pub(super) fn keep(&self, key: ConversationKey, mut open: Open) {
        let Some(turn) = &open.status.turn else { return };
        open.decisions.retain(|decision| decision.id.to_string() == *turn);
        for decision in &mut open.decisions {
            // It is written once, when the turn begins.
            decision.message = String::new();
        }
        let mut turns = self.turns();
        // Those of turns that others went on with are never asked for again.
        if turns.len() >= OPEN_MAX {
            turns.clear();
        }
        turns.insert(key, open);
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<ConversationKey, Open>> {
        // Nothing is half done while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a conversation with an open turn.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) conversation: i64,
    pub(super) next_seq: i64,
    pub(super) status: Status,
    pub(super) decisions: Vec<DecisionRecord>,
}
