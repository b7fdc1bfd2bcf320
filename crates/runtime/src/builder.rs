//! Collects what an agent needs, and checks it.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::port::{BudgetStore, ConversationStore, Journal, LogStore};
use adjutant_core::weak::WeakTools;
use adjutant_core::{
    AgentName, Budgets, Empty, Gate, GenerationConfig, LanguageModel, MaxTokens, Policy,
    Temperature, Tool, ToolRegistry, TurnLimits, WindowShare, schema_of,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde_json::Value;

use crate::BuildError;
use crate::agent::Agent;
use crate::clock::system_time;
use crate::faults::lease;
use crate::fresh::TurnInstruction;
use crate::heart::{Heart, LEASE};
use crate::in_memory::InMemory;
use crate::inner::Inner;
use crate::output::usable_output;
use crate::prices::{Prices, shared_builtin};
use crate::purse::Purse;
use crate::queue::Queue;
use crate::recall::Recall;
use crate::recent::Recent;
use crate::spending::{SpendingLimits, most_it_costs};
use crate::waiting::Waiting;

/// The bytes of memory that conversations take which are kept for their next turn, if nothing else
/// is said.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Collects what an agent needs. Everything but a model has a default.
pub struct AgentBuilder {
    name: String,
    display_name: Option<String>,
    version: Option<String>,
    description: String,
    model: Option<Arc<dyn LanguageModel>>,
    instruction: String,
    fresh: Option<Arc<dyn TurnInstruction>>,
    recall: Option<Arc<dyn Recall>>,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    config: GenerationConfig,
    limits: Option<TurnLimits>,
    summarize_at: Option<Option<WindowShare>>,
    output: Option<Value>,
    prices: Option<Prices>,
    budgets: Budgets,
    budget_store: Option<Arc<dyn BudgetStore>>,
    weak_tools: WeakTools,
    control_functions: bool,
    journal: Arc<dyn Journal>,
    logs: Arc<dyn LogStore>,
    conversations: Arc<dyn ConversationStore>,
    worker: String,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    cache_bytes: usize,
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
            fresh: None,
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
            weak_tools: WeakTools::default(),
            control_functions: true,
            journal: memory.clone(),
            logs: memory.clone(),
            conversations: memory,
            worker: format!("pid-{}", std::process::id()),
            clock: Arc::new(system_time),
            cache_bytes: CACHE_BYTES,
        }
    }

    /// Sets the name that people read. Default: the name the agent was made with, which is part of
    /// the keys of its conversations and stays the same while this one may change.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// Sets the agent's version, in any form. It is recorded with each turn and shown in the
    /// decision log; nothing depends on it. Default: none.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

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

    /// What is added to the instruction's end, made anew for every turn. Default: nothing.
    #[must_use]
    pub fn turn_instruction(mut self, source: impl TurnInstruction) -> Self {
        self.fresh = Some(Arc::new(source));
        self
    }

    /// Sets the source of what is told of a memory with each message. Default: none. A conversation
    /// that this process does not know is read once more for it.
    #[must_use]
    pub fn recall(mut self, source: impl Recall) -> Self {
        self.recall = Some(Arc::new(source));
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

    /// The bounds of a turn. Default: [`TurnLimits::default`], with the deadline the model asks
    /// for.
    #[must_use]
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Once a request takes this share of the usable window, old turns are put into few words by a
    /// model call of their own (see [`adjutant_core::limits::SUMMARIZE_AT`]). `None`: never, the
    /// oldest turns are left out when the window is full. Default: [`TurnLimits::summarize_at`],
    /// which is never.
    #[must_use]
    pub fn summarize_at(mut self, share: Option<WindowShare>) -> Self {
        self.summarize_at = Some(share);
        self
    }

    /// The final answer of every turn is JSON that fits the schema of `T`;
    /// [`AgentResponse::output()`](adjutant_core::AgentResponse::output()) gives the value.
    /// Default: words.
    ///
    /// Tools run before it as usual, and the model may still ask something back or decline. The
    /// model's own form is used where it has one and the schema is that of an object, else the
    /// schema stands at the end of the instruction. An answer that does not fit is asked for again
    /// ([`TurnLimits::reasks_max`]) and then a failure of the turn, never a success. For one
    /// request: [`Agent::with_output`].
    #[must_use]
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(schema_of::<T>())
    }

    /// [`AgentBuilder::output`] with a JSON Schema.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// What models cost, for [`AgentResponse::cost`](adjutant_core::AgentResponse::cost). Default:
    /// [`Prices::builtin`].
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// What the agent may spend, and the store that keeps what was spent in a day, for all who
    /// share it: the one of [`AgentBuilder::journal`], whose commits book what was used. Default:
    /// nothing is bounded.
    ///
    /// Before each model call the most it may take is set aside: the request as it is counted here,
    /// and all of the output it may have, at the price of [`AgentBuilder::prices`]. What does not
    /// fit ends the turn with [`LIMIT:BUDGET`](adjutant_core::OutcomeCategory::BudgetLimit); what
    /// ran before is told. When the call ends, what it really took is booked. A call that was
    /// stopped is booked as if it had given all of its visible output: nobody says what it took.
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets, store: Arc<dyn BudgetStore>) -> Self {
        (self.budgets, self.budget_store) = (budgets, Some(store));
        self
    }

    /// What helps a weak model to use the tools. Default: no examples.
    #[must_use]
    pub fn weak_tools(mut self, weak_tools: WeakTools) -> Self {
        self.weak_tools = weak_tools;
        self
    }

    /// Whether a model with tools is also offered [`ASK_USER`](adjutant_core::turn::ASK_USER) and
    /// [`DECLINE`](adjutant_core::turn::DECLINE), with which it says that an answer is a question
    /// or a refusal. Without, that is read from its words, as it is where it does not call them.
    /// Default: yes.
    #[must_use]
    pub fn control_functions(mut self, offered: bool) -> Self {
        self.control_functions = offered;
        self
    }

    /// Where turns are journaled and logged, and the name of this process there; where another
    /// agent of this process has the name, a number is added. Default: in memory, gone with the
    /// agent.
    #[must_use]
    pub fn journal<J: Journal + LogStore + ConversationStore>(
        self,
        journal: Arc<J>,
        worker: impl Into<String>,
    ) -> Self {
        self.dyn_journal(journal.clone(), journal.clone(), journal, worker)
    }

    /// [`AgentBuilder::journal`] for a store whose type is known only when the program runs: its
    /// three faces.
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

    /// What time it is. Default: the system's clock. For tests of expiry.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how many bytes of memory the conversations may take, about, that were worked on last
    /// and are kept so that the next turn reads only what is new. Default: 32 MiB. A conversation
    /// that is not kept is read from the journal again.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`BuildError`]: no model, a blank name or instruction, a tool that cannot be registered, an output schema that cannot
    /// be used.
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
        if self.budgets.bound_money()
            && !model.capabilities().local
            && most_it_costs(&prices, model.id(), (1, 1), today).is_none()
        {
            return Err(BuildError::UnknownPrice {
                model: model.id().clone(),
            });
        }
        let purse = Purse::new(&self.budgets, self.budget_store, lease(LEASE));
        let (journal, worker, waiting) =
            (self.journal.clone(), self.worker, Arc::<Waiting>::default());
        let heart = Arc::new(Heart::new(
            journal,
            name.clone(),
            worker,
            waiting.clone(),
            purse.clone(),
        ));
        Ok(Agent::from(Inner {
            display_name: self.display_name.unwrap_or_else(|| name.to_string()),
            name,
            version: self.version,
            description: self.description,
            model,
            instruction: self.instruction,
            fresh: self.fresh,
            recall: self.recall,
            config: self.config,
            limits,
            output,
            prices,
            spending: SpendingLimits {
                budgets: self.budgets,
                purse,
            },
            gate: Gate {
                registry,
                policy: self.policy,
            },
            weak_tools: self.weak_tools,
            control_functions: self.control_functions,
            on_model_call: Arc::default(),
            on_rest: Arc::default(),
            queued: Queue::default(),
            journal: self.journal,
            logs: self.logs,
            conversations: self.conversations,
            worker: heart.worker().to_owned(),
            clock: self.clock,
            suspects: Arc::default(),
            recent: Arc::new(Recent::new(self.cache_bytes)),
            heart,
            waiting,
            audience: Arc::default(),
            exceptions: BTreeMap::new(),
        }))
    }
}

impl Agent {
    /// Starts to build an agent of this name.
    #[must_use]
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder::new(name.into())
    }
}
