//! The store that forgets when the process ends: the library's default, and the quickest for tests.

mod budget;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::port::{
    ConversationFilter, ConversationStore, ConversationSummary, Cursor, Deleted, Journal, Loaded, LogStore,
    StoreError, TaskStore,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, DecisionRecord, Event, IdempotencyKey, Input,
    InputBody, InputId, LogContent, Recorded, Task, TaskChange, TaskChanged, TaskFilter, TaskId,
    ToolInvocationRecord, TurnId, UserId, conversation, port, title,
};
use jiff::Timestamp;

use crate::agent::system_time;

/// How many conversations are kept. The longest untouched one without work to do makes room; whoever holds its
/// [`crate::RunContext`] still has its history.
const CONVERSATIONS_MAX: usize = 1024;

/// Tasks, conversations, journal and logs in memory.
#[derive(Debug, Default)]
pub struct InMemory {
    state: Mutex<State>,
    log: LogContent,
}

#[derive(Debug, Default)]
struct State {
    conversations: HashMap<ConversationKey, Conversation>,
    users: HashMap<UserId, Tasks>,
    invocations: Vec<(UserId, ToolInvocationRecord)>,
    ledger: budget::Ledger,
    touches: u64,
}

#[derive(Debug)]
struct Conversation {
    title: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    touched: u64,
    claim: Option<Claim>,
    inputs: Vec<Input>,
    taken: Vec<InputId>,
    events: Vec<Recorded>,
    decisions: Vec<DecisionRecord>,
}

#[derive(Debug)]
struct Claim {
    worker: String,
    /// `None`: for longer than the clock can count.
    until: Option<Instant>,
}

impl Claim {
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
    fn summary(&self, key: &ConversationKey) -> ConversationSummary {
        let last = self.events.last();
        ConversationSummary {
            id: key.conversation,
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            pending: self.is_parked(),
            last_activity: last.map_or(self.updated_at, |last| last.at.max(self.updated_at)),
            turns: self
                .events
                .iter()
                .filter(|recorded| matches!(recorded.event, Event::TurnStarted { .. }))
                .count() as u64,
            ended: last.is_some_and(|last| {
                matches!(last.event, Event::SessionEnded {}) && last.at >= self.updated_at
            }),
        }
    }

    fn inbox(&self) -> Vec<Input> {
        self.inputs.iter().filter(|input| !self.taken.contains(&input.id)).cloned().collect()
    }

    fn is_parked(&self) -> bool {
        !conversation::pending(&self.events).is_empty()
    }

    fn is_claimed(&self) -> bool {
        self.claim.as_ref().is_some_and(Claim::holds)
    }

