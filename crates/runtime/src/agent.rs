//! What a developer runs.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{ConversationStore, Journal, LogStore, StoreError};
use adjutant_core::{
    AgentName, AgentResponse, Allowance, Answer, Budgets, CancellationToken, ClientSide,
    ConversationId, ConversationKey, GenerationConfig, InputBody, InputId, LanguageModel,
    OutputSchema, Permission, Spending, ToolDefinition, ToolRegistry, TurnLimits, UserId,
    schema_of,
};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde_json::Value;

use crate::audience::Telling;
use crate::dispatch::{Dispatch, DispatchFigures, Dispatcher};
use crate::inner::Inner;
use crate::output::usable_output;
use crate::recent::Remembered;
use crate::respond::{check, respond};
use crate::run::{advance, opening};
use crate::stream::{Emitter, RunStream};
use crate::turn_tools::check_client;
use crate::{BuildError, ModelCall, RunContext, RunError};

/// An LLM agent: a model, an instruction, tools, and the bounds it keeps. Cheap to clone, safe to
/// share.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
    /// What answers to inputs of this handle must look like, if that is not what all answers must.
    output: Option<OutputSchema>,
    /// The tools and context that are added to messages of this handle. `None`: nothing.
    client: Option<Box<ClientSide>>,
    /// Who has this handle's conversations go on, if not this process.
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

impl Agent {
    /// Answers once, in a new conversation of the local user.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written. A turn that ran is `Ok`, whatever its
    /// outcome.
    pub async fn run(&self, input: impl Into<String>) -> Result<AgentResponse, RunError> {
        self.run_in(&mut RunContext::default(), input).await
    }

    /// Answers in a conversation and appends both sides to the context. A message in a conversation
    /// where something waits is read as the answer: yes, no, or, if it is neither, the question
    /// comes again.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written.
    pub async fn run_in(
        &self,
        context: &mut RunContext,
        input: impl Into<String>,
    ) -> Result<AgentResponse, RunError> {
        self.drained(context, None, self.message(input)).await
    }

    /// Looks whether a message would be taken, before anything is done with it.
    ///
    /// # Errors
    /// [`RunError::EmptyMessage`], [`RunError::MessageTooLarge`], [`RunError::MessageTooLong`].
    pub fn check_message(&self, text: &str) -> Result<(), RunError> {
        check(&self.inner, &InputBody::message(text))
    }

    /// Takes an input that may have an id already, for clients that send again when no answer came:
    /// the same `id` in the same conversation is one input, and whoever sends it again gets what
    /// became of it.
    ///
    /// # Errors
    /// As [`Agent::run`].
    pub async fn run_input(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> Result<AgentResponse, RunError> {
        self.drained(context, id, body).await
    }

    /// Whether the conversation has accepted an input of this id, answered or not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn has_input(&self, key: &ConversationKey, id: &InputId) -> Result<bool, StoreError> {
        // Another agent's conversation is not there.
        Ok(key.agent == self.inner.name && self.inner.journal.find_input(key, id).await?.is_some())
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
        self.drained(context, None, InputBody::Answers { answers })
            .await
    }

    /// Stops a turn that waits for a human; nothing of what waits is done. A running turn is
    /// stopped by [`RunContext::cancelled`].
    ///
    /// # Errors
    /// [`RunError::CannotContinue`] if nothing waits, or as [`Agent::run`].
    pub async fn cancel(&self, context: &mut RunContext) -> Result<AgentResponse, RunError> {
        self.drained(context, None, InputBody::Cancel).await
    }

    /// The way to an answer as events; [`RunStream::finish`] gives the response and the context.
    #[must_use]
    pub fn stream(&self, context: &RunContext, input: impl Into<String>) -> RunStream {
        self.start(context, None, self.message(input))
    }

    /// [`Agent::answer`] as events.
    #[must_use]
    pub fn stream_answer(&self, context: &RunContext, answers: Vec<Answer>) -> RunStream {
        self.start(context, None, InputBody::Answers { answers })
    }

