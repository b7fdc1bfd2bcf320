//! What a developer builds and runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};

use adjutant_core::limits::{MESSAGE_BYTES_MAX, TURN_DEADLINE_LOCAL};
use adjutant_core::port::{Journal, LogStore, StoreError};
use adjutant_core::weak::WeakTools;
use adjutant_core::{
    AgentName, AgentResponse, Answer, Arguments, CallId, CancellationToken, ConversationId, ConversationKey,
    Empty, Event, Gate, GateCheck, GateVerdict, GenerationConfig, IdempotencyKey, Input, InputBody, InputId,
    LanguageModel, MaxTokens, PendingCall, Policy, Recorded, Temperature, Tool, ToolCall, ToolContext,
    ToolInvocation, ToolInvocationRecord, ToolRegistry, ToolResult, TurnId, TurnLimits, UserId, conversation,
};
use jiff::Timestamp;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::event::{Emitter, RunEvent, RunStream};
use crate::execute::execute;
use crate::in_memory::InMemory;
use crate::run::advance;
use crate::{BuildError, RunContext, RunError};

/// An LLM agent: a model, an instruction, tools, and the bounds it keeps. Cheap to clone, safe to share.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: AgentName,
    pub(crate) description: String,
    pub(crate) model: Arc<dyn LanguageModel>,
    pub(crate) instruction: String,
    pub(crate) config: GenerationConfig,
    pub(crate) limits: TurnLimits,
    pub(crate) gate: Gate,
    pub(crate) weak_tools: WeakTools,
    pub(crate) journal: Arc<dyn Journal>,
    logs: Arc<dyn LogStore>,
    pub(crate) worker: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    locks: StdMutex<HashMap<ConversationKey, Weak<Mutex<()>>>>,
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// One lock per conversation that is running; those nobody holds are forgotten.
    pub(crate) fn lock_of(&self, key: &ConversationKey) -> Arc<Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(Mutex::new(()));
        locks.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.0.name)
            .field("model", self.0.model.id())
            .field("tools", &self.0.gate.registry)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Starts to build an agent of this name.
    #[must_use]
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        let memory = Arc::new(InMemory::new());
        AgentBuilder {
            name: name.into(),
            description: String::new(),
            model: None,
            instruction: String::new(),
            tools: Vec::new(),
            policy: Policy::default(),
            config: GenerationConfig::default(),
            limits: None,
            weak_tools: WeakTools::default(),
            journal: memory.clone(),
            logs: memory,
            worker: format!("pid-{}", std::process::id()),
            clock: Arc::new(system_time),
        }
    }

    /// Answers once, in a new conversation of the local user.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written. A turn that ran is `Ok`, whatever its outcome.
    pub async fn run(&self, input: impl Into<String>) -> Result<AgentResponse, RunError> {
        self.run_in(&mut RunContext::default(), input).await
    }

    /// Answers in a conversation and appends both sides to the context. A message in a conversation where something
    /// waits is read as the answer: yes, no, or, if it is neither, the question comes again.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written.
    pub async fn run_in(
        &self,
        context: &mut RunContext,
        input: impl Into<String>,
    ) -> Result<AgentResponse, RunError> {
        self.drained(context, InputBody::Message { text: input.into() }).await
    }

    /// Answers pending calls of a conversation; each answer carries the digest of what was shown.
    ///
    /// # Errors
    /// [`RunError`] if the turn could not go on or be written.
    pub async fn answer(
        &self,
        context: &mut RunContext,
        answers: Vec<Answer>,
    ) -> Result<AgentResponse, RunError> {
        self.drained(context, InputBody::Answers { answers }).await
    }

    /// Stops a turn that waits for a human; nothing of what waits is done. A running turn is stopped by
    /// [`RunContext::cancelled`].
    ///
    /// # Errors
    /// [`RunError::CannotContinue`] if nothing waits, or as [`Agent::run`].
    pub async fn cancel(&self, context: &mut RunContext) -> Result<AgentResponse, RunError> {
        self.drained(context, InputBody::Cancel).await
    }

    /// The way to an answer as events; [`RunStream::finish`] gives the response and the context.
    #[must_use]
    pub fn stream(&self, context: &RunContext, input: impl Into<String>) -> RunStream {
        self.start(context, InputBody::Message { text: input.into() })
    }

    /// [`Agent::answer`] as events.
    #[must_use]
    pub fn stream_answer(&self, context: &RunContext, answers: Vec<Answer>) -> RunStream {
        self.start(context, InputBody::Answers { answers })
    }

    /// A conversation as the journal knows it. New to the journal: an empty context.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn context(&self, key: &ConversationKey) -> Result<RunContext, StoreError> {
        let loaded = self.0.journal.load(key).await?;
        Ok(RunContext {
            user: key.user.clone(),
            conversation: key.conversation,
            history: conversation::history(&loaded.events),
            pending: conversation::pending(&loaded.events),
            cancelled: CancellationToken::new(),
        })
    }

    /// Finishes what a crash left open in the user's conversations, or in everybody's: inputs that were accepted and
    /// turns that were running. Gives the response of each turn that got further.
    ///
    /// # Errors
    /// [`RunError`] of the first conversation that could not go on; the others are untouched.
    pub async fn resume(&self, user: Option<&UserId>) -> Result<Vec<AgentResponse>, RunError> {
        let mut responses = Vec::new();
        for key in self.0.journal.unsettled(user).await? {
            advance(&self.0, &key, &[], &Emitter::default(), &CancellationToken::new()).await?;
            let loaded = self.0.journal.load(&key).await?;
            let last = loaded.events.iter().rev().find_map(|recorded| recorded.event.turn());
            responses
                .extend(last.and_then(|turn| conversation::response(key.conversation, &loaded.events, turn)));
        }
        Ok(responses)
    }

    /// Calls a tool for a human without a model, through the same gate. What needs a confirmation comes back as
    /// [`HumanCall::Confirm`]; called again with it as `approved`, it runs. What ran is in the tool-invocation log.
    ///
    /// # Errors
    /// [`StoreError`] if it ran and the log could not be written.
    pub async fn call_tool(
        &self,
        user: &UserId,
        name: &str,
        arguments: Arguments,
        approved: Option<&PendingCall>,
    ) -> Result<HumanCall, StoreError> {
        // A human's call has no turn and no conversation; its id carries the one minted for it, which binds the digest.
        let turn = TurnId(approved.map_or_else(Uuid::now_v7, turn_of));
        let conversation = ConversationId(Uuid::nil());
        let call = ToolCall {
            id: CallId::human(turn),
            ..ToolCall::from_object(0, None, name.to_owned(), arguments)
        };
        let context = ToolContext {
            user: user.clone(),
            conversation,
            turn,
            call: call.id.clone(),
            key: IdempotencyKey::of(conversation, turn, &call.id),
            cancelled: CancellationToken::new(),
        };
        let check = GateCheck {
            now: self.0.now(),
            confirmation_expiry: self.0.limits.confirmation_expiry,
            denied: &[],
        };
        let arguments = match self.0.gate.check(&context, &call, &check).await {
            GateVerdict::Run { arguments } => arguments,
            GateVerdict::Confirm { pending } => match approved {
                Some(approved) if approved.digest == pending.digest && approved.expires_at > check.now => {
                    pending.arguments
                }
                Some(_) | None => return Ok(HumanCall::Confirm(pending)),
            },
            GateVerdict::Ask { question } => return Ok(HumanCall::Ask(question)),
            GateVerdict::Refuse { message, .. } => return Ok(HumanCall::Refused(message)),
        };
        let Some(tool) = self.0.gate.registry.get(name) else {
            return Ok(HumanCall::Refused(self.0.gate.registry.unknown(name)));
        };
        let outcome = execute(tool, &context, arguments.clone(), self.0.limits.tool_timeout).await;
        let summary = outcome.as_ref().ok().and_then(|data| tool.describe(&arguments, data));
        let result = match outcome {
            Ok(data) => ToolResult::ok(data),
            Err(error) => ToolResult::failed(error.to_string()),
        };
        let at = self.0.now();
        let ms = u64::try_from(at.as_millisecond() - check.now.as_millisecond()).unwrap_or(0);
        let row = ToolInvocationRecord {
            id: call.id,
            decision: turn,
            tool: name.to_owned(),
            arguments: arguments.clone(),
            result: result.clone(),
            ms,
            attempt: 1,
            at,
        };
        self.0.logs.record_invocation(user, &row).await?;
        let invocation = ToolInvocation { tool: name.to_owned(), arguments, result };
        Ok(HumanCall::Done { invocation, summary })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name.as_str()
    }

    /// What it can do, in its developer's words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The model it asks.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.0.model
    }

    /// Its tools.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.0.gate.registry
    }

    /// The bounds of its turns.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.0.limits
    }

    async fn drained(&self, context: &mut RunContext, body: InputBody) -> Result<AgentResponse, RunError> {
        let (response, after) = self.start(context, body).finish().await?;
        context.history = after.history;
        context.pending = after.pending;
        Ok(response)
    }

    fn start(&self, context: &RunContext, body: InputBody) -> RunStream {
        let (inner, context) = (Arc::clone(&self.0), context.clone());
        let cancelled = context.cancelled.clone();
        RunStream::start(&cancelled, |emitter, cancelled| async move {
            respond(&inner, context, body, &emitter, &cancelled).await
        })
    }
}

