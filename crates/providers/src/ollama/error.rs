//! Error bodies of Ollama: `{"error": "..."}`, which may hold the engine's error as JSON text.

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{ErrorBody, Vendor};
use crate::error_kind::ErrorKind;

/// Parses the body of an answer that is not 2xx.
pub(super) fn parse(status: u16, body: &str) -> ErrorBody {
    let parsed = serde_json::from_str::<Value>(body).ok();
    let error = parsed.as_ref().and_then(|body| body.get("error"));
    match &parsed {
        _ if matches!(body.trim(), "" | "{}") => ErrorBody::default(),
        _ if body.trim_start().starts_with('<') => ErrorBody::from_text(status, body),
        // Ollama's own 404 has a text in `error`; that of a router or another server has none.
        _ if status == 404 && !error.is_some_and(Value::is_string) => {
            not_ollama(&error.map_or_else(|| body.to_owned(), message_text))
        }
        Some(Value::Object(_)) => classify(status, error.unwrap_or(&Value::Null)),
        _ => classify(status, &Value::from(body)),
    }
}

/// Returns the error of a server that lacks the path altogether: llama.cpp's, a router, a proxy.
fn not_ollama(message: &str) -> ErrorBody {
    let message = message.trim();
    let message = format!(
        "what listens there does not answer as an Ollama server does (HTTP 404: {message}). Look at the address (OLLAMA_HOST); \
         llama.cpp's own server is llama-cpp/NAME, another one openai-compatible/NAME"
    );
    ErrorBody {
        message,
        kind: Some(ErrorKind::Impossible),
        ..ErrorBody::default()
    }
}

/// Returns the error for an error object inside a 200.
pub(super) fn in_answer(vendor: &Vendor, error: &Value) -> ModelError {
    let body = classify(200, error);
    let kind = body.kind.or(Some(ErrorKind::Server));
    vendor.error(200, None, None, ErrorBody { kind, ..body })
}

/// Reads the value of `error`.
fn classify(status: u16, error: &Value) -> ErrorBody {
    let message = message_text(error);
    let lower = message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let mut body = ErrorBody::read(status, &[], message);
    if mentions(&["more system memory"]) {
        // The server sends a 500, as if it were a passing fault.
        body.kind = Some(ErrorKind::Impossible);
    } else if mentions(&["usage limit"]) {
        body.kind = Some(ErrorKind::Quota);
    }
    if let Some(advice) = advice(&lower) {
        body.message = format!("{}. {advice}", body.message);
    }
    body
}

/// Returns the message of an error. An error of the engine behind the server is JSON in a string.
fn message_text(error: &Value) -> String {
    match error {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => message_text(inner.get("error").unwrap_or(&inner)),
            _ => text.clone(),
        },
        Value::Object(fields) => match (
            fields.get("message"),
            fields.get("type").and_then(Value::as_str),
        ) {
            (Some(message), Some(kind)) => format!("{} ({kind})", message_text(message)),
            (Some(message), None) => message_text(message),
            (None, _) => error.to_string(),
        },
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns what the user can do about an error whose message does not say so.
fn advice(message: &str) -> Option<&'static str> {
    [
        (
            "does not support tools",
            "Choose a model that lists `tools` under `ollama show MODEL`.",
        ),
        (
            "does not support thinking",
            "Leave OllamaOptions::think (ollama.think) unset, or choose a model that thinks.",
        ),
        (
            "more system memory",
            "Choose a smaller model, or a smaller OllamaOptions::num_ctx (ollama.context_size).",
        ),
        (
            "exceed_context_size",
            "Raise OllamaOptions::num_ctx (ollama.context_size), or send less.",
        ),
    ]
    .into_iter()
    .find_map(|(phrase, advice)| message.contains(phrase).then_some(advice))
}
