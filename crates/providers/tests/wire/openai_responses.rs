//! The form of OpenAI's Responses. Source: the vendor's published schema, `Response` and
//! `ResponseStreamEvent`.

use serde_json::{Value, json};

use super::said::{Counts, End, Said, Trouble};
use super::{Events, Form, openai_chat, pieces};

pub(crate) struct OpenAiResponses;

impl Form for OpenAiResponses {
    fn model(&self) -> &'static str {
        "gpt-5"
    }

    fn whole(&self, said: &Said) -> String {
        response(said).to_string()
    }

    fn events(&self, said: &Said) -> Events {
        events(&response(said))
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        openai_chat::error(status, trouble)
    }

    /// Its status, or the reason why it is incomplete where that is a filter.
    fn finish(&self, said: &Said) -> &'static str {
        match said.end {
            End::Usual => "completed",
            End::Filtered => "content_filter",
            End::MaxTokens | End::Unheard => "incomplete",
        }
    }

    fn frame(&self, event: &str) -> String {
        let value: Value = serde_json::from_str(event).unwrap();
        format!(
            "event: {}\ndata: {event}\n\n",
            value["type"].as_str().unwrap()
        )
    }
}

/// A whole response.
pub(crate) fn response(said: &Said) -> Value {
    let mut response = begun();
    response["output"] = items(said).into();
    response["usage"] = usage(said.counts);
    let reason = match said.end {
        End::Usual => {
            response["status"] = "completed".into();
            return response;
        }
        End::MaxTokens => "max_output_tokens",
        End::Filtered => "content_filter",
        End::Unheard => "something_new",
    };
    response["status"] = "incomplete".into();
    response["incomplete_details"] = json!({ "reason": reason });
    response
}

/// The events of a stream that ends with this response, whatever its status.
pub(crate) fn events(response: &Value) -> Events {
    let mut sequence = 0;
    let mut number = |mut event: Value| {
        event["sequence_number"] = sequence.into();
        sequence += 1;
        event.to_string()
    };
    let begin = ["response.created", "response.in_progress"];
    let begin = begin
        .map(|kind| json!({ "type": kind, "response": begun() }))
        .into_iter();
    let items = response["output"].as_array().unwrap().iter().enumerate();
    let said = begin
        .chain(items.flat_map(|(at, item)| growing(at, item)))
        .map(&mut number)
        .collect();
    let kind = format!("response.{}", response["status"].as_str().unwrap());
    Events {
        said,
        end: vec![number(json!({ "type": kind, "response": response }))],
    }
}

/// A message with this part alone.
pub(crate) fn message(part: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]
    })
}

fn items(said: &Said) -> Vec<Value> {
    let mut items = Vec::new();
    if !said.thinking.is_empty() {
        let summary = json!([{ "type": "summary_text", "text": said.thinking }]);
        items.push(json!({
            "id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": said.state
        }));
    }
    if !said.text.is_empty() {
        let part =
            json!({ "type": "output_text", "text": said.text, "annotations": [], "logprobs": [] });
        items.push(message(part));
    }
    if !said.refusal.is_empty() {
        items.push(message(
            json!({ "type": "refusal", "refusal": said.refusal }),
        ));
    }
    for (at, call) in said.calls.iter().enumerate() {
        items.push(json!({
            "id": format!("fc_{at}"), "type": "function_call", "status": "completed",
            "call_id": format!("call_{at}"), "name": call.name, "arguments": call.arguments
        }));
    }
    items
}

/// The events of one item: it appears, grows and is done.
fn growing(at: usize, item: &Value) -> Vec<Value> {
    let event = |kind: &str, fields: &[(&str, &Value)]| {
        let mut event = json!({ "type": format!("response.{kind}"), "output_index": at });
        for (name, value) in fields {
            event[*name] = (*value).clone();
        }
        event
    };
    let id = ("item_id", &item["id"]);
    let zero = json!(0);
    let (mut empty, mut growth) = (item.clone(), Vec::new());
    // All deltas of a text, and the event that says it whole; both stand at the same place.
    let grow = |kind: &str, place: &[(&str, &Value)], field: &str, whole: &Value| {
        let deltas: Vec<Value> = pieces(whole.as_str().unwrap())
            .into_iter()
            .map(Value::from)
            .collect();
        let fields = |more| [place, &[more]].concat();
        let mut events: Vec<Value> = deltas
            .iter()
            .map(|delta| event(&format!("{kind}.delta"), &fields(("delta", delta))))
            .collect();
        events.push(event(&format!("{kind}.done"), &fields((field, whole))));
        events
    };
    match item["type"].as_str().unwrap() {
        "reasoning" => {
            empty["summary"] = json!([]);
            let (place, part) = ([id, ("summary_index", &zero)], &item["summary"][0]);
            let blank = json!({ "type": "summary_text", "text": "" });
            growth.push(event(
                "reasoning_summary_part.added",
                &[place[0], place[1], ("part", &blank)],
            ));
            growth.extend(grow(
                "reasoning_summary_text",
                &place,
                "text",
                &part["text"],
            ));
            growth.push(event(
                "reasoning_summary_part.done",
                &[place[0], place[1], ("part", part)],
            ));
        }
        "function_call" => {
            empty["arguments"] = "".into();
            empty["status"] = "in_progress".into();
            let place = [id];
            growth = grow(
                "function_call_arguments",
                &place,
                "arguments",
                &item["arguments"],
            );
            growth.last_mut().unwrap()["name"] = item["name"].clone();
        }
        _ => {
            empty["content"] = json!([]);
            empty["status"] = "in_progress".into();
            let (place, part) = ([id, ("content_index", &zero)], &item["content"][0]);
            let (kind, field) = match part["type"].as_str().unwrap() {
                "refusal" => ("refusal", "refusal"),
                _ => ("output_text", "text"),
            };
            let mut blank = part.clone();
            blank[field] = "".into();
            growth.push(event(
                "content_part.added",
                &[place[0], place[1], ("part", &blank)],
            ));
            let mut texts = grow(kind, &place, field, &part[field]);
            if kind == "output_text" {
                texts
                    .iter_mut()
                    .for_each(|event| event["logprobs"] = json!([]));
            }
            growth.extend(texts);
            growth.push(event(
                "content_part.done",
                &[place[0], place[1], ("part", part)],
            ));
        }
    }
    let mut events = vec![event("output_item.added", &[("item", &empty)])];
    events.extend(growth);
    events.push(event("output_item.done", &[("item", item)]));
    events
}

fn begun() -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_795_305_600, "model": OpenAiResponses.model(),
        "status": "in_progress", "output": [], "error": null, "incomplete_details": null,
        "instructions": null, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true,
        "metadata": {}, "temperature": 1.0, "top_p": 1.0
    })
}

fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.input,
        "input_tokens_details": { "cached_tokens": counts.cached, "cache_write_tokens": 0 },
        "output_tokens": counts.output,
        "output_tokens_details": { "reasoning_tokens": counts.thinking },
        "total_tokens": counts.input + counts.output
    })
}
