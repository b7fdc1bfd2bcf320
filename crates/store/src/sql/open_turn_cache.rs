//! A cache of the state of conversations with open turns.

use std::collections::HashMap;
use std::sync::Mutex;

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationKey, DecisionRecord, TurnId};

use super::conversation_row::{CONVERSATION, read_conversation};
use super::projection::NewEvent;
use super::{Backend, Connection, Failure, key_values, log};
use crate::lock::lock;
use crate::record::ConversationRow;
use crate::status::Status;

/// Most states in the cache.
const OPEN_MAX: usize = 4096;

/// The state of conversations with open turns, as this process has written it last. It is only the
/// fold of their events, and the next sequence number shows if it is still current: a writer
/// with an outdated state fails like any other whose sequence number is used.
#[derive(Debug, Default)]
pub struct OpenTurnCache(Mutex<HashMap<ConversationKey, OpenTurn>>);

impl OpenTurnCache {
    pub(crate) fn take(&self, key: &ConversationKey) -> Option<OpenTurn> {
        lock(&self.0).remove(key)
    }

    /// Caches the state if a turn is open. A state that is dropped is read again when needed.
    pub(crate) fn keep(&self, key: ConversationKey, mut open: OpenTurn) {
        let Some(turn) = &open.status.turn else {
            return;
        };
        open.decisions
            .retain(|decision| decision.id.to_string() == *turn);
        for decision in &mut open.decisions {
            // The message is written when the turn starts, and never again.
            decision.message = String::new();
        }
        let mut turns = lock(&self.0);
        // States of turns that another process continues are never used again, so the cache is
        // cleared from time to time.
        if turns.len() >= OPEN_MAX {
            turns.clear();
        }
        turns.insert(key, open);
    }
}

/// The state of a conversation with an open turn.
#[derive(Debug, Clone)]
pub struct OpenTurn {
    pub(crate) conversation: i64,
    pub(crate) next_seq: i64,
    pub(crate) status: Status,
    pub(crate) decisions: Vec<DecisionRecord>,
}

/// Returns the state before a sequence number, with the decisions of the turns that the events
/// change.
pub(super) async fn open_turn<B: Backend>(
    backend: &B,
    known: &OpenTurnCache,
    key: &ConversationKey,
    seq: i64,
    events: &[NewEvent],
) -> Result<OpenTurn, Failure> {
    let turns = log::changed_turns(events.iter().map(|(_, recorded)| &*recorded.event));
    let is_enough = |open: &OpenTurn| {
        let knows = |turn: &TurnId| open.decisions.iter().any(|decision| decision.id == *turn);
        open.next_seq == seq && turns.iter().all(knows)
    };
    // Taken out of the cache, so that a failed write leaves no outdated state there.
    if let Some(open) = known.take(key).filter(is_enough) {
        return Ok(open);
    }
    let open = backend.read((key.clone(), turns), |tx, (key, turns)| {
        Box::pin(read(tx, key, turns))
    });
    match open.await? {
        Some(open) if open.next_seq == seq => Ok(open),
        // The conversation was deleted, belongs to another user or agent, or the sequence number is
        // used: in each case this writer has lost it.
        _ => Err(StoreError::Conflict.into()),
    }
}

async fn read<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    turns: &[TurnId],
) -> Result<Option<OpenTurn>, Failure> {
    let found = tx.fetch_optional(CONVERSATION, key_values![key]).await?;
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
    let decisions = log::decisions(tx, &key.user, turns.to_vec()).await?;
    Ok(Some(OpenTurn {
        conversation,
        next_seq,
        status,
        decisions,
    }))
}
