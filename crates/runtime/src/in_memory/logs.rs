//! The logs.

use adjutant_core::port::{LogStore, Rated, StoreError};
use adjutant_core::{
    BoxFuture, DecisionFilter, DecisionRecord, Feedback, LogContent, ToolInvocationRecord, TurnId,
    UserId,
};

use super::conversation::Conversation;
use super::state::is_behind;
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
        let mut rows: Vec<DecisionRecord> = state
            .conversations
            .iter()
            .filter(|(key, _)| {
                key.user == *user
                    && filter
                        .agent
                        .as_ref()
                        .is_none_or(|agent| key.agent == *agent)
                    && filter.conversation.is_none_or(|id| id == key.conversation)
            })
            .flat_map(|(_, conversation)| {
                conversation
                    .decisions
                    .iter()
                    .map(move |row| (conversation, row))
            })
            .filter(|(conversation, row)| {
                filter
                    .tool
                    .as_ref()
                    .is_none_or(|tool| uses(conversation, row, tool))
            })
            .map(|(_, row)| row)
            .filter(|row| {
                filter
                    .outcome
                    .is_none_or(|outcome| row.outcome == Some(outcome))
            })
            .filter(|row| {
                filter.feedback.is_none_or(|rating| {
                    row.feedback
                        .as_ref()
                        .is_some_and(|feedback| feedback.rating == rating)
                })
            })
            .filter(|row| filter.since.is_none_or(|since| row.started_at >= since))
            .filter(|row| filter.until.is_none_or(|until| row.started_at < until))
            .filter(|row| is_behind(filter.after, row.cursor()))
            .cloned()
            .collect();
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
        let row = state
            .conversations
            .iter()
            .filter(|(key, _)| key.user == *user)
            .flat_map(|(_, conversation)| &conversation.decisions)
            .find(|row| row.id == id)
            .cloned();
        ready(Ok(row))
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>> {
        let state = self.state();
        let rows = state
            .conversations
            .iter()
            .filter(|(key, _)| key.user == *user)
            .flat_map(|(_, conversation)| &conversation.invocations)
            .filter(|row| row.decision == decision)
            .cloned()
            .collect();
        ready(Ok(rows))
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
        let rows = state
            .conversations
            .iter()
            .filter(|(key, _)| key.user == *user)
            .flat_map(|(_, conversation)| &conversation.decisions)
            .filter(|row| turns.contains(&row.id))
            .filter_map(|row| Some((row.id, row.feedback.clone()?)))
            .collect();
        ready(Ok(rows))
    }
}
