//! What OpenAI, and the servers that speak its language, say about a failure.
//!
//! OpenAI answers `{"error": {"message", "type", "code", "param"}}`; the others answer that or
//! something near it, so every field is looked for wherever a server may have put it.

use std::time::Duration;

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{Complaint, Kind, Vendor};
use crate::wait;

/// Out of money or over the plan. Waiting does not help.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota_error",
    "quota_exceeded",
    "credits_required",
    "arrearage",
];
const AUTHENTICATION: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "invalid_authentication_error",
    "incorrect_api_key_error",
    "missing_api_key",
    "wrong_api_key",
    "unauthorized",
];
const CONTEXT: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "request_too_large",
];
const NO_MODEL: &[&str] = &[
    "model_not_found",
    "model_not_exist",
    "invalid_model",
    "unknown_model",
    "model_decommissioned",
    "deploymentnotfound",
];
const REFUSED: &[&str] = &[
    "content_filter",
    "content_policy",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "moderation_blocked",
    "invalid_prompt",
];
const RATE: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limit_reached_error",
    "too_many_requests",
    "toomanyrequests",
];
const SERVER: &[&str] = &[
    "server_error",
    "internal_error",
    "internal_server_error",
    "internalservererror",
    "overloaded_error",
    "engine_overloaded_error",
    "server_is_overloaded",
    "service_unavailable",
    "service_unavailable_error",
    "upstream_error",
    "api_error",
];

/// Reads the body of an answer that is not 2xx.
pub(super) fn complaint(status: u16, body: &str) -> Complaint {
    match serde_json::from_str::<Value>(body) {
        Ok(body) => of(status, &Fault::of(&body)),
        // A page of a proxy in between explains nothing; a line of text may.
        Err(_) if body.trim_start().starts_with('<') => Complaint::default(),
        Err(_) => Complaint {
            message: body.to_owned(),
            ..Complaint::default()
        },
    }
}

/// An error that came inside a 200: the value of `error`, or a whole body that is one.
pub(super) fn inside(vendor: &Vendor, error: &Value) -> ModelError {
    let fault = Fault::of(error);
    let status = fault.status.unwrap_or(200);
    let complaint = of(status, &fault);
    match (complaint.kind, status) {
        (None, 0..=399) => ModelError::Server {
            provider: vendor.model.provider.clone(),
            status,
            retry_after: complaint.retry_after,
            message: complaint.message,
        },
        (_, _) => vendor.refused(status, None, complaint),
    }
}

/// An error object among what is no event of a stream, if there is one.
pub(super) fn stray(lines: &str) -> Option<Value> {
    let start = lines.find(['{', '['])?;
    serde_json::from_str(&lines[start..]).ok()
}

/// What can be found of `message`, `type` and `code`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fault {
    message: String,
    /// Every code and type there is, in lower case.
    codes: Vec<String>,
    /// A code that is an HTTP status.
    status: Option<u16>,
}

impl Fault {
    fn of(body: &Value) -> Self {
        let mut fault = Self::default();
        fault.look(body, 0);
        fault
    }

