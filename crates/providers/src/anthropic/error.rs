//! Error bodies of Anthropic: `{"type": "error", "error": {"type", "message"}}`.
//!
//! Source: "Errors" in the API reference (checked 2026-11-22).

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{ErrorBody, Vendor};
use crate::error_fields::ErrorFields;
use crate::error_kind::ErrorKind;

/// Parses the body of an answer that is not 2xx.
pub(super) fn parse(status: u16, body: &str) -> ErrorBody {
    serde_json::from_str::<Value>(body).map_or_else(
        |_| ErrorBody::from_text(status, body),
        |body| classify(status, &body),
    )
}

/// Returns the error for an error object inside a 200: an event of a stream, or a body.
pub(super) fn in_answer(vendor: &Vendor, error: &Value) -> ModelError {
    let body = classify(200, error);
    match status_of_type(error_type(error)).or_else(|| status_in_body(error)) {
        // An error of the request is what its status says, although the answer began with a 200.
        Some(status @ 400..=499) => vendor.error(status, None, None, classify(status, error)),
        _ if body.kind.is_some_and(|kind| kind != ErrorKind::Server) => {
            vendor.error(200, None, None, body)
        }
        _ => vendor.failed(format!("{}: {}", error_type(error), body.message)),
    }
}

/// Finds an error object among lines of a stream that were no events.
pub(super) fn parse_stray(lines: &str) -> Option<Value> {
    let body: Value = serde_json::from_str(&lines[lines.find('{')?..]).ok()?;
    body.get("error").cloned()
}

/// Returns the HTTP status that an error of this type has where it is the whole answer.
fn status_of_type(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "api_error" => 500,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Reads an error object, or an object that holds one.
fn classify(status: u16, body: &Value) -> ErrorBody {
    let fields = ErrorFields::find_in(body);
    ErrorBody::read(status, &fields.codes, fields.message)
}

fn error_type(error: &Value) -> &str {
    error["type"].as_str().unwrap_or("an error")
}

/// Returns a status in the body, where proxies put it.
fn status_in_body(error: &Value) -> Option<u16> {
    error
        .get("code")
        .or_else(|| error.get("status"))?
        .as_u64()?
        .try_into()
        .ok()
}
