//! The store that forgets when the process ends: the library's default, and the quickest for tests.

mod branch;
mod budget;
mod ledger;
mod news;
mod origin;
mod work;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::conversation::{Snapshot, Status};
use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::port::{
    AcceptedInput, Alone, Alternatives, Beat, Begin, Begun, Branched, Branching, Change, Changes,
    ConversationFilter, ConversationStore, ConversationSummary, Cursor, Deleted, Finished, Journal,
    JournaledChange, Known, Loaded, LogStore, Newer, Relay, Running, StoreError, Take, Taken, TaskStore,
    Turns, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationId, ConversationKey, DecisionFilter, DecisionRecord, Event,
    IdempotencyKey, Input, InputBody, InputId, LogContent, Recorded, StepId, StoreId, Task, TaskChange,
    TaskChanged, TaskFilter, TaskId, ToolInvocationRecord, TurnId, UserId, port, title,
};
use jiff::Timestamp;

use crate::clock::system_time;
use ledger::Ledger;
use origin::Origin;

/// Number of conversations that are kept. Those that were left alone longest and have no work to do make room; whoever holds
/// the [`crate::RunContext`] of one still has its history.
const CONVERSATIONS_MAX: usize = 1024;
/// Number of conversations that make room at once, so that it is long until the next time.
const FORGOTTEN_AT_ONCE: usize = 64;

/// If too few can make room, it is looked for again when there are more by this part of them.
const ROOM_AGAIN_PART: usize = 16;

/// Tasks, conversations, journal and logs in memory.
#[derive(Debug)]
pub struct InMemory {
    state: Mutex<State>,
    log: LogContent,
    messages_queued_max: NonZeroU32,
    news: news::News,
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            log: LogContent::default(),
            messages_queued_max: MESSAGES_QUEUED_MAX,
            news: news::News::default(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    conversations: HashMap<ConversationKey, Conversation>,
    /// The branches that begin in each conversation that has some.
    branches: HashMap<ConversationKey, Vec<ConversationId>>,
    /// Number of conversations from which on room is made again.
    room_from: usize,
    users: HashMap<UserId, Tasks>,
    ledger: Ledger,
    /// Until when those live that give signs of life. `None`: for longer than the clock can count.
    workers: HashMap<(String, i64), Option<Instant>>,
    touches: u64,
}

#[derive(Debug)]
struct Conversation {
    title: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    touched: u64,
    claim: Option<Claim>,
    inputs: Vec<Accepted>,
    /// The places of inputs by their ids.
    accepted: HashMap<InputId, usize>,
    /// The place from which on there are inputs that were not taken.
    untaken_from: usize,
    events: Vec<Recorded>,
    /// Kind and step of every event that has one: each is recorded once.
    steps: HashSet<(&'static str, StepId)>,
    status: Status,
    decisions: Vec<DecisionRecord>,
    invocations: Vec<ToolInvocationRecord>,
    /// The place at which it branches off another; the events up to there are the other's.
    origin: Option<Origin>,
}

#[derive(Debug)]
struct Accepted {
    input: Input,
    /// The place of the event that took it.
    taken_at: Option<u64>,
}

#[derive(Debug)]
struct Claim {
    worker: String,
    epoch: i64,
    /// `None`: for longer than the clock can count.
    until: Option<Instant>,
}

impl Claim {
    fn is_of(&self, worker: Worker<'_>) -> bool {
        self.worker == worker.id && self.epoch == worker.epoch
    }