    fn look(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(words) if self.message.is_empty() => self.message.clone_from(words),
            Value::Array(values) if depth < 8 => {
                values.iter().for_each(|value| self.look(value, depth + 1));
            }
            Value::Object(fields) if depth < 8 => {
                for name in [
                    "code",
                    "type",
                    "error_type",
                    "status",
                    "statusCode",
                    "status_code",
                ] {
                    self.code(fields.get(name));
                }
                // OpenRouter names the categories its moderation found.
                if fields.get("reasons").is_some_and(Value::is_array) {
                    self.codes.push("moderation_blocked".to_owned());
                }
                for name in [
                    "error",
                    "message",
                    "msg",
                    "detail",
                    "error_message",
                    "errors",
                    "innererror",
                    "metadata",
                ] {
                    if let Some(value) = fields.get(name) {
                        self.look(value, depth + 1);
                    }
                }
                // What the server behind OpenRouter said is beside its own "Provider returned
                // error".
                if let Some(Value::String(raw)) = fields.get("raw") {
                    self.add(raw);
                }
            }
            _ => {}
        }
    }

    /// The words of a failure behind this one.
    fn add(&mut self, raw: &str) {
        let behind = serde_json::from_str(raw).map_or_else(
            |_| Self {
                message: raw.to_owned(),
                ..Self::default()
            },
            |body: Value| Self::of(&body),
        );
        self.message = format!("{}: {}", self.message, behind.message);
        self.codes.extend(behind.codes);
    }

    fn code(&mut self, value: Option<&Value>) {
        let number = match value {
            Some(Value::String(text)) => {
                self.codes.push(text.to_lowercase());
                text.parse().ok()
            }
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        let number = number.filter(|number| (400..600).contains(number));
        self.status = self
            .status
            .or(number.and_then(|number| u16::try_from(number).ok()));
    }

    fn is(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }
}

fn of(status: u16, fault: &Fault) -> Complaint {
    let words = fault.message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let kind = if fault.is(CONTEXT)
        || (matches!(status, 200 | 400 | 413 | 422 | 500)
            && says(&[
                "context length",
                "context window",
                "context size",
                "prompt is too long",
            ])) {
        Some(Kind::ContextTooLong)
    } else if fault.is(QUOTA) {
        Some(Kind::Quota)
    } else if fault.is(REFUSED) {
        Some(Kind::Refused)
    } else if fault.is(AUTHENTICATION)
        || (status == 400 && says(&["incorrect api key", "invalid api key"]))
    {
        Some(Kind::Authentication)
    } else if fault.is(NO_MODEL)
        || (status == 400
            && says(&[
                "model not exist",
                "is not a valid model id",
                "no such model",
            ]))
    {
        Some(Kind::NoSuchModel)
    } else if fault.is(RATE) {
        // Groq calls a request that is larger than a whole minute's tokens this too, with a 413:
        // waiting does not help.
        Some(if status == 413 {
            Kind::ContextTooLong
        } else {
            Kind::RateLimited
        })
    } else if fault.is(SERVER) {
        Some(Kind::Server)
    } else {
        None
    };
    // A client's mistake stays one, whatever the type says: several servers call everything
    // `api_error`.
    let kind = kind.filter(|kind| *kind != Kind::Server || !(400..=499).contains(&status));
    Complaint {
        message: fault.message.clone(),
        retry_after: wait_in_words(&words),
        kind,
    }
}

/// OpenAI, Groq and Azure say how long to wait in their words, not always in a header.
fn wait_in_words(words: &str) -> Option<Duration> {
    let asks = |phrase: &str| words.split_once(phrase)?.1.split_whitespace().next();
    let wait = asks("try again in ").or_else(|| asks("retry after "))?;
    wait::duration(wait.trim_end_matches(['.', ',']))
}

