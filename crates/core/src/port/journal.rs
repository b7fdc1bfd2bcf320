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
use crate::conversation::Snapshot;
use crate::event::{Event, Input, Recorded};
use crate::feedback::{Feedback, Rating};
use crate::id::{AgentName, ConversationKey, InputId, StoreId, TurnId, UserId};
use crate::log::{DecisionFilter, DecisionRecord, ToolInvocationRecord};
use crate::redact::LogContent;

/// Why a store did not do it, named after what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else has written to this conversation: drop everything and stop. Never retried.
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
        /// Messages that may wait in one conversation.
        limit: NonZeroU32,
    },
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
    /// The store does not do this; the same again will not be done either. Nothing was changed.
    #[error("{reason}")]
    Refused {
        /// The reason, and what can be done, in words for the person.
        reason: String,
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
    /// Something in it cannot be understood: damaged, or written by a newer version. It is left as
    /// it is.
    #[error("the store holds something this version cannot read: {message}")]
    Unreadable {
        /// What and where.
        message: String,
    },
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

/// The part of a conversation that a process has read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The place of the last event that was read.
    pub seq: u64,
    /// [`Newer::created_at`] as it was then: a conversation that was deleted and begun again is
    /// another one.
    pub created_at: Timestamp,
}

/// A state to go on from instead of folding what came before, for
/// [`Conversation::restore`](crate::conversation::Conversation::restore).
#[derive(Debug, Clone, PartialEq)]
pub struct Restorable {
    /// The state, without messages.
    pub snapshot: Snapshot,
    /// The events up to it that its messages are of, in order.
    pub said: Vec<Recorded>,
}

/// The part of a conversation that is new since it was last read.
#[derive(Debug, Clone, PartialEq)]
pub struct Newer {
    /// Time of creation of the conversation.
    pub created_at: Timestamp,
    /// What the events before [`Newer::events`] come to. Only if what is known is nothing, or of
    /// another conversation, and the store has a snapshot it can read; one that is not in the
    /// format of this version ([`SNAPSHOT_VERSION`](crate::conversation::SNAPSHOT_VERSION)) or is
    /// damaged is left out.
    pub restorable: Option<Restorable>,
    /// The place behind which [`Newer::events`] begin: [`Known::seq`], or if what is known is
    /// nothing or of another conversation, that of the snapshot, or else 0.
    pub after: u64,
    /// The events behind that place, in order.
    pub events: Vec<Recorded>,
    /// All inputs not yet taken, in the order they were accepted.
    pub inbox: Vec<Input>,
}

/// Turns of a conversation that follow one another, for [`Journal::load_turns`] and
/// [`Journal::load_turn`].
#[derive(Debug, Clone, PartialEq)]
pub struct Turns {
    /// Time of creation of the conversation.
    pub created_at: Timestamp,
    /// The place behind which [`Turns::events`] begin. 0: there is nothing before them.
    pub after: u64,
    /// Everything that was recorded from the beginning of the first of the turns on, in order.
    pub events: Vec<Recorded>,
    /// All inputs not yet taken, in the order they were accepted.
    pub inbox: Vec<Input>,
}

impl Turns {
    /// Returns what has been read, for [`Journal::load_newer`] to go on from. Only if the last
    /// turns were asked for.
    #[must_use]
    pub fn known(&self) -> Known {
        let seq = self.events.last().map_or(self.after, |last| last.seq);
        Known {
            seq,
            created_at: self.created_at,
        }
    }
}

/// An input that a conversation has accepted, for [`Journal::find_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedInput {
    /// The place of the event that took it. `None`: it waits.
    pub taken_at: Option<u64>,
}

/// A request to go on with a conversation, for [`Journal::begin`].
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The input to accept first. `None`: everything was accepted before.
    pub input: Option<&'a Input>,
    /// The events of a turn that answers the input: [`Event::TurnStarted`], which takes it. They
    /// are recorded if there is nothing else to do first, in the same commit. Empty: the input
    /// starts no turn.
    pub turn: &'a [Event],
    /// An event that is recorded in front of them if the conversation has none.
    pub first: Option<&'a Event>,
    /// The process, for the claim.
    pub worker: Worker<'a>,
    /// Time for which the claim holds without a sign of life.
    pub lease: Duration,
    /// The part of the conversation that the caller has read before.
    pub known: Option<Known>,
    /// The time of what is recorded.
    pub at: Timestamp,
}

