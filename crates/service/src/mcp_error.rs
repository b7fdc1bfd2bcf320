//! Errors of `/mcp` in the protocol's own format.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use crate::problem::Problem;

/// The id of the request in a refused message, for the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct PostedId(pub(crate) Value);

/// Returns true if errors at this path are JSON-RPC.
pub(crate) fn speaks_at(path: &str) -> bool {
    path == "/mcp"
}

/// Returns a problem as a JSON-RPC error with the same HTTP status. That of a missing or wrong token
/// stays a problem document, whose headers the protocol's sign-in reads.
pub(crate) fn error_response(problem: Problem, posted: Option<PostedId>) -> Response {
    let status = problem.status();
    let code = match status {
        StatusCode::UNAUTHORIZED => return problem.into_response(),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => -32600,
        status if status.is_server_error() => -32603,
        // Of the range that is left to servers; the reference servers use it for a lost session.
        StatusCode::NOT_FOUND => -32001,
        _ => -32000,
    };
    let PostedId(id) = posted.unwrap_or(PostedId(Value::Null));
    problem.into_json_rpc(code, &id)
}
