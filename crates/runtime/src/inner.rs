//! Everything that an agent consists of, shared by its clones.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use adjutant_core::port::{ConversationStore, Journal, Known, Loaded, LogStore, Newer, StoreError};
use adjutant_core::weak::WeakTools;
use adjutant_core::{
    AgentName, ConversationKey, Cost, Gate, GenerateResponse, GenerationConfig, Input,
    LanguageModel, Message, ModelError, Notice, OutputSchema, Told, TurnLimits, UserId,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::audience::Audience;
use crate::fresh::{FreshInstruction, TurnInstruction};
use crate::heart::Heart;
use crate::model_call::{Calling, CountModelCall};
use crate::prices::Prices;
use crate::queue::Queue;
use crate::recall::{Recall, RecallRequest};
use crate::recent::{Recent, Remembered};
use crate::spending::SpendingLimits;
use crate::waiting::Waiting;
use crate::warning;

/// Hears of each conversation that is at rest again.
pub(crate) type TellRest = Box<dyn Fn(&ConversationKey) + Send + Sync>;

/// How long a turn waits for it. A disk that does not answer must not hold up a conversation.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Everything that an agent consists of.
#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) name: AgentName,
    pub(crate) display_name: String,
    pub(crate) version: Option<String>,
    pub(crate) description: String,
    pub(crate) model: Arc<dyn LanguageModel>,
    pub(crate) instruction: String,
    /// What is added to it for every turn.
    pub(crate) fresh: Option<Arc<dyn TurnInstruction>>,
    /// The parts of a memory that are told with a message.
    pub(crate) recall: Option<Arc<dyn Recall>>,
    pub(crate) config: GenerationConfig,
    pub(crate) limits: TurnLimits,
    pub(crate) output: Option<OutputSchema>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) spending: SpendingLimits,
    pub(crate) gate: Gate,
    pub(crate) weak_tools: WeakTools,
    pub(crate) control_functions: bool,
    pub(crate) on_model_call: Arc<OnceLock<CountModelCall>>,
    pub(crate) on_rest: Arc<OnceLock<TellRest>>,
    /// Inputs that wait in this process until their conversation is free.
    pub(crate) queued: Queue,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) conversations: Arc<dyn ConversationStore>,
    pub(crate) worker: String,
    pub(crate) clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Held while a turn runs whose workers were lost before.
    pub(crate) suspects: Arc<Mutex<()>>,
    /// The conversations that were worked on last.
    pub(crate) recent: Arc<Recent>,
    /// What of them this process runs.
    pub(crate) heart: Arc<Heart>,
    /// The news of conversations.
    pub(crate) waiting: Arc<Waiting>,
    /// Those who wait for what is run elsewhere.
    pub(crate) audience: Arc<Audience>,
    /// The users for whom it is another, and what it is for each. All that is shared between turns
    /// is the same there.
    pub(crate) exceptions: BTreeMap<UserId, Arc<Self>>,
}

impl Inner {
    /// Returns what the agent is for this user.
    pub(crate) fn of(self: &Arc<Self>, user: &UserId) -> &Arc<Self> {
        self.exceptions.get(user).unwrap_or(self)
    }

    /// The same, which for one user is what `other` is: what it says, can do and may do, within the
    /// bounds of `other`. Store, caches, claims, budgets and prices stay.
    pub(crate) fn except_for(&self, user: UserId, other: &Self) -> Self {
        let own = Self {
            display_name: other.display_name.clone(),
            version: other.version.clone(),
            description: other.description.clone(),
            model: other.model.clone(),
            instruction: other.instruction.clone(),
            fresh: other.fresh.clone(),
            recall: other.recall.clone(),
            config: other.config.clone(),
            limits: other.limits.clone(),
            output: other.output.clone(),
            gate: other.gate.clone(),
            weak_tools: other.weak_tools.clone(),
            control_functions: other.control_functions,
            exceptions: BTreeMap::new(),
            ..self.clone()
        };
        let mut all = self.clone();
        all.exceptions.insert(user, Arc::new(own));
        all
    }

    /// Tells the log and whoever counts that a call of the model ended. `None`: nobody waited for
    /// it any more.
    pub(crate) fn model_call_ended(
        &self,
        call: &Calling,
        reply: Option<&Result<GenerateResponse, ModelError>>,
    ) {
        call.ended(self.model.id(), self.on_model_call.get(), reply);
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Reads a conversation of this agent. That of another agent is empty, like one that never was.
    pub(crate) async fn load(&self, key: &ConversationKey) -> Result<Loaded, StoreError> {
        if key.agent == self.name {
            self.journal.load(key).await
        } else {
            Ok(Loaded::default())
        }
    }

    /// Reads the state of a conversation of this agent without holding it: what is needed of it,
    /// however long it is. `None`: there is no such conversation, as there is none of another
    /// agent.
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

    /// Brings what is remembered of a conversation up to date, or folds it. `None`: it was deleted
    /// meanwhile.
    pub(crate) async fn state_of(
        &self,
        key: &ConversationKey,
        remembered: Option<Remembered>,
        newer: Newer,
    ) -> Result<Option<(Remembered, Vec<Input>)>, StoreError> {
        let (created_at, messages_max) = (newer.created_at, self.limits.history_messages_max);
        if let Some(state) = Remembered::with(remembered, newer, messages_max) {
            return Ok(Some(state));
        }
        // Its snapshot was made for another number of messages.
        let all = self
            .journal
            .load_newer(key, Some(Known { seq: 0, created_at }))
            .await?;
        let all = all.filter(|all| all.restorable.is_none());
        Ok(all.and_then(|all| Remembered::with(None, all, messages_max)))
    }

    /// What an answer cost: as the provider says, else as the table says for the model that
    /// answered, else for the one that was asked. `None`: it is not known.
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

    /// Returns what of the memory is told with a message of this conversation. `history`: the
    /// messages that the request begins with.
    pub(crate) async fn told_with(
        &self,
        key: &ConversationKey,
        message: &str,
        history: impl FnOnce() -> Vec<Message>,
    ) -> Vec<Told> {
        let Some(source) = &self.recall else {
            return Vec::new();
        };
        let asked = RecallRequest {
            key,
            message,
            history: &history(),
        };
        timeout(WAIT_MAX, source.for_message(asked))
            .await
            .unwrap_or_else(|_| {
                warning::not_recalled(WAIT_MAX);
                Vec::new()
            })
    }

    /// The whole instruction for a turn of this user: the part that never changes first, so that
    /// prompt caches hit.
    pub(crate) async fn instruction_for(&self, user: &UserId) -> (String, Vec<Notice>) {
        let Some(source) = &self.fresh else {
            return (self.instruction.clone(), Vec::new());
        };
        let fresh = timeout(WAIT_MAX, source.for_turn(user)).await.unwrap_or_else(|_| FreshInstruction {
            text: String::new(),
            notices: vec![Notice {
                code: "instruction_incomplete".to_owned(),
                text: format!(
                    "What is read before every turn was not there after {} s; this turn goes on without it.",
                    WAIT_MAX.as_secs()
                ),
            }],
        });
        let text = match fresh.text.trim() {
            "" => self.instruction.clone(),
            text => format!("{}\n\n{text}\n", self.instruction.trim_end()),
        };
        (text, fresh.notices)
    }
}
