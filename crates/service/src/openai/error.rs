//! Problems as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`. The codes are those of all other
//! addresses, but `model_not_found`, which this API has a word of its own for.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
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

/// Whether this API's clients ask at that path.
pub(crate) fn speaks_at(path: &str) -> bool {
    path == "/v1/chat/completions" || path == "/v1/models" || path.starts_with("/v1/models/")
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
                param: problem.member(PARAM).and_then(Value::as_str).map(str::to_owned),
                code: problem.code(),
            },
        }
    }
}

/// A problem as a response.
pub(crate) fn response(problem: &Problem) -> Response {
    (status(problem), Json(ErrorBody::of(problem))).into_response()
}

/// The status of a problem. What cannot be understood is 400 here, as this API's clients know it, and 422 elsewhere.
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