    /// [`Agent::run_input`] as events.
    #[must_use]
    pub fn stream_input(
        &self,
        context: &RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> RunStream {
        self.start(context, id, body)
    }

    /// The same agent whose answers are JSON that fits the schema of `T`; [`AgentResponse::output`]
    /// gives the value. Cheap: model, tools, journal and conversations are shared.
    ///
    /// # Errors
    /// [`BuildError`] if the schema cannot be used, or the model cannot both call the agent's tools
    /// and keep to it.
    pub fn with_output<T: JsonSchema>(&self) -> Result<Self, BuildError> {
        self.with_output_schema(schema_of::<T>())
    }

    /// [`Agent::with_output`] with a JSON Schema.
    ///
    /// # Errors
    /// As [`Agent::with_output`].
    pub fn with_output_schema(&self, schema: Value) -> Result<Self, BuildError> {
        let output = usable_output(schema, &self.inner.model, &self.inner.gate.registry)?;
        Ok(Self {
            output: Some(output),
            ..self.clone()
        })
    }

    /// Returns the same agent, each message of which brings tools that the caller executes, or what
    /// the caller knows. Cheap, as [`Agent::with_output`].
    ///
    /// A turn whose model calls such a tool waits with a
    /// [`PendingCall`](adjutant_core::PendingCall) that [awaits its
    /// result](adjutant_core::PendingCall::awaits_result), as long as a confirmation may take;
    /// [`Agent::answer`] brings it and the turn goes on, also after a restart. The agent's own
    /// calls beside it run as usual. Words that are said meanwhile are no result: they are the next
    /// message. If no result comes in time the turn ends.
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
    ///
    /// # Errors
    /// [`BuildError`] if a definition cannot be used, a name is one of the agent's own tools, there
    /// is too much of it, or the model is not trusted with tools of others.
    pub fn with_client(&self, client: ClientSide) -> Result<Self, BuildError> {
        check_client(&self.inner, &client)?;
        Ok(Self {
            client: Some(Box::new(client)),
            ..self.clone()
        })
    }

    /// Returns a conversation as the journal knows it, with the messages that its next request
    /// begins with: those of the last turns, as many as [`TurnLimits::history_messages_max`]
    /// allows. New to the journal: an empty context.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn context(&self, key: &ConversationKey) -> Result<RunContext, StoreError> {
        let known = self.inner.of(&key.user).current(key).await?;
        let conversation = known.as_ref().map(Remembered::conversation);
        Ok(RunContext {
            user: key.user.clone(),
            conversation: key.conversation,
            history: conversation
                .map(|known| known.kept_messages().to_vec())
                .unwrap_or_default(),
            pending: conversation
                .map(|known| known.pending().to_vec())
                .unwrap_or_default(),
            cancelled: CancellationToken::new(),
            request_id: None,
            fingerprint: None,
            trace: None,
        })
    }

    /// The same agent whose conversations are seen to by whoever `dispatch` finds, which ends in
    /// [`Agent::advance`] or [`Agent::advance_telling`] somewhere. What happens there is told as if
    /// it happened here, where it can be heard: see [`Relay`](adjutant_core::port::Relay). What
    /// nobody has begun within a second is done here, and after several such failures `dispatch` is
    /// not asked for a while, which is a warning. A history that only the caller knows is gone on
    /// with here.
    #[must_use]
    pub fn dispatched_by(&self, dispatch: Arc<dyn Dispatch>) -> Self {
        Self {
            dispatcher: Some(Arc::new(Dispatcher::new(dispatch))),
            ..self.clone()
        }
    }

    /// The same agent, which in the conversations of one user is what `other` is: its words, model,
    /// tools, policy and bounds; there may be such an exception for each of any number of users.
    /// Name, store, budgets and everything that turns share are this agent's, so that one sweep
    /// goes on with the work of all users, each with what is theirs. What is asked of the handle
    /// itself, such as [`Agent::tools`], is what everybody else has: see [`Agent::for_user`].
    ///
    /// ```
    /// # fn example(for_all: adjutant_runtime::Agent, with_notes: &adjutant_runtime::Agent) {
    /// use adjutant_core::UserId;
    /// let agent = for_all.except_for(UserId::local(), with_notes);
    /// assert_eq!(agent.for_user(&UserId::local()).display_name(), with_notes.display_name());
    /// # }
    /// ```
    #[must_use]
    pub fn except_for(&self, user: UserId, other: &Self) -> Self {
        Self {
            inner: Arc::new(self.inner.except_for(user, &other.inner)),
            ..self.clone()
        }
    }

    /// Returns the handle for one user's conversations: what it says of tools, instruction and
    /// bounds is what this user has.
    #[must_use]
    pub fn for_user(&self, user: &UserId) -> Self {
        Self {
            inner: self.inner.of(user).clone(),
            ..self.clone()
        }
    }

    /// Returns what came of asking whoever has conversations go on, see [`Agent::dispatched_by`].
    /// Each time to begin is returned once. `None`: nobody is asked.
    #[must_use]
    pub fn dispatch_figures(&self) -> Option<DispatchFigures> {
        self.dispatcher
            .as_ref()
            .map(|dispatcher| dispatcher.take_figures())
    }

