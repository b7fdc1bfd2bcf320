use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::change::Changes;
use super::claim::Claim;
use super::journaled_change::JournaledChange;
use super::relay::Relay;
use super::work::{Take, Taken};
use super::worker::{Beat, Holder, Running, Worker, Writer};
use crate::BoxFuture;
use crate::cause::Cause;
use crate::conversation::Snapshot;
use crate::event::{Event, Input, Recorded};
use crate::feedback::{Feedback, Rating};
use crate::id::{AgentName, ConversationKey, InputId, StoreId, TurnId, UserId};
use crate::log::{DecisionFilter, DecisionRecord, ToolInvocationRecord};
use crate::redact::LogContent;

/// An error of a store, its kind named after what the caller does next.
///
/// The message says what is wrong and what to do, and is what gets written into journals and logs.
/// The driver's own error, with its SQLSTATE, SQLite result code or [`std::io::ErrorKind`], is the
/// [source](std::error::Error::source), as long as the process that met it still has it. Two errors
/// are equal if their kind and their text are: sources cannot be compared.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has written to this conversation: drop everything and stop. Never retried.
    #[error("another process is writing to this conversation")]
    Conflict,
    /// The input's id was used before for another request ([`Input::fingerprint`]): choose another
    /// id.
    #[error("this id was used before, for another request")]
    Reused,
    /// As many messages wait in the conversation as may, and this one was not accepted: send it
    /// again once some are answered.
    #[error(
        "as many messages wait in this conversation as may ({limit}); wait until some are answered, or stop the turn that runs"
    )]
    QueueFull {
        /// Number of messages that may be queued in one conversation.
        limit: NonZeroU32,
    },
    /// The disk is full: nothing can be written until an operator frees space; the same call then
    /// works. Reading goes on.
    #[error("{message}")]
    Full {
        /// The full place, and what to do.
        message: String,
        /// The driver's error.
        source: Option<Cause>,
    },
    /// The disk failed to read or write: nothing is certain to be stored until an operator has looked
    /// at it. What the call wrote may be there or not; the same call may work again.
    #[error("{message}")]
    DiskFailed {
        /// The place on the disk, the system's error, and what to do.
        message: String,
        /// The driver's error.
        source: Option<Cause>,
    },
    /// The store can be read and not written to: read only, or choose another place.
    #[error("{message}")]
    ReadOnly {
        /// The read-only place, and what to do.
        message: String,
        /// The driver's error.
        source: Option<Cause>,
    },
    /// The store does not do this; the same again will not be done either. Nothing was changed.
    #[error("{reason}")]
    Refused {
        /// The reason, and what can be done, as text for a person.
        reason: String,
    },
    /// The database is unusable until an operator acts: no permission, not a database.
    #[error("{message}")]
    Unusable {
        /// The fault, and what to do.
        message: String,
        /// The driver's error.
        source: Option<Cause>,
    },
    /// Busy or briefly gone: the same call may work again.
    #[error("the store did not answer: {message}")]
    Unavailable {
        /// A description of the interruption.
        message: String,
        /// The driver's error.
        source: Option<Cause>,
    },
    /// A stored value cannot be understood: damaged, or written by a newer version. It is left as
    /// it is.
    #[error("the store holds something this version cannot read: {message}")]
    Unreadable {
        /// The value, where it is, and why it cannot be read.
        message: String,
        /// The error of the driver or of the decoder.
        source: Option<Cause>,
    },
}

impl StoreError {
    /// Returns [`StoreError::Unusable`] without a source.
    pub fn unusable(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Unusable {
            message,
            source: None,
        }
    }

    /// Returns [`StoreError::Unavailable`] without a source.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Unavailable {
            message,
            source: None,
        }
    }

    /// Returns [`StoreError::Unreadable`] without a source.
    pub fn unreadable(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Unreadable {
            message,
            source: None,
        }
    }

    /// Returns [`StoreError::Full`] without a source.
    pub fn full(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Full {
            message,
            source: None,
        }
    }

    /// Returns [`StoreError::DiskFailed`] without a source.
    pub fn disk_failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::DiskFailed {
            message,
            source: None,
        }
    }

    /// Returns [`StoreError::ReadOnly`] without a source.
    pub fn read_only(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::ReadOnly {
            message,
            source: None,
        }
    }

    /// Sets the error that caused this one. Kinds that have none stay as they are.
    #[must_use]
    pub fn with_source(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        if let Self::Full { source, .. }
        | Self::DiskFailed { source, .. }
        | Self::ReadOnly { source, .. }
        | Self::Unusable { source, .. }
        | Self::Unavailable { source, .. }
        | Self::Unreadable { source, .. } = &mut self
        {
            *source = Some(Cause::new(cause));
        }
        self
    }
}

impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.to_string() == other.to_string()
    }
}

impl Eq for StoreError {}

/// All events and queued inputs of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// All events, in the order of their sequence numbers.
    pub events: Vec<Recorded>,
    /// Inputs that no turn has taken yet, in the order of acceptance.
    pub inbox: Vec<Input>,
}

impl Loaded {
    /// Returns the sequence number of the next event.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.events.last().map_or(1, |recorded| recorded.seq + 1)
    }
}

/// The position up to which a process has read a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Sequence number of the last event that was read.
    pub seq: u64,
    /// Creation time of the conversation that was read. It differs if the conversation was deleted
    /// and created again.
    pub created_at: Timestamp,
}

/// A snapshot and the events that restore the full state from it, for
/// [`Conversation::restore`](crate::conversation::Conversation::restore).
#[derive(Debug, Clone, PartialEq)]
pub struct Restorable {
    /// The state of the conversation, without its messages.
    pub snapshot: Snapshot,
    /// Events before the snapshot that hold the messages of the history, in order.
    pub said: Vec<Recorded>,
}

/// The events of a conversation after a known position.
#[derive(Debug, Clone, PartialEq)]
pub struct Newer {
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// The state before [`Newer::events`], if no position is known (or that of a conversation
    /// deleted since) and the store has a readable snapshot. Snapshots that are damaged or have
    /// another format than [`SNAPSHOT_VERSION`](crate::conversation::SNAPSHOT_VERSION) are ignored.
    pub restorable: Option<Restorable>,
    /// Sequence number before the first of [`Newer::events`]: the known position, else that of the
    /// snapshot, else 0.
    pub after: u64,
    /// The events after that position, in order.
    pub events: Vec<Recorded>,
    /// Inputs that no turn has taken yet, in the order of acceptance.
    pub inbox: Vec<Input>,
}

/// Consecutive turns of a conversation, returned by [`Journal::load_turns`] and
/// [`Journal::load_turn`].
#[derive(Debug, Clone, PartialEq)]
pub struct Turns {
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// Sequence number before the first of [`Turns::events`]. 0: the turns begin with the
    /// conversation.
    pub after: u64,
    /// All events from the beginning of the first turn on, in order.
    pub events: Vec<Recorded>,
    /// Inputs that no turn has taken yet, in the order of acceptance.
    pub inbox: Vec<Input>,
}

impl Turns {
    /// Returns the position up to which the conversation was read, for [`Journal::load_newer`].
    /// Meaningful only if the last turns were loaded.
    #[must_use]
    pub fn known(&self) -> Known {
        let seq = self.events.last().map_or(self.after, |last| last.seq);
        Known {
            seq,
            created_at: self.created_at,
        }
    }
}

/// The state of an accepted input, returned by [`Journal::find_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedInput {
    /// Sequence number of the event that took the input. `None`: it is still queued.
    pub taken_at: Option<u64>,
}

/// The arguments of [`Journal::begin`].
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// Input to submit. `None`: nothing new, the caller continues the conversation.
    pub input: Option<&'a Input>,
    /// Events that start a turn for the input, beginning with [`Event::TurnStarted`], which takes
    /// it. They are recorded in the same commit if nothing else has to be done first. Empty: the
    /// input starts no turn.
    pub turn: &'a [Event],
    /// Event that is recorded before them if the conversation is new.
    pub first: Option<&'a Event>,
    /// Worker that acquires the lease.
    pub worker: Worker<'a>,
    /// Duration for which the lease is valid without a heartbeat.
    pub lease: Duration,
    /// Position up to which the caller has read the conversation.
    pub known: Option<Known>,
    /// Time of the recorded events.
    pub at: Timestamp,
}

/// The result of [`Journal::begin`].
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// The worker holds the lease and the turn has started; its events are among the newer ones.
    Started(Newer),
    /// The worker holds the lease, but something has to be done first: an open turn, or inputs that
    /// were queued before.
    Claimed {
        /// [`Claim::Granted`], or [`Claim::TakenOver`] from a lost worker.
        claim: Claim,
        /// Events after the known position.
        newer: Newer,
    },
    /// Another worker holds the lease. The input, if there was one, was accepted and is queued.
    Elsewhere,
    /// The conversation does not exist, and there was no input to create it.
    Nothing,
}

/// The result of [`Journal::finish`].
#[derive(Debug, Clone, PartialEq)]
pub enum Finished {
    /// The lease was released with the last events.
    Released,
    /// Inputs arrived meanwhile, so the worker keeps the lease and continues with these inputs, in
    /// order.
    Kept(Vec<Input>),
}

