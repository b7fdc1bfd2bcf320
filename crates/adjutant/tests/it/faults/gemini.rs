//! Gemini, and Vertex AI, which says the same things elsewhere.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};
use serde_json::{Value, json};

use super::dialect::Dialect;
use super::reply::Reply;
use super::table::{Row, ends, fine, recovers};
use super::wire::said::Trouble;
use super::wire::{Form, gemini};

/// A provider that speaks it.
pub(super) struct Gemini {
    pub(super) provider: &'static str,
}

impl Dialect for Gemini {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn form(&self) -> &dyn Form {
        &gemini::Gemini
    }

    fn error_event(&self) -> String {
        self.form().error(503, Trouble::Plain)
    }

    fn is_vendor_everywhere(&self) -> bool {
        true
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let malformed = || own(json!({ "finishReason": "MALFORMED_FUNCTION_CALL" }));
        let called =
            json!([{ "functionCall": { "name": "add_note", "args": { "text": "milk" } } }]);
        let limited = json!({ "error": {
            "code": 429,
            "message": "Slow down.",
            "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s" }]
        } });
        let blocked = gemini::blocked("PROHIBITED_CONTENT");
        let nobody = json!({ "candidates": [] }).to_string();
        let both = |body: String| Reply::Own {
            whole: body.clone(),
            events: vec![body],
        };
        vec![
            Row::new("MALFORMED_FUNCTION_CALL", [malformed(), fine()], recovers()),
            Row::new(
                "MALFORMED_FUNCTION_CALL for ever",
                [malformed(), malformed(), fine()],
                ends(LlmFailure, "invalid_response")
                    .asked(2)
                    .cause(&["malformed"]),
            ),
            Row::new(
                "SAFETY",
                [own(json!({ "finishReason": "SAFETY" })), fine()],
                filtered(),
            ),
            Row::new(
                "SAFETY behind a call",
                [
                    own(json!({ "content": { "parts": called }, "finishReason": "SAFETY" })),
                    fine(),
                ],
                filtered(),
            ),
            Row::new("a blocked prompt", [both(blocked), fine()], filtered()),
            Row::new(
                "no candidates",
                [both(nobody), fine()],
                ends(LlmFailure, "invalid_response"),
            ),
            Row::new(
                "RetryInfo beyond the turn's time",
                [
                    Reply::OwnStatus {
                        status: 429,
                        body: limited.to_string(),
                    },
                    fine(),
                ],
                ends(RateLimited, "rate_limit").cause(&["asks to wait 3600 s"]),
            ),
        ]
    }
}

/// An answer with this candidate alone.
fn own(candidate: Value) -> Reply {
    let body = json!({ "candidates": [candidate] }).to_string();
    Reply::Own {
        whole: body.clone(),
        events: vec![body],
    }
}
