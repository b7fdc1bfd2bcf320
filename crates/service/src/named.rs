//! Errors that say which request they are of, in the words of the API that was asked.

use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::openai;
use crate::problem::Problem;
use crate::state::Shared;

/// Puts address and id of the request into the problem, so that whoever shows it can be helped;
/// what is ours to mend is passed on to whoever runs the service. An error that a library of ours
/// answered in words of its own becomes a problem.
pub(crate) async fn name_request(
    State(app): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let problem = response
        .extensions_mut()
        .remove::<Problem>()
        .or_else(|| unnamed(&response));
    let Some(mut problem) = problem else {
        return response;
    };
    if let Some(cause) = &problem.take_cause() {
        app.note(cause);
        problem.log(Some(cause));
    } else {
        problem.log(None);
    }
    if let Some(note) = problem.take_note() {
        app.tell_refused(note);
    }
    let mut named = if openai::speaks_at(&path) {
        openai::error_response(&problem)
    } else {
        problem.of_request(path, id).into_response()
    };
    if matches!(
        named.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    ) {
        // What was not read would stand in front of the next request on this connection.
        named
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // Such as what may be asked instead.
    for (name, value) in response.headers() {
        if name != CONTENT_LENGTH && !named.headers().contains_key(name) {
            named.headers_mut().append(name, value.clone());
        }
    }
    named
}

/// The problem of an error in plain text, or in no words at all.
fn unnamed(response: &Response) -> Option<Problem> {
    let status = response.status();
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if !(status.is_client_error() || status.is_server_error())
        || !(kind.is_empty() || kind.starts_with("text/plain"))
    {
        return None;
    }
    let said = |code, title| {
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
            said("invalid_request", "The request cannot be understood")
        }
        _ => said("internal", "Internal error"),
    })
}
