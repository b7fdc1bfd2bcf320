//! The tools for MCP clients over HTTP (Streamable HTTP): `POST`, `GET` and `DELETE` of `/mcp`.
//!
//! Every user has sessions of their own, so the id of another's opens nothing: it is as unknown as one that never was.
//! Which hosts may be asked for is the guard's business, here as everywhere; pages of other origins may not even read.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;

use crate::mcp_sessions::SESSION_ID;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// How many sessions a user may have open at once. One nobody uses ends after five minutes.
const SESSIONS_MAX: usize = 100;
/// When a client that has too many may try again.
const SESSIONS_WAIT: Duration = Duration::from_secs(60);

const PROTOCOL_VERSION: &str = "mcp-protocol-version";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().route("/mcp", any(answer))
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