    fn holds(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

#[derive(Debug, Default)]
struct Tasks {
    last_id: Option<TaskId>,
    tasks: Vec<Task>,
    applied: HashMap<IdempotencyKey, TaskChanged>,
}

impl Conversation {
    fn new(at: Timestamp) -> Self {
        Self {
            title: String::new(),
            created_at: at,
            updated_at: at,
            touched: 0,
            claim: None,
            inputs: Vec::new(),
            accepted: HashMap::new(),
            untaken_from: 0,
            events: Vec::new(),
            steps: HashSet::new(),
            status: Status::default(),
            decisions: Vec::new(),
            invocations: Vec::new(),
            origin: None,
        }
    }

    fn summary(&self, key: &ConversationKey) -> ConversationSummary {
        let last = self.events.last().filter(|last| last.seq > self.origin_seq());
        ConversationSummary {
            id: key.conversation,
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            pending: self.is_parked(),
            last_activity: last.map_or(self.updated_at, |last| last.at.max(self.updated_at)),
            turns: self.status.turns,
            ended: self.status.session_ended && last.is_some_and(|last| last.at >= self.updated_at),
            branched_from: self.origin.map(Origin::point),
        }
    }

    fn waiting_inputs(&self) -> impl Iterator<Item = &Input> {
        let inputs = self.inputs.get(self.untaken_from..).unwrap_or_default();
        inputs.iter().filter(|accepted| accepted.taken_at.is_none()).map(|accepted| &accepted.input)
    }

    fn inbox(&self) -> Vec<Input> {
        self.waiting_inputs().cloned().collect()
    }

    fn is_parked(&self) -> bool {
        !self.status.waiting.is_empty()
    }

    /// Returns whether the worker has claimed it in its epoch, and nobody else has since.
    fn is_held(&self, worker: Worker<'_>) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.is_of(worker))
    }

    fn is_claimed(&self) -> bool {
        self.claim.as_ref().is_some_and(Claim::holds)
    }

    /// Returns whether an input came that waits for nothing but to be taken.
    fn has_work_in_inbox(&self) -> bool {
        self.waiting_inputs().any(|input| !self.status.queued.contains(&input.id))
    }

    fn is_settled(&self) -> bool {
        !self.has_work_in_inbox() && !self.status.runs()
    }

    /// Accepts an input, once, if no more than `room` wait with it.
    fn accept(&mut self, input: &Input, touched: u64, room: NonZeroU32) -> Result<(), StoreError> {
        if let Some(Accepted { input: known, .. }) =
            self.accepted.get(&input.id).and_then(|at| self.inputs.get(*at))
        {
            let differs = |known: &String| input.fingerprint.as_ref().is_some_and(|new| new != known);
            return match known.fingerprint.as_ref().is_some_and(differs) {
                true => Err(StoreError::Reused),
                false => Ok(()),
            };
        }
        if input.body.starts_turn() {
            let queued = self.waiting_inputs().filter(|input| input.body.starts_turn()).count();
            if u32::try_from(queued).is_ok_and(|queued| queued >= room.get()) {
                return Err(StoreError::QueueFull { limit: room });
            }
        }
        if self.title.is_empty() {
            self.title = title(&input.body).unwrap_or_default();
        }
        let after = self.events.last().map_or(0, |recorded| recorded.seq);
        self.accepted.insert(input.id.clone(), self.inputs.len());
        self.inputs.push(Accepted { input: Input { after, ..input.clone() }, taken_at: None });
        self.updated_at = self.updated_at.max(input.at);
        self.touched = touched;
        Ok(())
    }

    /// Claims the conversation for a worker, unless another one alive has it. Without an epoch, the worker's own claim stays in the
    /// one it is of.
    fn take(&mut self, worker: &str, epoch: Option<i64>, ttl: Duration) -> port::Claim {
        let is_anothers = self.claim.as_ref().is_some_and(|claim| claim.worker != worker);
        if is_anothers && self.is_claimed() {
            return port::Claim::Refused;
        }
        let until = Instant::now().checked_add(ttl);
        let own = self.claim.as_ref().filter(|_| !is_anothers).map_or(0, |claim| claim.epoch);
        let epoch = epoch.unwrap_or(own);
        self.claim = Some(Claim { worker: worker.to_owned(), epoch, until });
        if is_anothers { port::Claim::TakenOver } else { port::Claim::Granted }
    }

    /// Adds events, all or none of them.
    fn append(
        &mut self,
        key: &ConversationKey,
        events: &[Recorded],
        log: LogContent,
    ) -> Result<(), StoreError> {
        let steps = self.new_steps(events)?;
        self.steps.extend(steps);
        for recorded in events {
            self.record(key, recorded, log);
        }
        Ok(())
    }

    /// Returns the steps that events record, if they can be added.
    fn new_steps(&self, events: &[Recorded]) -> Result<Vec<(&'static str, StepId)>, StoreError> {
        let free = self.events.last().map_or(1, |recorded| recorded.seq + 1);
        let mut steps: Vec<(&'static str, StepId)> = Vec::new();
        for (seq, recorded) in (free..).zip(events) {
            let step = recorded.event.step().map(|step| (recorded.event.kind(), step));
            if recorded.seq != seq
                || step.as_ref().is_some_and(|step| self.steps.contains(step) || steps.contains(step))
            {
                return Err(StoreError::Conflict);
            }
            steps.extend(step);
        }
        Ok(steps)
    }

    fn record(&mut self, key: &ConversationKey, recorded: &Recorded, log: LogContent) {
        let Recorded { seq, at, event } = recorded;
        if let Some(input) = event.takes_input() {
            if let Some(accepted) = self.accepted.get(input).and_then(|at| self.inputs.get_mut(*at)) {
                accepted.taken_at = Some(*seq);
            }
            while self.inputs.get(self.untaken_from).is_some_and(|first| first.taken_at.is_some()) {
                self.untaken_from += 1;
            }
        }
        self.status.apply(*seq, event);
        self.decisions.extend(DecisionRecord::open(key, *at, event, log));
        // Events are of the turn that is open, which is the last.
        if let Some(record) = self.decisions.iter_mut().rev().find(|record| Some(record.id) == event.turn()) {
            record.apply(*at, event, log);
        }
        self.invocations.extend(ToolInvocationRecord::of(*at, event, log));
        self.events.push(recorded.clone());
    }

    /// Returns the last turns before a place.
    fn turns(&self, before: Option<u64>, turns: u32) -> Turns {
        let end = before.map_or(u64::MAX, |before| before.saturating_sub(1));
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(self.events.len());
        let earlier = self.events.get(..end).unwrap_or_default();
        let begins =
            |(_, recorded): &(usize, &Recorded)| matches!(*recorded.event, Event::TurnStarted { .. });
        let nth = usize::try_from(turns).unwrap_or(usize::MAX).saturating_sub(1);
        let from = earlier.iter().enumerate().rev().filter(begins).nth(nth).map_or(0, |(at, _)| at);
        Turns {
            created_at: self.created_at,
            after: from as u64,
            events: earlier.get(from..).unwrap_or_default().to_vec(),
            inbox: self.inbox(),
        }
    }

    /// Returns one turn, up to the beginning of the next. `None`: there is no such turn.
    fn turn(&self, wanted: TurnId) -> Option<Turns> {
        let begins = |recorded: &Recorded| matches!(*recorded.event, Event::TurnStarted { .. });
        let is_it = |recorded: &Recorded| begins(recorded) && recorded.event.turn() == Some(wanted);
        let from = self.events.iter().position(is_it)?;
        let mut behind = self.events.iter().skip(from + 1);
        let len = behind.position(begins).map_or(self.events.len() - from, |at| at + 1);
        Some(Turns {
            created_at: self.created_at,
            after: from as u64,
            events: self.events.iter().skip(from).take(len).cloned().collect(),
            inbox: self.inbox(),
        })
    }

    /// Returns what is newer than what a worker knows.
    fn newer(&self, known: Option<Known>) -> Newer {
        let last = self.events.last().map_or(0, |recorded| recorded.seq);
        let after = known
            .filter(|known| known.created_at == self.created_at && known.seq <= last)
            .map_or(0, |known| known.seq);
        let from = usize::try_from(after).unwrap_or(usize::MAX);
        Newer {
            created_at: self.created_at,
            // It holds the events anyway.
            restorable: None,
            after,
            events: self.events.get(from..).unwrap_or_default().to_vec(),
            inbox: self.inbox(),
        }
    }
}

impl InMemory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with so much of what is said in its logs. Default: [`LogContent::Full`].
    #[must_use]
    pub fn with_log_content(mut self, content: LogContent) -> Self {
        self.log = content;
        self
    }

    /// The same, in which so many messages may wait in one conversation, accepted and not taken. Default: [`MESSAGES_QUEUED_MAX`].
    #[must_use]
    pub fn with_messages_queued_max(mut self, messages: NonZeroU32) -> Self {
        self.messages_queued_max = messages;
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole values behind: every change below is a single assignment or push.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn make_room(&mut self) {
        if self.conversations.len() < CONVERSATIONS_MAX.max(self.room_from) {
            return;
        }
        let mut idle: Vec<(u64, &ConversationKey)> = self
            .conversations
            .iter()
            .filter(|(_, conversation)| {
                conversation.is_settled() && !conversation.is_parked() && !conversation.is_claimed()
            })
            .map(|(key, conversation)| (conversation.touched, key))
            .collect();
        if idle.len() > FORGOTTEN_AT_ONCE {
            idle.select_nth_unstable_by_key(FORGOTTEN_AT_ONCE, |(touched, _)| *touched);
            idle.truncate(FORGOTTEN_AT_ONCE);
        }
        let forgotten: Vec<ConversationKey> = idle.into_iter().map(|(_, key)| key.clone()).collect();
        for key in &forgotten {
            self.remove(key);
        }
        // Those that cannot be forgotten are not looked at again with each new one.
        let left = self.conversations.len();
        self.room_from = left + left / ROOM_AGAIN_PART;
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl State {
    /// Accepts an input; creates the conversation if it is new.
    fn accept(
        &mut self,
        key: &ConversationKey,
        input: &Input,
        room: NonZeroU32,
    ) -> Result<&mut Conversation, StoreError> {
        if !self.conversations.contains_key(key) {
            self.make_room();
        }
        self.touches += 1;
        let conversation =
            self.conversations.entry(key.clone()).or_insert_with(|| Conversation::new(input.at));
        conversation.accept(input, self.touches, room)?;
        Ok(conversation)
    }
}

impl Journal for InMemory {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let accepted = self
            .state()
            .accept(key, input, self.messages_queued_max)
            .map(|conversation| conversation.claim.is_some());
        ready(accepted.map(|is_claimed| {
            if is_claimed {
                self.news.tell(|| Change::Input(key.clone()));
            }
        }))
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let loaded = self
            .state()
            .conversations
            .get(key)
            .map(|conversation| Loaded { events: conversation.events.clone(), inbox: conversation.inbox() });
        ready(Ok(loaded.unwrap_or_default()))
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>> {
        ready(Ok(self.state().conversations.get(key).map(|conversation| conversation.newer(known))))
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        let state = self.state();
        ready(Ok(state.conversations.get(key).map(|conversation| conversation.turns(before, turns))))
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        let state = self.state();
        ready(Ok(state.conversations.get(key).and_then(|conversation| conversation.turn(turn))))
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        let state = self.state();
        let accepted = state.conversations.get(key).and_then(|conversation| {
            let at = conversation.accepted.get(id)?;
            conversation.inputs.get(*at)
        });
        ready(Ok(accepted.map(|Accepted { taken_at, .. }| AcceptedInput { taken_at: *taken_at })))
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>> {
        let mut state = self.state();
        let conversation = match begin.input {
            Some(input) => match state.accept(key, input, self.messages_queued_max) {
                Ok(conversation) => conversation,
                Err(error) => return ready(Err(error)),
            },
            None => match state.conversations.get_mut(key) {
                Some(conversation) => conversation,
                None => return ready(Ok(Begun::Nothing)),
            },
        };
        let claim = conversation.take(begin.worker.id, Some(begin.worker.epoch), begin.lease);
        if !claim.is_held() {
            self.news.tell(|| Change::Input(key.clone()));
            return ready(Ok(Begun::Elsewhere));
        }
        let only = {
            let mut waiting = conversation.waiting_inputs();
            let first = waiting.next().map(|input| &input.id);
            first.is_some() && first == begin.input.map(|input| &input.id) && waiting.next().is_none()
        };
        let starts = only && conversation.status.turn.is_none() && !begin.turn.is_empty();
        if starts {
            let first = begin.first.filter(|_| conversation.events.is_empty());
            let next = conversation.events.last().map_or(1, |recorded| recorded.seq + 1);
            let events: Vec<Recorded> = (next..)
                .zip(first.into_iter().chain(begin.turn))
                .map(|(seq, event)| Recorded { seq, at: begin.at, event: event.clone().into() })
                .collect();
            if let Err(error) = conversation.append(key, &events, self.log) {
                conversation.claim = None;
                return ready(Err(error));
            }
        }
        let newer = conversation.newer(begin.known);
        ready(Ok(if starts { Begun::Started(newer) } else { Begun::Claimed { claim, newer } }))
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.state();
        let Some(conversation) = state.conversations.get_mut(key) else {
            return ready(Err(StoreError::Conflict));
        };
        ready(conversation.append(key, events, self.log))
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let State { conversations, ledger, .. } = &mut *self.state();
        let held = conversations.get_mut(key).filter(|conversation| conversation.is_held(writer.worker));
        let appended = held.ok_or(StoreError::Conflict).and_then(|held| held.append(key, events, self.log));
        ready(appended.map(|()| ledger.book(writer.spent)))
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(StoreId::of(self))
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        JournaledChange { change, key: call, ended }: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        let State { conversations, users, ledger, .. } = &mut *self.state();
        let held = conversations.get_mut(key).filter(|conversation| conversation.is_held(writer.worker));
        let appended = held.ok_or(StoreError::Conflict).and_then(|held| {
            if events.is_empty() || held.new_steps(events).is_err() {
                return Err(StoreError::Conflict);
            }
            let changed = users.entry(key.user.clone()).or_default().apply(&key.user, &change, Some(&call));
            let ended = ended(&changed);
            let events: Vec<Recorded> = events.iter().chain([&ended]).cloned().collect();
            held.append(key, &events, self.log)?;
            Ok(ended)
        });
        ready(appended.inspect(|_| ledger.book(writer.spent)))
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        _snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        let State { conversations, ledger, .. } = &mut *self.state();
        let held = conversations.get_mut(key).filter(|conversation| conversation.is_held(writer.worker));
        let Some(conversation) = held else {
            return ready(Err(StoreError::Conflict));
        };
        if let Err(error) = conversation.append(key, events, self.log) {
            return ready(Err(error));
        }
        ledger.book(writer.spent);
        if conversation.has_work_in_inbox() {
            return ready(Ok(Finished::Kept(conversation.inbox())));
        }
        conversation.claim = None;
        self.news.tell(|| Change::Free(key.clone()));
        ready(Ok(Finished::Released))
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<port::Claim, StoreError>> {
        let mut state = self.state();
        let conversation = state.conversations.get_mut(key);
        ready(Ok(
            conversation.map_or(port::Claim::Refused, |conversation| conversation.take(worker, None, ttl))
        ))
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut state = self.state();
        let claim = state.conversations.get_mut(key).and_then(|conversation| conversation.claim.as_mut());
        let own = claim.filter(|claim| claim.is_of(worker));
        let is_own = own.is_some();
        if let Some(claim) = own {
            claim.until = Instant::now().checked_add(ttl);
        }
        ready(Ok(is_own))
    }

    fn beat<'a>(&'a self, beat: Beat<'a>) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        ready(Ok(self.state().beat(beat)))
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(conversation) = self.state().conversations.get_mut(key)
            && conversation.is_held(worker)
        {
            conversation.claim = None;
        }
        self.news.tell(|| Change::Free(key.clone()));
        ready(Ok(()))
    }

    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        ready(Ok(self.state().take(take)))
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        let state = self.state();
        let mut open: Vec<(&ConversationKey, &Conversation)> = state
            .conversations
            .iter()
            .filter(|(key, conversation)| {
                is_of(key, agent, user) && !conversation.is_settled() && !conversation.is_claimed()
            })
            .collect();
        open.sort_by_key(|(_, conversation)| (conversation.updated_at, conversation.touched));
        ready(Ok(open.into_iter().map(|(key, _)| key.clone()).collect()))
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        let state = self.state();
        let mut over: Vec<(&ConversationKey, &Conversation)> = state
            .conversations
            .iter()
            .filter(|(key, conversation)| {
                is_of(key, agent, user) && !conversation.is_claimed() && is_over(&conversation.status, now)
            })
            .collect();
        over.sort_by_key(|(_, conversation)| (conversation.updated_at, conversation.touched));
        ready(Ok(over.into_iter().map(|(key, _)| key.clone()).collect()))
    }

    fn changes(&self) -> Box<dyn Changes> {
        self.news.listen()
    }

    fn relay(&self) -> Arc<dyn Relay> {
        Arc::new(Alone)
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        let state = self.state();
        let first = state.conversations.get(key).and_then(|conversation| {
            conversation.waiting_inputs().find(|input| input.body == InputBody::Cancel)
        });
        ready(Ok(first.map(|input| input.id.clone())))
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        let state = self.state();
        let mut parked: Vec<(ConversationKey, Recorded)> = state
            .conversations
            .iter()
            .filter(|(key, _)| is_of(key, agent, user))
            .filter(|(_, conversation)| conversation.is_parked())
            .filter_map(|(key, conversation)| {
                let at = usize::try_from(conversation.status.parked_seq?).ok()?;
                let last = conversation.events.get(at.checked_sub(1)?)?;
                Some((key.clone(), last.clone()))
            })
            .collect();
        parked.sort_by_key(|(_, recorded)| recorded.at);
        ready(Ok(parked))
    }
}

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
            conversation.invocations.iter().any(|call| call.decision == row.id && call.tool == *tool)
        };
        let mut rows: Vec<DecisionRecord> = state
            .conversations
            .iter()
            .filter(|(key, _)| {
                key.user == *user
                    && filter.agent.as_ref().is_none_or(|agent| key.agent == *agent)
                    && filter.conversation.is_none_or(|id| id == key.conversation)
            })
            .flat_map(|(_, conversation)| conversation.decisions.iter().map(move |row| (conversation, row)))
            .filter(|(conversation, row)| {
                filter.tool.as_ref().is_none_or(|tool| uses(conversation, row, tool))
            })
            .map(|(_, row)| row)
            .filter(|row| filter.outcome.is_none_or(|outcome| row.outcome == Some(outcome)))
            .filter(|row| filter.since.is_none_or(|since| row.started_at >= since))
            .filter(|row| filter.until.is_none_or(|until| row.started_at < until))
            .filter(|row| is_behind(filter.after, row.cursor()))
            .cloned()
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id)));
        rows.truncate(filter.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
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
}

/// Returns whether a conversation is the agent's, and the user's if one is named.
fn is_of(key: &ConversationKey, agent: &AgentName, user: Option<&UserId>) -> bool {
    key.agent == *agent && user.is_none_or(|user| key.user == *user)
}

/// Returns whether something that waits for a human has expired.
fn is_over(status: &Status, now: Timestamp) -> bool {
    status.waiting.iter().any(|call| call.expires_at <= now)
}

/// Whether a row of a list comes behind the place somebody has seen.
fn is_behind(after: Option<Cursor>, row: Cursor) -> bool {
    after.is_none_or(|after| (row.at, row.id) < (after.at, after.id))
}

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
            .filter(|(key, conversation)| is_of(key, agent, Some(user)) && filter.takes(&conversation.title))
            .filter(|(key, _)| !key.conversation.is_of_a_request())
            .map(|(key, conversation)| conversation.summary(key))
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
        ready(Ok(self.state().conversations.get(key).map(|conversation| conversation.summary(key))))
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let renamed = self
            .state()
            .conversations
            .get_mut(key)
            .map(|conversation| title.clone_into(&mut conversation.title))
            .is_some();
        ready(Ok(renamed))
    }

    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        let mut state = self.state();
        if state.conversations.get(key).is_some_and(Conversation::is_claimed) {
            return ready(Ok(Deleted::Running));
        }
        if state.remove(key).is_none() {
            return ready(Ok(Deleted::NoSuchConversation));
        }
        // What its calls changed once begins with its id; it cannot be repeated any more.
        let prefix = format!("{}/", key.conversation);
        if let Some(tasks) = state.users.get_mut(&key.user) {
            tasks.applied.retain(|key, _| !key.as_str().starts_with(&prefix));
        }
        ready(Ok(Deleted::Yes))
    }

