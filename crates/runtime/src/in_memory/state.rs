//! All data in memory, and the eviction of old conversations.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::port::{Cursor, StoreError, UserSettings};
use adjutant_core::{AgentName, ConversationId, ConversationKey, Input, UserId, UserTables};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::ledger::Ledger;
use super::weight::Weight;

/// The size at which idle conversations are evicted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) conversations: NonZeroUsize,
    /// Approximate bytes of all conversations.
    pub(super) bytes: NonZeroUsize,
}

/// Part of a bound by which an eviction goes below it, so that evictions are rare. If nothing can be
/// evicted, the next one is tried when the size has grown by this part.
const SLACK_PART: usize = 16;

/// Conversations with their branches, tasks, budgets, and the workers that live.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) conversations: HashMap<ConversationKey, Conversation>,
    /// The branches that begin in each conversation that has some.
    pub(super) branches: HashMap<ConversationKey, Vec<ConversationId>>,
    /// Approximate bytes of all conversations.
    pub(super) bytes: Arc<AtomicUsize>,
    /// Numbers of conversations and of bytes from which on eviction is tried again.
    evict_from: (usize, usize),
    pub(super) users: HashMap<UserId, UserTables>,
    pub(super) user_settings: HashMap<UserId, UserSettings>,
    pub(super) ledger: Ledger,
    /// Expiry of each live worker's epoch. `None`: it overflows the clock.
    pub(super) workers: HashMap<(String, i64), Option<Instant>>,
    pub(super) touches: u64,
    pub(super) bounds: Bounds,
}

impl Default for Bounds {
    fn default() -> Self {
        const CONVERSATIONS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
        const BYTES: NonZeroUsize = NonZeroUsize::new(16 * 1024 * 1024).unwrap();
        Self {
            conversations: CONVERSATIONS,
            bytes: BYTES,
        }
    }
}

impl State {
    /// Evicts idle conversations, the longest unused first, if there are too many or they are too
    /// large together. Never evicts `used`, nor one with open work or a question.
    pub(super) fn evict_except(&mut self, used: &ConversationKey) {
        let Bounds {
            conversations,
            bytes,
        } = self.bounds;
        let (count_max, bytes_max) = (conversations.get(), bytes.get());
        let (count, size) = (self.conversations.len(), self.bytes.load(Ordering::Relaxed));
        if count < count_max.max(self.evict_from.0) && size < bytes_max.max(self.evict_from.1) {
            return;
        }
        let mut idle: Vec<(u64, usize, &ConversationKey)> = self
            .conversations
            .iter()
            .filter(|(key, conversation)| *key != used && conversation.is_idle())
            .map(|(key, conversation)| (conversation.touched, conversation.weight.bytes(), key))
            .collect();
        idle.sort_unstable_by_key(|(touched, ..)| *touched);
        // At least one conversation less, so that a new one fits.
        let wanted = |bound: usize| bound - (bound / SLACK_PART).max(1);
        let (mut count, mut size) = (count, size);
        let evicted: Vec<ConversationKey> = idle
            .into_iter()
            .take_while(|(_, bytes, _)| {
                let is_too_much = count > wanted(count_max) || size > wanted(bytes_max);
                count -= 1;
                size = size.saturating_sub(*bytes);
                is_too_much
            })
            .map(|(.., key)| key.clone())
            .collect();
        for key in &evicted {
            self.remove(key);
        }
        // Without this, each new input would scan the conversations that cannot be evicted.
        let grown = |left: usize| left + left / SLACK_PART;
        let (count, size) = (self.conversations.len(), self.bytes.load(Ordering::Relaxed));
        self.evict_from = (grown(count), grown(size));
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
        self.evict_except(key);
        self.touches += 1;
        let conversation = self
            .conversations
            .entry(key.clone())
            .or_insert_with(|| Conversation::new(input.at, Weight::new(&self.bytes)));
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
