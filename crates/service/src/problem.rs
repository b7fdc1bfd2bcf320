//! Errors as people and programs read them: RFC 9457.

use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{AgentResponse, ModelError, OutcomeCategory, TurnError, TurnId, words};
use adjutant_runtime::RunError;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::serve::Shared;

/// What did not work. Holds no internals: it is shown to whoever asked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    title: &'static str,
    status: u16,
    /// Words for the person.
    detail: String,
    /// A stable word, the same as in logs and on the command line.
    code: &'static str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    /// Whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// The turn, if there was one: its decision is in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<TurnId>,
    /// What exactly it was, for whoever runs the service and nobody else.
    #[serde(skip)]
    cause: Option<Box<RunError>>,
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
            cause: None,
        }
    }

    pub(crate) fn unauthorized(detail: &str) -> Self {
        Self {
            hint: Some("send the header Authorization: Bearer TOKEN; adjutant token create makes one"),
            ..Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Who are you?", detail)
        }
    }

    pub(crate) fn forbidden(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not from there", detail)
    }

    pub(crate) fn unknown(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", "Not found", format!("there is no such {what}"))
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
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

    /// The store did not do it. What exactly is for whoever runs the service.
    pub(crate) fn store(error: &StoreError) -> Self {
        let problem = match error {
            StoreError::Unavailable { .. } | StoreError::Conflict => Self {
                retry_after: Some(1),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "unavailable",
                    "Not available right now",
                    "the service cannot reach its data right now; try again",
                )
            },
            _ => Self::internal(),
        };
        Self { cause: Some(Box::new(RunError::Store(error.clone()))), ..problem }
    }

    /// No turn could start, go on or be written.
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
            RunError::EmptyMessage => Self::invalid(error.to_string()),
            RunError::Busy => Self {
                retry_after: Some(1),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "unavailable",
                    "The conversation is busy",
                    error.to_string(),
                )
            },
            _ => Self { cause: Some(Box::new(error.clone())), ..Self::internal() },
        }
    }

    /// The model failed, or a budget did not have what the next step may take, and the turn ended there: the status of
    /// `DESIGN.md` 6, the words for the person. `None`: the turn has an answer for the person, whatever else happened in it.
    pub(crate) fn of_turn(response: &AgentResponse) -> Option<Self> {
        let error = match &response.error {
            Some(TurnError::Model { error }) => error,
            Some(limit) if response.outcome == OutcomeCategory::BudgetLimit => {
                // Which budget it was and what is left of it is in the log.
                let (status, title) = (StatusCode::TOO_MANY_REQUESTS, "The budget is used up");
                let problem = Self::new(status, limit.code(), title, response.content.clone());
                return Some(Self { run_id: Some(response.turn), ..problem });
            }
            _ => return None,
        };
        let (status, title) = match error {
            ModelError::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "Rate limited by the provider"),
            ModelError::Quota { .. } => (StatusCode::TOO_MANY_REQUESTS, "The provider's quota is used up"),
            ModelError::Timeout { .. } => (StatusCode::GATEWAY_TIMEOUT, "The model did not answer in time"),
            ModelError::Network { .. } | ModelError::Server { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "The model is not available")
            }
            ModelError::Refused { .. } => return None,
            _ => (StatusCode::BAD_GATEWAY, "The model did not give a usable answer"),
        };
        let mut problem = Self::new(status, error.code(), title, response.content.clone());
        problem.retry_after = error.retry_after().map(whole_seconds);
        problem.run_id = Some(response.turn);
        Some(problem)
    }

    /// None of the answers of a request could be what it was meant to be, such as arguments that do not fit; what they
    /// were for still waits.
    pub(crate) fn of_answers(response: &AgentResponse, answers: usize) -> Option<Self> {
        let refused = response.notices.iter().filter(|notice| notice.code == "answer_refused");
        let reasons: Vec<&str> = refused.map(|notice| notice.text.as_str()).collect();
        let all_refused = !reasons.is_empty() && reasons.len() == answers;
        all_refused.then(|| Self { run_id: Some(response.turn), ..Self::invalid(reasons.join(" ")) })
    }
}

/// Rounded up: whoever waits so long has waited long enough.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "The request is too large",
                "the body may have at most 1 MiB",
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request",
                "Not JSON",
                "send JSON with the header Content-Type: application/json",
            ),
            _ => Self::invalid(rejection.body_text()),
        }
    }
}

/// A problem as it is sent.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    problem: &'a Problem,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response(None)
    }
}

impl Problem {
    fn response(self, request_id: Option<&str>) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = format!("urn:adjutant:error:{}", self.code);
        let mut response = (status, Json(Document { kind, problem: &self, request_id })).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Puts the request's id into the problem, so that whoever shows it can be helped; what is ours to mend is passed on to
/// whoever runs the service.
pub(crate) async fn name_request(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Problem>() {
        Some(mut problem) => {
            if let Some(cause) = problem.cause.take() {
                // Nobody hears it any more once the service ends.
                let _ = app.causes.send(*cause);
            }
            problem.response(id.as_deref())
        }
        None => response,
    }
}