    fn branch<'a>(&'a self, branching: Branching<'a>) -> BoxFuture<'a, Result<Branched, StoreError>> {
        ready(self.state().branch(branching))
    }

    fn alternatives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<Alternatives>, StoreError>> {
        ready(Ok(self.state().alternatives(key)))
    }
}

impl TaskStore for InMemory {
    fn store_id(&self) -> Option<StoreId> {
        Some(StoreId::of(self))
    }

    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let mut state = self.state();
        ready(Ok(state.users.entry(user.clone()).or_default().apply(user, change, key)))
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let state = self.state();
        let tasks = state.users.get(user).map(|tasks| tasks.tasks.as_slice()).unwrap_or_default();
        ready(Ok(tasks.iter().filter(|task| filter.takes(task)).cloned().collect()))
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let state = self.state();
        let tasks = state.users.get(user).map(|tasks| tasks.tasks.as_slice()).unwrap_or_default();
        let is_before = |task: &&Task| before.is_none_or(|before| task.id < before);
        let found = tasks.iter().rev().filter(is_before).filter(|task| filter.takes(task));
        let mut last: Vec<Task> = found.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect();
        last.reverse();
        ready(Ok(last))
    }

    fn get<'a>(&'a self, user: &'a UserId, id: TaskId) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        let state = self.state();
        let task =
            state.users.get(user).and_then(|tasks| tasks.tasks.iter().find(|task| task.id == id).cloned());
        ready(Ok(task))
    }
}

