//! Problems as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`. The
//! codes are those of all other addresses, but `model_not_found`, which this API has a word of its
//! own for.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::problem::Problem;

/// The member of a problem that names the part of the request.
const PARAM: &str = "param";

/// A part of the request is not what it has to be.
pub(super) fn invalid(param: impl Into<String>, detail: impl Into<String>) -> Problem {
    about(param, Problem::invalid(detail))
}

/// A problem of one part of the request.
pub(super) fn about(param: impl Into<String>, problem: Problem) -> Problem {
    problem.with(PARAM, param.into())
}

/// Addresses below `/v1/` that this API's clients ask, those among them that are not there. What
/// begins with one and a slash belongs to it.
const ADDRESSES: &[&str] = &[
    "/v1/chat/completions",
    "/v1/models",
    "/v1/responses",
    "/v1/conversations",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/moderations",
    "/v1/images",
    "/v1/audio",
    "/v1/files",
    "/v1/uploads",
    "/v1/batches",
    "/v1/assistants",
    "/v1/vector_stores",
    "/v1/fine_tuning",
    "/v1/realtime",
    "/v1/videos",
    "/v1/containers",
    "/v1/evals",
];

/// Returns whether this API's clients ask at that path.
pub(crate) fn speaks_at(path: &str) -> bool {
    address(path).is_some()
}

/// Returns the address that a path belongs to.
fn address(path: &str) -> Option<&'static str> {
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    ADDRESSES
        .iter()
        .copied()
        .find(|address| path.strip_prefix(address).is_some_and(is_below))
}

/// Returns the problem of an address that is not there. One that this API's clients ask gets told
/// what is there instead.
pub(crate) fn unknown_address(path: &str) -> Problem {
    match address(path) {
        Some(address) => Problem::new(
            StatusCode::NOT_FOUND,
            "unknown",
            "Not found",
            format!(
                "{address} has nothing here: the agent answers at /v1/responses and /v1/chat/completions, and its models are at \
                 /v1/models. {path} is none of these"
            ),
        ),
        None => Problem::unknown("address"),
    }
}

/// What did not work.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

/// What did not work, in this API's words.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    /// Words for the person.
    message: String,
    /// The kind of error, as this API sorts them.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The part of the request that is wrong, such as `messages[0].content`.
    param: Option<String>,
    /// A stable word.
    code: &'static str,
}

impl ErrorBody {
    pub(super) fn of(problem: &Problem) -> Self {
        let message = match problem.hint() {
            Some(hint) => format!("{} ({hint})", problem.detail()),
            None => problem.detail().to_owned(),
        };
        Self {
            error: ErrorDetail {
                message,
                kind: kind(problem),
                param: problem
                    .member(PARAM)
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                code: problem.code(),
            },
        }
    }
}

impl ErrorBody {
    /// Returns it as an event of the Responses API. Some clients read it flat, as it is described,
    /// others as OpenAI sends it.
    pub(super) fn event(&self) -> Value {
        let ErrorDetail {
            message,
            param,
            code,
            ..
        } = &self.error;
        json!({"type": "error", "code": code, "message": message, "param": param, "error": self.error})
    }
}

/// A problem as a response.
pub(crate) fn response(problem: &Problem) -> Response {
    (status(problem), Json(ErrorBody::of(problem))).into_response()
}

/// The status of a problem. What cannot be understood is 400 here, as this API's clients know it,
/// and 422 elsewhere.
fn status(problem: &Problem) -> StatusCode {
    match problem.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    }
}

fn kind(problem: &Problem) -> &'static str {
    match status(problem) {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS if problem.code() == "quota" => "insufficient_quota",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
