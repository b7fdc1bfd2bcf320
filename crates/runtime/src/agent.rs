//! [`Agent`]: the handle with which a program runs turns.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, Answer, CancellationToken, ClientSide, ConversationKey, InputBody, InputId,
    OutputSchema, UnusableSchema, UserId, Utterance,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dispatch::{Dispatch, DispatchFigures, Dispatcher};
use crate::inner::Inner;
use crate::output::usable_output;
use crate::recent::Remembered;
use crate::respond::{check, respond};
use crate::run::{Caller, OPENING_MESSAGE, opening_request, run_conversation};
use crate::stream::{Emitter, RunStream, StoppedSender};
use crate::turn_listeners::TurnPublisher;
use crate::turn_tools::check_client;
use crate::{BuildError, ModelCall, RunContext, RunError};

/// An LLM agent: a model, an instruction, tools, and limits. Made with [`Agent::builder`]. Cheap to
/// clone, and safe to share between tasks.
///
/// A *turn* answers one message: the model is asked, its tool calls pass the gate and run, and the
/// model is asked again with their results until it answers in text. Turns of one conversation run
/// one after the other; turns of different conversations run concurrently.
///
/// # Examples
///
/// ```
/// use adjutant_providers::scripted::{ScriptedModel, call, text};
/// use adjutant_runtime::Agent;
/// use adjutant_tools::FunctionTool;
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let weather = FunctionTool::new("weather", "The weather in a city.", schema, |_, arguments| {
///     async move { Ok(json!(format!("It snows in {}.", arguments["city"]))) }
/// })?;
/// // A script in the place of a model: it calls the tool, then answers.
/// let model = ScriptedModel::new([
///     call("weather", json!({"city": "Oslo"})),
///     text("Yes, it snows."),
/// ]);
/// let agent = Agent::builder("helper")
///     .model(model)
///     .instruction("Help people to dress.")
///     .tool(weather)
///     .build()?;
/// let response = agent.run("Do I need a coat in Oslo?").await?;
/// assert_eq!(response.content, "Yes, it snows.");
/// assert_eq!(response.tools_used[0].tool, "weather");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
    /// The output schema of messages sent through this handle, in place of the agent's own.
    output: Option<OutputSchema>,
    /// Client-side tools and context that are added to messages of this handle.
    client: Option<Box<ClientSide>>,
    /// Hands inputs of this handle to other processes. `None`: this process runs every turn.
    dispatcher: Option<Arc<Dispatcher>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.inner.name)
            .field("model", self.inner.model.id())
            .field("tools", &self.inner.gate.registry)
            .finish_non_exhaustive()
    }
}

impl From<Inner> for Agent {
    fn from(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
            output: None,
            client: None,
            dispatcher: None,
        }
    }
}

/// Running turns.
impl Agent {
    /// Answers one message in a new conversation of the local user.
    ///
    /// Dropping the future stops the turn.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written. A turn that ran is `Ok`, whatever its
    /// outcome.
    pub async fn run(&self, input: impl Into<String>) -> Result<AgentResponse, RunError> {
        self.run_in(&mut RunContext::default(), input).await
    }

