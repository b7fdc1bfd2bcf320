//! The decision log and the log of tool invocations in memory.

use adjutant_core::port::{LogStore, Rated, StoreError};
use adjutant_core::{
    BoxFuture, DecisionFilter, DecisionRecord, Feedback, LogContent, ToolInvocationRecord, TurnId,
    UserId,
};

use super::conversation::Conversation;
use super::state::{State, is_behind};
use super::{InMemory, ready};

impl LogStore for InMemory {
    fn content(&self) -> LogContent {
        self.log
    }

    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>> {
        let state = self.state();
        let uses = |conversation: &Conversation, row: &DecisionRecord, tool: &str| {
            conversation
                .invocations
                .iter()
                .any(|call| call.decision == row.id && call.tool == *tool)
        };
        let matches = |conversation: &Conversation, row: &DecisionRecord| {
            let rating = row.feedback.as_ref().map(|feedback| feedback.rating);
            let tool = filter.tool.as_ref();
            tool.is_none_or(|tool| uses(conversation, row, tool))
                && (filter.outcome.is_none() || row.outcome == filter.outcome)
                && (filter.feedback.is_none() || rating == filter.feedback)
                && filter.since.is_none_or(|since| row.started_at >= since)
                && filter.until.is_none_or(|until| row.started_at < until)
                && is_behind(filter.after, row.cursor())
        };
        let mut rows = Vec::new();
        for (key, conversation) in &state.conversations {
            let agent = filter.agent.as_ref();
            if key.user == *user
                && agent.is_none_or(|agent| key.agent == *agent)
                && filter.conversation.is_none_or(|id| id == key.conversation)
            {
                let found = conversation.decisions.iter();
                rows.extend(found.filter(|row| matches(conversation, row)).cloned());
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id)));
        rows.truncate(
            filter
                .limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(usize::MAX),
        );
        ready(Ok(rows))
    }

    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>> {
        let state = self.state();
        let mut rows = conversations_of(&state, user).flat_map(|it| &it.decisions);
        ready(Ok(rows.find(|row| row.id == id).cloned()))
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        let state = self.state();
        let rows = conversations_of(&state, user).flat_map(|it| &it.invocations);
        let rows = rows.filter(|row| row.decision == decision);
        ready(Ok(rows.cloned().collect()))
    }

    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Result<Rated, StoreError>> {
        let mut state = self.state();
        let row = state
            .conversations
            .iter_mut()
            .filter(|(key, _)| key.user == *user)
            .flat_map(|(_, conversation)| &mut conversation.decisions)
            .find(|row| row.id == turn);
        ready(Ok(match row {
            None => Rated::NoSuchTurn,
            Some(row) if row.ended_at.is_none() => Rated::Open,
            Some(row) => {
                let before = row.feedback.take().map(|feedback| feedback.rating);
                row.feedback = feedback.map(|feedback| feedback.kept(self.log));
                Rated::Kept { before }
            }
        }))
    }

    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Result<Vec<(TurnId, Feedback)>, StoreError>> {
        let state = self.state();
        let rows = conversations_of(&state, user)
            .flat_map(|it| &it.decisions)
            .filter(|row| turns.contains(&row.id))
            .filter_map(|row| Some((row.id, row.feedback.clone()?)))
            .collect();
        ready(Ok(rows))
    }
}

fn conversations_of<'s>(
    state: &'s State,
    user: &'s UserId,
) -> impl Iterator<Item = &'s Conversation> {
    let own = state.conversations.iter();
    own.filter(|(key, _)| key.user == *user)
        .map(|(_, conversation)| conversation)
}