/// The append-only store of events. Everything durable about a turn goes through this port; engine
/// and tools know no database.
pub trait Journal: Send + Sync + 'static {
    /// Accepts an input durably, and creates the conversation if it is new. Submitting the same
    /// `input.id` twice is one input.
    ///
    /// A conversation queues a limited number of inputs that start a turn
    /// ([`InputBody::starts_turn`](crate::InputBody::starts_turn)):
    /// [`MESSAGES_QUEUED_MAX`](crate::limits::MESSAGES_QUEUED_MAX) unless the store is configured
    /// otherwise. Answers and cancellations are always accepted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Reused`] if both inputs have a fingerprint and they differ;
    /// [`StoreError::QueueFull`] if the queue is full and the input is new; any other
    /// [`StoreError`]. Then the input was not accepted.
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Accepts an input like [`Journal::submit`] and, if no worker holds the conversation and
    /// nothing else is to be done, starts its turn with the event `turn` in the same commit. The
    /// next worker that acquires the lease continues that turn. By default no turn is started.
    ///
    /// # Errors
    ///
    /// As [`Journal::submit`].
    fn submit_with_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
        turn: &'a Event,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = turn;
        self.submit(key, input)
    }

    /// Returns the worker that holds the lease, if it listens to other processes (see [`Relay`]).
    /// One that listens and does not answer is suspended. By default `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn holder<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, StoreError>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Ends the lease of a worker that is known to be suspended or gone, before it expires. Later
    /// writes of that worker are refused. Returns true if it held the lease. By default a lease
    /// ends only by expiry.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn end_claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let _ = (key, worker);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns all events and queued inputs of a conversation; empty if the user has no such
    /// conversation with this agent. The cost grows with the conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>>;

    /// Returns the events after `known` and all queued inputs.
    ///
    /// Without a known position it returns what is needed to continue: the last snapshot
    /// ([`Newer::restorable`]) and the events after it, so that the cost does not grow with the
    /// conversation; all events if there is no snapshot. A position of 0 returns all events.
    /// Returns `None` if the user has no such conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>>;

    /// Returns the last `turns` turns that began before the sequence number `before`, up to that
    /// number, and all events between them; from the beginning if there are fewer. `before` of
    /// `None`: the last turns of the conversation. The cost does not grow with the conversation.
    /// Returns `None` if the user has no such conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>>;

    /// Returns one turn: all events from its beginning up to the beginning of the next one. The
    /// cost does not grow with the conversation. Returns `None` if the user has no such
    /// conversation, or it has no such turn.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>>;

    /// Finds an accepted input by its id. Returns `None` if the user has no such conversation, or
    /// it accepted no such input.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>>;

    /// Submits an input, acquires the lease of the conversation and starts the turn that answers
    /// the input, in one commit.
    ///
    /// If another live worker holds the lease, the input is accepted and queued. If something has
    /// to be done first, the worker gets the lease and the events it does not know. Submitting the
    /// same input twice is one input, as with [`Journal::submit`].
    ///
    /// # Errors
    ///
    /// As [`Journal::submit`]; then nothing was accepted and no lease acquired.
    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>>;

    /// Appends events atomically and durably. In the same transaction it takes the inputs that they
    /// take ([`Event::takes_input`]) and writes the decision and tool invocation logs. The events
    /// have consecutive sequence numbers.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] unless the first event has the next free sequence number.
    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Appends events like [`Journal::append`] as the holder of the lease, and books what the
    /// worker used of its budgets.
    ///
    /// # Errors
    ///
    /// As [`Journal::append`]; [`StoreError::Conflict`] also if this worker and epoch do not hold
    /// the lease.
    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the time since this process found that the database has lost commits which it had
    /// confirmed, as an asynchronous standby does that takes the place of its primary. What was
    /// done in them may be asked for again by clients that repeat their requests. By default
    /// `None`: nothing was lost.
    fn since_lost_commits(&self) -> Option<Duration> {
        None
    }

    /// Returns the number of times that this process has found another start of the database's server
    /// than before, which may lack the last commits of the earlier one. What was read earlier must
    /// not be taken for what is there. By default 0.
    fn restarts(&self) -> u64 {
        0
    }

    /// Returns the identity of the database behind the journal. By default `None`: shared with no
    /// other store.
    fn store_id(&self) -> Option<StoreId> {
        None
    }

    /// Appends at least one event like [`Journal::append_held`], applies a change to the user's
    /// data, and appends the event with its result, all in one transaction. After a crash there is
    /// all of it or nothing. Returns the event with the result.
    ///
    /// Called only if the data is in the same store ([`Journal::store_id`]). By default
    /// refused.
    ///
    /// # Errors
    ///
    /// As [`Journal::append_held`], and [`StoreError::Unusable`] for a change of a type that the
    /// store does not know; then nothing was changed.
    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        let _ = (key, writer, events, change);
        let message = "this journal carries out no changes";
        Box::pin(std::future::ready(Err(StoreError::unusable(message))))
    }

    /// Appends any number of events like [`Journal::append_held`] and releases the lease in the
    /// same commit, unless there are inputs that no turn has taken: so no input is left behind
    /// between the end of a turn and the release.
    ///
    /// `snapshot` is the state after these events, and replaces an earlier snapshot in the same
    /// commit. A store that folds all events as fast may ignore it, and every store ignores it
    /// without events.
    ///
    /// # Errors
    ///
    /// As [`Journal::append_held`].
    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>>;

    /// Acquires the lease of the conversation for `worker` and the duration `ttl`, unless another
    /// live worker holds it. Extends a lease of the same worker, which keeps its epoch. A lost
    /// lease costs duplicate work and never correctness: [`Journal::append`] excludes concurrent
    /// writers.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Extends the lease that `worker` acquired in its epoch by `ttl` from now. Returns `false`,
    /// and changes nothing, if it no longer holds the lease.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Records a heartbeat: all leases that the worker acquired in its epoch are valid for
    /// [`Beat::lease`] from now, in one commit for any number of leases.
    ///
    /// Returns the agent's conversations with work to do for which the worker holds the lease.
    /// `None`: the last heartbeat is too old, or there was none and this is not the first; the
    /// epoch is over, and other workers may hold its leases.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>>;

    /// Releases the lease that `worker` acquired in its epoch.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Acquires the leases of conversations that have work to do and no live worker, in one commit,
    /// those that waited longest first. Rows that another worker has locked are skipped, not waited
    /// for. Fewer than [`Take::limit`] results mean that there is no more work.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>>;

    /// Returns the agent's conversations with work to do and no live worker: an input that no turn
    /// has taken, or a turn that neither ended nor waits for a person. Of one user, or of all.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// Returns the agent's conversations without a live worker whose turn waits for a confirmation
    /// that expired at `now` or before. Of one user, or of all.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// Returns a subscription to changes of conversations, so that waiting needs no polling: inputs
    /// that were accepted and leases that were released, by this process at once, by others within
    /// about a second. It may report more than happened, and may miss what another process did just
    /// before it was lost. Costs nothing while there is no subscription.
    fn changes(&self) -> Box<dyn Changes>;

    /// Returns the channel to other processes that share the journal: [`Alone`](super::Alone) if
    /// there is none.
    fn relay(&self) -> Arc<dyn Relay>;

    /// Returns the first cancellation of the conversation that no turn has taken.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>>;

    /// Returns the agent's turns that wait for a person, oldest first, each with its `TurnParked`
    /// event. Of one user, or of all.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>>;
}