    /// Answers a message in the conversation of a context, and appends both sides to the context.
    ///
    /// If calls wait for a confirmation, the message is parsed as the answer: yes, no, or, if it is
    /// neither, the question is asked again.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written.
    ///
    /// # Examples
    ///
    /// ```
    /// # use adjutant_core::{Annotations, OutcomeCategory};
    /// # use adjutant_providers::scripted::{ScriptedModel, call, text};
    /// # use adjutant_runtime::{Agent, RunContext};
    /// # use adjutant_tools::FunctionTool;
    /// # use serde_json::json;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let schema = json!({"type": "object"});
    /// let wipe = FunctionTool::new("wipe", "Deletes all files.", schema, |_, _| async {
    ///     Ok(json!("wiped"))
    /// })?
    /// .annotated(Annotations { destructive: true, ..Annotations::default() });
    /// let model = ScriptedModel::new([call("wipe", json!({})), text("All files are gone.")]);
    /// let agent = Agent::builder("janitor")
    ///     .model(model)
    ///     .instruction("Tidy up.")
    ///     .tool(wipe)
    ///     .build()?;
    ///
    /// let mut context = RunContext::default();
    /// let asked = agent.run_in(&mut context, "Delete everything.").await?;
    /// assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    /// let done = agent.run_in(&mut context, "yes").await?;
    /// assert_eq!(done.content, "All files are gone.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn run_in(
        &self,
        context: &mut RunContext,
        input: impl Into<String>,
    ) -> Result<AgentResponse, RunError> {
        self.run_input(context, None, self.message(input)).await
    }

    /// Submits an input that may have an idempotency key, and runs the conversation. The same `id`
    /// in the same conversation is one input: a client that sends it again gets the response to the
    /// first one.
    ///
    /// # Errors
    /// [`RunError`] as [`Agent::run`].
    pub async fn run_input(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> Result<AgentResponse, RunError> {
        let run = self.respond_with(context, id, body);
        let (response, after) = RunStream::spawn(&context.cancelled, false, run)
            .finish()
            .await?;
        context.history = after.history;
        context.history_is_from_others = after.history_is_from_others;
        context.pending = after.pending;
        Ok(response)
    }

    /// Answers pending calls. Each answer carries the digest of the call as it was shown, so that
    /// only that very call runs.
    ///
    /// # Errors
    /// [`RunError`] if the turn could not continue or be written.
    pub async fn answer(
        &self,
        context: &mut RunContext,
        answers: Vec<Answer>,
    ) -> Result<AgentResponse, RunError> {
        self.run_input(context, None, InputBody::Answers { answers })
            .await
    }

    /// Cancels a turn that waits for a person; none of its pending calls run. A running turn is
    /// stopped with [`RunContext::cancelled`].
    ///
    /// # Errors
    /// [`RunError::CannotContinue`] if nothing waits, or as [`Agent::run`].
    pub async fn cancel(&self, context: &mut RunContext) -> Result<AgentResponse, RunError> {
        self.run_input(context, None, InputBody::Cancel).await
    }

    /// Answers a message as [`Agent::run_in`] does, and returns the events of the turn.
    /// [`RunStream::finish`] returns the response and the context.
    #[must_use]
    pub fn stream(&self, context: &RunContext, input: impl Into<String>) -> RunStream {
        self.stream_input(context, None, self.message(input))
    }

    /// Answers pending calls as [`Agent::answer`] does, and returns the events of the turn.
    #[must_use]
    pub fn stream_answer(&self, context: &RunContext, answers: Vec<Answer>) -> RunStream {
        self.stream_input(context, None, InputBody::Answers { answers })
    }

    /// Submits an input as [`Agent::run_input`] does, and returns the events of the run.
    #[must_use]
    pub fn stream_input(
        &self,
        context: &RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> RunStream {
        let run = self.respond_with(context, id, body);
        RunStream::spawn(&context.cancelled, true, run)
    }

    /// Checks that a message is not empty and not too long, without submitting it.
    ///
    /// # Errors
    /// [`RunError::EmptyMessage`], [`RunError::MessageTooLarge`], [`RunError::MessageTooLong`].
    pub fn check_message(&self, text: &str) -> Result<(), RunError> {
        check(&self.inner, &InputBody::message(text))
    }

    /// Returns true if the conversation has accepted an input of this id, answered or not.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    pub async fn has_input(&self, key: &ConversationKey, id: &InputId) -> Result<bool, StoreError> {
        // Conversations of other agents are invisible to this one.
        Ok(key.agent == self.inner.name && self.inner.journal.find_input(key, id).await?.is_some())
    }

    /// Returns a conversation from the journal, with the messages that its next request begins
    /// with: as many of the last turns as [`TurnLimits::history_messages_max`] allows. A
    /// conversation that the journal does not know has an empty context.
    ///
    /// [`TurnLimits::history_messages_max`]: adjutant_core::TurnLimits::history_messages_max
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    pub async fn context(&self, key: &ConversationKey) -> Result<RunContext, StoreError> {
        let state = self.inner.for_user(&key.user).current(key).await?;
        let mut context = RunContext {
            conversation: key.conversation,
            ..RunContext::new(key.user.clone())
        };
        if let Some(conversation) = state.as_ref().map(Remembered::conversation) {
            context.history = conversation.kept_messages().to_vec();
            context.history_is_from_others = conversation.history_is_from_others();
            context.pending = conversation.pending().to_vec();
        }
        Ok(context)
    }

    /// Lets the model read the part that all requests of this agent begin with (instruction, tools,
    /// examples) ahead of the first message. Returns at once. For models that run inside this
    /// process; see [`LanguageModel::prepare`](adjutant_core::LanguageModel::prepare).
    ///
    /// Call it inside of a tokio runtime: a model that scores the actions of messages is asked first
    /// if it does, because requests to it begin differently.
    pub fn prepare(&self) {
        let inner = self.inner.clone();
        let opening = async move {
            let message = Utterance {
                message: OPENING_MESSAGE,
                before: None,
                earlier: None,
            };
            let weak = inner.model.capabilities().weak_tools;
            let scores = match weak {
                true => inner.model.score_actions(message).await.ok().flatten(),
                false => None,
            };
            // If the request cannot be made, the first turn reports why.
            if let Ok(request) = opening_request(&inner, scores.as_ref()) {
                inner.model.prepare(&request);
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(opening);
        }
    }

    fn message(&self, text: impl Into<String>) -> InputBody {
        let output_schema = self.output.as_ref().map(|schema| schema.as_json().clone());
        InputBody::Message {
            text: text.into(),
            output_schema,
            limits: None,
            client: self.client.clone(),
            shown: Vec::new(),
            time_zone: None,
            from_others: false,
        }
    }

    /// Returns the run of an input, to be spawned with an emitter.
    fn respond_with(
        &self,
        context: &RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> impl FnOnce(
        Emitter,
        CancellationToken,
        StoppedSender,
    ) -> futures::future::BoxFuture<
        'static,
        Result<(AgentResponse, RunContext), RunError>,
    > + use<> {
        let (agent, context) = (self.clone(), context.clone());
        move |emitter, cancelled, on_stopped| {
            Box::pin(async move {
                let inner = agent.inner.for_user(&context.user);
                let dispatcher = agent.dispatcher();
                respond(
                    inner,
                    dispatcher,
                    context,
                    id,
                    body,
                    Caller::new(&emitter, &cancelled),
                    on_stopped,
                )
                .await
            })
        }
    }
}

/// Variants of an agent: handles that share its model, tools, store and running turns.
impl Agent {
    /// Returns the same agent, whose answers are JSON that fits the schema of `T`.
    /// [`AgentResponse::output`] gives the value. Cheap: model, tools and store are shared.
    ///
    /// # Errors
    /// [`BuildError`] if the schema cannot be used, or the model cannot both call the agent's tools
    /// and follow a schema.
    ///
    /// # Examples
    ///
    /// ```
    /// # use adjutant_providers::scripted::{ScriptedModel, text};
    /// # use adjutant_runtime::Agent;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let model = ScriptedModel::new([text("[2, 3, 5]")]);
    /// let agent = Agent::builder("maths").model(model).instruction("Calculate.").build()?;
    /// let response = agent.with_output::<Vec<u32>>()?.run("The first three primes?").await?;
    /// let primes: Vec<u32> = response.output()?;
    /// assert_eq!(primes, [2, 3, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_output<T: JsonSchema + DeserializeOwned>(&self) -> Result<Self, BuildError> {
        let agent = self.answering_in(OutputSchema::of::<T>())?;
        Ok(Self {
            // A turn records the schema; the type is found by it.
            inner: Arc::new(self.inner.with_requested_output(agent.output.as_ref())),
            ..agent
        })
    }

    /// Returns the same agent, whose answers are JSON that fits a JSON Schema:
    /// [`Agent::with_output`] for schemas known only at run time.
    ///
    /// # Errors
    /// [`BuildError`] as [`Agent::with_output`].
    pub fn with_output_schema(&self, schema: Value) -> Result<Self, BuildError> {
        self.answering_in(OutputSchema::new(schema))
    }

    fn answering_in(
        &self,
        output: Result<OutputSchema, UnusableSchema>,
    ) -> Result<Self, BuildError> {
        let output = usable_output(output, &self.inner.model, &self.inner.gate.registry)?;
        Ok(Self {
            output: Some(output),
            ..self.clone()
        })
    }

    /// Returns the same agent with client-side tools, which the caller executes, or client-side
    /// context. Cheap, as [`Agent::with_output`].
    ///
    /// A turn whose model calls such a tool waits with a
    /// [`PendingCall`](adjutant_core::PendingCall) that [awaits its
    /// result](adjutant_core::PendingCall::awaits_result), for as long as a confirmation may take.
    /// [`Agent::answer`] provides the result and the turn continues, also after a restart. The
    /// agent's own calls of the same round run as usual. A message that arrives meanwhile is not a
    /// result: it is the next message. If no result arrives in time the turn ends.
    ///
    /// # Errors
    /// [`BuildError`] if a definition cannot be used, a name is one of the agent's own tools, the
    /// definitions are too large, or the model is a weak one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use adjutant_core::{ClientSide, ClientTool, ToolResult};
    /// # use adjutant_runtime::{Agent, RunContext};
    /// # async fn example(agent: &Agent) -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
    /// let tools = vec![ClientTool::new("weather", "The weather in a city.", Some(schema))?];
    /// let agent = agent.with_client(ClientSide { tools, ..ClientSide::default() })?;
    /// let mut context = RunContext::default();
    /// let mut response = agent.run_in(&mut context, "Do I need a coat in Oslo?").await?;
    /// while let Some(call) = response.decision.pending.iter().find(|call| call.awaits_result()) {
    ///     let weather = ToolResult::ok(format!("it snows in {}", call.arguments["city"]).into());
    ///     response = agent.answer(&mut context, vec![call.provided(weather)]).await?;
    /// }
    /// println!("{}", response.content);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_client(&self, client: ClientSide) -> Result<Self, BuildError> {
        check_client(&self.inner, &client)?;
        Ok(Self {
            client: Some(Box::new(client)),
            ..self.clone()
        })
    }

    /// Returns the same agent, whose turns run in the processes that `dispatch` selects; those call
    /// [`Agent::run_conversation`] or [`Agent::run_dispatched`]. Events of a turn are relayed to
    /// this process where the store has a [`Relay`](adjutant_core::port::Relay).
    ///
    /// A turn that no process starts within a second runs in this one. After several such failures
    /// `dispatch` is not used for a while, with a warning. A run whose context brings a history of
    /// its own always runs here.
    #[must_use]
    pub fn with_dispatch(&self, dispatch: Arc<dyn Dispatch>) -> Self {
        Self {
            dispatcher: Some(Arc::new(Dispatcher::new(dispatch))),
            ..self.clone()
        }
    }

    /// Returns the same agent, which in the conversations of one user behaves as `other` does: with
    /// its instruction, model, tools, policy and limits. Any number of users may have such an
    /// override. Name, store, budgets and caches stay this agent's, so that one [`Agent::recover`]
    /// covers all users. Accessors of the handle, such as [`Agent::tools`], return what users
    /// without an override get: see [`Agent::for_user`].
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(for_all: adjutant_runtime::Agent, with_notes: &adjutant_runtime::Agent) {
    /// use adjutant_core::UserId;
    /// let agent = for_all.with_override_for(UserId::local(), with_notes);
    /// assert_eq!(agent.for_user(&UserId::local()).display_name(), with_notes.display_name());
    /// # }
    /// ```
    #[must_use]
    pub fn with_override_for(&self, user: UserId, other: &Self) -> Self {
        Self {
            inner: Arc::new(self.inner.with_override_for(user, &other.inner)),
            ..self.clone()
        }
    }

    /// Returns the handle of one user: its accessors return the tools, instruction and limits that
    /// apply in this user's conversations.
    #[must_use]
    pub fn for_user(&self, user: &UserId) -> Self {
        Self {
            inner: self.inner.for_user(user).clone(),
            ..self.clone()
        }
    }
}

/// Running conversations on behalf of other processes.
impl Agent {
    /// Runs one conversation until no input is left or it waits for a person. Call it at least once
    /// after an input was submitted or a worker was lost; further calls are harmless. Returns the
    /// time until a pending call expires: call it again then, and the turn continues without an
    /// answer.
    ///
    /// # Errors
    /// [`RunError`] if the turn could not continue; no accepted input is lost.
    pub async fn run_conversation(
        &self,
        key: &ConversationKey,
    ) -> Result<Option<Duration>, RunError> {
        self.run_dispatched(key, None, &CancellationToken::new())
            .await
    }

    /// Runs one conversation as [`Agent::run_conversation`] does, and relays its events to the
    /// process that submitted the input, named by
    /// [`DispatchCall::reply_to`](crate::DispatchCall::reply_to). `cancelled` stops the running
    /// turn.
    ///
    /// # Errors
    /// [`RunError`] as [`Agent::run_conversation`].
    pub async fn run_dispatched(
        &self,
        key: &ConversationKey,
        reply_to: Option<&str>,
        cancelled: &CancellationToken,
    ) -> Result<Option<Duration>, RunError> {
        // The earliest expiry, because the caller schedules one call for it.
        let first_expiry = |conversation: &Conversation| {
            let pending = conversation.pending().iter();
            pending.map(|call| call.expires_at).min()
        };
        let (inner, relay) = (self.inner.for_user(&key.user), self.inner.journal.relay());
        let publisher = TurnPublisher::new(&self.inner.listeners, &relay, key, reply_to);
        let emitter = Emitter::Listeners(publisher);
        let expiry = run_conversation(
            inner,
            key,
            None,
            Caller::new(&emitter, cancelled),
            first_expiry,
        )
        .await?;
        let left = |at: Timestamp| {
            Duration::try_from(self.inner.now().duration_until(at)).unwrap_or_default()
        };
        Ok(expiry.flatten().map(left))
    }

    /// Starts to exchange events of turns with other processes that share the store. Without this
    /// call it starts with the first turn that is dispatched.
    pub fn start_relay(&self) {
        let (inner, relay) = (&self.inner, self.inner.journal.relay());
        inner
            .listeners
            .start_relay(&relay, inner.heartbeat.worker());
    }

    /// Returns counts of dispatched runs since the start, see [`Agent::with_dispatch`]. The
    /// [start delays](DispatchFigures::start_delays) are those since the last call. `None`: the
    /// agent has no dispatch.
    #[must_use]
    pub fn dispatch_figures(&self) -> Option<DispatchFigures> {
        self.dispatcher.as_ref().map(|it| it.take_figures())
    }

    /// Returns true while dispatch is suspended because it failed several times, and this process
    /// runs all turns. `None`: the agent has no dispatch.
    #[must_use]
    pub fn is_dispatch_suspended(&self) -> Option<bool> {
        self.dispatcher.as_ref().map(|it| it.is_suspended())
    }

    /// Waits for the calls that go on after their turns were stopped ([`RunContext::cancelled`]).
    /// They would be in doubt if the process ended before them.
    pub async fn calls_ended(&self) {
        let mut turns = self.inner.outliving_calls.subscribe();
        // A task that has used up its budget of polls would have to wait for nothing, and a caller
        // that polls once would take that for a call.
        if *turns.borrow() == 0 {
            return;
        }
        // The agent keeps the sender, so this cannot fail.
        let _ = turns.wait_for(|turns| *turns == 0).await;
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(crate) fn dispatcher(&self) -> Option<&Dispatcher> {
        self.dispatcher.as_deref()
    }
}

/// Callbacks of services and programs.
impl Agent {
    /// Registers a callback for each [`ModelCall`] that has ended, whichever handle ran it. It is
    /// called on the task of the turn and must not block. The first callback stays: returns `false`
    /// and changes nothing if there is one already. A service registers its own, for its metrics.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(agent: adjutant_runtime::Agent) {
    /// agent.on_model_call(|call| println!("{}: {} in {:?}", call.model, call.result, call.took));
    /// # }
    /// ```
    pub fn on_model_call(&self, callback: impl Fn(&ModelCall<'_>) + Send + Sync + 'static) -> bool {
        self.inner.on_model_call.set(Box::new(callback)).is_ok()
    }

    /// Registers a callback for each conversation whose lease this process has released: its turn
    /// ended, or waits for a person. Work that follows a turn, such as indexing, starts here. It is
    /// called on the task of the turn and must not block. The first callback stays: returns `false`
    /// and changes nothing if there is one already.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(agent: adjutant_runtime::Agent) {
    /// agent.on_idle(|key| println!("{} is idle", key.conversation));
    /// # }
    /// ```
    pub fn on_idle(&self, callback: impl Fn(&ConversationKey) + Send + Sync + 'static) -> bool {
        self.inner.on_idle.set(Box::new(callback)).is_ok()
    }
}
