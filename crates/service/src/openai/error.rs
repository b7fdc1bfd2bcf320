//! Errors in the format of OpenAI's APIs: `{"error": {"message", "type", "param", "code"}}`. Codes
//! are those of all other routes, except `model_not_found`, which clients of this API know.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::problem::Problem;

/// Member of a problem with the path of the invalid part of the request.
const PARAM: &str = "param";

/// Returns the problem of an invalid part of the request.
pub(super) fn invalid(param: impl Into<String>, detail: impl Into<String>) -> Problem {
    about(param, Problem::invalid(detail))
}

/// Adds the path of a part of the request to a problem.
pub(super) fn about(param: impl Into<String>, problem: Problem) -> Problem {
    problem.with(PARAM, param.into())
}

/// Paths of OpenAI's APIs, including ones that this service does not have. Each includes the paths
/// below it.
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

/// Returns true if errors of this path have the format of OpenAI's APIs.
pub(crate) fn speaks_at(path: &str) -> bool {
    address(path).is_some()
}

/// Returns the entry of [`ADDRESSES`] that a path belongs to.
fn address(path: &str) -> Option<&'static str> {
    // `/v1/models-x` is not below `/v1/models`.
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    ADDRESSES
        .iter()
        .copied()
        .find(|address| path.strip_prefix(address).is_some_and(is_below))
}

/// Returns the problem of an unknown path. For a path of OpenAI's APIs it names the available ones.
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

/// The body of an error response.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    /// The error.
    error: ErrorDetail,
}

/// An error in the format of OpenAI's APIs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    /// Explanation for the user.
    message: String,
    /// Category of the error, as OpenAI's APIs name it.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Path of the invalid part of the request, such as `messages[0].content`.
    param: Option<String>,
    /// Stable identifier of the error.
    code: &'static str,
}

impl ErrorBody {
    pub(super) fn from_problem(problem: &Problem) -> Self {
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
    /// Returns the error as an event of the Responses API, with its members both at the top level,
    /// as documented, and in `error`, as OpenAI sends them: clients read either.
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

/// Converts a problem to a response.
pub(crate) fn response(problem: &Problem) -> Response {
    (status(problem), Json(ErrorBody::from_problem(problem))).into_response()
}

/// Returns the status: an invalid request is 400 in this API and 422 in all others.
fn status(problem: &Problem) -> StatusCode {
    match problem.status() {
        // OpenAI's client libraries raise other errors for a 422.
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
