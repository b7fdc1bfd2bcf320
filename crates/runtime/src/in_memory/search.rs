//! Conversation search: nothing is indexed in memory, so each search returns all turns as
//! unindexed.

use adjutant_core::port::{
    ConversationIndex, IndexMatches, IndexQuery, IndexedPart, Passage, StoreError, Unindexed,
};
use adjutant_core::{AgentName, BoxFuture, ConversationKey, Event, Recorded, UserId};

use super::conversation::Conversation;
use super::state::is_of;
use super::{InMemory, ready};

impl ConversationIndex for InMemory {
    fn unindexed<'a>(
        &'a self,
        _: &'a AgentName,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<Unindexed>, StoreError>> {
        ready(Ok(Vec::new()))
    }

    fn index<'a>(
        &'a self,
        _: &'a [(ConversationKey, IndexedPart, Vec<Passage>)],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        ready(Ok(0))
    }

    fn search<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        query: IndexQuery<'a>,
    ) -> BoxFuture<'a, Result<IndexMatches, StoreError>> {
        let state = self.state();
        let mut all: Vec<(&ConversationKey, &Conversation)> = state
            .conversations
            .iter()
            .filter(|(key, _)| is_of(key, agent, Some(user)) && !key.conversation.is_of_a_request())
            .filter(|(key, _)| Some(key.conversation) != query.except)
            .collect();
        all.sort_by_key(|(key, conversation)| {
            std::cmp::Reverse((conversation.updated_at, key.conversation))
        });
        let mut left = usize::try_from(query.unindexed_max).unwrap_or(usize::MAX);
        let mut found = IndexMatches {
            holding: vec![0; query.words.len()],
            is_complete: true,
            ..IndexMatches::default()
        };
        for (key, conversation) in all {
            let mut events = own_turns(conversation);
            let turns = events.iter().filter(|event| is_beginning(event)).count();
            if turns > left {
                found.is_complete = false;
                // The newest turns are searched first.
                let passed_over = turns - left;
                let beginning = events
                    .iter()
                    .enumerate()
                    .filter(|(_, event)| is_beginning(event))
                    .nth(passed_over);
                let from = beginning.map_or(events.len(), |(at, _)| at);
                events.drain(..from);
            }
            left = left.saturating_sub(turns);
            if let Some(last) = events.last() {
                let part = IndexedPart {
                    created_at: conversation.created_at,
                    after: 0,
                    until: last.seq,
                    turns: None,
                };
                let title = conversation.title.clone();
                found.unindexed.push(Unindexed {
                    key: key.clone(),
                    title,
                    part,
                    events,
                });
            }
        }
        ready(Ok(found))
    }
}

fn is_beginning(recorded: &Recorded) -> bool {
    matches!(*recorded.event, Event::TurnStarted { .. })
}

/// Returns the start and end events of its own turns, without those of the conversation that it
/// branches off.
fn own_turns(conversation: &Conversation) -> Vec<Recorded> {
    let from = conversation.origin_seq();
    let own = conversation
        .events
        .iter()
        .filter(|recorded| recorded.seq > from);
    own.filter(|recorded| {
        matches!(
            *recorded.event,
            Event::TurnStarted { .. } | Event::TurnFinished { .. }
        )
    })
    .cloned()
    .collect()
}
