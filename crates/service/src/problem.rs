//! Errors as problem documents (RFC 9457), with stable codes for programs.
//!
//! [`Problem`] is the error type of every handler. It implements `IntoResponse`; `problem_response`
//! adds the request's path and id, and translates it for clients of other APIs.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use adjutant_core::port::{StoreError, TokenScope};
use adjutant_core::{
    AgentResponse, LimitName, ModelError, OutcomeCategory, Scope, TurnError, TurnId, words,
};
use adjutant_runtime::RunError;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinError;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// Detail of the problem of a token that may only read the metrics.
pub(crate) const METRICS_ONLY: &str = "this token can only read the metrics (/metrics)";

/// Media type of problem documents.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Largest request body, in bytes.
pub(crate) const BODY_MAX: usize = 1024 * 1024;
/// Time for which the service reports itself as not ready after a write failed for want of disk
/// space, or because the disk failed. After that, the next request tries to write again: there is no
/// other way to find out that the disk stores again.
pub(crate) const NOT_STORING_FOR: Duration = Duration::from_secs(30);

/// `Retry-After` of a conversation whose queue is full: about as long as a turn takes.
const QUEUE_WAIT: Duration = Duration::from_secs(5);

/// Title of problems about a dependency that does not answer.
pub(crate) const NOT_AVAILABLE: &str = "Not available right now";

/// An error response. Safe to show to the client: internal causes are only logged.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    title: &'static str,
    status: u16,
    detail: String,
    code: &'static str,
    hint: Option<&'static str>,
    retry_after: Option<u64>,
    run_id: Option<TurnId>,
    rest: Box<Rest>,
}

/// Rarely used members, boxed so that `Result<_, Problem>` stays small.
#[derive(Debug, Clone, Default)]
struct Rest {
    instance: Option<String>,
    request_id: Option<String>,
    more: Map<String, Value>,
    /// The internal error, for the log only.
    cause: Option<RunError>,
    /// A message for operators about a refused request, for the log only.
    note: Option<&'static str>,
}

