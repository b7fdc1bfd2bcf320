//! Errors as people and programs read them: RFC 9457.

use std::borrow::Cow;
use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{AgentResponse, ModelError, OutcomeCategory, TurnError, TurnId, words};
use adjutant_runtime::RunError;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// What every problem is sent as.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Bytes that the body of a request may have.
pub(crate) const BODY_MAX: usize = 1024 * 1024;
/// Time for which the service is not ready after a write failed for want of space. Then it is tried
/// again by whoever asks next: it cannot be known otherwise whether there is some.
pub(crate) const FULL_FOR: Duration = Duration::from_secs(30);

/// Time after which a conversation may have room for another message: about as long as a turn
/// takes.
const QUEUE_WAIT: Duration = Duration::from_secs(5);

/// What did not work. Holds no internals: it is shown to whoever asked.
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

/// What most problems do not have, or have late.
#[derive(Debug, Clone, Default)]
struct Rest {
    instance: Option<String>,
    request_id: Option<String>,
    more: Map<String, Value>,
    /// What exactly it was, for whoever runs the service and nobody else.
    cause: Option<RunError>,
    /// What whoever runs the service should know of a request that was refused.
    note: Option<&'static str>,
}

/// What did not work (RFC 9457).
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
    /// `urn:adjutant:error:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// What kind of problem it is.
    title: &'a str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Words for the person.
    detail: &'a str,
    /// A stable word, the same as in logs and on the command line.
    code: &'a str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// The turn, if there was one: its decision is in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    run_id: Option<TurnId>,
    /// The path that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    /// Names the request in the log of whoever runs the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// What else there is to know about a problem of this code.
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

    /// Because of something that is ours to mend.
    fn caused_by(mut self, error: &RunError) -> Self {
        self.rest.cause = Some(error.clone());
        self
    }

    /// With words for whoever runs the service, and nobody else.
    #[must_use]
    pub(crate) fn noting(mut self, note: &'static str) -> Self {
        self.rest.note = Some(note);
        self
    }

    /// With one more member, of a name that no other member has.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.rest.more.insert(name.to_owned(), value.into());
        self
    }

    /// The stable word.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The sentence for the person.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What to do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.hint
    }

    /// What was put beside the members that all problems have.
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.rest.more.get(name)
    }

    /// What is for whoever runs the service, once.
    pub(crate) fn take_cause(&mut self) -> Option<RunError> {
        self.rest.cause.take()
    }

    /// Takes the words for whoever runs the service, once.
    pub(crate) fn take_note(&mut self) -> Option<&'static str> {
        self.rest.note.take()
    }

    /// Logs what failed on our side or on a provider's, with what caused it: whoever runs the
    /// service finds it by the id of the request. What a client did wrong, or too often, is
    /// nobody's to mend.
    pub(crate) fn log(&self, cause: Option<&RunError>) {
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
            // It was not begun: the service is busy, stops, or cannot ask who it is. Once it is
            // asked again, all is well.
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

    /// With the path that was asked for and the id of the request.
    #[must_use]
    pub(crate) fn of_request(mut self, path: String, id: Option<String>) -> Self {
        self.rest.instance = Some(path);
        self.rest.request_id = id;
        self
    }

    /// Whether whoever runs the service has something to mend.
    pub(crate) fn is_ours(&self) -> bool {
        self.rest.cause.is_some()
    }

    /// In seconds.
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
                "Who are you?",
                detail,
            )
        }
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not from there", detail)
    }

    /// A bound of the user's own or of their conversation, not a provider's.
    pub(crate) fn limit_reached(detail: impl Into<String>, wait: Duration) -> Self {
        Self {
            retry_after: Some(whole_seconds(wait).max(1)),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "limit_reached",
                "That is too much at once",
                detail,
            )
        }
    }

    /// As many turns of all users run as may.
    pub(crate) fn busy() -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "The service is busy",
                "as many turns run as the service takes (serve.turns_in_all), and nothing was done; ask again in a moment",
            )
        }
    }

    /// The keys that signed tokens are checked with cannot be had right now.
    pub(crate) fn no_keys() -> Self {
        Self {
            retry_after: Some(30),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "Not available right now",
                "the service cannot get the issuer's keys right now, so it cannot check tokens",
            )
        }
    }

    /// The provider that people sign in at does not answer, or not as it should.
    pub(crate) fn no_provider() -> Self {
        Self {
            retry_after: Some(30),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "Not available right now",
                "the provider that people sign in at does not answer as it should; who is signed in goes on",
            )
        }
    }

    /// The service ends, and takes nothing new.
    pub(crate) fn stopping() -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The service is stopping",
                "the service is about to end, and nothing was done; ask again, and its successor or another replica answers",
            )
        }
    }

    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "The request is too large",
            format!("the body may have at most {} MiB", BODY_MAX / 1024 / 1024),
        )
    }

    /// The body came too slowly, or not at all.
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

    /// Not what HTTP says a request is.
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
            StoreError::Full { .. } => Self {
                retry_after: Some(whole_seconds(FULL_FOR)),
                ..Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "storage_full",
                    "Nothing can be stored",
                    "the service cannot store anything right now, because its storage is full; whoever runs it has been told",
                )
            },
            // Nobody has to mend anything: the client waits.
            StoreError::QueueFull { .. } => {
                return Self::limit_reached(format!("{error} (serve.messages_queued)"), QUEUE_WAIT);
            }
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
            RunError::Busy => Self {
                retry_after: Some(1),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "unavailable",
                    "The conversation is busy",
                    error.to_string(),
                )
            },
            _ => Self::internal().caused_by(error),
        }
    }

    /// Returns the problem of a turn that ended because the model failed, or because a budget did
    /// not have what the next step may take: its status, and the words for the person. `now` says
    /// how long it is until a budget of the day is there again. `None`: the turn has an answer for
    /// the person, whatever else happened in it.
    pub(crate) fn of_turn(response: &AgentResponse, now: Timestamp) -> Option<Self> {
        let error = match &response.error {
            Some(TurnError::Model { error }) => error,
            Some(limit) if response.outcome == OutcomeCategory::BudgetLimit => {
                // Which budget it was and what is left of it is in the log.
                let (status, title) = (StatusCode::TOO_MANY_REQUESTS, "The budget is used up");
                let problem = Self::new(status, limit.code(), title, response.content.clone());
                let of_day = matches!(limit, TurnError::Limit { key, .. } if !key.starts_with("budget.per_turn"));
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

    /// None of the answers of a request could be what it was meant to be, such as arguments that do
    /// not fit; what they were for still waits.
    pub(crate) fn of_answers(response: &AgentResponse, answers: usize) -> Option<Self> {
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

/// Seconds until the day ends in UTC, and with it what was spent of its budgets.
pub(crate) fn seconds_to_midnight(now: Timestamp) -> u64 {
    const DAY: i64 = 24 * 60 * 60;
    (DAY - now.as_second().rem_euclid(DAY)).unsigned_abs()
}

/// Rounded up: whoever waits so long has waited long enough.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
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
    /// What is no id names nothing.
    fn from(_: PathRejection) -> Self {
        Self::unknown("address")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = Document {
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
        };
        let mut response = Json(document).into_response();
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_to_each_in_their_words() {
        let words = "there is no space left for /var/lib/adjutant.db; free some";
        let error = RunError::Store(StoreError::Full {
            message: words.to_owned(),
        });
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
}
