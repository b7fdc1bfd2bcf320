//! Lists and logs, as a process sees them. No turn depends on them, so that they answer at once.

use adjutant_core::port::{
    Alternatives, Branched, Branching, ConversationFilter, ConversationStore, ConversationSummary,
    Deleted, LogStore, Rated, Versions,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, DecisionRecord, Feedback, LogContent,
    ToolInvocationRecord, TurnId, UserId,
};
use adjutant_runtime::InMemory;
use std::sync::Arc;

use super::{Answer, Link};

impl Link {
    fn rows(&self) -> Arc<InMemory> {
        self.world.store().rows().clone()
    }
}

impl ConversationStore for Link {
    fn list<'a>(
        &'a self,
        agent: &'a AgentName,
        user: &'a UserId,
        filter: &'a ConversationFilter,
    ) -> BoxFuture<'a, Answer<Vec<ConversationSummary>>> {
        Box::pin(async move { self.rows().list(agent, user, filter).await })
    }

    fn summary<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Answer<Option<ConversationSummary>>> {
        Box::pin(async move { self.rows().summary(key).await })
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Answer<bool>> {
        Box::pin(async move { self.rows().rename(key, title).await })
    }

    fn retitle<'a>(
        &'a self,
        key: &'a ConversationKey,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Answer<bool>> {
        Box::pin(async move { self.rows().retitle(key, from, to).await })
    }

    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Answer<Deleted>> {
        Box::pin(async move { self.rows().delete(key).await })
    }

    fn delete_versions<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Answer<Deleted>> {
        Box::pin(async move { self.rows().delete_versions(key).await })
    }

    fn versions<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Answer<Option<Versions>>> {
        Box::pin(async move { self.rows().versions(key).await })
    }

    fn branch<'a>(&'a self, branching: Branching<'a>) -> BoxFuture<'a, Answer<Branched>> {
        Box::pin(async move { self.rows().branch(branching).await })
    }

    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Answer<Vec<Alternatives>>> {
        Box::pin(async move { self.rows().alternatives(key).await })
    }
}

impl LogStore for Link {
    fn content(&self) -> LogContent {
        LogContent::Full
    }

    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Answer<Vec<DecisionRecord>>> {
        Box::pin(async move { self.rows().decisions(user, filter).await })
    }

    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Answer<Option<DecisionRecord>>> {
        Box::pin(async move { self.rows().decision(user, id).await })
    }

    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Answer<Vec<ToolInvocationRecord>>> {
        Box::pin(async move { self.rows().tool_invocations(user, decision).await })
    }

    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Answer<Rated>> {
        Box::pin(async move { self.rows().rate(user, turn, feedback).await })
    }

    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Answer<Vec<(TurnId, Feedback)>>> {
        Box::pin(async move { self.rows().feedback(user, turns).await })
    }
}
