//! Completion of error responses: request id and path, logging, and the format of the API called.

use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::mcp_error::{self, PostedId};
use crate::openai;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;

/// Middleware that adds the request's path and id to problem documents, logs their causes, and
/// translates them for paths that speak OpenAI's format. Plain-text errors of axum and other
/// libraries become problem documents too.
pub(crate) async fn complete(State(app): State<Shared>, request: Request, next: Next) -> Response {
    // Taken before the request is consumed by the handler.
    let RequestId(id) = RequestId::from_headers(request.headers());
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    // `Problem::into_response` puts the problem into the extensions: its cause must reach the log,
    // and is not part of the body.
    let problem = response
        .extensions_mut()
        .remove::<Problem>()
        .or_else(|| plain_error(&response));
    let Some(mut problem) = problem else {
        return response;
    };
    if let Some(cause) = &problem.take_cause() {
        app.record_failure(cause);
        problem.log(Some(cause));
    } else {
        problem.log(None);
    }
    if let Some(note) = problem.take_note() {
        app.warn_refused(note);
    }
    let mut completed = if openai::speaks_at(&path) {
        openai::error_response(&problem)
    } else if mcp_error::speaks_at(&path) {
        let posted = response.extensions_mut().remove::<PostedId>();
        mcp_error::error_response(problem.for_request(path, id), posted)
    } else {
        problem.for_request(path, id).into_response()
    };
    if matches!(
        completed.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    ) {
        // The rest of the body was not read, and would be taken for the connection's next request.
        completed
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // The first response may have headers to keep, such as `Allow` with a 405.
    for (name, value) in response.headers() {
        if name != CONTENT_LENGTH && !completed.headers().contains_key(name) {
            completed.headers_mut().append(name, value.clone());
        }
    }
    completed
}

/// Returns true if a response is plain text or has no type, as the errors of libraries are.
pub(crate) fn is_plain_text(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .is_none_or(|kind| kind.is_empty() || kind.as_bytes().starts_with(b"text/plain"))
}

/// Converts an error response in plain text or without a body, as axum and its layers make them.
fn plain_error(response: &Response) -> Option<Problem> {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || !is_plain_text(response) {
        return None;
    }
    let with_reason = |code, title| {
        Problem::new(
            status,
            code,
            title,
            status.canonical_reason().unwrap_or(title),
        )
    };
    Some(match status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(),
        StatusCode::NOT_FOUND => Problem::unknown("address"),
        status if status.is_client_error() => {
            with_reason("invalid_request", "The request cannot be understood")
        }
        _ => with_reason("internal", "Internal error"),
    })
}
