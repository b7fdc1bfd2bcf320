//! All there is in memory, and how it makes room.

use std::collections::HashMap;
use std::num::NonZeroU32;

use adjutant_core::port::{Cursor, StoreError};
use adjutant_core::{AgentName, ConversationId, ConversationKey, Input, UserId};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::ledger::Ledger;
use super::tasks::Tasks;

/// Number of conversations that are kept. Those that were left alone longest and have no work to do
/// make room; whoever holds the [`crate::RunContext`] of one still has its history.
const CONVERSATIONS_MAX: usize = 1024;
/// Number of conversations for which room is made at once, so that it is long until the next time.
const ROOM: usize = 64;
/// If too few can make room, it is looked for again when there are more by this part of them.
const ROOM_AGAIN_PART: usize = 16;

/// Conversations with their branches, tasks, budgets, and the workers that live.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) conversations: HashMap<ConversationKey, Conversation>,
    /// The branches that begin in each conversation that has some.
    pub(super) branches: HashMap<ConversationKey, Vec<ConversationId>>,
    /// Number of conversations from which on room is made again.
    room_from: usize,
    pub(super) users: HashMap<UserId, Tasks>,
    pub(super) ledger: Ledger,
    /// Until when those live that give signs of life. `None`: for longer than the clock can count.
    pub(super) workers: HashMap<(String, i64), Option<Instant>>,
    pub(super) touches: u64,
}

impl State {
    /// Forgets conversations that nobody needs, if there are too many.
    pub(super) fn make_room(&mut self) {
        if self.conversations.len() < CONVERSATIONS_MAX.max(self.room_from) {
            return;
        }
        let mut idle: Vec<(u64, &ConversationKey)> = self
            .conversations
            .iter()
            .filter(|(_, conversation)| {
                conversation.is_settled()
                    && !conversation.status.is_parked()
                    && !conversation.is_claimed()
            })
            .map(|(key, conversation)| (conversation.touched, key))
            .collect();
        let too_many = self.conversations.len() + ROOM - CONVERSATIONS_MAX;
        if idle.len() > too_many {
            idle.select_nth_unstable_by_key(too_many, |(touched, _)| *touched);
            idle.truncate(too_many);
        }
        let forgotten: Vec<ConversationKey> =
            idle.into_iter().map(|(_, key)| key.clone()).collect();
        for key in &forgotten {
            self.remove(key);
        }
        // Those that cannot be forgotten are not looked at again with each new one.
        let left = self.conversations.len();
        self.room_from = left + left / ROOM_AGAIN_PART;
    }

    /// Accepts an input; creates the conversation if it is new.
    pub(super) fn accept(
        &mut self,
        key: &ConversationKey,
        input: &Input,
        room: NonZeroU32,
    ) -> Result<&mut Conversation, StoreError> {
        if !self.conversations.contains_key(key) {
            self.make_room();
        }
        self.touches += 1;
        let conversation = self
            .conversations
            .entry(key.clone())
            .or_insert_with(|| Conversation::new(input.at));
        conversation.accept(input, self.touches, room)?;
        Ok(conversation)
    }
}

/// Returns whether a conversation is the agent's, and the user's if one is named.
pub(super) fn is_of(key: &ConversationKey, agent: &AgentName, user: Option<&UserId>) -> bool {
    key.agent == *agent && user.is_none_or(|user| key.user == *user)
}

/// Returns whether a row of a list comes behind the place somebody has seen.
pub(super) fn is_behind(after: Option<Cursor>, row: Cursor) -> bool {
    after.is_none_or(|after| (row.at, row.id) < (after.at, after.id))
}
