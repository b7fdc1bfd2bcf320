//! The tools for MCP clients over HTTP (Streamable HTTP): `POST`, `GET` and `DELETE` of `/mcp`.
//!
//! Every user has sessions of their own, so the id of another's opens nothing: it is as unknown as
//! one that never was. The guard sees to it which hosts may be asked for and which pages may ask,
//! here as everywhere.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
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

/// Bytes of an error's words that are read.
const WORDS_MAX: usize = 4_096;

/// Advice for a client that has no session.
const SESSION: &str = "A client of a version before 2026-07-28 sends initialize first, and with everything else the header \
                       Mcp-Session-Id of its answer; one of a later version sends the header MCP-Protocol-Version, and no session";

const PROTOCOL_VERSION: &str = "mcp-protocol-version";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().route("/mcp", any(answer))
}

async fn answer(State(app): State<Shared>, User(user): User, request: Request) -> Response {
    let sessions = app.mcp.of(&user);
    if may_open(&request) && sessions.open.sessions.read().await.len() >= SESSIONS_MAX {
        let detail = format!("{SESSIONS_MAX} MCP sessions are open; end one with DELETE /mcp");
        return Problem::limit_reached(detail, SESSIONS_WAIT).into_response();
    }
    // The library takes every DELETE for done; who asks for a session that is not theirs is told
    // that there is none.
    if request.method() == Method::DELETE && !sessions.has(request.headers()).await {
        return Problem::unknown("session").into_response();
    }
    let ends_session = request.method() == Method::DELETE;
    let response = sessions.service.handle(request).await.into_response();
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // It is over, not about to be; official clients warn of any other word.
        return StatusCode::NO_CONTENT.into_response();
    }
    in_our_words(response).await
}

/// An error that the library says in plain text, as a problem that says it.
async fn in_our_words(response: Response) -> Response {
    let status = response.status();
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let is_text = kind.is_empty() || kind.starts_with("text/plain");
    if !(status.is_client_error() && is_text) || status == StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    let body = to_bytes(response.into_body(), WORDS_MAX)
        .await
        .unwrap_or_default();
    let said = String::from_utf8_lossy(&body);
    let said = said.trim();
    let detail = match said {
        "" => SESSION.to_owned(),
        said if status == StatusCode::BAD_REQUEST || said.to_lowercase().contains("session") => {
            format!("{said}. {SESSION}")
        }
        said => said.to_owned(),
    };
    Problem::new(
        status,
        "invalid_request",
        "The request cannot be understood",
        detail,
    )
    .into_response()
}

/// Whether a request may open a session: without its id, in a version of the protocol that has
/// sessions.
fn may_open(request: &Request) -> bool {
    let headers = request.headers();
    let sessionless = headers
        .get(PROTOCOL_VERSION)
        .is_some_and(|version| version.as_bytes() >= &b"2026-07-28"[..]);
    request.method() == Method::POST && !headers.contains_key(SESSION_ID) && !sessionless
}
