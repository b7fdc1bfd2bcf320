//! What Anthropic says about a failure: `{"type": "error", "error": {"type", "message"}}`.
//!
//! Source: "Errors" in the API reference (checked 2026-11-22).

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{Complaint, Kind, Vendor};

/// Reads the body of an answer that is not 2xx.
pub(super) fn complaint(status: u16, body: &str) -> Complaint {
    match serde_json::from_str::<Value>(body) {
        Ok(body) => of(status, &body),
        // A page of a proxy in between explains nothing; a line of text may.
        Err(_) if body.trim_start().starts_with('<') => Complaint::default(),
        Err(_) => Complaint {
            message: body.to_owned(),
            ..Complaint::default()
        },
    }
}

/// An error that came inside a 200: an event of a stream, or a body.
pub(super) fn inside(vendor: &Vendor, error: &Value) -> ModelError {
    let complaint = of(200, error);
    match status(kind(error)).or_else(|| number(error)) {
        Some(status @ 400..=499) => vendor.refused(status, None, of(status, error)),
        _ => ModelError::Server {
            provider: vendor.model.provider.clone(),
            status: 200,
            retry_after: None,
            message: format!("{}: {}", kind(error), complaint.message),
        },
    }
}

/// An error object among what is no event of a stream, if there is one.
pub(super) fn stray(lines: &str) -> Option<Value> {
    let body: Value = serde_json::from_str(&lines[lines.find('{')?..]).ok()?;
    body.get("error").cloned()
}

/// The status a failure of this type has where it is the whole answer.
fn status(kind: &str) -> Option<u16> {
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

/// `body` is an error object, or holds one.
fn of(status: u16, body: &Value) -> Complaint {
    let words = |value: &Value| match value {
        Value::String(words) => Some(words.clone()),
        _ => None,
    };
    let error = body.get("error").unwrap_or(body);
    // Servers in between have shapes of their own.
    let message = [
        error.get("message"),
        Some(error),
        body.get("message"),
        body.get("detail"),
    ]
    .into_iter()
    .flatten()
    .find_map(words)
    .unwrap_or_default();
    let said = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
    let kind = match (kind(error), status) {
        ("overloaded_error", _) => Some(Kind::Server),
        ("billing_error", _) => Some(Kind::Quota),
        // An empty account and a spending limit are a 400 or a 429, and only the words tell them
        // from others.
        (_, 400 | 403 | 429)
            if says(&[
                "credit balance",
                "spend limit",
                "spending limit",
                "usage limits",
                "monthly spend",
            ]) =>
        {
            Some(Kind::Quota)
        }
        (_, 400)
            if says(&[
                "prompt is too long",
                "exceed context limit",
                "context window",
                "context size",
            ]) =>
        {
            Some(Kind::ContextTooLong)
        }
        ("rate_limit_error", _) => Some(Kind::RateLimited),
        ("authentication_error", _) => Some(Kind::Authentication),
        (_, _) => None,
    };
    Complaint {
        message,
        retry_after: None,
        kind,
    }
}

fn kind(error: &Value) -> &str {
    error
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("an error")
}

/// A status in the body, as servers in between have it.
fn number(error: &Value) -> Option<u16> {
    error
        .get("code")
        .or_else(|| error.get("status"))?
        .as_u64()?
        .try_into()
        .ok()
}
