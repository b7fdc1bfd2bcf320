//! What whoever runs the service looks at.

use std::sync::Arc;

use adjutant_core::Budgets;
use adjutant_core::port::{BudgetStore, OperatorStore};
use serde::Serialize;
use utoipa::ToSchema;

/// What `/v1/admin` looks at.
#[derive(Clone)]
pub struct Administration {
    /// Everything of all users.
    pub store: Arc<dyn OperatorStore>,
    /// What was spent.
    pub spent: Arc<dyn BudgetStore>,
    /// What may be spent.
    pub budgets: Budgets,
    /// How the servers are whose tools the agent has. Asked each time.
    pub servers: Servers,
    /// Whether words of people, models and tools are shown. Each look at a turn is logged, with or without them.
    pub sees_words: bool,
    /// The program that serves, and its version.
    pub version: String,
}

/// How servers are.
pub type Servers = Arc<dyn Fn() -> Vec<ServerState> + Send + Sync>;

/// A server whose tools the agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerState {
    /// Its name in the settings.
    pub name: String,
    /// `connected`, `starting`, `restarting`, `failed`, `disabled` or `stopped`.
    pub state: &'static str,
    /// Why it does not answer.
    pub reason: Option<String>,
    /// What it calls itself, with its version.
    pub software: Option<String>,
    /// Tools of it that the agent has.
    pub tools: usize,
    /// Tools that came, went or changed since they were agreed to.
    pub changed: usize,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Administration").field("sees_words", &self.sees_words).finish_non_exhaustive()
    }
}
