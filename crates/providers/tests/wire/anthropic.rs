//! The form of Anthropic's Messages. Source: the vendor's published schema, `Message` and
//! `RawMessageStreamEvent`, and "Errors" in its API reference.

use serde_json::{Value, json};

use super::said::{Counts, End, Said, Trouble};
use super::{Events, Form, pieces};

pub(crate) struct Anthropic;

impl Form for Anthropic {
    fn model(&self) -> &'static str {
        "claude-sonnet-4-5"
    }

    fn whole(&self, said: &Said) -> String {
        message(said, blocks(said), Some(self.finish(said))).to_string()
    }

    fn events(&self, said: &Said) -> Events {
        let mut begun = message(said, Vec::new(), None);
        // Counts of what is written grow; the last ones hold.
        begun["usage"] = usage(Counts {
            output: 1,
            thinking: 0,
            ..said.counts
        });
        let start = json!({ "type": "message_start", "message": begun });
        let mut events = vec![start.to_string(), json!({ "type": "ping" }).to_string()];
        let mut arguments = said.calls.iter().map(|call| call.arguments);
        for (at, mut block) in blocks(said).into_iter().enumerate() {
            let deltas = match block["type"].as_str().unwrap() {
                "thinking" => {
                    (block["thinking"], block["signature"]) = ("".into(), "".into());
                    let mut deltas = grow("thinking_delta", "thinking", said.thinking);
                    // A signature comes whole: the vendor's own clients take the last one.
                    deltas.push(json!({ "type": "signature_delta", "signature": said.state }));
                    deltas
                }
                "text" => {
                    block["text"] = "".into();
                    grow("text_delta", "text", said.text)
                }
                _ => {
                    block["input"] = json!({});
                    grow(
                        "input_json_delta",
                        "partial_json",
                        arguments.next().unwrap(),
                    )
                }
            };
            let place = |kind: &str, name: &str, value: Value| {
                json!({ "type": kind, "index": at, name: value }).to_string()
            };
            events.push(place("content_block_start", "content_block", block));
            events.extend(
                deltas
                    .into_iter()
                    .map(|delta| place("content_block_delta", "delta", delta)),
            );
            events.push(json!({ "type": "content_block_stop", "index": at }).to_string());
        }
        let mut delta = json!({ "stop_reason": self.finish(said), "stop_sequence": null });
        if !said.refusal.is_empty() {
            delta["stop_details"] = declined(said);
        }
        let mut usage = usage(said.counts);
        usage
            .as_object_mut()
            .unwrap()
            .retain(|name, _| name.starts_with("output_tokens"));
        let end = json!({ "type": "message_delta", "delta": delta, "usage": usage });
        Events {
            said: events,
            end: vec![
                end.to_string(),
                json!({ "type": "message_stop" }).to_string(),
            ],
        }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        let (kind, message) = match (trouble, status) {
            (Trouble::Quota, _) => (
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            ),
            (Trouble::TooLong, _) => (
                "invalid_request_error",
                "prompt is too long: 200001 tokens > 200000 maximum",
            ),
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

    fn finish(&self, said: &Said) -> &'static str {
        match said.end {
            End::Usual if said.calls.is_empty() => "end_turn",
            End::Usual => "tool_use",
            End::MaxTokens => "max_tokens",
            End::Filtered => "refusal",
            End::Unheard => "something_new",
        }
    }

    /// Counts cached tokens apart from the others.
    fn counters(&self, counts: Counts) -> (u64, u64) {
        (counts.input - counts.cached, counts.output)
    }

    fn frame(&self, event: &str) -> String {
        let value: Value = serde_json::from_str(event).unwrap();
        format!(
            "event: {}\ndata: {event}\n\n",
            value["type"].as_str().unwrap()
        )
    }
}

/// An error's body; in a stream, its event.
pub(crate) fn error(kind: &str, message: &str) -> String {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
        .to_string()
}

fn blocks(said: &Said) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !said.thinking.is_empty() {
        blocks.push(
            json!({ "type": "thinking", "thinking": said.thinking, "signature": said.state }),
        );
    }
    if !said.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": said.text, "citations": null }));
    }
    for (at, call) in said.calls.iter().enumerate() {
        // No arguments are an empty object here, and never an empty text.
        let input = if call.arguments.is_empty() {
            json!({})
        } else {
            call.value()
        };
        blocks.push(json!({
            "type": "tool_use", "id": format!("toolu_{at}"), "name": call.name, "input": input
        }));
    }
    blocks
}

/// The deltas that fill a block. It has at least one, also where it stays empty.
fn grow(kind: &str, field: &str, words: &str) -> Vec<Value> {
    let pieces = if words.is_empty() {
        vec![String::new()]
    } else {
        pieces(words)
    };
    pieces
        .into_iter()
        .map(|piece| json!({ "type": kind, field: piece }))
        .collect()
}

fn message(said: &Said, blocks: Vec<Value>, reason: Option<&str>) -> Value {
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": Anthropic.model(),
        "content": blocks, "stop_reason": reason, "stop_sequence": null, "usage": usage(said.counts)
    });
    if reason.is_some() && !said.refusal.is_empty() {
        message["stop_details"] = declined(said);
    }
    message
}

fn declined(said: &Said) -> Value {
    json!({ "type": "refusal", "category": null, "explanation": said.refusal })
}

fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.input - counts.cached, "cache_read_input_tokens": counts.cached,
        "cache_creation_input_tokens": 0, "output_tokens": counts.output,
        "output_tokens_details": { "thinking_tokens": counts.thinking }
    })
}