/// Accepts an input, runs the conversation, and reads what became of the input.
async fn respond(
    inner: &Inner,
    mut context: RunContext,
    body: InputBody,
    emitter: &Emitter,
    cancelled: &CancellationToken,
) -> Result<(AgentResponse, RunContext), RunError> {
    if let InputBody::Message { text } = &body {
        match text.len() {
            bytes if bytes > MESSAGE_BYTES_MAX => {
                return Err(RunError::MessageTooLarge { bytes, max: MESSAGE_BYTES_MAX });
            }
            _ if text.trim().is_empty() => return Err(RunError::EmptyMessage),
            _ => {}
        }
    }
    let key = context.key();
    let id = InputId::new(Uuid::now_v7().to_string()).map_err(|_| RunError::EmptyMessage)?;
    let input = Input { id, at: inner.now(), body };
    crate::faults::boundary("before the input is accepted");
    inner.journal.submit(&key, &input).await?;
    advance(inner, &key, &context.history, emitter, cancelled).await?;
    let loaded = inner.journal.load(&key).await?;
    context.history = conversation::history(&loaded.events);
    context.pending = conversation::pending(&loaded.events);
    let response = conversation::turn_of_input(&loaded.events, &input.id)
        .or_else(|| turn_of_answers(&loaded.events, &input.body))
        .and_then(|turn| conversation::response(key.conversation, &loaded.events, turn))
        .ok_or_else(|| RunError::CannotContinue("nothing was waiting for this answer".to_owned()))?;
    emitter.emit(RunEvent::Finished(Box::new(response.clone()))).await;
    Ok((response, context))
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
pub(crate) fn system_time() -> Timestamp {
    Timestamp::now()
}

/// The turn whose calls an answer was for, if somebody else or the clock answered them first: what became of it is
/// what the answer amounts to.
fn turn_of_answers(events: &[Recorded], body: &InputBody) -> Option<TurnId> {
    let InputBody::Answers { answers } = body else { return None };
    events.iter().rev().find_map(|recorded| match &recorded.event {
        Event::CallAnswered { turn, call, .. } => {
            answers.iter().any(|answer| answer.call_id == *call).then_some(*turn)
        }
        _ => None,
    })
}

/// The id minted for a human's call, read back from its call id.
fn turn_of(pending: &PendingCall) -> Uuid {
    pending.call_id.human_turn().map_or_else(Uuid::now_v7, |turn| turn.0)
}

/// What became of a human's call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum HumanCall {
    /// It ran.
    Done {
        /// The call and its result.
        invocation: ToolInvocation,
        /// Words about it, if the tool has some.
        summary: Option<String>,
    },
    /// It has to be confirmed; nothing was done.
    Confirm(PendingCall),
    /// It is not clear what is meant; nothing was done.
    Ask(String),
    /// The gate refused it; nothing was done.
    Refused(String),
}

