//! OpenAI's Responses.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};
use serde_json::{Value, json};

use super::dialect::Dialect;
use super::reply::Reply;
use super::table::{Row, add_milk, ends, fine, recovers};
use super::wire::openai_responses::{self, response};
use super::wire::said::{End, Said};
use super::wire::{Events, Form};

pub(super) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn form(&self) -> &dyn Form {
        &openai_responses::OpenAiResponses
    }

    fn error_event(&self) -> String {
        let message = "The server's words.";
        json!({
            "type": "error", "sequence_number": 9, "code": "server_error", "message": message, "param": null
        })
        .to_string()
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let refusal = Said {
            refusal: "I won't.",
            ..Said::default()
        };
        let failed = |code: &str| {
            let error = json!({ "code": code, "message": "The server's words." });
            own(&Said::default(), "failed", error)
        };
        vec![
            Row::new(
                "content_filter",
                [Said::default().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "content_filter behind a call",
                [add_milk().end(End::Filtered).into(), fine()],
                filtered(),
            ),
            Row::new(
                "a refusal",
                [refusal.into(), fine()],
                ends(ContentFilter, "refused").cause(&["I won't."]),
            ),
            Row::new(
                "a failed response",
                [failed("server_error"), fine()],
                recovers(),
            ),
            Row::new(
                "a failed response for ever",
                [failed("server_error"), failed("server_error"), fine()],
                ends(LlmFailure, "server")
                    .asked(2)
                    .cause(&["The server's words."]),
            ),
            Row::new(
                "a response that failed for its prompt",
                [failed("invalid_prompt"), fine()],
                filtered(),
            ),
            Row::new(
                "a response that failed for want of credit",
                [failed("insufficient_quota"), fine()],
                ends(RateLimited, "quota"),
            ),
            Row::new(
                "a response that was cancelled",
                [own(&add_milk(), "cancelled", Value::Null), fine()],
                ends(LlmFailure, "truncated"),
            )
            .whole(recovers()),
        ]
    }
}

/// A response that ends with this status.
fn own(said: &Said, status: &str, error: Value) -> Reply {
    let mut response = response(said);
    (response["status"], response["error"]) = (status.into(), error);
    let Events { said, end } = openai_responses::events(&response);
    Reply::Own {
        whole: response.to_string(),
        events: [said, end].concat(),
    }
}
