//! The sessions of MCP clients that go on in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::{CancellationToken, UserId};
use adjutant_mcp::server::{Begin, McpServer, Session};
use adjutant_runtime::Agent;
use axum::http::HeaderMap;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::problem::BODY_MAX;

/// The header that names a session.
pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The sessions of all users.
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
    /// `sessions`: whether clients of versions that have them get one. They end when `stopping`
    /// fires; calls that run then are in `calls`. `begin`: what lets turns begin that clients ask
    /// the agent for, if they may.
    pub(crate) fn new(
        agent: Agent,
        sessions: bool,
        (stopping, calls): (CancellationToken, TaskTracker),
        begin: Option<Begin>,
    ) -> Self {
        let server = McpServer::builder(agent)
            .calls(calls)
            .report(|error| error!(%error, "a call of an MCP client failed"));
        let server = match begin {
            Some(begin) => server.asked(begin).build(),
            None => server.build(),
        };
        // The guard has looked at the host, with the names that are configured.
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

    pub(crate) fn of(&self, user: &UserId) -> Sessions {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = users.get(user) {
            return sessions.clone();
        }
        users.retain(|_, sessions| sessions.in_use());
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
    /// Whether the session that a request names, if it does, is one of them.
    pub(crate) async fn has(&self, headers: &HeaderMap) -> bool {
        let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let open = self.open.sessions.read().await;
        id.is_none_or(|id| open.contains_key(id))
    }

    /// Whether a session is open or a request is at it: others hold it then, or its list is being
    /// changed.
    fn in_use(&self) -> bool {
        let here = 2; // This and its service.
        Arc::strong_count(&self.open) > here
            || self
                .open
                .sessions
                .try_read()
                .map_or(true, |sessions| !sessions.is_empty())
    }
}
