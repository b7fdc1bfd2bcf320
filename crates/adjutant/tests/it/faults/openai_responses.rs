//! The form of OpenAI's Responses. Source: the vendor's published schema, `Response` and `ResponseStreamEvent`.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, RateLimited};
use serde_json::{Value, json};

use super::dialect::{Dialect, Events};
use super::said::{End, Reply, Said, Trouble};
use super::table::{Row, ends, fine, recovers};

pub(super) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn model(&self) -> &'static str {
        "gpt-5"
    }

    fn whole(&self, said: &Said) -> String {
        response(items(said), said.end).to_string()
    }

    fn events(&self, said: &Said) -> Events {
        let items = items(said);
        let mut events = vec![event("response.created", json!({ "response": begun() }))];
        for (at, item) in items.iter().enumerate() {
            events.extend(growing(at, item));
        }
        Events { said: events, end: vec![end(items, said.end)] }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        let (kind, code) = match (trouble, status) {
            (Trouble::Quota, _) => ("insufficient_quota", "insufficient_quota"),
            (Trouble::TooLong, _) => ("invalid_request_error", "context_length_exceeded"),
            (_, 401) => ("invalid_request_error", "invalid_api_key"),
            (_, 404) => ("invalid_request_error", "model_not_found"),
            (_, 429) => ("requests", "rate_limit_exceeded"),
            (_, 500..) => ("server_error", "server_error"),
            _ => ("invalid_request_error", "invalid_value"),
        };
        let error = json!({ "message": "The server's words.", "type": kind, "param": null, "code": code });
        json!({ "error": error }).to_string()
    }

    fn error_event(&self) -> String {
        event("error", json!({ "code": "server_error", "message": "The server's words.", "param": null }))
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let refusal = message(json!({ "type": "refusal", "refusal": "I won't." }));
        let called = items(&super::table::add_milk());
        let because = |reason: &str| json!({ "incomplete_details": { "reason": reason } });
        let failed = |code: &str| {
            let error = json!({ "error": { "code": code, "message": "The server's words." } });
            own(Vec::new(), "failed", error)
        };
        vec![
            Row::new(
                "content_filter",
                [own(Vec::new(), "incomplete", because("content_filter")), fine()],
                filtered(),
            ),
            Row::new(
                "content_filter behind a call",
                [own(called.clone(), "incomplete", because("content_filter")), fine()],
                filtered(),
            ),
            Row::new(
                "a refusal",
                [own(vec![refusal], "completed", json!({})), fine()],
                ends(ContentFilter, "refused").cause(&["I won't."]),
            ),
            Row::new("a failed response", [failed("server_error"), fine()], recovers()),
            Row::new(
                "a failed response for ever",
                [failed("server_error"), failed("server_error"), fine()],
                ends(LlmFailure, "server").asked(2).cause(&["The server's words."]),
            ),
            Row::new("a response that failed for its prompt", [failed("invalid_prompt"), fine()], filtered()),
            Row::new(
                "a response that failed for want of credit",
                [failed("insufficient_quota"), fine()],
                ends(RateLimited, "quota"),
            ),
            Row::new(
                "a response that was cancelled",
                [own(called, "cancelled", json!({})), fine()],
                ends(LlmFailure, "truncated"),
            )
            .whole(recovers()),
        ]
    }

    fn frame(&self, event: &str) -> String {
        let value: Value = serde_json::from_str(event).unwrap();
        format!("event: {}\ndata: {event}\n\n", value["type"].as_str().unwrap())
    }
}

/// A response with these items, this status and these other fields.
fn own(items: Vec<Value>, status: &str, others: Value) -> Reply {
    let mut response = response(items.clone(), End::Usual);
    response["status"] = status.into();
    for (name, value) in others.as_object().unwrap() {
        response[name] = value.clone();
    }
    let events = [event("response.created", json!({ "response": begun() }))].into_iter();
    let events = events.chain(items.iter().enumerate().flat_map(|(at, item)| growing(at, item)));
    let kind = match status {
        "incomplete" => "response.incomplete",
        "failed" => "response.failed",
        "cancelled" => "response.cancelled",
        _ => "response.completed",
    };
    let last = event(kind, json!({ "response": response }));
    Reply::Own { whole: response.to_string(), events: events.chain([last]).collect() }
}

fn items(said: &Said) -> Vec<Value> {
    let mut items = Vec::new();
    if !said.thinking.is_empty() {
        let summary = json!([{ "type": "summary_text", "text": said.thinking }]);
        items.push(json!({ "id": "rs_1", "type": "reasoning", "summary": summary }));
    }
    if !said.text.is_empty() {
        items.push(message(json!({ "type": "output_text", "text": said.text, "annotations": [] })));
    }
    for (at, call) in said.calls.iter().enumerate() {
        items.push(json!({
            "id": format!("fc_{at}"), "type": "function_call", "status": "completed",
            "call_id": format!("call_{at}"), "name": call.name, "arguments": call.arguments
        }));
    }
    items
}

fn message(part: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]
    })
}

/// The events of one item: it appears, grows and is done.
fn growing(at: usize, item: &Value) -> Vec<String> {
    let id = item["id"].clone();
    let place = |more: Value| {
        let mut place = json!({ "output_index": at, "item_id": id });
        for (name, value) in more.as_object().unwrap() {
            place[name] = value.clone();
        }
        place
    };
    let mut empty = item.clone();
    let growth = match item["type"].as_str().unwrap() {
        "reasoning" => {
            empty["summary"] = json!([]);
            let delta = json!({ "summary_index": 0, "delta": item["summary"][0]["text"] });
            event("response.reasoning_summary_text.delta", place(delta))
        }
        "function_call" => {
            empty["arguments"] = "".into();
            event("response.function_call_arguments.delta", place(json!({ "delta": item["arguments"] })))
        }
        _ => {
            empty["content"] = json!([]);
            let part = &item["content"][0];
            let (kind, field) = match part["type"].as_str().unwrap() {
                "refusal" => ("response.refusal.delta", "refusal"),
                _ => ("response.output_text.delta", "text"),
            };
            event(kind, place(json!({ "content_index": 0, "delta": part[field] })))
        }
    };
    vec![
        event("response.output_item.added", json!({ "output_index": at, "item": empty })),
        growth,
        event("response.output_item.done", json!({ "output_index": at, "item": item })),
    ]
}

fn event(kind: &str, mut fields: Value) -> String {
    fields["type"] = kind.into();
    fields["sequence_number"] = 1.into();
    fields.to_string()
}

fn begun() -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": "in_progress",
        "output": [], "error": null, "incomplete_details": null, "usage": null
    })
}

fn response(items: Vec<Value>, end: End) -> Value {
    let mut response = begun();
    response["output"] = items.into();
    response["usage"] = json!({ "input_tokens": 90, "output_tokens": 3, "total_tokens": 93 });
    response["status"] = match end {
        End::Usual => "completed",
        End::MaxTokens | End::Unheard => "incomplete",
    }
    .into();
    match end {
        End::Usual => {}
        End::MaxTokens => response["incomplete_details"] = json!({ "reason": "max_output_tokens" }),
        End::Unheard => response["incomplete_details"] = json!({ "reason": "something_new" }),
    }
    response
}

fn end(items: Vec<Value>, end: End) -> String {
    let kind = match end {
        End::Usual => "response.completed",
        End::MaxTokens | End::Unheard => "response.incomplete",
    };
    event(kind, json!({ "response": response(items, end) }))
}
