//! The parts of an agent, shared by its clones.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use adjutant_core::port::{
    ConversationStore, Journal, Known, Loaded, LogStore, Newer, StoreError, UserSettingStore,
};
use adjutant_core::{
    AgentName, ConversationKey, Cost, Gate, GenerateResponse, GenerationConfig, Input,
    LanguageModel, Message, ModelError, Notice, OutputSchema, RecalledText, TurnLimits, Usage,
    UserId,
};
use adjutant_weak::WeakTools;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::change_notifier::ChangeNotifier;
use crate::heartbeat::Heartbeat;
use crate::model_call::{CallMetrics, OnModelCall};
use crate::outliving::OutlivingCalls;
use crate::prices::Prices;
use crate::queue::Queue;
use crate::recall::{Recall, RecallRequest};
use crate::recent::{Recent, Remembered};
use crate::spending::SpendingLimits;
use crate::turn_instruction::{InstructionAddition, TurnInstruction};
use crate::turn_listeners::TurnListeners;
use crate::warning;

/// A callback for conversations whose lease was released.
pub(crate) type OnIdle = Box<dyn Fn(&ConversationKey) + Send + Sync>;

/// Time that a turn waits for automatic recall and for the added instruction. A disk that does not
/// answer must not hold up a conversation.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The parts of an agent, and the state that its turns share.
#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) name: AgentName,
    pub(crate) display_name: String,
    pub(crate) version: Option<String>,
    pub(crate) description: String,
    pub(crate) model: Arc<dyn LanguageModel>,
    pub(crate) instruction: String,
    /// Makes the text that is added to the instruction for every turn.
    pub(crate) turn_instruction: Option<Arc<dyn TurnInstruction>>,
    /// The source of automatic recall.
    pub(crate) recall: Option<Arc<dyn Recall>>,
    pub(crate) config: GenerationConfig,
    pub(crate) limits: TurnLimits,
    pub(crate) output: Option<OutputSchema>,
    /// The output schema of the messages of one handle, with the type that it is of.
    pub(crate) requested_output: Option<OutputSchema>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) spending: SpendingLimits,
    pub(crate) gate: Gate,
    pub(crate) weak_tools: WeakTools,
    pub(crate) control_functions: bool,
    pub(crate) reports_failed_calls: bool,
    pub(crate) claims_change: Option<fn(&str) -> bool>,
    pub(crate) on_model_call: Arc<OnceLock<OnModelCall>>,
    pub(crate) on_idle: Arc<OnceLock<OnIdle>>,
    /// Counts the inputs that wait in this process for earlier turns.
    pub(crate) queued: Queue,
    /// Stopped turns whose calls go on.
    pub(crate) outliving_calls: OutlivingCalls,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) conversations: Arc<dyn ConversationStore>,
    pub(crate) user_settings: Option<Arc<dyn UserSettingStore>>,
    pub(crate) worker: String,
    pub(crate) clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Locked while a turn runs that may have crashed its earlier workers.
    pub(crate) suspects: Arc<Mutex<()>>,
    /// Caches the states of recent conversations.
    pub(crate) recent: Arc<Recent>,
    /// Keeps the leases of this process alive.
    pub(crate) heartbeat: Arc<Heartbeat>,
    /// Wakes tasks that wait for changes of a conversation.
    pub(crate) notifier: Arc<ChangeNotifier>,
    /// Receives events of turns that run in other tasks and processes.
    pub(crate) listeners: Arc<TurnListeners>,
    /// Time for which calls that must not be repeated are asked about after lost commits.
    pub(crate) ask_after_lost_commits: Duration,
    /// Overrides per user. The state that turns share is the same in each.
    pub(crate) overrides: BTreeMap<UserId, Arc<Self>>,
}

impl Inner {
    /// Returns the parts that apply in this user's conversations.
    pub(crate) fn for_user(self: &Arc<Self>, user: &UserId) -> &Arc<Self> {
        self.overrides.get(user).unwrap_or(self)
    }

    /// Returns the same agent for a handle whose messages ask for an output of their own.
    pub(crate) fn with_requested_output(&self, output: Option<&OutputSchema>) -> Self {
        let overrides = self.overrides.iter().map(|(user, inner)| {
            let inner = inner.with_requested_output(output);
            (user.clone(), Arc::new(inner))
        });
        Self {
            requested_output: output.cloned(),
            overrides: overrides.collect(),
            ..self.clone()
        }
    }

    /// Returns the same agent with an override for one user: instruction, model, tools, policy and
    /// limits of `other`. Store, caches, leases, budgets and prices stay.
    pub(crate) fn with_override_for(&self, user: UserId, other: &Self) -> Self {
        let own = Self {
            display_name: other.display_name.clone(),
            version: other.version.clone(),
            description: other.description.clone(),
            model: other.model.clone(),
            instruction: other.instruction.clone(),
            turn_instruction: other.turn_instruction.clone(),
            recall: other.recall.clone(),
            config: other.config.clone(),
            limits: other.limits.clone(),
            output: other.output.clone(),
            gate: other.gate.clone(),
            weak_tools: other.weak_tools.clone(),
            control_functions: other.control_functions,
            reports_failed_calls: other.reports_failed_calls,
            claims_change: other.claims_change,
            overrides: BTreeMap::new(),
            ..self.clone()
        };
        let mut all = self.clone();
        all.overrides.insert(user, Arc::new(own));
        all
    }