/// A problem document (RFC 9457): the body of every error response.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "urn:adjutant:error:rate_limit",
    "title": "Rate limited by the provider",
    "status": 429,
    "detail": "I am getting too many requests at the moment. Please try again in a little while.",
    "code": "rate_limit",
    "retry_after": 12,
    "run_id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
    "instance": "/v1/chat",
    "request_id": "0b1f6f1e-8a55-4f61-b0a4-5c1b7a3f2d11"
}))]
struct Document<'a> {
    /// `urn:adjutant:error:` followed by `code`.
    #[serde(rename = "type")]
    kind: String,
    /// Short summary of the kind of problem, the same for every occurrence.
    title: &'a str,
    /// HTTP status of the response.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Explanation of this occurrence, suited to be shown to the user.
    detail: &'a str,
    /// Stable identifier of the kind of problem, the same as in logs and on the command line.
    code: &'a str,
    /// Suggestion how the client can solve the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Seconds after which the request may be sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// Id of the turn, if one was started: its decision is in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    run_id: Option<TurnId>,
    /// Path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    /// Id of the request in the service's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// Members that only problems of this code have.
    #[serde(flatten)]
    #[schema(ignore)]
    more: &'a Map<String, Value>,
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        Document::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        Document::name()
    }
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            title,
            status: status.as_u16(),
            detail: detail.into(),
            code,
            hint: None,
            retry_after: None,
            run_id: None,
            rest: Box::default(),
        }
    }

    fn retry_after_seconds(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Attaches the internal error that the operator has to fix.
    fn caused_by(mut self, error: &RunError) -> Self {
        self.rest.cause = Some(error.clone());
        self
    }

    /// Attaches a message that is logged for operators and not sent to the client.
    #[must_use]
    pub(crate) fn with_operator_note(mut self, note: &'static str) -> Self {
        self.rest.note = Some(note);
        self
    }

    /// Adds a member; its name must differ from the members that all problems have.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.rest.more.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the stable identifier of the kind of problem.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the explanation for the user.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the suggestion for the client, if there is one.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.hint
    }

    /// Returns a member that was added by [`Problem::with`].
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.rest.more.get(name)
    }

    /// Takes the internal error, so that it is logged once.
    pub(crate) fn take_cause(&mut self) -> Option<RunError> {
        self.rest.cause.take()
    }

    /// Takes the message for operators, so that it is logged once.
    pub(crate) fn take_note(&mut self) -> Option<&'static str> {
        self.rest.note.take()
    }

    /// Logs server and provider failures with their cause; the request's span has its id. Client
    /// errors (4xx) are not logged: the operator has nothing to fix.
    pub(crate) fn log(&self, cause: Option<&RunError>) {
        // A 429 with a turn is a provider's rate limit or a budget, not the client's own rate.
        let is_of_turn = self.status == 429 && self.run_id.is_some();
        if cause.is_none() && self.status < 500 && !is_of_turn {
            return;
        }
        let (status, code, turn) = (
            self.status,
            self.code,
            self.run_id.map(tracing::field::display),
        );
        let error = cause.map(tracing::field::display);
        if cause.is_none() && turn.is_none() && status != 500 {
            // No turn was started because the service is busy, stopping or cannot authenticate. A
            // repeated request will succeed.
            tracing::warn!(status, code, "the request was not taken: {}", self.title);
        } else {
            tracing::error!(
                status,
                code,
                turn,
                error,
                "the request failed: {}",
                self.title
            );
        }
    }

    /// Adds the request's path and id.
    #[must_use]
    pub(crate) fn for_request(mut self, path: String, id: Option<String>) -> Self {
        self.rest.instance = Some(path);
        self.rest.request_id = id;
        self
    }

    /// Returns true if there is an internal error that the operator has to fix.
    pub(crate) fn is_internal(&self) -> bool {
        self.rest.cause.is_some()
    }

    /// Returns the seconds after which the request may be sent again.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    pub(crate) fn unauthorized(detail: &str) -> Self {
        Self {
            hint: Some(
                "send the header Authorization: Bearer TOKEN; adjutant token create makes one",
            ),
            ..Self::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "Authentication required",
                detail,
            )
        }
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    /// The token or the JSON Web Token lacks a scope.
    pub(crate) fn scope_missing(scope: TokenScope) -> Self {
        let detail = match scope {
            TokenScope::Read => "this token may not read: use one with the scope read",
            TokenScope::Write => "this token may not change anything: use one with the scope write",
            TokenScope::Answer => {
                "this token may not answer questions for the person: the question still waits, and they answer it on the page, \
                 with `adjutant pending`, or with a token that has the scope answer"
            }
        };
        let title = "The token lacks a scope";
        Self::new(StatusCode::FORBIDDEN, "scope_missing", title, detail)
            .with("scope", scope.as_str())
    }

    /// A limit of the user or of their conversation was reached, not one of a provider.
    pub(crate) fn limit_reached(detail: impl Into<String>, wait: Duration) -> Self {
        let (status, title) = (StatusCode::TOO_MANY_REQUESTS, "Limit reached");
        Self::new(status, "limit_reached", title, detail)
            .retry_after_seconds(whole_seconds(wait).max(1))
    }

    /// The maximum of concurrent turns of all users is reached.
    pub(crate) fn busy() -> Self {
        let detail = "as many turns run as the service allows (serve.turns_in_all), and nothing was done; send the request again in a moment";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "busy", "The service is busy", detail).retry_after_seconds(1)
    }

    /// A dependency of the service is not available; the request may be sent again after `seconds`.
    pub(crate) fn unavailable(
        title: &'static str,
        detail: impl Into<String>,
        seconds: u64,
    ) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            title,
            detail,
        )
        .retry_after_seconds(seconds)
    }

    /// The issuer's keys for verifying JWTs cannot be fetched at the moment.
    pub(crate) fn no_keys() -> Self {
        let detail =
            "the service cannot get the issuer's keys right now, so it cannot check tokens";
        Self::unavailable(NOT_AVAILABLE, detail, 30)
    }

    /// The OpenID Connect provider does not answer, or answers with an error.
    pub(crate) fn no_provider() -> Self {
        let detail = "the sign-in provider does not answer correctly; users who are signed in are not affected";
        Self::unavailable(NOT_AVAILABLE, detail, 30)
    }

    /// The service is shutting down and accepts no new work.
    pub(crate) fn stopping() -> Self {
        let detail = "the service is shutting down, and nothing was done; send the request again, and its successor or another replica answers";
        Self::unavailable("The service is stopping", detail, 1)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "The request is too large",
            format!("the body may have at most {} MiB", BODY_MAX / 1024 / 1024),
        )
    }

    /// The request body did not arrive within its time limits.
    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "The request came too slowly",
            "the body did not come in time; nothing was done",
        )
    }

    pub(crate) fn unknown(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown",
            "Not found",
            format!("there is no such {what}"),
        )
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            "The request cannot be understood",
            detail,
        )
    }

    /// The request violates HTTP itself.
    pub(crate) fn malformed(detail: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "The request cannot be understood",
            detail,
        )
    }

    pub(crate) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Internal error",
            "something went wrong on our side",
        )
    }

    /// Logs an error that should not occur, with its causes, and returns a problem 500.
    pub(crate) fn internal_error(error: &(dyn Error + 'static)) -> Self {
        tracing::error!(error, "internal error");
        Self::internal()
    }

    /// Converts a store error. Its message is only logged: it may name paths and hosts.
    pub(crate) fn store(error: &StoreError) -> Self {
        let problem = match error {
            StoreError::Unavailable { .. } | StoreError::Conflict => Self::unavailable(
                NOT_AVAILABLE,
                "the service cannot reach its data right now; try again",
                1,
            ),
            StoreError::Full { .. } => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "storage_full",
                "Nothing can be stored",
                "the service cannot store anything right now, because its storage is full; the operator has been notified",
            )
            .retry_after_seconds(whole_seconds(NOT_STORING_FOR)),
            StoreError::DiskFailed { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "storage_failed",
                "The storage fails",
                "the service cannot store anything reliably right now, because its disk reports errors; what was sent may be \
                 stored or not: send it again later, with the same Idempotency-Key. The operator has been notified",
            )
            .retry_after_seconds(whole_seconds(NOT_STORING_FOR)),
            // The client only has to wait, so no cause is attached.
            StoreError::QueueFull { .. } => {
                return Self::limit_reached(format!("{error} (serve.messages_queued)"), QUEUE_WAIT);
            }
            // A mistake of the client, of which the operator need not know: no cause is attached.
            StoreError::Reused => {
                return Self::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "idempotency_key_reused",
                    "The Idempotency-Key belongs to another request",
                    "this Idempotency-Key was used before, for another request; nothing was done. Send each request with a \
                     key of its own",
                );
            }
            _ => Self::internal(),
        };
        problem.caused_by(&RunError::Store(error.clone()))
    }

    /// Converts an error that kept a turn from starting, continuing or being recorded.
    pub(crate) fn run(error: &RunError) -> Self {
        match error {
            RunError::Store(StoreError::Unreadable { .. }) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unreadable",
                "The conversation cannot be read",
                words::NEWER_VERSION,
            ),
            RunError::Store(error) => Self::store(error),
            RunError::MessageTooLarge { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "The message is too long",
                error.to_string(),
            ),
            RunError::MessageTooLong { chars, max } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "message_too_long",
                "The message is too long",
                error.to_string(),
            )
            .with("length", *chars)
            .with("limit", *max)
            .with("setting", "agent.message_chars_max"),
            RunError::EmptyMessage | RunError::Client(_) => Self::invalid(error.to_string()),
            RunError::MayNotAnswer => Self::scope_missing(TokenScope::Answer),
            RunError::Busy => Self::unavailable("The conversation is busy", error.to_string(), 1),
            _ => Self::internal().caused_by(error),
        }
    }

    /// Returns the problem of a turn that ended because the model failed or a budget was exhausted,
    /// or `None` if the turn has an answer for the user. `now` is used to compute the time until a
    /// daily budget is renewed.
    pub(crate) fn for_turn(response: &AgentResponse, now: Timestamp) -> Option<Self> {
        let error = match &response.error {
            Some(TurnError::Model { error }) => error,
            Some(limit) if response.outcome == OutcomeCategory::BudgetLimit => {
                // The turn's log entry says which budget it was and how much of it is left.
                let (status, title) = (StatusCode::TOO_MANY_REQUESTS, "The budget is used up");
                let problem = Self::new(status, limit.code(), title, response.content.clone());
                // The limits of a turn are not renewed by waiting.
                let of_day = matches!(
                    limit,
                    TurnError::Limit {
                        limit: LimitName::Budget { scope, .. },
                        ..
                    } if *scope != Scope::Turn
                );
                let retry_after = of_day.then(|| seconds_to_midnight(now));
                let problem = problem.with("budget", if of_day { "day" } else { "turn" });
                return Some(Self {
                    run_id: Some(response.turn),
                    retry_after,
                    ..problem
                });
            }
            _ => return None,
        };
        let (status, title) = match error {
            ModelError::RateLimited { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                "Rate limited by the provider",
            ),
            ModelError::Quota { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                "The provider's quota is used up",
            ),
            ModelError::Timeout { .. } => (
                StatusCode::GATEWAY_TIMEOUT,
                "The model did not answer in time",
            ),
            ModelError::Network { .. } | ModelError::Server { .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The model is not available",
            ),
            ModelError::Authentication { .. }
            | ModelError::NotPermitted { .. }
            | ModelError::NotFound { .. } => (
                StatusCode::BAD_GATEWAY,
                "The provider does not accept the service's requests",
            ),
            ModelError::Truncated { .. } => {
                (StatusCode::BAD_GATEWAY, "The connection to the model broke")
            }
            // A refusal is an answer of the model to the user, and not a failure.
            ModelError::Refused { .. } => return None,
            _ => (
                StatusCode::BAD_GATEWAY,
                "The model did not give a usable answer",
            ),
        };
        let mut problem = Self::new(status, error.code(), title, response.content.clone());
        problem.retry_after = error.retry_after().map(whole_seconds);
        problem.run_id = Some(response.turn);
        Some(problem)
    }

    /// Returns the problem of a request all of whose answers were refused, for example because
    /// edited arguments do not fit the tool's schema. The calls stay pending. `answers` is the
    /// number of answers in the request.
    pub(crate) fn for_refused_answers(response: &AgentResponse, answers: usize) -> Option<Self> {
        let refused = response
            .notices
            .iter()
            .filter(|notice| notice.code == "answer_refused");
        let reasons: Vec<&str> = refused.map(|notice| notice.text.as_str()).collect();
        let all_refused = !reasons.is_empty() && reasons.len() == answers;
        all_refused.then(|| Self {
            run_id: Some(response.turn),
            ..Self::invalid(reasons.join(" "))
        })
    }
}