impl Tasks {
    /// Carries out a change, once per key.
    fn apply(&mut self, user: &UserId, change: &TaskChange, key: Option<&IdempotencyKey>) -> TaskChanged {
        if let Some(known) = key.and_then(|key| self.applied.get(key)) {
            return known.clone();
        }
        let changed = self.change(user, change, system_time());
        if let Some(key) = key {
            self.applied.insert(key.clone(), changed.clone());
        }
        changed
    }

    fn change(&mut self, user: &UserId, change: &TaskChange, now: Timestamp) -> TaskChanged {
        match change {
            TaskChange::Add { description } => {
                let id = self.last_id.map_or(TaskId::FIRST, TaskId::next);
                self.last_id = Some(id);
                let task = Task {
                    id,
                    user_id: user.clone(),
                    description: description.clone(),
                    completed: false,
                    created_at: now,
                    updated_at: now,
                    completed_at: None,
                };
                self.tasks.push(task.clone());
                TaskChanged::Added { task }
            }
            TaskChange::Update { id, description } => match self.find(*id) {
                Some(task) => {
                    let before = std::mem::replace(&mut task.description, description.clone());
                    task.updated_at = now;
                    TaskChanged::Updated { task: task.clone(), before }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Complete { id } => match self.find(*id) {
                Some(task) => {
                    let already = std::mem::replace(&mut task.completed, true);
                    if !already {
                        task.completed_at = Some(now);
                        task.updated_at = now;
                    }
                    TaskChanged::Completed { task: task.clone(), already }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Delete { id } => match self.tasks.iter().position(|task| task.id == *id) {
                Some(at) => TaskChanged::Deleted { task: self.tasks.remove(at) },
                None => TaskChanged::NoSuchTask { id: *id },
            },
        }
    }

    fn find(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}