    /// Logs and counts a model call that ended. `reply` is `None` if it was stopped.
    pub(crate) fn record_model_call_end(
        &self,
        call: &CallMetrics,
        reply: Option<&Result<GenerateResponse, ModelError>>,
    ) {
        call.record_end(self.model.id(), self.on_model_call.get(), reply);
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Reads all events of a conversation. One of another agent is empty, like one that does not
    /// exist.
    pub(crate) async fn load(&self, key: &ConversationKey) -> Result<Loaded, StoreError> {
        if key.agent == self.name {
            self.journal.load(key).await
        } else {
            Ok(Loaded::default())
        }
    }

    /// Reads the state of a conversation without its lease: the last snapshot and the events behind
    /// it. `None`: this agent has no such conversation.
    pub(crate) async fn current(
        &self,
        key: &ConversationKey,
    ) -> Result<Option<Remembered>, StoreError> {
        if key.agent != self.name {
            return Ok(None);
        }
        let Some(newer) = self.journal.load_newer(key, None).await? else {
            return Ok(None);
        };
        Ok(self
            .state_of(key, None, newer)
            .await?
            .map(|(remembered, _)| remembered))
    }

    /// Folds newer events into the cached state of a conversation, or into a new one. `None`: the
    /// conversation was deleted meanwhile.
    pub(crate) async fn state_of(
        &self,
        key: &ConversationKey,
        remembered: Option<Remembered>,
        newer: Newer,
    ) -> Result<Option<(Remembered, Vec<Input>)>, StoreError> {
        let (created_at, messages_max) = (newer.created_at, self.limits.history_messages_max);
        let restarts = self.journal.restarts();
        if let Some(state) = Remembered::with(remembered, newer, messages_max, restarts) {
            return Ok(Some(state));
        }
        // The snapshot was made with another limit of messages, or the store may have lost events of
        // the cached state, so all events are folded again.
        let all = self
            .journal
            .load_newer(key, Some(Known { seq: 0, created_at }))
            .await?;
        let all = all.filter(|all| all.restorable.is_none());
        Ok(all.and_then(|all| Remembered::with(None, all, messages_max, restarts)))
    }

    /// Returns the cost of an answer: as the provider reports it, else by the price table for the
    /// model that answered, else for the one that was asked. `None`: it is not known.
    pub(crate) fn cost_of(&self, reply: &GenerateResponse) -> Option<Cost> {
        let today = self.now().to_zoned(TimeZone::UTC).date();
        let priced = |model| self.prices.cost(model, &reply.usage, today);
        let nothing = || self.model.capabilities().local.then(Cost::default);
        reply
            .cost
            .or_else(nothing)
            .or_else(|| priced(&reply.model))
            .or_else(|| priced(self.model.id()))
    }

    /// Returns the price of tokens that the model reads in one request. `None`: it is not known.
    pub(crate) fn input_cost(&self, tokens: u64) -> Option<Cost> {
        if self.model.capabilities().local {
            return Some(Cost::default());
        }
        let usage = Usage {
            input_tokens: Some(tokens),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let today = self.now().to_zoned(TimeZone::UTC).date();
        self.prices.cost(self.model.id(), &usage, today)
    }

    /// Returns the facts of automatic recall for a message. `history`: the messages that the
    /// request begins with.
    pub(crate) async fn recall_for(
        &self,
        key: &ConversationKey,
        message: &str,
        history: impl FnOnce() -> Vec<Message>,
    ) -> Vec<RecalledText> {
        let Some(source) = &self.recall else {
            return Vec::new();
        };
        let request = RecallRequest {
            key,
            message,
            history: &history(),
        };
        timeout(WAIT_MAX, source.for_message(request))
            .await
            .unwrap_or_else(|_| {
                warning::not_recalled(WAIT_MAX);
                Vec::new()
            })
    }

    /// Returns the instruction for a turn of this user. The part that never changes comes first, so
    /// that prompt caches hit.
    pub(crate) async fn instruction_for(&self, user: &UserId) -> (String, Vec<Notice>) {
        let Some(source) = &self.turn_instruction else {
            return (self.instruction.clone(), Vec::new());
        };
        let addition = timeout(WAIT_MAX, source.for_turn(user)).await.unwrap_or_else(|_| InstructionAddition {
            text: String::new(),
            notices: vec![Notice {
                code: "instruction_incomplete".to_owned(),
                text: format!(
                    "What is read before every turn was not there after {} s; this turn goes on without it.",
                    WAIT_MAX.as_secs()
                ),
            }],
        });
        let text = match addition.text.trim() {
            "" => self.instruction.clone(),
            text => format!("{}\n\n{text}\n", self.instruction.trim_end()),
        };
        (text, addition.notices)
    }
}
