//! The data behind `/v1/admin`, an operator's view of the service.

use std::sync::Arc;

use adjutant_core::Budgets;
use adjutant_core::port::{BudgetStore, OperatorStore};
use serde::Serialize;
use utoipa::ToSchema;

/// Data sources and settings of the operator routes `/v1/admin`.
#[derive(Clone)]
pub struct Administration {
    /// Store that reads the data of all users.
    pub store: Arc<dyn OperatorStore>,
    /// Store of what was spent of the budgets.
    pub spent: Arc<dyn BudgetStore>,
    /// The limits on tokens, calls, time and cost that the operator has configured.
    pub budgets: Budgets,
    /// Function that returns the states of the MCP servers. Called for each request.
    pub servers: Servers,
    /// True if operators are shown message texts and tool contents. Every view of a turn is logged,
    /// with or without them.
    pub sees_words: bool,
    /// Name and version of the serving program.
    pub version: String,
}

/// A function that returns the present state of each server.
pub type Servers = Arc<dyn Fn() -> Vec<ServerState> + Send + Sync>;

/// State of an MCP server whose tools the agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerState {
    /// Name of the server in the settings.
    pub name: String,
    /// `connected`, `starting`, `restarting`, `failed`, `disabled` or `stopped`.
    pub state: &'static str,
    /// The reason it does not answer, where it failed or is restarting.
    pub reason: Option<String>,
    /// The name and version that the server reports of itself.
    pub software: Option<String>,
    /// Number of the server's tools that the agent has.
    pub tools: usize,
    /// Number of tools that were added, removed or changed since a person agreed to them.
    pub changed: usize,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Administration")
            .field("sees_words", &self.sees_words)
            .finish_non_exhaustive()
    }
}
