//! Sessions of MCP clients in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::{CancellationToken, UserId};
use adjutant_mcp::server::{BeginTurn, McpServer, Session};
use adjutant_runtime::Agent;
use axum::http::HeaderMap;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::extract::header_text;
use crate::problem::BODY_MAX;

/// Header with the session id.
pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The MCP server, with the sessions of each user.
pub(crate) struct Mcp {
    server: McpServer,
    config: StreamableHttpServerConfig,
    users: Mutex<HashMap<UserId, Sessions>>,
}

/// The sessions of one user.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) service: StreamableHttpService<Session, LocalSessionManager>,
    pub(crate) open: Arc<LocalSessionManager>,
}

impl Mcp {
    /// Creates the server. `sessions`: true if clients get sessions, in versions that have them.
    /// They end when `stopping` is cancelled; running calls are tracked in `calls`. `begin` starts
    /// the turns that clients request, if they may.
    pub(crate) fn new(
        agent: Agent,
        sessions: bool,
        stopping: CancellationToken,
        calls: TaskTracker,
        begin: Option<BeginTurn>,
    ) -> Self {
        let server = McpServer::builder(agent)
            .calls(calls)
            .report(|error| error!(%error, "a call of an MCP client failed"));
        let server = match begin {
            Some(begin) => server.offer_agent(begin).build(),
            None => server.build(),
        };
        // The guard has checked the host against the configured names.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(sessions)
            .with_max_request_body_bytes(BODY_MAX)
            .with_cancellation_token(stopping);
        Self {
            server,
            config,
            users: Mutex::default(),
        }
    }

    /// Returns the sessions of a user. Entries of users without open sessions are removed.
    pub(crate) fn sessions_of(&self, user: &UserId) -> Sessions {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = users.get(user) {
            return sessions.clone();
        }
        // Done when a user is added, so that the map has no more entries than active users.
        users.retain(|_, sessions| sessions.are_in_use());
        // One manager per user: a session id of another user is unknown to it.
        let open = Arc::new(LocalSessionManager::default());
        let (server, owner) = (self.server.clone(), user.clone());
        let service = StreamableHttpService::new(
            move || Ok(server.session(owner.clone())),
            open.clone(),
            self.config.clone(),
        );
        let sessions = Sessions { service, open };
        users.insert(user.clone(), sessions.clone());
        sessions
    }
}

impl Sessions {
    /// Returns true if the session id in the headers is one of these, or there is none.
    pub(crate) async fn contain(&self, headers: &HeaderMap) -> bool {
        let open = self.open.sessions.read().await;
        header_text(headers, SESSION_ID).is_none_or(|id| open.contains_key(id))
    }

    /// Returns true if a session is open, or a request or the library holds the list.
    fn are_in_use(&self) -> bool {
        let own_references = 2; // This struct and its service.
        Arc::strong_count(&self.open) > own_references
            || self
                .open
                .sessions
                .try_read()
                .map_or(true, |sessions| !sessions.is_empty())
    }
}