/// The result of [`LogStore::rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rated {
    /// The rating is stored and replaces an earlier one.
    Kept {
        /// The rating that was replaced, if there was one.
        before: Option<Rating>,
    },
    /// The user has no such turn in the log.
    NoSuchTurn,
    /// The turn still runs or waits, so there is no answer to rate.
    Open,
}

/// The decision log and the tool invocation log. Turns are logged by [`Journal::append`]; people's
/// ratings are written here.
pub trait LogStore: Send + Sync + 'static {
    /// Returns how much of messages, arguments and results the logs contain.
    fn content(&self) -> LogContent;

    /// Returns the user's decisions, newest first; of every agent unless the filter names one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn decisions<'a>(
        &'a self,
        user: &'a UserId,
        filter: &'a DecisionFilter,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>>;

    /// Returns one decision of the user, of any agent.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn decision<'a>(
        &'a self,
        user: &'a UserId,
        id: TurnId,
    ) -> BoxFuture<'a, Result<Option<DecisionRecord>, StoreError>>;

    /// Returns the tool calls of one decision of the user, in the order in which they ended.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn tool_invocations<'a>(
        &'a self,
        user: &'a UserId,
        decision: TurnId,
    ) -> BoxFuture<'a, Result<Vec<ToolInvocationRecord>, StoreError>>;

    /// Stores the user's rating of the answer of a finished turn, replacing an earlier one; `None`
    /// removes it. The comment is stored as far as [`LogStore::content`] allows.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Result<Rated, StoreError>>;

    /// Returns the user's ratings of those of the turns that have one, in no particular order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Result<Vec<(TurnId, Feedback)>, StoreError>>;
}