#[cfg(test)]
mod tests {
    use adjutant_core::ModelId;
    use serde_json::json;

    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        let vendor = Vendor {
            model: ModelId::new("acme", "m1").unwrap(),
            key_advice: String::new(),
            model_advice: String::new(),
            complaint,
        };
        vendor.refused(status, None, complaint(status, body))
    }

    fn check(status: u16, body: &str, expected: &str) {
        let error = refused(status, body);
        assert_eq!(
            format!("{}: {error}", error.code()),
            expected,
            "{status} {body}"
        );
    }

    #[test]
    fn the_words_are_found_wherever_they_are() {
        for body in [
            r#"{"error":{"message":"Sorry.","type":"invalid_request_error","param":null,"code":null}}"#,
            r#"{"error":"Sorry."}"#,
            r#"{"detail":"Sorry."}"#,
            r#"{"detail":[{"loc":["body","x"],"msg":"Sorry.","type":"value_error"}]}"#,
            r#"{"message":"Sorry."}"#,
            r#"{"object":"error","message":"Sorry.","type":"BadRequestError","param":null,"code":400}"#,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","msg":"Sorry."}]}}"#,
            r#"[{"error":{"code":400,"message":"Sorry.","status":"INVALID_ARGUMENT"}}]"#,
            r#"{"error":{"error":{"message":"Sorry."}}}"#,
            r#"{"code":"Client specified an invalid argument","error":"Sorry."}"#,
            r#"{"error":{"message":"Sorry.","code":400,"metadata":{"provider_name":"X","raw":null}}}"#,
            "Sorry.",
        ] {
            check(400, body, "bad_request: acme rejected the request: Sorry.");
        }
        check(
            400,
            "<html>nginx</html>",
            "bad_request: acme rejected the request: HTTP 400 without an explanation",
        );
        let behind = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Too long.\",\"code\":\"context_length_exceeded\"}}"}}}"#;
        check(
            400,
            behind,
            "context_too_long: too long for acme: Provider returned error: Too long.",
        );
        check(
            502,
            "",
            "server: acme failed (HTTP 502): HTTP 502 without an explanation",
        );
    }

    #[test]
    fn a_code_says_more_than_a_status() {
        for (status, error, expected) in [
            (
                429,
                json!({"code": "insufficient_quota", "type": "insufficient_quota"}),
                "quota",
            ),
            (
                429,
                json!({"code": null, "type": "insufficient_quota"}),
                "quota",
            ),
            (
                429,
                json!({"code": "rate_limit_exceeded", "type": "tokens"}),
                "rate_limit",
            ),
            (402, json!({"message": "Insufficient Balance"}), "quota"),
            (
                400,
                json!({"code": "context_length_exceeded"}),
                "context_too_long",
            ),
            (
                400,
                json!({"message": "This model's maximum context length is 8192 tokens."}),
                "context_too_long",
            ),
            (
                400,
                json!({"type": "exceed_context_size_error"}),
                "context_too_long",
            ),
            // Groq: larger than a minute's allowance.
            (
                413,
                json!({"code": "rate_limit_exceeded", "type": "tokens"}),
                "context_too_long",
            ),
            (400, json!("Incorrect API key provided: xa***."), "auth"),
            (401, json!({"code": "invalid_api_key"}), "auth"),
            (404, json!({"code": "model_not_found"}), "not_found"),
            (400, json!({"code": "model_decommissioned"}), "not_found"),
            (
                400,
                json!({"message": "Model Not Exist", "code": "invalid_request_error"}),
                "not_found",
            ),
            (404, json!({"code": "DeploymentNotFound"}), "not_found"),
            (
                400,
                json!({"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
                "refused",
            ),
            (400, json!({"code": "content_policy_violation"}), "refused"),
            (
                403,
                json!({"code": 403, "metadata": {"reasons": ["violence"]}}),
                "refused",
            ),
            (
                400,
                json!({"code": "unsupported_parameter", "type": "invalid_request_error"}),
                "bad_request",
            ),
            (400, json!({"type": "api_error"}), "bad_request"),
            (503, json!({"type": "service_unavailable"}), "server"),
            (529, json!({"type": "overloaded_error"}), "server"),
        ] {
            let body = json!({ "error": error }).to_string();
            assert_eq!(refused(status, &body).code(), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_wait_may_be_in_the_words() {
        let wait = |words: &str| {
            let body =
                json!({"error": {"message": words, "code": "rate_limit_exceeded"}}).to_string();
            complaint(429, &body)
                .retry_after
                .map(|wait| wait.as_millis())
        };
        assert_eq!(
            wait("Limit 30000, Used 29000. Please try again in 1.5s. Visit https://x.example"),
            Some(1_500)
        );
        assert_eq!(wait("Please try again in 6m0s."), Some(360_000));
        assert_eq!(wait("Please retry after 6 seconds."), Some(6_000));
        assert_eq!(wait("Please try again in a while."), None);
    }
}
