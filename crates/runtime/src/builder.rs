//! [`AgentBuilder`]: collects the parts of an agent, and checks them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits::ASK_AFTER_LOST_COMMITS;
use adjutant_core::port::{BudgetStore, ConversationStore, Journal, LogStore, UserSettingStore};
use adjutant_core::{
    AgentName, Budgets, Empty, Gate, GenerationConfig, LanguageModel, MaxTokens, OutputSchema,
    Policy, Temperature, Tool, ToolRegistry, TurnLimits, UnusableSchema, WindowShare,
};
use adjutant_weak::WeakTools;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::BuildError;
use crate::agent::Agent;
use crate::change_notifier::ChangeNotifier;
use crate::clock::system_time;
use crate::daily_budget::DailyBudget;
use crate::faults::lease_duration;
use crate::heartbeat::{Heartbeat, LEASE};
use crate::in_memory::InMemory;
use crate::inner::Inner;
use crate::outliving::OutlivingCalls;
use crate::output::usable_output;
use crate::prices::{Prices, shared_builtin};
use crate::queue::Queue;
use crate::recall::Recall;
use crate::recent::Recent;
use crate::spending::{SpendingLimits, max_cost};
use crate::turn_instruction::TurnInstruction;

/// Default size of the cache of conversation states, in bytes.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The configuration of an [`Agent`]. A model and an instruction are required; everything else has
/// a default.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use adjutant_core::{Temperature, TurnLimits};
/// use adjutant_providers::scripted::{ScriptedModel, text};
/// use adjutant_runtime::Agent;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder("helper")
///     .model(ScriptedModel::new([text("Hello.")]))
///     .instruction("Be brief.")
///     .temperature(Temperature::new(0.2)?)
///     .limits(TurnLimits {
///         turn_deadline: Some(Duration::from_secs(60)),
///         ..TurnLimits::default()
///     })
///     .build()?;
/// assert_eq!(agent.name().as_str(), "helper");
/// # Ok(())
/// # }
/// ```
pub struct AgentBuilder {
    name: String,
    display_name: Option<String>,
    version: Option<String>,
    description: String,
    model: Option<Arc<dyn LanguageModel>>,
    instruction: String,
    turn_instruction: Option<Arc<dyn TurnInstruction>>,
    recall: Option<Arc<dyn Recall>>,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    config: GenerationConfig,
    limits: Option<TurnLimits>,
    summarize_at: Option<Option<WindowShare>>,
    output: Option<Result<OutputSchema, UnusableSchema>>,
    prices: Option<Prices>,
    budgets: Budgets,
    budget_store: Option<Arc<dyn BudgetStore>>,
    user_settings: Option<Arc<dyn UserSettingStore>>,
    weak_tools: WeakTools,
    control_functions: bool,
    reports_failed_calls: bool,
    claims_change: Option<fn(&str) -> bool>,
    journal: Arc<dyn Journal>,
    logs: Arc<dyn LogStore>,
    conversations: Arc<dyn ConversationStore>,
    worker: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    cache_bytes: usize,
    ask_after_lost_commits: Duration,
}

impl std::fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl AgentBuilder {
    pub(crate) fn new(name: String) -> Self {
        let memory = Arc::new(InMemory::new());
        Self {
            name,
            display_name: None,
            version: None,
            description: String::new(),
            model: None,
            instruction: String::new(),
            turn_instruction: None,
            recall: None,
            tools: Vec::new(),
            policy: Policy::default(),
            config: GenerationConfig::default(),
            limits: None,
            summarize_at: None,
            output: None,
            prices: None,
            budgets: Budgets::default(),
            budget_store: None,
            user_settings: None,
            weak_tools: WeakTools::default(),
            control_functions: true,
            reports_failed_calls: false,
            claims_change: None,
            journal: memory.clone(),
            logs: memory.clone(),
            conversations: memory,
            worker: format!("pid-{}", std::process::id()),
            clock: Arc::new(system_time),
            cache_bytes: CACHE_BYTES,
            ask_after_lost_commits: ASK_AFTER_LOST_COMMITS,
        }
    }

