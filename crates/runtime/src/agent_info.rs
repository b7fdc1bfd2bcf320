//! Accessors of an [`Agent`]: its name, parts, stores and spending.

use std::sync::Arc;

use adjutant_core::port::{ConversationStore, Journal, LogStore, StoreError, UserSettingStore};
use adjutant_core::{
    AgentName, Allowance, Budgets, ConversationId, ConversationKey, Cost, GenerationConfig,
    LanguageModel, Permission, Spending, ToolDefinition, ToolRegistry, TurnLimits, UserId,
};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::{Agent, RunContext};

impl Agent {
    /// Returns the name under which the agent's conversations are stored.
    #[must_use]
    pub fn name(&self) -> &AgentName {
        &self.inner().name
    }

    /// Returns the name that people read: [`Agent::name`], unless
    /// [`AgentBuilder::display_name`](crate::AgentBuilder::display_name) set another.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.inner().display_name
    }

    /// Returns the version that its developer gave it, if any.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.inner().version.as_deref()
    }

    /// Returns the key under which stores keep a context's conversation with this agent.
    #[must_use]
    pub fn key(&self, context: &RunContext) -> ConversationKey {
        context.key(self.name())
    }

    /// Returns the key of a user's conversation with this agent.
    #[must_use]
    pub fn key_for(&self, user: UserId, conversation: ConversationId) -> ConversationKey {
        ConversationKey {
            agent: self.name().clone(),
            user,
            conversation,
        }
    }

    /// Returns the description for people and other agents, as its developer wrote it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.inner().description
    }

    /// Returns the system instruction, without the text that is added to it for every turn.
    #[must_use]
    pub fn instruction(&self) -> &str {
        &self.inner().instruction
    }

    /// Returns the generation settings of its model calls, such as the temperature.
    #[must_use]
    pub fn config(&self) -> &GenerationConfig {
        &self.inner().config
    }

    /// Returns the language model that answers its turns.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.inner().model
    }

    /// Returns the registry of the tools that it executes.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.inner().gate.registry
    }

    /// Returns its policy's decision on a tool for this user: allowed, confirmed or forbidden.
    #[must_use]
    pub fn permission(&self, user: &UserId, tool: &ToolDefinition) -> Permission {
        self.inner().gate.policy.permission(user, tool)
    }

    /// Returns the time by its clock, which decides when pending calls expire.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner().now()
    }

    /// Returns the limits on what it may spend per turn and per day.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.inner().spending.budgets
    }

    /// Returns the booked spending of a user on a day, in UTC. Reservations of running steps are
    /// not included. `None`: no budget per day is set, so spending is not recorded.
    ///
    /// # Errors
    /// [`StoreError`] if the budget store cannot be read.
    pub async fn spent(&self, user: &UserId, day: Date) -> Result<Option<Spending>, StoreError> {
        match &self.inner().spending.daily_budget {
            Some(budget) => budget.spent(user, day).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the rest of today's (UTC) budget that all users share
    /// ([`Budgets::everyone_per_day`](adjutant_core::Budgets)). Reservations of running steps are
    /// not deducted.
    ///
    /// # Errors
    /// [`StoreError`] if the budget store cannot be read.
    pub async fn shared_budget_left(&self) -> Result<Allowance, StoreError> {
        let today = self.now().to_zoned(TimeZone::UTC).date();
        match &self.inner().spending.daily_budget {
            Some(budget) => budget.shared_budget_left(today).await,
            None => Ok(Allowance::default()),
        }
    }

    /// Returns the number of callers in this process whose input is accepted and waits for earlier
    /// inputs of its conversation.
    #[must_use]
    pub fn inputs_queued(&self) -> usize {
        self.inner().queued.len()
    }

    /// Returns the journal, which holds the events of its conversations.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.inner().journal
    }

    /// Returns the decision log and the log of tool invocations.
    #[must_use]
    pub fn logs(&self) -> &Arc<dyn LogStore> {
        &self.inner().logs
    }

    /// Returns the store that lists, renames and deletes its conversations.
    #[must_use]
    pub fn conversations(&self) -> &Arc<dyn ConversationStore> {
        &self.inner().conversations
    }

    /// Returns the store of the users' settings, if it has one.
    #[must_use]
    pub fn user_settings(&self) -> Option<&Arc<dyn UserSettingStore>> {
        self.inner().user_settings.as_ref()
    }

    /// Returns the price of tokens that its model reads in one request. `None`: it is not known.
    #[must_use]
    pub fn input_cost(&self, tokens: u64) -> Option<Cost> {
        self.inner().input_cost(tokens)
    }

    /// Returns the limits of its turns: rounds of tools, tokens, time.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.inner().limits
    }
}
