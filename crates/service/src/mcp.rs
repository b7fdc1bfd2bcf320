//! The MCP server over Streamable HTTP: `POST`, `GET` and `DELETE` of `/mcp`.
//!
//! Sessions are stored per user, so the session id of another user is as unknown as one that never
//! existed. Hosts and origins are checked by the guard, as on all routes.

use std::time::Duration;

use adjutant_mcp::server::MayNotAnswer;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde::Deserialize;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;

use crate::auth::Caller;
use crate::mcp_error::PostedId;
use crate::mcp_sessions::SESSION_ID;
use crate::problem::{BODY_MAX, Problem};
use crate::problem_response::is_plain_text;
use crate::state::Shared;
use crate::user::{authenticate, count};

/// Most open sessions of a user. An unused one expires after five minutes.
const SESSIONS_MAX: usize = 100;
/// `Retry-After` for a client with too many sessions.
const SESSIONS_WAIT: Duration = Duration::from_secs(60);

/// Bytes that are read of an error message of the library.
const MESSAGE_MAX: usize = 4_096;

/// Advice for a client without a valid session.
const SESSION: &str = "A client of a version before 2026-07-28 sends initialize first, and with everything else the header \
                       Mcp-Session-Id of its answer; one of a later version sends the header MCP-Protocol-Version, and no session";

const PROTOCOL_VERSION: &str = "mcp-protocol-version";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().route("/mcp", any(handle))
}

/// Methods that only ask what there is: clients repeat them, and a person's limit is for what is done.
const LIGHT: [&str; 8] = [
    "initialize",
    "ping",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "server/discover",
    "tools/list",
    "logging/setLevel",
];

/// A posted message, as far as the limits need it.
#[derive(Default, Deserialize)]
struct Posted {
    #[serde(default)]
    id: Value,
    method: Option<String>,
}

async fn handle(State(app): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let caller = match authenticate(&parts, &app).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let Ok(bytes) = to_bytes(body, BODY_MAX).await else {
        return Problem::too_large().into_response();
    };
    let posted: Posted = serde_json::from_slice(&bytes).unwrap_or_default();
    let is_light = match &posted.method {
        Some(method) => LIGHT.contains(&method.as_str()) || method.starts_with("notifications/"),
        // The stream of a session, its end, or an answer of the client.
        None => true,
    };
    let counted = match is_light {
        true => app.limits.count_light_request(&caller.user),
        false => count(&parts, &app, &caller.user),
    };
    let id = PostedId(posted.id);
    let mut response = match counted {
        Ok(()) => {
            let request = Request::from_parts(parts, Body::from(bytes));
            answer(&app, &caller, request).await
        }
        Err(problem) => problem.into_response(),
    };
    response.extensions_mut().insert(id);
    response
}

async fn answer(app: &Shared, caller: &Caller, mut request: Request) -> Response {
    if !caller.may_answer() {
        request.extensions_mut().insert(MayNotAnswer);
    }
    let sessions = app.mcp.sessions_of(&caller.user);
    // Checked before the library creates the session. Concurrent requests may exceed the limit by a
    // few, which does no harm.
    if may_open(&request) && sessions.open.sessions.read().await.len() >= SESSIONS_MAX {
        let detail = format!("{SESSIONS_MAX} MCP sessions are open; end one with DELETE /mcp");
        return Problem::limit_reached(detail, SESSIONS_WAIT).into_response();
    }
    // The library answers any DELETE with success; a client with a wrong id should learn of it.
    if request.method() == Method::DELETE && !sessions.contain(request.headers()).await {
        return Problem::unknown("session").into_response();
    }
    let ends_session = request.method() == Method::DELETE;
    let response = sessions.service.handle(request).await.into_response();
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // The session has ended already. Official clients warn about a 202.
        return StatusCode::NO_CONTENT.into_response();
    }
    as_problem(response).await
}

/// Converts an error that the library sends as plain text to a problem document.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    if !(status.is_client_error() && is_plain_text(&response))
        || status == StatusCode::METHOD_NOT_ALLOWED
    {
        return response;
    }
    // A longer message is dropped, and the advice is sent alone.
    let body = to_bytes(response.into_body(), MESSAGE_MAX)
        .await
        .unwrap_or_default();
    let message = String::from_utf8_lossy(&body);
    let message = message.trim();
    let detail = match message {
        "" => SESSION.to_owned(),
        _ if status == StatusCode::BAD_REQUEST || message.to_lowercase().contains("session") => {
            format!("{message}. {SESSION}")
        }
        _ => message.to_owned(),
    };
    Problem::new(
        status,
        "invalid_request",
        "The request cannot be understood",
        detail,
    )
    .into_response()
}

/// Returns true if a request may open a session: it has no session id, and its protocol version has
/// sessions.
fn may_open(request: &Request) -> bool {
    let headers = request.headers();
    let sessionless = headers
        .get(PROTOCOL_VERSION)
        .is_some_and(|version| version.as_bytes() >= &b"2026-07-28"[..]);
    request.method() == Method::POST && !headers.contains_key(SESSION_ID) && !sessionless
}