    /// Returns whether nobody is asked at the moment, because asking failed several times: this
    /// process does the work itself. `None`: nobody is asked at all.
    #[must_use]
    pub fn is_dispatch_left_alone(&self) -> Option<bool> {
        self.dispatcher
            .as_ref()
            .map(|dispatcher| dispatcher.is_left_alone())
    }

    /// Begins to hear other processes that share the store, so that what they tell of turns
    /// arrives, and what is told to them is sent, from the first turn on. Without it that begins
    /// with the first turn that is dispatched.
    pub fn hear_others(&self) {
        self.inner
            .audience
            .hear(&self.inner.journal.relay(), self.inner.heart.worker());
    }

    /// Runs one conversation until nothing is left to do in it or it waits for a human. Whoever
    /// calls this at least once after an input was accepted, or a process that was at it is gone,
    /// gets it done; more often does no harm. Gives how long it is until something that waits
    /// expires: called again then, the turn goes on without an answer.
    ///
    /// # Errors
    /// [`RunError`] if it could not go on; nothing that was accepted is lost.
    pub async fn advance(&self, key: &ConversationKey) -> Result<Option<Duration>, RunError> {
        self.advance_telling(key, None, &CancellationToken::new())
            .await
    }

    /// Runs one conversation as [`Agent::advance`] does, and tells a listener in another process
    /// what happens: [`DispatchCall::reply_to`](crate::DispatchCall::reply_to). `cancelled` stops
    /// the turn that runs.
    ///
    /// # Errors
    /// As [`Agent::advance`].
    pub async fn advance_telling(
        &self,
        key: &ConversationKey,
        reply_to: Option<&str>,
        cancelled: &CancellationToken,
    ) -> Result<Option<Duration>, RunError> {
        let first = |conversation: &Conversation| {
            conversation
                .pending()
                .iter()
                .map(|call| call.expires_at)
                .min()
        };
        let first = self
            .advance_with(key, (reply_to, cancelled), first)
            .await?
            .flatten();
        let left = |at: Timestamp| {
            Duration::try_from(self.inner.now().duration_until(at)).unwrap_or_default()
        };
        Ok(first.map(left))
    }

    /// Runs one conversation as far as it can go, and reads something of the state it ends in.
    /// `None`: it was removed, or never was.
    async fn advance_with<T>(
        &self,
        key: &ConversationKey,
        (reply_to, cancelled): (Option<&str>, &CancellationToken),
        read: impl FnOnce(&Conversation) -> T,
    ) -> Result<Option<T>, RunError> {
        let telling = Telling::new(
            &self.inner.audience,
            &self.inner.journal.relay(),
            key,
            reply_to,
        );
        let around = (&Emitter::Audience(telling), cancelled);
        advance(self.inner.of(&key.user), key, None, around, read).await
    }

    /// Has the model begin to read what all requests of this agent begin with: instruction, tools
    /// and examples. For programs that start and then wait for somebody to say something. Returns
    /// at once; see [`LanguageModel::prepare`].
    pub fn prepare(&self) {
        // A turn that cannot be made is an error when it is.
        if let Ok(request) = opening(&self.inner) {
            self.inner.model.prepare(&request);
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(crate) fn dispatcher(&self) -> Option<&Dispatcher> {
        self.dispatcher.as_deref()
    }

    /// Calls `count` with each [`ModelCall`] of this agent's turns that has ended, whichever handle
    /// runs them. It is called on the task of the turn and must not block. The first `count` stays:
    /// returns `false`, and changes nothing, if there is one already. A service sets its own, for
    /// its figures.
    ///
    /// ```
    /// # fn example(agent: adjutant_runtime::Agent) {
    /// agent.on_model_call(|call| println!("{}: {} in {:?}", call.model, call.result, call.took));
    /// # }
    /// ```
    pub fn on_model_call(&self, count: impl Fn(&ModelCall<'_>) + Send + Sync + 'static) -> bool {
        self.inner.on_model_call.set(Box::new(count)).is_ok()
    }

    /// Calls `tell` with each conversation that this process has worked on and has given back: its
    /// turn ended, or waits for somebody. Whatever is done behind a turn begins here. It is called
    /// on the task of the turn and must not block. The first `tell` stays: returns `false`, and
    /// changes nothing, if there is one already.
    ///
    /// ```
    /// # fn example(agent: adjutant_runtime::Agent) {
    /// agent.on_rest(|key| println!("{} is at rest", key.conversation));
    /// # }
    /// ```
    pub fn on_rest(&self, tell: impl Fn(&ConversationKey) + Send + Sync + 'static) -> bool {
        self.inner.on_rest.set(Box::new(tell)).is_ok()
    }

    /// Returns how many callers wait in this process for a conversation to be free: their input is
    /// accepted, and others are in front of it.
    #[must_use]
    pub fn inputs_queued(&self) -> usize {
        self.inner.queued.len()
    }

    /// Returns what is left today (UTC) of what all users may spend together, as far as it is
    /// bounded ([`Budgets::everyone_per_day`](adjutant_core::Budgets)). What is set aside for steps
    /// that run is not taken off.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn everyone_left(&self) -> Result<Allowance, StoreError> {
        match &self.inner.spending.purse {
            Some(purse) => {
                purse
                    .everyone_left(self.inner.now().to_zoned(TimeZone::UTC).date())
                    .await
            }
            None => Ok(Allowance::default()),
        }
    }

    /// Returns the name its conversations are kept under.
    #[must_use]
    pub fn name(&self) -> &AgentName {
        &self.inner.name
    }

    /// Returns the name that people read: [`Agent::name`], unless
    /// [`AgentBuilder::display_name`](crate::AgentBuilder::display_name) gave another.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.inner.display_name
    }

    /// Returns its version, if its developer gives one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.inner.version.as_deref()
    }

