//! The form of Anthropic's Messages. Source: the vendor's published schema, `Message` and `RawMessageStreamEvent`.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};
use serde_json::{Value, json};

use super::dialect::{Dialect, Events};
use super::said::{End, Reply, Said, Trouble};
use super::table::{Row, ends, fine, recovers};

pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn model(&self) -> &'static str {
        "claude-sonnet-4-5"
    }

    fn whole(&self, said: &Said) -> String {
        whole(blocks(said), stop_reason(said))
    }

    fn events(&self, said: &Said) -> Events {
        let mut events = vec![start()];
        for (at, (block, (delta, value))) in empty_blocks(said).into_iter().enumerate() {
            let field = delta.trim_end_matches("_delta").trim_start_matches("input_");
            let field = if field == "json" { "partial_json" } else { field };
            events.extend([
                json!({ "type": "content_block_start", "index": at, "content_block": block }).to_string(),
                json!({
                    "type": "content_block_delta", "index": at, "delta": { "type": delta, field: value }
                })
                .to_string(),
                json!({ "type": "content_block_stop", "index": at }).to_string(),
            ]);
        }
        Events { said: events, end: end(stop_reason(said)) }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        let (kind, message) = match (trouble, status) {
            (Trouble::Quota, _) => (
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            ),
            (Trouble::TooLong, _) => {
                ("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum")
            }
            (_, 401) => ("authentication_error", "The server's words."),
            (_, 403) => ("permission_error", "The server's words."),
            (_, 404) => ("not_found_error", "The server's words."),
            (_, 429) => ("rate_limit_error", "The server's words."),
            (_, 529) => ("overloaded_error", "The server's words."),
            (_, 500..) => ("api_error", "The server's words."),
            _ => ("invalid_request_error", "The server's words."),
        };
        error(kind, message)
    }

    fn quota_status(&self) -> u16 {
        400
    }

    fn error_event(&self) -> String {
        error("overloaded_error", "Overloaded")
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let limited = error("rate_limit_error", "The server's words.");
        let refused = error("invalid_request_error", "The server's words.");
        let both = |body: String| Reply::Own { whole: body.clone(), events: vec![body] };
        vec![
            Row::new("a refusal", [own(&Said::default(), "refusal"), fine()], filtered()),
            Row::new(
                "a refusal behind a call",
                [own(&super::table::add_milk(), "refusal"), fine()],
                filtered(),
            ),
            Row::new("a limit inside a 200", [both(limited.clone()), fine()], recovers()),
            Row::new(
                "a limit inside a 200 for ever",
                [both(limited.clone()), both(limited), fine()],
                ends(RateLimited, "rate_limit").asked(2),
            ),
            Row::new(
                "a rejected request inside a 200",
                [both(refused), fine()],
                ends(LlmFailure, "bad_request"),
            ),
        ]
    }

    fn frame(&self, event: &str) -> String {
        let value: Value = serde_json::from_str(event).unwrap();
        format!("event: {}\ndata: {event}\n\n", value["type"].as_str().unwrap())
    }
}

/// What is said, with this reason to stop.
fn own(said: &Said, reason: &str) -> Reply {
    let events = Anthropic.events(said).said.into_iter().chain(end(reason)).collect();
    Reply::Own { whole: whole(blocks(said), reason), events }
}

fn error(kind: &str, message: &str) -> String {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
        .to_string()
}

fn blocks(said: &Said) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !said.thinking.is_empty() {
        blocks.push(json!({ "type": "thinking", "thinking": said.thinking, "signature": "c2ln" }));
    }
    if !said.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": said.text, "citations": null }));
    }
    for (at, call) in said.calls.iter().enumerate() {
        // No arguments are an empty object here, and never an empty text.
        let input = if call.arguments.is_empty() { json!({}) } else { call.value() };
        blocks.push(json!({
            "type": "tool_use", "id": format!("toolu_{at}"), "name": call.name, "input": input
        }));
    }
    blocks
}

/// The same blocks as they begin, each with the delta that fills it.
fn empty_blocks(said: &Said) -> Vec<(Value, (&'static str, &'static str))> {
    let mut arguments = said.calls.iter().map(|call| call.arguments);
    let grows = |block: &Value| match block["type"].as_str().unwrap() {
        "thinking" => ("thinking_delta", said.thinking),
        "text" => ("text_delta", said.text),
        _ => ("input_json_delta", arguments.next().unwrap()),
    };
    let deltas: Vec<_> = blocks(said).iter().map(grows).collect();
    let empty = blocks(said).into_iter().map(|mut block| {
        match block["type"].as_str().unwrap() {
            "thinking" => block["thinking"] = "".into(),
            "text" => block["text"] = "".into(),
            _ => block["input"] = json!({}),
        }
        block
    });
    empty.zip(deltas).collect()
}

fn message(blocks: Vec<Value>, reason: Option<&str>) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": blocks, "stop_reason": reason, "stop_sequence": null,
        "usage": { "input_tokens": 90, "output_tokens": 3 }
    })
}

fn whole(blocks: Vec<Value>, reason: &str) -> String {
    message(blocks, Some(reason)).to_string()
}

fn start() -> String {
    json!({ "type": "message_start", "message": message(Vec::new(), None) }).to_string()
}

fn end(reason: &str) -> Vec<String> {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    vec![
        json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 3 } }).to_string(),
        json!({ "type": "message_stop" }).to_string(),
    ]
}

fn stop_reason(said: &Said) -> &'static str {
    match said.end {
        End::Usual if said.calls.is_empty() => "end_turn",
        End::Usual => "tool_use",
        End::MaxTokens => "max_tokens",
        End::Unheard => "something_new",
    }
}
