//! Data sources of `/v1/admin`: store, budgets and MCP servers.

use std::sync::Arc;

use adjutant_mcp::client::{ServerReport, Servers};
use adjutant_service::{Administration, ServerState};

use crate::config::Settings;
use crate::mcp_servers::state_of;
use crate::store::Store;

/// Creates the data sources.
pub(super) fn sources(
    settings: &Settings,
    store: &Arc<dyn Store>,
    servers: &Servers,
) -> Administration {
    let reports = servers.reporter();
    Administration {
        store: store.clone(),
        spent: store.clone(),
        budgets: settings.budgets,
        servers: Arc::new(move || reports().into_iter().map(state).collect()),
        sees_words: settings.serve.operator_sees_words,
        version: format!("adjutant {}", env!("CARGO_PKG_VERSION")),
    }
}

fn state(report: ServerReport) -> ServerState {
    let (state, reason) = state_of(&report.health);
    ServerState {
        name: report.name.as_str().to_owned(),
        state,
        reason: reason.map(str::to_owned),
        software: report.software,
        tools: report.tools.len(),
        changed: report.changed.len(),
    }
}
