//! A store in memory and a caller that does what the gate does: check, prepare, call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentName, Arguments, BoxFuture, CallId, CancellationToken, ConversationId, IdempotencyKey,
    Prepared, ProgressListener, Tool, ToolContext, ToolError, ToolRegistry, TurnId, UserId,
};
use adjutant_tools::{Task, TaskChange, TaskChanged, TaskFilter, TaskId, TaskStore};
use serde_json::Value;

/// Time is a counter here: every change is a second later than the one before.
#[derive(Default)]
pub(crate) struct MemoryTasks(Mutex<State>);

#[derive(Default)]
struct State {
    seconds: i64,
    users: HashMap<UserId, (u64, Vec<Task>)>,
    recorded: HashMap<IdempotencyKey, TaskChanged>,
    fails_with: Option<StoreError>,
}

impl MemoryTasks {
    pub(crate) fn fail_with(&self, error: StoreError) {
        self.0.lock().unwrap().fails_with = Some(error);
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let mut state = self.0.lock().unwrap();
        let result = match &state.fails_with {
            Some(error) => Err(error.clone()),
            None => Ok(work(&mut state)),
        };
        Box::pin(std::future::ready(result))
    }
}

impl State {
    fn change(&mut self, user: &UserId, change: &TaskChange) -> TaskChanged {
        self.seconds += 1;
        let now = jiff::Timestamp::from_second(self.seconds).unwrap();
        let (last, tasks) = self.users.entry(user.clone()).or_default();
        let place = |id: &TaskId, tasks: &[Task]| tasks.iter().position(|task| task.id == *id);
        match change {
            TaskChange::Add { description, .. } => {
                *last += 1;
                let task = Task {
                    id: TaskId::new(*last).unwrap(),
                    user_id: user.clone(),
                    description: description.clone(),
                    completed: false,
                    created_at: now,
                    updated_at: now,
                    completed_at: None,
                    from_others: false,
                };
                tasks.push(task.clone());
                TaskChanged::Added { task }
            }
            TaskChange::Update {
                id, description, ..
            } => match place(id, tasks) {
                Some(at) => {
                    let before = std::mem::replace(&mut tasks[at].description, description.clone());
                    tasks[at].updated_at = now;
                    TaskChanged::Updated {
                        task: tasks[at].clone(),
                        before,
                    }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Complete { id } => match place(id, tasks) {
                Some(at) => {
                    let already = tasks[at].completed;
                    if !already {
                        tasks[at].completed = true;
                        tasks[at].completed_at = Some(now);
                        tasks[at].updated_at = now;
                    }
                    TaskChanged::Completed {
                        task: tasks[at].clone(),
                        already,
                    }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Delete { id } => match place(id, tasks) {
                Some(at) => TaskChanged::Deleted {
                    task: tasks.remove(at),
                },
                None => TaskChanged::NoSuchTask { id: *id },
            },
            // No tool asks for it.
            TaskChange::Restore { id } => TaskChanged::NoSuchTask { id: *id },
        }
    }
}

impl TaskStore for MemoryTasks {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        self.read(|state| {
            if let Some(known) = key.and_then(|key| state.recorded.get(key)) {
                return known.clone();
            }
            let changed = state.change(user, change);
            if let Some(key) = key {
                state.recorded.insert(key.clone(), changed.clone());
            }
            changed
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.read(|state| {
            let tasks = state
                .users
                .get(user)
                .map(|(_, tasks)| tasks.as_slice())
                .unwrap_or_default();
            tasks
                .iter()
                .filter(|task| filter.takes(task))
                .cloned()
                .collect()
        })
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.read(|state| {
            let tasks = state
                .users
                .get(user)
                .map(|(_, tasks)| tasks.as_slice())
                .unwrap_or_default();
            let takes =
                |task: &&Task| filter.takes(task) && before.is_none_or(|before| task.id < before);
            let mut last: Vec<Task> = tasks
                .iter()
                .rev()
                .filter(takes)
                .take(limit as usize)
                .cloned()
                .collect();
            last.reverse();
            last
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        self.read(|state| {
            state
                .users
                .get(user)?
                .1
                .iter()
                .find(|task| task.id == id)
                .cloned()
        })
    }
}

/// A context of this user; every `call` number is another call.
pub(crate) fn context(user: &str, call: u32) -> ToolContext {
    let (conversation, turn) = (ConversationId(uuid::Uuid::nil()), TurnId(uuid::Uuid::nil()));
    let call = CallId::new(format!("call_{call}")).unwrap();
    ToolContext {
        agent: AgentName::adjutant(),
        user: UserId::new(user).unwrap(),
        conversation,
        turn,
        key: IdempotencyKey::for_call(conversation, turn, &call),
        call,
        message: "".into(),
        from_others: false,
        cancelled: CancellationToken::new(),
        trace: None,
        progress: ProgressListener::default(),
    }
}

pub(crate) fn object(value: Value) -> Arguments {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

/// The outcome of a call as the gate would see it.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The data, and the description for the user.
    Done(Value, Option<String>),
    /// The gate or `prepare` refused, or the call failed.
    Refused(String),
    /// A question to the user.
    Asked(String),
}

/// A registry and a counter of calls.
pub(crate) struct Caller {
    pub(crate) registry: ToolRegistry,
    calls: Mutex<u32>,
}

impl Caller {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut registry = ToolRegistry::new();
        for tool in tools {
            registry.register(tool).unwrap();
        }
        Self {
            registry,
            calls: Mutex::new(0),
        }
    }

    /// A new call, through check, prepare and call.
    pub(crate) async fn call(&self, user: &str, tool: &str, arguments: Value) -> Outcome {
        let number = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        let context = context(user, number);
        let arguments = object(arguments);
        if let Err(error) = self.registry.check_arguments(tool, &arguments) {
            return Outcome::Refused(error);
        }
        match self.prepare(&context, tool, arguments).await {
            Err(error) => Outcome::Refused(error.to_string()),
            Ok(Prepared::Ask { question }) => Outcome::Asked(question),
            Ok(Prepared::Ready { arguments, .. }) => self.run(&context, tool, arguments).await,
        }
    }

    pub(crate) async fn prepare(
        &self,
        context: &ToolContext,
        tool: &str,
        arguments: Arguments,
    ) -> Result<Prepared, ToolError> {
        self.registry
            .get(tool)
            .unwrap()
            .prepare(context, arguments)
            .await
    }

    pub(crate) async fn run(
        &self,
        context: &ToolContext,
        tool: &str,
        arguments: Arguments,
    ) -> Outcome {
        let tool = self.registry.get(tool).unwrap();
        match tool.call(context, arguments.clone()).await {
            Ok(data) => {
                let words = tool.describe(&arguments, &data);
                Outcome::Done(data, words)
            }
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }
}