    /// Sets the name that people read; it may be changed later. Default: the name given to
    /// [`Agent::builder`], which is part of the keys of conversations and must not change.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// Sets the agent's version, in any format. It is recorded with each turn and shown in the
    /// decision log; nothing else depends on it. Default: none.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the description of the agent for people and other agents. Default: empty.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the language model that answers. Required.
    #[must_use]
    pub fn model(mut self, model: impl LanguageModel) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the system instruction of every model call. Required, and must not be blank.
    #[must_use]
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.instruction = instruction.into();
        self
    }

    /// Sets a source of text that is added to the end of the instruction for every turn. Default:
    /// none.
    #[must_use]
    pub fn turn_instruction(mut self, source: impl TurnInstruction) -> Self {
        self.turn_instruction = Some(Arc::new(source));
        self
    }

    /// Sets the source of automatic recall: facts that are attached to each message. Default: none.
    /// It needs the state of the conversation before the turn, which costs a read if it is not
    /// cached.
    #[must_use]
    pub fn recall(mut self, source: impl Recall) -> Self {
        self.recall = Some(Arc::new(source));
        self
    }

    /// Adds a tool that the model may call.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds several shared tools that the model may call.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the policy, which decides per user and tool. Default: destructive tools need a
    /// confirmation, others are allowed.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the generation settings of model calls. Default: see [`adjutant_core::limits`].
    #[must_use]
    pub fn config(mut self, config: GenerationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the sampling temperature of model calls, replacing that of [`AgentBuilder::config`].
    #[must_use]
    pub fn temperature(mut self, temperature: Temperature) -> Self {
        self.config.temperature = Some(temperature);
        self
    }

    /// Sets the most visible output tokens of a model call, replacing that of
    /// [`AgentBuilder::config`].
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: MaxTokens) -> Self {
        self.config.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the limits of a turn. Default: [`TurnLimits::for_model`], which adapts the deadline to
    /// the model.
    #[must_use]
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the share of the usable context window at which compaction starts: old turns are
    /// summarised by an extra model call (see [`adjutant_core::limits::SUMMARIZE_AT`]). `None`:
    /// never; the oldest turns are left out when the window is full. Default:
    /// [`TurnLimits::summarize_at`], which is never.
    #[must_use]
    pub fn summarize_at(mut self, share: Option<WindowShare>) -> Self {
        self.summarize_at = Some(share);
        self
    }

    /// Makes the final answer of every turn JSON that fits the schema of `T`, and `T` itself;
    /// [`AgentResponse::output()`](adjutant_core::AgentResponse::output()) returns the value.
    /// Default: text.
    ///
    /// Tools run before it as usual, and the model may still ask a question or decline. The
    /// provider's own structured output is used if it has one and the schema is of an object, else
    /// the schema is appended to the instruction. An answer that does not fit is asked for again
    /// ([`TurnLimits::reasks_max`]); after that the turn fails. For one request:
    /// [`Agent::with_output`].
    #[must_use]
    pub fn output<T: JsonSchema + DeserializeOwned>(mut self) -> Self {
        self.output = Some(OutputSchema::of::<T>());
        self
    }

    /// Makes the final answer of every turn JSON that fits a JSON Schema, as
    /// [`AgentBuilder::output`] does for a type.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(OutputSchema::new(schema));
        self
    }

    /// Sets the price table for [`AgentResponse::cost`](adjutant_core::AgentResponse::cost) and
    /// budgets. Default: [`Prices::builtin`].
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// Sets the budgets, and the store that books spending per day. The store must be that of
    /// [`AgentBuilder::journal`], because spending is booked with the commits of turns. Default: no
    /// budgets.
    ///
    /// Before each model call, the most that it may take is reserved: the request as counted here,
    /// and all of the output it may have, at the prices of [`AgentBuilder::prices`]. A call that
    /// does not fit ends the turn with
    /// [`LIMIT:BUDGET`](adjutant_core::OutcomeCategory::BudgetLimit). When the call ends, its real
    /// usage is booked. A call that was stopped is booked with all of its visible output, because
    /// its usage is not reported.
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets, store: Arc<dyn BudgetStore>) -> Self {
        (self.budgets, self.budget_store) = (budgets, Some(store));
        self
    }

    /// Sets the store of the users' settings. The time of a message whose sender names no
    /// [`time_zone`](crate::RunContext::time_zone) is stated in the user's stored one. Default: no
    /// store.
    #[must_use]
    pub fn user_settings(mut self, store: Arc<dyn UserSettingStore>) -> Self {
        self.user_settings = Some(store);
        self
    }

    /// Sets the examples for constrained tool calling of weak models. Default: no examples.
    #[must_use]
    pub fn weak_tools(mut self, weak_tools: WeakTools) -> Self {
        self.weak_tools = weak_tools;
        self
    }

    /// Sets whether a model with tools is also offered [`ASK_USER`](adjutant_core::turn::ASK_USER)
    /// and [`DECLINE`](adjutant_core::turn::DECLINE), with which it marks an answer as a question
    /// or a refusal. Without them, and if the model does not call them, the text of the answer
    /// decides. Default: `true`.
    #[must_use]
    pub fn control_functions(mut self, offered: bool) -> Self {
        self.control_functions = offered;
        self
    }

    /// Sets whether the answer of a turn with failed calls says which failed and why, in the tools'
    /// own words: behind the model's answer, or in its place if no call succeeded, and then the
    /// outcome is [`ToolFailure`](adjutant_core::OutcomeCategory::ToolFailure). For assistants whose
    /// users must not read that something was done which was not. Otherwise the model's answer
    /// stands, and so does its outcome. Either way
    /// [`AgentResponse::failed_calls`](adjutant_core::AgentResponse::failed_calls) has the calls.
    /// Default: `false`.
    #[must_use]
    pub fn report_failed_calls(mut self, reported: bool) -> Self {
        self.reports_failed_calls = reported;
        self
    }

    /// Sets a check that returns true for a text which says that something was changed or will be,
    /// such as `adjutant_weak::claims_a_change`. If no call of a turn changed anything and the
    /// model's answer says so, the turn has the notice `nothing_changed`. With
    /// [`report_failed_calls`](Self::report_failed_calls) and a failed call, the words of the failed
    /// calls stand in the place of the answer, also where other calls have read something. Default:
    /// none.
    #[must_use]
    pub fn claims_change(mut self, check: fn(&str) -> bool) -> Self {
        self.claims_change = Some(check);
        self
    }

    /// Sets the store of journal, logs and conversations, and the name of this process as a worker.
    /// A number is added to the name if another agent of this process has it. Default:
    /// [`InMemory`], whose data ends with the agent.
    #[must_use]
    pub fn journal<J: Journal + LogStore + ConversationStore>(
        self,
        journal: Arc<J>,
        worker: impl Into<String>,
    ) -> Self {
        self.dyn_journal(journal.clone(), journal.clone(), journal, worker)
    }

    /// Sets the store as [`AgentBuilder::journal`] does, as trait objects: for a store whose type
    /// is chosen at run time.
    #[must_use]
    pub fn dyn_journal(
        mut self,
        journal: Arc<dyn Journal>,
        logs: Arc<dyn LogStore>,
        conversations: Arc<dyn ConversationStore>,
        worker: impl Into<String>,
    ) -> Self {
        self.journal = journal;
        self.logs = logs;
        self.conversations = conversations;
        self.worker = worker.into();
        self
    }

    /// Sets the clock, for tests of expiry. Default: the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the approximate size in bytes of the cache of conversation states. A turn of a cached
    /// conversation reads only newer events from the journal. Default: 32 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the time for which a person is asked before each call of class
    /// [`Effect::Once`](adjutant_core::Effect::Once), after the database has lost commits
    /// ([`Journal::since_lost_commits`]). Default: 10 minutes; zero: nobody is asked.
    #[must_use]
    pub fn ask_after_lost_commits(mut self, time: Duration) -> Self {
        self.ask_after_lost_commits = time;
        self
    }

    /// Checks the parts and builds the agent.
    ///
    /// # Errors
    /// [`BuildError`]: no model, a blank name or instruction, a tool that cannot be registered, an
    /// output schema that cannot be used, or a budget of money without a known price.
    pub fn build(self) -> Result<Agent, BuildError> {
        let name = AgentName::new(self.name)?;
        if self.instruction.trim().is_empty() {
            return Err(Empty {
                what: "an instruction",
            }
            .into());
        }
        let model = self.model.ok_or(BuildError::NoModel)?;
        let mut registry = ToolRegistry::new();
        for tool in self.tools {
            registry.register(tool)?;
        }
        let mut limits = self
            .limits
            .unwrap_or_else(|| TurnLimits::for_model(model.capabilities()));
        limits.summarize_at = self.summarize_at.unwrap_or(limits.summarize_at);
        let output = self
            .output
            .map(|schema| usable_output(schema, &model, &registry))
            .transpose()?;
        let prices = self.prices.map_or_else(shared_builtin, Arc::new);
        let today = (self.clock)().to_zoned(TimeZone::UTC).date();
        // Without a price no call could be deducted, and the budget would never be exceeded.
        if self.budgets.bound_money()
            && !model.capabilities().local
            && max_cost(&prices, model.id(), 1, 1, today).is_none()
        {
            return Err(BuildError::UnknownPrice {
                model: model.id().clone(),
            });
        }
        let daily_budget =
            DailyBudget::new(&self.budgets, self.budget_store, lease_duration(LEASE));
        let (journal, worker, notifier) = (
            self.journal.clone(),
            self.worker,
            Arc::<ChangeNotifier>::default(),
        );
        let heartbeat = Arc::new(Heartbeat::new(
            journal,
            name.clone(),
            worker,
            notifier.clone(),
            daily_budget.clone(),
        ));
        Ok(Agent::from(Inner {
            display_name: self.display_name.unwrap_or_else(|| name.to_string()),
            name,
            version: self.version,
            description: self.description,
            model,
            instruction: self.instruction,
            turn_instruction: self.turn_instruction,
            recall: self.recall,
            config: self.config,
            limits,
            output,
            prices,
            spending: SpendingLimits {
                budgets: self.budgets,
                daily_budget,
            },
            gate: Gate {
                registry,
                policy: self.policy,
            },
            weak_tools: self.weak_tools,
            control_functions: self.control_functions,
            reports_failed_calls: self.reports_failed_calls,
            claims_change: self.claims_change,
            on_model_call: Arc::default(),
            on_idle: Arc::default(),
            queued: Queue::default(),
            outliving_calls: OutlivingCalls::default(),
            journal: self.journal,
            logs: self.logs,
            conversations: self.conversations,
            user_settings: self.user_settings,
            worker: heartbeat.worker().to_owned(),
            clock: self.clock,
            suspects: Arc::default(),
            recent: Arc::new(Recent::new(self.cache_bytes)),
            ask_after_lost_commits: self.ask_after_lost_commits,
            heartbeat,
            notifier,
            listeners: Arc::default(),
            requested_output: None,
            overrides: BTreeMap::new(),
        }))
    }
}

impl Agent {
    /// Starts to build an agent of this name, which is part of the keys of its conversations.
    #[must_use]
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder::new(name.into())
    }
}
