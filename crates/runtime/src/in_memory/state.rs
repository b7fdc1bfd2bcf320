//! All data in memory, and the eviction of old conversations.

use std::collections::HashMap;
use std::num::NonZeroU32;

use adjutant_core::port::{Cursor, StoreError};
use adjutant_core::{AgentName, ConversationId, ConversationKey, Input, UserId, UserTables};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::ledger::Ledger;

/// Number of conversations from which on those without open work are evicted, the longest unused
/// first. A caller that keeps the [`crate::RunContext`] of one still has its history.
const CONVERSATIONS_MAX: usize = 1024;
/// Number of conversations that are evicted at once, so that eviction is rare.
const EVICTED_AT_ONCE: usize = 64;
/// After an eviction, the next one is tried when the number has grown by this fraction:
/// conversations with open work cannot be evicted.
const GROWTH_PART: usize = 16;

/// Conversations with their branches, tasks, budgets, and the workers that live.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) conversations: HashMap<ConversationKey, Conversation>,
    /// The branches that begin in each conversation that has some.
    pub(super) branches: HashMap<ConversationKey, Vec<ConversationId>>,
    /// Number of conversations from which on eviction is tried again.
    evict_from: usize,
    pub(super) users: HashMap<UserId, UserTables>,
    pub(super) ledger: Ledger,
    /// Expiry of each live worker's epoch. `None`: it overflows the clock.
    pub(super) workers: HashMap<(String, i64), Option<Instant>>,
    pub(super) touches: u64,
}

impl State {
    /// Evicts conversations without open work, if there are too many.
    pub(super) fn evict(&mut self) {
        if self.conversations.len() < CONVERSATIONS_MAX.max(self.evict_from) {
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
        let too_many = self.conversations.len() + EVICTED_AT_ONCE - CONVERSATIONS_MAX;
        if idle.len() > too_many {
            idle.select_nth_unstable_by_key(too_many, |(touched, _)| *touched);
            idle.truncate(too_many);
        }
        let forgotten: Vec<ConversationKey> =
            idle.into_iter().map(|(_, key)| key.clone()).collect();
        for key in &forgotten {
            self.remove(key);
        }
        // Without this, each new conversation would scan those that cannot be evicted.
        let left = self.conversations.len();
        self.evict_from = left + left / GROWTH_PART;
    }

    /// Returns conversations without a lease that meet a condition, the longest unchanged first.
    pub(super) fn unclaimed(
        &self,
        agent: &AgentName,
        user: Option<&UserId>,
        condition: impl Fn(&Conversation) -> bool,
    ) -> Vec<ConversationKey> {
        let mut found: Vec<(&ConversationKey, &Conversation)> = self
            .conversations
            .iter()
            .filter(|(key, conversation)| {
                is_of(key, agent, user) && !conversation.is_claimed() && condition(conversation)
            })
            .collect();
        found.sort_by_key(|(_, conversation)| (conversation.updated_at, conversation.touched));
        found.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// Accepts an input; creates the conversation if it is new.
    pub(super) fn accept(
        &mut self,
        key: &ConversationKey,
        input: &Input,
        queued_max: NonZeroU32,
    ) -> Result<&mut Conversation, StoreError> {
        if !self.conversations.contains_key(key) {
            self.evict();
        }
        self.touches += 1;
        let conversation = self
            .conversations
            .entry(key.clone())
            .or_insert_with(|| Conversation::new(input.at));
        conversation.accept(input, self.touches, queued_max)?;
        Ok(conversation)
    }
}

/// Returns true if a conversation is the agent's, and the user's if one is given.
pub(super) fn is_of(key: &ConversationKey, agent: &AgentName, user: Option<&UserId>) -> bool {
    key.agent == *agent && user.is_none_or(|user| key.user == *user)
}

/// Returns true if a row of a list comes after the cursor of the last page.
pub(super) fn is_behind(after: Option<Cursor>, row: Cursor) -> bool {
    after.is_none_or(|after| (row.at, row.id) < (after.at, after.id))
}