    fn is_settled(&self) -> bool {
        let open = conversation::open_turn(&self.events).is_some();
        let queued = |input: &Input| conversation::is_queued(&self.events, &input.id);
        self.inbox().iter().all(queued) && (!open || self.is_parked())
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

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole values behind: every change below is a single assignment or push.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn make_room(&mut self) {
        if self.conversations.len() < CONVERSATIONS_MAX {
            return;
        }
        let oldest = self
            .conversations
            .iter()
            .filter(|(_, conversation)| {
                conversation.is_settled() && !conversation.is_parked() && !conversation.is_claimed()
            })
            .min_by_key(|(_, conversation)| conversation.touched)
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.conversations.remove(&key);
        }
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Journal for InMemory {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.state();
        if !state.conversations.contains_key(key) {
            state.make_room();
        }
        state.touches += 1;
        let touched = state.touches;
        let conversation = state.conversations.entry(key.clone()).or_insert_with(|| Conversation {
            title: String::new(),
            created_at: input.at,
            updated_at: input.at,
            touched,
            claim: None,
            inputs: Vec::new(),
            taken: Vec::new(),
            events: Vec::new(),
            decisions: Vec::new(),
        });
        if let Some(known) = conversation.inputs.iter().find(|known| known.id == input.id) {
            let differs = |known: &String| input.fingerprint.as_ref().is_some_and(|new| new != known);
            if known.fingerprint.as_ref().is_some_and(differs) {
                return ready(Err(StoreError::Reused));
            }
        } else {
            if conversation.title.is_empty() {
                conversation.title = title(&input.body).unwrap_or_default();
            }
            let after = conversation.events.last().map_or(0, |recorded| recorded.seq);
            conversation.inputs.push(Input { after, ..input.clone() });
            conversation.updated_at = conversation.updated_at.max(input.at);
            conversation.touched = touched;
        }
        ready(Ok(()))
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let loaded = self
            .state()
            .conversations
            .get(key)
            .map(|conversation| Loaded { events: conversation.events.clone(), inbox: conversation.inbox() });
        ready(Ok(loaded.unwrap_or_default()))
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        next_seq: u64,
        at: Timestamp,
        events: &'a [Event],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.state();
        let State { conversations, invocations, .. } = &mut *state;
        let Some(conversation) = conversations.get_mut(key) else { return ready(Err(StoreError::Conflict)) };
        let free = conversation.events.last().map_or(1, |recorded| recorded.seq + 1);
        let step = |event: &Event| event.step().map(|step| (step, event.kind()));
        let known = |event: &Event| {
            step(event).is_some_and(|wanted| {
                conversation.events.iter().any(|recorded| step(&recorded.event).as_ref() == Some(&wanted))
            })
        };
        if next_seq != free || events.iter().any(known) {
            return ready(Err(StoreError::Conflict));
        }
        for (seq, event) in (next_seq..).zip(events) {
            conversation.taken.extend(event.takes_input().cloned());
            conversation.decisions.extend(DecisionRecord::open(key, at, event, self.log));
            if let Some(record) =
                conversation.decisions.iter_mut().find(|record| Some(record.id) == event.turn())
            {
                record.apply(at, event, self.log);
            }
            let row = ToolInvocationRecord::of(at, event, self.log);
            invocations.extend(row.map(|row| (key.user.clone(), row)));
            conversation.events.push(Recorded { seq, at, event: event.clone() });
        }
        ready(Ok(()))
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<port::Claim, StoreError>> {
        let mut state = self.state();
        let claim = state.conversations.get_mut(key).map_or(port::Claim::Refused, |conversation| {
            let is_anothers = conversation.claim.as_ref().is_some_and(|claim| claim.worker != worker);
            if is_anothers && conversation.is_claimed() {
                return port::Claim::Refused;
            }
            let until = Instant::now().checked_add(ttl);
            conversation.claim = Some(Claim { worker: worker.to_owned(), until });
            if is_anothers { port::Claim::TakenOver } else { port::Claim::Granted }
        });
        ready(Ok(claim))
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(conversation) = self.state().conversations.get_mut(key)
            && conversation.claim.as_ref().is_some_and(|claim| claim.worker == worker)
        {
            conversation.claim = None;
        }
        ready(Ok(()))
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
        let is_over = |conversation: &Conversation| {
            conversation::pending(&conversation.events).iter().any(|call| call.expires_at <= now)
        };
        let mut over: Vec<(&ConversationKey, &Conversation)> = state
            .conversations
            .iter()
            .filter(|(key, conversation)| {
                is_of(key, agent, user) && !conversation.is_claimed() && is_over(conversation)
            })
            .collect();
        over.sort_by_key(|(_, conversation)| (conversation.updated_at, conversation.touched));
        ready(Ok(over.into_iter().map(|(key, _)| key.clone()).collect()))
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        let state = self.state();
        let first = state.conversations.get(key).and_then(|conversation| {
            conversation
                .inputs
                .iter()
                .find(|input| input.body == InputBody::Cancel && !conversation.taken.contains(&input.id))
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
                let last = conversation
                    .events
                    .iter()
                    .rev()
                    .find(|recorded| matches!(recorded.event, Event::TurnParked { .. }))?;
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
        let uses = |row: &DecisionRecord, tool: &str| {
            state
                .invocations
                .iter()
                .any(|(owner, call)| owner == user && call.decision == row.id && call.tool == *tool)
        };
        let mut rows: Vec<DecisionRecord> = state
            .conversations
            .iter()
            .filter(|(key, _)| {
                key.user == *user
                    && filter.agent.as_ref().is_none_or(|agent| key.agent == *agent)
                    && filter.conversation.is_none_or(|id| id == key.conversation)
            })
            .flat_map(|(_, conversation)| &conversation.decisions)
            .filter(|row| filter.outcome.is_none_or(|outcome| row.outcome == Some(outcome)))
            .filter(|row| filter.since.is_none_or(|since| row.started_at >= since))
            .filter(|row| filter.until.is_none_or(|until| row.started_at < until))
            .filter(|row| filter.tool.as_ref().is_none_or(|tool| uses(row, tool)))
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
            .invocations
            .iter()
            .filter(|(owner, row)| owner == user && row.decision == decision)
            .map(|(_, row)| row.clone())
            .collect();
        ready(Ok(rows))
    }
}

/// Returns whether a conversation is the agent's, and the user's if one is named.
fn is_of(key: &ConversationKey, agent: &AgentName, user: Option<&UserId>) -> bool {
    key.agent == *agent && user.is_none_or(|user| key.user == *user)
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
        let Some(removed) = state.conversations.remove(key) else {
            return ready(Ok(Deleted::NoSuchConversation));
        };
        // What its calls changed once begins with its id; it cannot be repeated any more.
        let prefix = format!("{}/", key.conversation);
        if let Some(tasks) = state.users.get_mut(&key.user) {
            tasks.applied.retain(|key, _| !key.as_str().starts_with(&prefix));
        }
        state.invocations.retain(|(user, row)| {
            *user != key.user || !removed.decisions.iter().any(|decision| decision.id == row.decision)
        });
        ready(Ok(Deleted::Yes))
    }
}

impl TaskStore for InMemory {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let mut state = self.state();
        let tasks = state.users.entry(user.clone()).or_default();
        if let Some(known) = key.and_then(|key| tasks.applied.get(key)) {
            return ready(Ok(known.clone()));
        }
        let changed = tasks.change(user, change, system_time());
        if let Some(key) = key {
            tasks.applied.insert(key.clone(), changed.clone());
        }
        ready(Ok(changed))
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

    fn get<'a>(&'a self, user: &'a UserId, id: TaskId) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        let state = self.state();
        let task =
            state.users.get(user).and_then(|tasks| tasks.tasks.iter().find(|task| task.id == id).cloned());
        ready(Ok(task))
    }
}

impl Tasks {
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
