//! The state of conversations with an open turn, as it was written last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationKey, DecisionRecord, TurnId};

use super::append::NewEvent;
use super::conversation_row::{CONVERSATION, read_conversation};
use super::{Backend, Connection, Failure, key_values, log};
use crate::row::ConversationRow;
use crate::status::Status;

/// Open turns whose state is kept.
const OPEN_MAX: usize = 4096;

/// The state of conversations with open turns in the database, as this process wrote it last. It is
/// nothing but what their events come to, and the place of the next event says whether it still
/// holds: who writes from an older state is refused like anybody whose place is taken.
#[derive(Debug, Default)]
pub struct OpenTurns(Mutex<HashMap<ConversationKey, Open>>);

impl OpenTurns {
    pub(crate) fn take(&self, key: &ConversationKey) -> Option<Open> {
        self.turns().remove(key)
    }

    /// Keeps the state if a turn is open. One that is left out is read again when it is needed.
    pub(crate) fn keep(&self, key: ConversationKey, mut open: Open) {
        let Some(turn) = &open.status.turn else {
            return;
        };
        open.decisions
            .retain(|decision| decision.id.to_string() == *turn);
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
#[derive(Debug, Clone)]
pub struct Open {
    pub(crate) conversation: i64,
    pub(crate) next_seq: i64,
    pub(crate) status: Status,
    pub(crate) decisions: Vec<DecisionRecord>,
}

/// Returns the state in front of a place, with what is known of the turns that the events change.
pub(super) async fn open_turn<B: Backend>(
    backend: &B,
    known: &OpenTurns,
    key: &ConversationKey,
    seq: i64,
    events: &[NewEvent],
) -> Result<Open, Failure> {
    let turns = log::changed_turns(events.iter().map(|(_, recorded)| &*recorded.event));
    let is_enough = |open: &Open| {
        let knows = |turn: &TurnId| open.decisions.iter().any(|decision| decision.id == *turn);
        open.next_seq == seq && turns.iter().all(knows)
    };
    if let Some(open) = known.take(key).filter(is_enough) {
        return Ok(open);
    }
    let open = backend.read((key.clone(), turns), |rows, (key, turns)| {
        Box::pin(read(rows, key, turns))
    });
    match open.await? {
        Some(open) if open.next_seq == seq => Ok(open),
        // It was deleted, is another user's or agent's, or the place is taken: either way not this
        // writer's any more.
        _ => Err(StoreError::Conflict.into()),
    }
}

async fn read<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    turns: &[TurnId],
) -> Result<Option<Open>, Failure> {
    let found = rows.fetch_first(CONVERSATION, key_values![key]).await?;
    let Some(found) = found
        .map(|found| read_conversation(found, key))
        .transpose()?
    else {
        return Ok(None);
    };
    let ConversationRow {
        key: conversation,
        next_seq,
        status,
        ..
    } = found;
    let decisions = log::decisions(rows, &key.user, turns.to_vec()).await?;
    Ok(Some(Open {
        conversation,
        next_seq,
        status,
        decisions,
    }))
}