    /// Returns the key under which stores keep a context's conversation with this agent.
    #[must_use]
    pub fn key(&self, context: &RunContext) -> ConversationKey {
        context.key(&self.inner.name)
    }

    /// Returns the key of a user's conversation with this agent.
    #[must_use]
    pub fn key_of(&self, user: UserId, conversation: ConversationId) -> ConversationKey {
        ConversationKey {
            agent: self.inner.name.clone(),
            user,
            conversation,
        }
    }

    /// What it can do, in its developer's words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.inner.description
    }

    /// Returns its instruction, without what is added anew for every turn.
    #[must_use]
    pub fn instruction(&self) -> &str {
        &self.inner.instruction
    }

    /// Returns what its model calls are made with.
    #[must_use]
    pub fn config(&self) -> &GenerationConfig {
        &self.inner.config
    }

    /// The model it asks.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.inner.model
    }

    /// Its tools.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.inner.gate.registry
    }

    /// What its policy says to this user's call of a tool.
    #[must_use]
    pub fn permission(&self, user: &UserId, tool: &ToolDefinition) -> Permission {
        self.inner.gate.policy.permission(user, tool)
    }

    /// The time by its clock, which is what expiries are compared with.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Returns its budgets.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.inner.spending.budgets
    }

    /// Returns what was spent for a user on a day, in UTC, and is booked; what is only set aside
    /// for steps that run is not in it. `None`: no day is bounded, so nobody counts.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn spent(&self, user: &UserId, day: Date) -> Result<Option<Spending>, StoreError> {
        match &self.inner.spending.purse {
            Some(purse) => purse.spent(user, day).await.map(Some),
            None => Ok(None),
        }
    }

    /// What happened in its conversations.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.inner.journal
    }

    /// What was decided, and which tools ran.
    #[must_use]
    pub fn logs(&self) -> &Arc<dyn LogStore> {
        &self.inner.logs
    }

    /// The list of its conversations.
    #[must_use]
    pub fn conversations(&self) -> &Arc<dyn ConversationStore> {
        &self.inner.conversations
    }

    /// The bounds of its turns.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.inner.limits
    }

    fn message(&self, text: impl Into<String>) -> InputBody {
        let output_schema = self.output.as_ref().map(|schema| schema.as_json().clone());
        InputBody::Message {
            text: text.into(),
            output_schema,
            limits: None,
            client: self.client.clone(),
        }
    }

    pub(crate) async fn drained(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        body: InputBody,
    ) -> Result<AgentResponse, RunError> {
        let (agent, own) = (self.clone(), context.clone());
        let run = |emitter, cancelled| async move {
            let inner = agent.inner.of(&own.user);
            respond(
                inner,
                agent.dispatcher(),
                own,
                (id, body),
                (&emitter, &cancelled),
            )
            .await
        };
        let (response, after) = RunStream::unheard(&context.cancelled, run).await?;
        context.history = after.history;
        context.pending = after.pending;
        Ok(response)
    }

    fn start(&self, context: &RunContext, id: Option<InputId>, body: InputBody) -> RunStream {
        let (agent, own) = (self.clone(), context.clone());
        RunStream::start(&context.cancelled, |emitter, cancelled| async move {
            let inner = agent.inner.of(&own.user);
            respond(
                inner,
                agent.dispatcher(),
                own,
                (id, body),
                (&emitter, &cancelled),
            )
            .await
        })
    }
}