/// The answer to [`Journal::begin`].
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// The worker has the conversation, and the turn has started: its events are among those that
    /// are newer.
    Started(Newer),
    /// The worker has the conversation. It has to look first at what is there: an open turn, or
    /// inputs that came before.
    Claimed {
        /// [`Claim::Granted`] or [`Claim::TakenOver`].
        claim: Claim,
        /// The part of the conversation that the worker does not know yet.
        newer: Newer,
    },
    /// Another worker has the conversation. The input, if there was one, was accepted and waits.
    Elsewhere,
    /// There is no such conversation, and no input to create it.
    Nothing,
}

/// The answer to [`Journal::finish`].
#[derive(Debug, Clone, PartialEq)]
pub enum Finished {
    /// The claim was given back.
    Released,
    /// Inputs came meanwhile: the worker keeps the claim and goes on with them. All that were not
    /// taken, in order.
    Kept(Vec<Input>),
}

/// What happened. Everything durable of a turn goes through here; engine and tools know no
/// database.
pub trait Journal: Send + Sync + 'static {
    /// Accepts an input; creates the conversation if it is new. Durable on return; the same
    /// `input.id` twice is one input.
    ///
    /// Of inputs that start a turn ([`InputBody::starts_turn`](crate::InputBody::starts_turn)), a
    /// store lets so many wait in one conversation
    /// ([`MESSAGES_QUEUED_MAX`](crate::limits::MESSAGES_QUEUED_MAX) unless it is told another
    /// number). What answers or stops a turn is always accepted.
    ///
    /// # Errors
    /// [`StoreError::Reused`] if both have a fingerprint and it differs; [`StoreError::QueueFull`]
    /// if as many inputs wait as may, and this one is new and would wait too; any other
    /// [`StoreError`] as usual. Then the input was not accepted.
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Accepts an input as [`Journal::submit`] does. A store that can do so in the same commit also
    /// starts its turn with the event `turn`, if nobody has the conversation and nothing else is to
    /// be done in it: whoever claims it next goes on with that turn. By default no turn is started.
    ///
    /// # Errors
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

    /// Returns the worker that has a conversation, if it is one that hears other processes: see
    /// [`Relay`]. One that hears and does not answer stands still. By default `None`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn holder<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, StoreError>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Ends the claim of a worker that is seen not to go on, though its lease has not run out:
    /// whoever begins next takes the conversation over, and what that worker still writes is
    /// refused. Returns whether it had the conversation. By default nothing is ended before the
    /// lease.
    ///
    /// # Errors
    /// [`StoreError`].
    fn end_claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let _ = (key, worker);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Everything known of a conversation; empty if the user has no such conversation with this
    /// agent.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>>;

    /// Reads what is newer than `known`, with all inputs not yet taken. `known` of `None`: what is
    /// needed to go on, so that what is read does not grow with the conversation: the last snapshot
    /// ([`Newer::restorable`]) and what came behind it, or everything if there is none. A place of
    /// 0 in `known`: everything. Returns `None` if the user has no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>>;

    /// Reads the last `turns` turns that began before the place `before`, up to that place, and
    /// everything that happened between them. If there are fewer, it reads from the beginning.
    /// `before` of `None`: the last turns of all. What is read does not grow with the conversation,
    /// and a place stays the same while it grows. Returns `None` if the user has no such
    /// conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>>;

    /// Reads one turn: everything that was recorded from its beginning up to the beginning of the
    /// next one. What is read does not grow with the conversation. Returns `None` if the user has
    /// no such conversation, or it has no such turn.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>>;

    /// Looks an input up by its id. Returns `None` if the user has no such conversation, or it has
    /// accepted no such input.
    ///
    /// # Errors
    /// [`StoreError`].
    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>>;

    /// Accepts an input, claims the conversation, and starts the turn that answers the input, in
    /// one commit. Where another worker alive has the conversation, the input is accepted all the
    /// same and waits; where something else is to be done first, the worker gets the claim and what
    /// it does not know yet. The same input twice is one input, as with [`Journal::submit`].
    ///
    /// # Errors
    /// As [`Journal::submit`]; then nothing was accepted or claimed.
    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>>;

    /// Adds events: all or nothing, durable on return, taking the inputs they take
    /// ([`Event::takes_input`]) and filling the decision and tool-invocation logs in the same
    /// transaction. They have consecutive places.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] unless the first of them has the next free place.
    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Adds events as [`Journal::append`] does, as the worker that has the conversation, and books
    /// what it used.
    ///
    /// # Errors
    /// As [`Journal::append`]; and [`StoreError::Conflict`] if the claim is not this worker's, made
    /// in this epoch of its.
    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the place in which the journal is kept. Default: `None`, a place that is shared with
    /// nothing.
    fn store_id(&self) -> Option<StoreId> {
        None
    }

    /// Adds events as [`Journal::append_held`] does, at least one, carries out a change of the
    /// user's tasks, and adds the event that says what it led to, all in one transaction: after a
    /// crash there is all of it or nothing. Returns that event. Asked only where the tasks are in
    /// the same place ([`Journal::store_id`]). Default: refused.
    ///
    /// # Errors
    /// As [`Journal::append_held`]; then nothing was changed.
    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        change: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        let _ = (key, writer, events, change);
        let message = "this journal is not kept with tasks".to_owned();
        Box::pin(std::future::ready(Err(StoreError::Unusable { message })))
    }

    /// Adds events as [`Journal::append_held`] does, none is allowed, and gives the claim back in
    /// the same commit, unless inputs came that nobody has taken: no input is left behind between
    /// the end of a turn and the release. `snapshot`: what the conversation comes to with these
    /// events, which replaces an earlier snapshot in the same commit. A store that reads all events
    /// as fast may leave it out, and so does every store where no events are added.
    ///
    /// # Errors
    /// As [`Journal::append_held`].
    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>>;

    /// Says that `worker` runs the conversation for the next `ttl`, unless somebody alive already
    /// does. Renews a claim of the same worker, which stays in its epoch. A lost claim is a cost,
    /// never a danger: [`Journal::append`] is what excludes.
    ///
    /// # Errors
    /// [`StoreError`].
    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Confirms the claim that `worker` made in its epoch, which holds for `ttl` from now. Returns
    /// `false`, and changes nothing, if it has none any more.
    ///
    /// # Errors
    /// [`StoreError`].
    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Gives a sign of life: all claims that the worker has made in its epoch hold for
    /// [`Beat::lease`] from now, in one commit however many they are. Returns those of the agent's
    /// conversations with something to do that the worker has claimed. `None`: the last sign of
    /// life was too long ago, or there was none and it is not the first. The epoch is over, and
    /// others may have taken what it had.
    ///
    /// # Errors
    /// [`StoreError`].
    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>>;

    /// Gives up the claim that `worker` made in its epoch.
    ///
    /// # Errors
    /// [`StoreError`].
    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes conversations that have something to do and that nobody alive has: claims what it
    /// returns, in one commit, those that waited longest first. Nothing is waited for: what another
    /// worker is about to take is passed over. Fewer than
    /// [`Take::limit`]: there is no more.
    ///
    /// # Errors
    /// [`StoreError`].
    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>>;

    /// The agent's conversations with work to do that nobody alive has claimed: an input not taken,
    /// or a turn that neither ended nor waits for a human. Of one user, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// The agent's conversations nobody alive has claimed whose turn waits for a human with
    /// something that expired at `now` or before: it goes on without them. Of one user, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>>;

    /// Returns what changes in conversations from now on, so that nobody has to ask again and again
    /// whether something did: inputs that were accepted and claims that were given back, through
    /// this journal at once, through other processes within about a second. It may tell more than
    /// happened, and may miss what another process did just before that process was lost. Nothing
    /// is done for it while nobody has asked or all answers were dropped.
    fn changes(&self) -> Box<dyn Changes>;

    /// Returns the way to the other processes that share the journal: [`Alone`](super::Alone) where
    /// there is none.
    fn relay(&self) -> Arc<dyn Relay>;

    /// The first cancellation that was accepted for the conversation and not taken.
    ///
    /// # Errors
    /// [`StoreError`].
    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>>;

    /// The agent's turns, of one user or of all, that wait for a human, oldest first: the
    /// conversation and the `TurnParked` event.
    ///
    /// # Errors
    /// [`StoreError`].
    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>>;
}

/// The answer to [`LogStore::rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rated {
    /// It is kept, in the place of the rating there was before.
    Kept {
        /// That one.
        before: Option<Rating>,
    },
    /// The user has no such turn in the log.
    NoSuchTurn,
    /// The turn runs or waits: there is no answer to rate.
    Open,
}

/// The two logs. What turns did is written by [`Journal::append`]; what people think of it, here.
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

    /// Keeps a person's opinion of the answer of one of their turns that has ended, in the place of
    /// an earlier one; their words as far as [`LogStore::content`] lets them in. `None`: takes it
    /// back.
    ///
    /// # Errors
    /// [`StoreError`].
    fn rate<'a>(
        &'a self,
        user: &'a UserId,
        turn: TurnId,
        feedback: Option<&'a Feedback>,
    ) -> BoxFuture<'a, Result<Rated, StoreError>>;

    /// Returns what the user thinks of the answers of turns, in no order: of those turns about
    /// which something is kept.
    ///
    /// # Errors
    /// [`StoreError`].
    fn feedback<'a>(
        &'a self,
        user: &'a UserId,
        turns: &'a [TurnId],
    ) -> BoxFuture<'a, Result<Vec<(TurnId, Feedback)>, StoreError>>;
}
