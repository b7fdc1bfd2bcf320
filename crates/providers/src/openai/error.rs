//! Error bodies of OpenAI and of the servers with its API.
//!
//! OpenAI answers `{"error": {"message", "type", "code", "param"}}`; others answer that or
//! something similar, so every field is searched for wherever a server may have put it.

use std::time::Duration;

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{ErrorBody, ErrorKind, Vendor};
use crate::retry_after;

/// Codes for an account that is out of credit or over its plan. Waiting does not help.
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

/// Parses the body of an answer that is not 2xx.
pub(super) fn parse(status: u16, body: &str) -> ErrorBody {
    serde_json::from_str::<Value>(body).map_or_else(
        |_| ErrorBody::from_text(body),
        |body| classify(status, &ErrorFields::find_in(&body)),
    )
}

/// Returns the error for an error inside a 200: the value of `error`, or a whole body that is one.
pub(super) fn in_answer(vendor: &Vendor, error: &Value) -> ModelError {
    let fields = ErrorFields::find_in(error);
    let status = fields.status.unwrap_or(200);
    let body = classify(status, &fields);
    match (body.kind, status) {
        (None, 0..=399) => ModelError::Server {
            provider: vendor.model.provider.clone(),
            status,
            retry_after: body.retry_after,
            message: body.message,
        },
        (_, _) => vendor.error(status, None, None, body),
    }
}

/// Finds a JSON value among lines of a stream that were no events.
pub(super) fn parse_stray(lines: &str) -> Option<Value> {
    let start = lines.find(['{', '['])?;
    serde_json::from_str(&lines[start..]).ok()
}

/// Everything in a body that resembles `message`, `type` and `code`.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorFields {
    message: String,
    /// All codes and types, in lower case.
    codes: Vec<String>,
    /// A code that is an HTTP status of an error.
    status: Option<u16>,
}

impl ErrorFields {
    fn find_in(body: &Value) -> Self {
        let mut fields = Self::default();
        fields.collect(body, 0);
        fields
    }

    // Nesting is bounded, because the body comes from outside.
    fn collect(&mut self, value: &Value, depth: usize) {
        match value {
            // The first message wins: those further inside are causes, or repeat it.
            Value::String(text) if self.message.is_empty() => self.message.clone_from(text),
            Value::Array(values) if depth < 8 => {
                values
                    .iter()
                    .for_each(|value| self.collect(value, depth + 1));
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
                    self.add_code(fields.get(name));
                }
                // OpenRouter lists the categories that its moderation found.
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
                        self.collect(value, depth + 1);
                    }
                }
                // The error of the server behind OpenRouter, beside OpenRouter's own "Provider
                // returned error".
                if let Some(Value::String(raw)) = fields.get("raw") {
                    self.add_cause(raw);
                }
            }
            _ => {}
        }
    }

    /// Appends the message and codes of the error that caused this one.
    fn add_cause(&mut self, raw: &str) {
        let behind = serde_json::from_str(raw).map_or_else(
            |_| Self {
                message: raw.to_owned(),
                ..Self::default()
            },
            |body: Value| Self::find_in(&body),
        );
        self.message = format!("{}: {}", self.message, behind.message);
        self.codes.extend(behind.codes);
    }

    fn add_code(&mut self, value: Option<&Value>) {
        let number = match value {
            Some(Value::String(text)) => {
                self.codes.push(text.to_lowercase());
                // Some servers write the status as text.
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

    fn has_code(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }
}

fn classify(status: u16, fields: &ErrorFields) -> ErrorBody {
    let message = fields.message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    // The order matters: several servers send a general code beside a precise one.
    let kind = if fields.has_code(CONTEXT)
        || (matches!(status, 200 | 400 | 413 | 422 | 500)
            && mentions(&[
                "context length",
                "context window",
                "context size",
                "prompt is too long",
            ])) {
        Some(ErrorKind::ContextTooLong)
    } else if fields.has_code(QUOTA) {
        Some(ErrorKind::Quota)
    } else if fields.has_code(REFUSED) {
        Some(ErrorKind::Refused)
    } else if fields.has_code(AUTHENTICATION)
        || (status == 400 && mentions(&["incorrect api key", "invalid api key"]))
    {
        Some(ErrorKind::Authentication)
    } else if fields.has_code(NO_MODEL)
        || (status == 400
            && mentions(&[
                "model not exist",
                "is not a valid model id",
                "no such model",
            ]))
    {
        Some(ErrorKind::NoSuchModel)
    } else if fields.has_code(RATE) {
        // Groq uses this code, with a 413, also for a request larger than a whole minute's tokens,
        // for which waiting does not help.
        Some(if status == 413 {
            ErrorKind::ContextTooLong
        } else {
            ErrorKind::RateLimited
        })
    } else if fields.has_code(SERVER) {
        Some(ErrorKind::Server)
    } else {
        None
    };
    // The status wins for errors of the client: several servers use `api_error` for everything.
    let kind = kind.filter(|kind| *kind != ErrorKind::Server || !(400..=499).contains(&status));
    ErrorBody {
        message: fields.message.clone(),
        retry_after: wait_in_message(&message),
        kind,
    }
}

/// Finds the wait in the message, where OpenAI, Groq and Azure put it, not always in a header too.
fn wait_in_message(message: &str) -> Option<Duration> {
    let asks = |phrase: &str| message.split_once(phrase)?.1.split_whitespace().next();
    let wait = asks("try again in ").or_else(|| asks("retry after "))?;
    retry_after::parse_duration(wait.trim_end_matches(['.', ',']))
}

#[cfg(test)]
mod tests {
    use adjutant_core::ModelId;
    use serde_json::json;

    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        let vendor = Vendor {
            model: ModelId::new("acme", "m1").unwrap(),
            key_advice: "",
            model_advice: String::new(),
            parse_error: parse,
        };
        vendor.error(status, None, None, parse(status, body))
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
            parse(429, &body).retry_after.map(|wait| wait.as_millis())
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
