//! The store of conversations: lists, titles, deletion and branches.

use adjutant_core::port::{
    Alternatives, Branched, Branching, ConversationFilter, ConversationStore, ConversationSummary,
    Deleted, Entries, StoreError, Versions,
};
use adjutant_core::{AgentName, BoxFuture, ConversationKey, UserId};

use super::branch::sibling;
use super::conversation::Conversation;
use super::state::{is_behind, is_of};
use super::{InMemory, ready};

impl ConversationStore for InMemory {
    fn list<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        filter: &'a ConversationFilter,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>> {
        let state = self.state();
        let mut list: Vec<ConversationSummary> = state
            .conversations
            .iter()
            .filter(|(key, conversation)| {
                is_of(key, agent, Some(user)) && filter.takes(&conversation.title)
            })
            .filter(|(key, _)| !key.conversation.is_of_a_request())
            .filter_map(|(key, conversation)| {
                let summary = conversation.summary(key);
                match filter.entries {
                    Entries::Versions => Some(summary),
                    Entries::Conversations => {
                        let versions = state.version_count(key)?;
                        Some(ConversationSummary {
                            versions: Some(versions),
                            ..summary
                        })
                    }
                }
            })
            .filter(|summary| is_behind(filter.after, summary.cursor()))
            .collect();
        list.sort_by_key(|summary| std::cmp::Reverse((summary.updated_at, summary.id)));
        list.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        ready(Ok(list))
    }

    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<ConversationSummary>, StoreError>> {
        ready(Ok(self
            .state()
            .conversations
            .get(key)
            .map(|conversation| conversation.summary(key))))
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut state = self.state();
        let Some(conversation) = state.conversations.get_mut(key) else {
            return ready(Ok(false));
        };
        title.clone_into(&mut conversation.title);
        conversation.named = true;
        ready(Ok(true))
    }

    fn retitle<'a>(
        &'a self,
        key: &'a ConversationKey,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut state = self.state();
        let found = state.conversations.get_mut(key);
        let found = found.filter(|conversation| conversation.title == from && !conversation.named);
        ready(Ok(found
            .map(|conversation| to.clone_into(&mut conversation.title))
            .is_some()))
    }

    fn delete<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        let mut state = self.state();
        if state
            .conversations
            .get(key)
            .is_some_and(Conversation::is_claimed)
        {
            return ready(Ok(Deleted::Running));
        }
        if state.remove(key).is_none() {
            return ready(Ok(Deleted::NoSuchConversation));
        }
        // Idempotency keys of its calls begin with its id; they can never be repeated now.
        let prefix = format!("{}/", key.conversation);
        if let Some(tables) = state.users.get_mut(&key.user) {
            tables.forget_outcomes(&prefix);
        }
        ready(Ok(Deleted::Yes))
    }

    fn delete_versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        let mut state = self.state();
        let Some(versions) = state.versions(key) else {
            return ready(Ok(Deleted::NoSuchConversation));
        };
        let keys: Vec<ConversationKey> = versions.ids.iter().map(|id| sibling(key, *id)).collect();
        let is_claimed = |key| {
            let found = state.conversations.get(key);
            found.is_some_and(Conversation::is_claimed)
        };
        if keys.iter().any(is_claimed) {
            return ready(Ok(Deleted::Running));
        }
        for key in &keys {
            state.remove(key);
            let prefix = format!("{}/", key.conversation);
            if let Some(tables) = state.users.get_mut(&key.user) {
                tables.forget_outcomes(&prefix);
            }
        }
        ready(Ok(Deleted::Yes))
    }

    fn versions<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Versions>, StoreError>> {
        ready(Ok(self.state().versions(key)))
    }

    fn branch<'a>(
        &'a self,
        branching: Branching<'a>,
    ) -> BoxFuture<'a, Result<Branched, StoreError>> {
        ready(self.state().branch(branching, self.log))
    }

    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>> {
        ready(Ok(self.state().alternatives(key)))
    }
}
