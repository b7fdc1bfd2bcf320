//! Error bodies of OpenAI and of the servers with its API.
//!
//! OpenAI answers `{"error": {"message", "type", "code", "param"}}`; others answer that or
//! something similar, so every field is searched for wherever a server may have put it.

use std::time::Duration;

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{ErrorBody, Vendor};
use crate::error_fields::ErrorFields;
use crate::retry_after;

/// Parses the body of an answer that is not 2xx.
pub(super) fn parse(status: u16, body: &str) -> ErrorBody {
    serde_json::from_str::<Value>(body).map_or_else(
        |_| ErrorBody::from_text(status, body),
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

fn classify(status: u16, fields: &ErrorFields) -> ErrorBody {
    ErrorBody {
        retry_after: wait_in_message(&fields.message.to_lowercase()),
        ..ErrorBody::read(status, &fields.codes, fields.message.clone())
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
