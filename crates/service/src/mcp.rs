//! The tools for MCP clients over HTTP (Streamable HTTP): `POST`, `GET` and `DELETE` of `/mcp`.
//!
//! Every user has sessions of their own, so the id of another's opens nothing: it is as unknown as one that never was.
//! Which hosts may be asked for is the guard's business, here as everywhere; pages of other origins may not even read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::{CancellationToken, UserId};
use adjutant_mcp::server::{McpServer, Session};
use adjutant_runtime::Agent;
use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::task::TaskTracker;
use utoipa_axum::router::OpenApiRouter;

use crate::auth::User;
use crate::events::Events;
use crate::problem::Problem;
use crate::router::BODY_MAX;
use crate::serve::{ServiceEvent, Shared};

/// How many sessions a user may have open at once. One nobody uses ends after five minutes.
const SESSIONS_MAX: usize = 100;
/// When a client that has too many may try again.
const SESSIONS_WAIT: Duration = Duration::from_secs(60);

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().route("/mcp", any(answer))
}

/// The sessions of all users.
pub(crate) struct Mcp {
    server: McpServer,
    config: StreamableHttpServerConfig,
    users: Mutex<HashMap<UserId, Sessions>>,
}

/// The sessions of one user.
#[derive(Clone)]
struct Sessions {
    service: StreamableHttpService<Session, LocalSessionManager>,
    open: Arc<LocalSessionManager>,
}

impl Mcp {
    /// `sessions`: whether clients of versions that have them get one. They end when `stopping` fires; calls that run then are in `calls`.
    pub(crate) fn new(
        agent: Agent,
        sessions: bool,
        (stopping, calls): (CancellationToken, TaskTracker),
        events: Events,
    ) -> Self {
        let server = McpServer::builder(agent)
            .calls(calls)
            .report(move |error| events.tell(ServiceEvent::Failed(error.clone())))
            .build();
        // The guard has looked at the host, with the names that are configured.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(sessions)
            .with_max_request_body_bytes(BODY_MAX)
            .with_cancellation_token(stopping);
        Self { server, config, users: Mutex::default() }
    }

    fn of(&self, user: &UserId) -> Sessions {
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
    async fn has(&self, headers: &HeaderMap) -> bool {
        let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let open = self.open.sessions.read().await;
        id.is_none_or(|id| open.contains_key(id))
    }

    /// Whether a session is open or a request is at it: others hold it then, or its list is being changed.
    fn in_use(&self) -> bool {
        let here = 2; // This and its service.
        Arc::strong_count(&self.open) > here
            || self.open.sessions.try_read().map_or(true, |sessions| !sessions.is_empty())
    }
}

async fn answer(State(app): State<Shared>, User(user): User, request: Request) -> Response {
    if let Err(problem) = same_origin(request.headers()) {
        return problem.into_response();
    }
    let sessions = app.mcp.of(&user);
    if may_open(&request) && sessions.open.sessions.read().await.len() >= SESSIONS_MAX {
        let detail = format!("{SESSIONS_MAX} MCP sessions are open; end one with DELETE /mcp");
        return Problem::limit_reached(detail, SESSIONS_WAIT).into_response();
    }
    // The library takes every DELETE for done; who asks for a session that is not theirs is told that there is none.
    if request.method() == Method::DELETE && !sessions.has(request.headers()).await {
        return Problem::unknown("session").into_response();
    }
    sessions.service.handle(request).await.into_response()
}

/// Whether a request may open a session: without its id, in a version of the protocol that has sessions.
fn may_open(request: &Request) -> bool {
    let headers = request.headers();
    let sessionless =
        headers.get(PROTOCOL_VERSION).is_some_and(|version| version.as_bytes() >= &b"2026-07-28"[..]);
    request.method() == Method::POST && !headers.contains_key(SESSION_ID) && !sessionless
}

/// The specification asks for this check on every request; the guard has looked at those that change something.
fn same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match headers.contains_key(ORIGIN).then(|| text(ORIGIN).and_then(|origin| origin.split_once("://"))) {
        None => Ok(()),
        Some(Some((_, origin))) if Some(origin) == text(HOST) => Ok(()),
        Some(_) => Err(Problem::forbidden("pages of another origin may not ask")),
    }
}
