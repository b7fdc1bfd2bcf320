//! Gemini's form. Source: the vendor's published types, `GenerateContentResponse` and `google.rpc.Status`.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};
use serde_json::{Value, json};

use super::dialect::{Dialect, Events};
use super::said::{End, Reply, Said, Trouble};
use super::table::{Row, ends, fine, recovers};

/// A provider that speaks it.
pub(super) struct Gemini {
    pub(super) provider: &'static str,
}

impl Dialect for Gemini {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn model(&self) -> &'static str {
        "gemini-3.8-flash"
    }

    fn whole(&self, said: &Said) -> String {
        piece(parts(said), Some(finish(said)))
    }

    fn events(&self, said: &Said) -> Events {
        Events {
            said: parts(said).into_iter().map(|part| piece(vec![part], None)).collect(),
            end: vec![piece(Vec::new(), Some(finish(said)))],
        }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        let message = match trouble {
            Trouble::Plain | Trouble::Page => "The server's words.",
            Trouble::Quota => "Your prepayment credits are depleted.",
            Trouble::TooLong => "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        };
        json!({ "error": { "code": status, "message": message, "status": "X" } }).to_string()
    }

    fn error_event(&self) -> String {
        self.error(503, Trouble::Plain)
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let malformed = || own(json!({ "finishReason": "MALFORMED_FUNCTION_CALL" }));
        let called = json!([{ "functionCall": { "name": "add_note", "args": { "text": "milk" } } }]);
        let limited = json!({ "error": {
            "code": 429,
            "message": "Slow down.",
            "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s" }]
        } });
        let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }).to_string();
        let nobody = json!({ "candidates": [] }).to_string();
        let both = |body: String| Reply::Own { whole: body.clone(), events: vec![body] };
        vec![
            Row::new("MALFORMED_FUNCTION_CALL", [malformed(), fine()], recovers()),
            Row::new(
                "MALFORMED_FUNCTION_CALL for ever",
                [malformed(), malformed(), fine()],
                ends(LlmFailure, "invalid_response").asked(2).cause(&["malformed"]),
            ),
            Row::new("SAFETY", [own(json!({ "finishReason": "SAFETY" })), fine()], filtered()),
            Row::new(
                "SAFETY behind a call",
                [own(json!({ "content": { "parts": called }, "finishReason": "SAFETY" })), fine()],
                filtered(),
            ),
            Row::new("a blocked prompt", [both(blocked), fine()], filtered()),
            Row::new("no candidates", [both(nobody), fine()], ends(LlmFailure, "invalid_response")),
            Row::new(
                "RetryInfo beyond the turn's time",
                [Reply::OwnStatus { status: 429, body: limited.to_string() }, fine()],
                ends(RateLimited, "rate_limit").cause(&["asks to wait 3600 s"]),
            ),
        ]
    }
}

/// An answer with this candidate alone.
fn own(candidate: Value) -> Reply {
    let body = json!({ "candidates": [candidate] }).to_string();
    Reply::Own { whole: body.clone(), events: vec![body] }
}

fn piece(parts: Vec<Value>, finish: Option<&str>) -> String {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    let usage = json!({ "promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12 });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3.8-flash" })
        .to_string()
}

fn parts(said: &Said) -> Vec<Value> {
    let mut parts = Vec::new();
    if !said.thinking.is_empty() {
        parts.push(json!({ "text": said.thinking, "thought": true }));
    }
    if !said.text.is_empty() {
        parts.push(json!({ "text": said.text }));
    }
    parts.extend(
        said.calls.iter().map(|call| json!({ "functionCall": { "name": call.name, "args": call.value() } })),
    );
    parts
}

fn finish(said: &Said) -> &'static str {
    match said.end {
        End::Usual => "STOP",
        End::MaxTokens => "MAX_TOKENS",
        End::Unheard => "SOMETHING_NEW",
    }
}