/// Collects what an agent needs. Everything but a model has a default.
pub struct AgentBuilder {
    name: String,
    description: String,
    model: Option<Arc<dyn LanguageModel>>,
    instruction: String,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    config: GenerationConfig,
    limits: Option<TurnLimits>,
    weak_tools: WeakTools,
    journal: Arc<dyn Journal>,
    logs: Arc<dyn LogStore>,
    worker: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl std::fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AgentBuilder {
    /// What it can do, for people and other agents.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Who answers. Required.
    #[must_use]
    pub fn model(mut self, model: impl LanguageModel) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// How it behaves. Required: a blank instruction is an error.
    #[must_use]
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.instruction = instruction.into();
        self
    }

    /// Something it can do.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Several things it can do, already shared.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Who may call what. Default: destructive tools are confirmed, others allowed.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How answers are generated. Default: see [`adjutant_core::limits`].
    #[must_use]
    pub fn config(mut self, config: GenerationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sampling temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: Temperature) -> Self {
        self.config.temperature = Some(temperature);
        self
    }

    /// Bound of the visible output.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: MaxTokens) -> Self {
        self.config.max_tokens = Some(max_tokens);
        self
    }

    /// The bounds of a turn. Default: [`TurnLimits::default`], with the deadline the model asks for.
    #[must_use]
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// What helps a weak model to use the tools. Default: no examples.
    #[must_use]
    pub fn weak_tools(mut self, weak_tools: WeakTools) -> Self {
        self.weak_tools = weak_tools;
        self
    }

    /// Where turns are journaled and logged, and the name of this process there. Default: in memory, gone with the
    /// agent.
    #[must_use]
    pub fn journal<J: Journal + LogStore>(mut self, journal: Arc<J>, worker: impl Into<String>) -> Self {
        self.journal = journal.clone();
        self.logs = journal;
        self.worker = worker.into();
        self
    }

    /// What time it is. Default: the system's clock. For tests of expiry.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`BuildError`]: no model, a blank name or instruction, a tool that cannot be registered.
    pub fn build(self) -> Result<Agent, BuildError> {
        let name = AgentName::new(self.name)?;
        if self.instruction.trim().is_empty() {
            return Err(Empty { what: "an instruction" }.into());
        }
        let model = self.model.ok_or(BuildError::NoModel)?;
        let mut registry = ToolRegistry::new();
        for tool in self.tools {
            registry.register(tool)?;
        }
        let limits = self.limits.unwrap_or_else(|| {
            let mut limits = TurnLimits::default();
            let capabilities = model.capabilities();
            if capabilities.local {
                limits.turn_deadline = TURN_DEADLINE_LOCAL;
            }
            limits.turn_deadline = capabilities.turn_deadline.unwrap_or(limits.turn_deadline);
            limits
        });
        Ok(Agent(Arc::new(Inner {
            name,
            description: self.description,
            model,
            instruction: self.instruction,
            config: self.config,
            limits,
            gate: Gate { registry, policy: self.policy },
            weak_tools: self.weak_tools,
            journal: self.journal,
            logs: self.logs,
            worker: self.worker,
            clock: self.clock,
            locks: StdMutex::new(HashMap::new()),
        })))
    }
}
