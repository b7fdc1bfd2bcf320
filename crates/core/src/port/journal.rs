use std::time::Duration;

use jiff::Timestamp;

use crate::BoxFuture;
use crate::event::{Event, Input, Recorded};
use crate::id::{AgentName, ConversationKey, InputId, TurnId, UserId};
use crate::log::{DecisionFilter, DecisionRecord, ToolInvocationRecord};
use crate::redact::LogContent;

/// Why a store did not do it, named after what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else has written to this conversation: drop everything and stop. Never retried.
    #[error("another process is writing to this conversation")]
    Conflict,
    /// The input's id was used before for another request ([`Input::fingerprint`]): choose another id.
    #[error("this id was used before, for another request")]
    Reused,
    /// Nothing can be written until somebody makes room; the same then works. Reading goes on.
    #[error("{message}")]
    Full {
        /// Where there is no space, and what to do.
        message: String,
    },
    /// It can be read, and nobody here may write to it: read only, or choose another place.
    #[error("{message}")]
    ReadOnly {
        /// Which place it is, and what to do.
        message: String,
    },
    /// The place itself is unusable until somebody acts: no permission, not a database.
    #[error("{message}")]
    Unusable {
        /// What is wrong and what to do.
        message: String,
    },
    /// Busy or briefly gone: the same again may work.
    #[error("the store did not answer: {message}")]
    Unavailable {
        /// What happened.
        message: String,
    },
    /// Something in it cannot be understood: damaged, or written by a newer version. It is left as it is.
    #[error("the store holds something this version cannot read: {message}")]
    Unreadable {
        /// What and where.
        message: String,
    },
}

/// What came of claiming a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Somebody alive has it, or there is no such conversation.
    Refused,
    /// It was free, or this worker had it already.
    Granted,
    /// Another worker had it and did not give it back: it died, or stood still for longer than its claim.
    TakenOver,
}

impl Claim {
    /// Returns whether the worker has the conversation now.
    #[must_use]
    pub fn is_held(self) -> bool {
        self != Self::Refused
    }
}

/// What is known of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// All events, in order.
    pub events: Vec<Recorded>,
    /// Inputs not yet taken, in the order they were accepted.
    pub inbox: Vec<Input>,
}

impl Loaded {
    /// The place the next event goes to.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.events.last().map_or(1, |recorded| recorded.seq + 1)
    }
}

/// What happened. Everything durable of a turn goes through here; engine and tools know no database.
pub trait Journal: Send + Sync + 'static {
    /// Accepts an input; creates the conversation if it is new. Durable on return; the same `input.id` twice is one
    /// input.
    ///
    /// # Errors
    /// [`StoreError::Reused`] if both have a fingerprint and it differs; any other [`StoreError`] as usual. Then the input
    /// was not accepted.
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Everything known of a conversation; empty if the user has no such conversation with this agent.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>>;

    /// Adds events at `next_seq`: all or nothing, durable on return, taking the inputs they take
    /// ([`Event::takes_input`]) and filling the decision and tool-invocation logs in the same transaction.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] unless `next_seq` is the next free place.
    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        next_seq: u64,
        at: Timestamp,
        events: &'a [Event],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Says that `worker` runs the conversation for the next `ttl`, unless somebody alive already does. Renews a
    /// claim of the same worker. A lost claim is a cost, never a danger: [`Journal::append`] is what excludes.
    ///
    /// # Errors
    /// [`StoreError`].
    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Gives the claim up.
    ///
    /// # Errors
    /// [`StoreError`].
    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The agent's conversations with work to do that nobody alive has claimed: an input not taken, or a turn that
    /// neither ended nor waits for a human. Of one user, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// The agent's conversations nobody alive has claimed whose turn waits for a human with something that expired at `now` or
    /// before: it goes on without them. Of one user, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// The first cancellation that was accepted for the conversation and not taken. A running turn asks this about once
    /// a second, so it should be cheap.
    ///
    /// # Errors
    /// [`StoreError`].
    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>>;

    /// The agent's turns, of one user or of all, that wait for a human, oldest first: the conversation and the `TurnParked`
    /// event.
    ///
    /// # Errors
    /// [`StoreError`].
    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>>;
}

/// The two logs, for reading. They are written by [`Journal::append`].
pub trait LogStore: Send + Sync + 'static {
    /// How much of what was said is written into them.
    fn content(&self) -> LogContent;

    /// The user's decisions, newest first: those of every agent, unless the filter names one.
    ///
    /// # Errors
    /// [`StoreError`].
    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>>;

    /// One decision of the user, of any agent.
    ///
    /// # Errors
    /// [`StoreError`].
    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>>;

    /// The calls of one decision of the user, in the order they ended.
    ///
    /// # Errors
    /// [`StoreError`].
    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>>;
}
