//! The data behind `/v1/admin`, an operator's view of the service.

use std::sync::Arc;

use adjutant_core::Budgets;
use adjutant_core::port::{BudgetStore, OperatorStore};
use serde::Serialize;
use utoipa::ToSchema;

/// The data sources and settings of `/v1/admin`.
#[derive(Clone)]
pub struct Administration {
    /// Everything of all users.
    pub store: Arc<dyn OperatorStore>,
    /// The store of what was spent of the budgets.
    pub spent: Arc<dyn BudgetStore>,
    /// The limits on what may be spent.
    pub budgets: Budgets,
    /// The states of the servers whose tools the agent has. Read at each request.
    pub servers: Servers,
    /// True if words of people, models and tools are shown. Each look at a turn is logged, with or
    /// without them.
    pub sees_words: bool,
    /// The program that serves, and its version.
    pub version: String,
}

/// A function that returns the present state of each server.
pub type Servers = Arc<dyn Fn() -> Vec<ServerState> + Send + Sync>;

/// A server whose tools the agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerState {
    /// Its name in the settings.
    pub name: String,
    /// `connected`, `starting`, `restarting`, `failed`, `disabled` or `stopped`.
    pub state: &'static str,
    /// The reason it does not answer, where it failed or is restarting.
    pub reason: Option<String>,
    /// The name it reports of itself, with its version.
    pub software: Option<String>,
    /// Tools of it that the agent has.
    pub tools: usize,
    /// Tools that came, went or changed since they were agreed to.
    pub changed: usize,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Administration")
            .field("sees_words", &self.sees_words)
            .finish_non_exhaustive()
    }
}
