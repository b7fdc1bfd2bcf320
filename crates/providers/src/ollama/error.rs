//! What Ollama says about a failure.

use adjutant_core::ModelError;
use serde_json::Value;

use crate::error::{Complaint, Kind, Vendor};

/// Reads the body of an answer that is not 2xx.
pub(super) fn complaint(status: u16, body: &str) -> Complaint {
    let parsed = serde_json::from_str::<Value>(body).ok();
    let error = parsed.as_ref().and_then(|body| body.get("error"));
    match &parsed {
        // A page of a proxy in between explains nothing, nor does nothing; a line of text may.
        _ if body.trim_start().starts_with('<') || matches!(body.trim(), "" | "{}") => {
            Complaint::default()
        }
        _ if status == 404 && !error.is_some_and(Value::is_string) => {
            not_ollama(&error.map_or_else(|| body.to_owned(), words))
        }
        Some(Value::Object(_)) => of(status, error.unwrap_or(&Value::Null)),
        _ => of(status, &Value::from(body)),
    }
}

/// Whoever answers does not have the address at all: llama.cpp's server, a router, a proxy.
fn not_ollama(said: &str) -> Complaint {
    let said = said.trim();
    let message = format!(
        "what listens there does not answer as an Ollama server does (HTTP 404: {said}). Look at the address (OLLAMA_HOST); \
         llama.cpp's own server is llama-cpp/NAME, another one openai-compatible/NAME"
    );
    Complaint {
        message,
        kind: Some(Kind::Impossible),
        ..Complaint::default()
    }
}

/// An error that came inside a 200.
pub(super) fn inside(vendor: &Vendor, error: &Value) -> ModelError {
    let complaint = of(200, error);
    match complaint.kind {
        Some(_) => vendor.refused(200, None, complaint),
        None => vendor.refused(
            200,
            None,
            Complaint {
                kind: Some(Kind::Server),
                ..complaint
            },
        ),
    }
}

/// The words, which may be wrapped in JSON as text, once more: an error of the engine behind the
/// server.
fn of(status: u16, error: &Value) -> Complaint {
    let message = words(error);
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let kind = if says(&[
        "exceed_context_size",
        "available context size",
        "context length",
        "context window",
    ]) {
        Some(Kind::ContextTooLong)
    } else if says(&["usage limit", "quota", "out of credit"])
        && matches!(status, 200 | 402 | 403 | 429)
    {
        Some(Kind::Quota)
    } else if says(&["\" not found", "' not found"]) && lower.contains("model") {
        Some(Kind::NoSuchModel)
    } else if says(&["more system memory"]) {
        // A 500, as if it were a passing fault.
        Some(Kind::Impossible)
    } else {
        None
    };
    let message = match advice(&lower) {
        Some(advice) => format!("{message}. {advice}"),
        None => message,
    };
    Complaint {
        message,
        retry_after: None,
        kind,
    }
}

fn words(error: &Value) -> String {
    match error {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => words(inner.get("error").unwrap_or(&inner)),
            _ => text.clone(),
        },
        Value::Object(fields) => match (
            fields.get("message"),
            fields.get("type").and_then(Value::as_str),
        ) {
            (Some(message), Some(kind)) => format!("{} ({kind})", words(message)),
            (Some(message), None) => words(message),
            (None, _) => error.to_string(),
        },
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What to do, where the server does not say so itself.
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
    .find_map(|(words, advice)| message.contains(words).then_some(advice))
}