/// Returns the seconds until midnight UTC, when daily budgets are renewed.
pub(crate) fn seconds_to_midnight(now: Timestamp) -> u64 {
    const DAY: i64 = 24 * 60 * 60;
    (DAY - now.as_second().rem_euclid(DAY)).unsigned_abs()
}

/// Converts a duration to seconds, rounded up, so that a client never retries too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        Self::run(&error)
    }
}

impl From<JoinError> for Problem {
    /// A task panicked; the panic's message is part of the logged error.
    fn from(error: JoinError) -> Self {
        Self::internal_error(&error)
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::too_large(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request",
                "Not JSON",
                "send JSON with the header Content-Type: application/json",
            ),
            // One status for every unusable body; axum has 400 for its syntax and 422 for its
            // types.
            _ => Self::invalid(rejection.body_text()),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    /// An id that cannot be parsed names nothing, so this is a 404 and not a 422.
    fn from(_: PathRejection) -> Self {
        Self::unknown("address")
    }
}

impl Problem {
    fn document(&self) -> Document<'_> {
        Document {
            kind: format!("urn:adjutant:error:{}", self.code),
            title: self.title,
            status: self.status,
            detail: &self.detail,
            code: self.code,
            hint: self.hint,
            retry_after: self.retry_after,
            run_id: self.run_id,
            instance: self.rest.instance.as_deref(),
            request_id: self.rest.request_id.as_deref(),
            more: &self.rest.more,
        }
    }

