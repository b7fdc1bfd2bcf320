//! Gemini's form. Source: the vendor's published types, `GenerateContentResponse` and
//! `google.rpc.Status`.

use serde_json::{Value, json};

use super::said::{Counts, End, Said, Trouble};
use super::{Events, Form, pieces};

pub(crate) struct Gemini;

impl Form for Gemini {
    fn model(&self) -> &'static str {
        "gemini-3.8-flash"
    }

    fn whole(&self, said: &Said) -> String {
        piece(said, parts(said), Some(self.finish(said)))
    }

    fn events(&self, said: &Said) -> Events {
        let parts = parts(said).into_iter().flat_map(growing);
        Events {
            said: parts.map(|part| piece(said, vec![part], None)).collect(),
            end: vec![piece(said, Vec::new(), Some(self.finish(said)))],
        }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        let message = match trouble {
            Trouble::Plain => "The server's words.",
            Trouble::Quota => "Your prepayment credits are depleted.",
            Trouble::TooLong => {
                "The input token count (9) exceeds the maximum number of tokens allowed (8)."
            }
        };
        let name = match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        };
        json!({ "error": { "code": status, "message": message, "status": name } }).to_string()
    }

    fn finish(&self, said: &Said) -> &'static str {
        match said.end {
            End::Usual => "STOP",
            End::MaxTokens => "MAX_TOKENS",
            End::Filtered => "SAFETY",
            End::Unheard => "SOMETHING_NEW",
        }
    }

    /// Thinking is counted apart.
    fn counters(&self, counts: Counts) -> (u64, u64) {
        (counts.input, counts.output - counts.thinking)
    }

    fn frame(&self, event: &str) -> String {
        format!("data: {event}\r\n\r\n")
    }
}

/// Returns the answer to a prompt that a filter stopped.
pub(crate) fn blocked(reason: &str) -> String {
    json!({ "promptFeedback": { "blockReason": reason }, "modelVersion": Gemini.model() })
        .to_string()
}

fn piece(said: &Said, parts: Vec<Value>, finish: Option<&str>) -> String {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    let (input, output) = Gemini.counters(said.counts);
    let mut usage = json!({
        "promptTokenCount": input, "candidatesTokenCount": output,
        "totalTokenCount": said.counts.input + said.counts.output
    });
    // Zeros are left out.
    for (name, count) in [
        ("cachedContentTokenCount", said.counts.cached),
        ("thoughtsTokenCount", said.counts.thinking),
    ] {
        if count > 0 {
            usage[name] = count.into();
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": Gemini.model(), "responseId": "r1"
    })
    .to_string()
}

/// The thinking, the words, the calls; the state is on the first call, else on the words.
fn parts(said: &Said) -> Vec<Value> {
    let mut parts = Vec::new();
    if !said.text.is_empty() {
        parts.push(json!({ "text": said.text }));
    }
    let words = parts.len();
    parts.extend(
        said.calls
            .iter()
            .map(|call| json!({ "functionCall": { "name": call.name, "args": call.value() } })),
    );
    let signed = if said.calls.is_empty() { 0 } else { words };
    if let (Some(part), false) = (parts.get_mut(signed), said.state.is_empty()) {
        part["thoughtSignature"] = said.state.into();
    }
    if !said.thinking.is_empty() {
        parts.insert(0, json!({ "text": said.thinking, "thought": true }));
    }
    parts
}

/// A part as the parts of a stream that add up to it; what is signed is the last of them.
fn growing(part: Value) -> Vec<Value> {
    let Some(text) = part["text"].as_str() else {
        return vec![part];
    };
    let pieces = pieces(text);
    let last = pieces.len() - 1;
    let grown = pieces.into_iter().enumerate().map(|(at, piece)| {
        let mut grown = part.clone();
        grown["text"] = piece.into();
        if at < last {
            grown.as_object_mut().unwrap().remove("thoughtSignature");
        }
        grown
    });
    grown.collect()
}