    /// Returns the problem as a JSON-RPC error with this code, in answer to the request `id`. The
    /// HTTP status and its headers are those of the problem.
    pub(crate) fn into_json_rpc(self, code: i32, id: &Value) -> Response {
        let message = format!("{}: {}", self.title, self.detail);
        let error = json!({ "code": code, "message": message, "data": self.document() });
        let body = Json(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        let (mut parts, _) = self.into_response().into_parts();
        let (body_parts, body) = body.into_response().into_parts();
        parts.headers.extend(body_parts.headers);
        Response::from_parts(parts, body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Json(self.document()).into_response();
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            // A 401 has to name the authentication scheme (RFC 9110, 15.5.2).
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // For the middleware that adds path and request id, which needs the cause too.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_to_the_client_and_in_detail_to_the_operator() {
        let words = "there is no space left for /var/lib/adjutant.db; free some";
        let error = RunError::Store(StoreError::full(words.to_owned()));
        let mut problem = Problem::run(&error);
        assert_eq!(
            (problem.status(), problem.code()),
            (StatusCode::INSUFFICIENT_STORAGE, "storage_full")
        );
        assert!(
            problem.detail().contains("cannot store") && !problem.detail().contains("adjutant.db")
        );
        assert_eq!(problem.retry_after(), Some(30));
        assert!(problem.take_cause().unwrap().to_string().contains(words));
    }

    #[test]
    fn a_failing_disk_is_named_to_the_client_and_in_detail_to_the_operator() {
        let words = "the disk fails to read or write /var/lib/adjutant.db";
        let error = RunError::Store(StoreError::disk_failed(words));
        let mut problem = Problem::run(&error);
        assert_eq!(
            (problem.status(), problem.code()),
            (StatusCode::SERVICE_UNAVAILABLE, "storage_failed")
        );
        assert!(!problem.detail().contains("adjutant.db"));
        assert_eq!(problem.retry_after(), Some(30));
        assert!(problem.take_cause().unwrap().to_string().contains(words));
    }
}
