//! The form of OpenAI's Chat Completions. Source: the vendor's published schema,
//! `CreateChatCompletionResponse` and `CreateChatCompletionStreamResponse`.

use serde_json::{Value, json};

use super::said::{Counts, End, Said, Trouble};
use super::{Events, Form, pieces};

pub(crate) struct OpenAiChat {
    pub(crate) model: &'static str,
    /// The field in which compatible servers show thinking; the vendor has none.
    pub(crate) thinking: Option<&'static str>,
}

impl OpenAiChat {
    fn thinking<'a>(&self, said: &'a Said) -> Option<(&'static str, &'a str)> {
        Some((self.thinking?, said.thinking)).filter(|(_, words)| !words.is_empty())
    }

    fn about(&self, kind: &str, choices: Value) -> Value {
        json!({
            "id": "chatcmpl-1", "object": kind, "created": 1_795_305_600, "model": self.model,
            "choices": choices
        })
    }

    /// A piece of a stream.
    fn chunk(&self, delta: Value, finish: Option<&str>) -> String {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        self.about("chat.completion.chunk", choices).to_string()
    }
}

impl Form for OpenAiChat {
    fn model(&self) -> &'static str {
        self.model
    }

    fn whole(&self, said: &Said) -> String {
        let or_null = |words: &'static str| {
            if words.is_empty() {
                Value::Null
            } else {
                words.into()
            }
        };
        let mut message = json!({
            "role": "assistant", "content": or_null(said.text), "refusal": or_null(said.refusal)
        });
        if let Some((field, words)) = self.thinking(said) {
            message[field] = words.into();
        }
        if !said.calls.is_empty() {
            message["tool_calls"] = (0..said.calls.len())
                .map(|at| call(said, at, true))
                .collect();
        }
        let choices = json!([{
            "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish(said)
        }]);
        let mut whole = self.about("chat.completion", choices);
        whole["usage"] = usage(said.counts);
        whole.to_string()
    }

    fn events(&self, said: &Said) -> Events {
        let mut events = vec![self.chunk(json!({ "role": "assistant", "content": "" }), None)];
        let thinking = self.thinking(said);
        for (field, words) in thinking
            .into_iter()
            .chain([("content", said.text), ("refusal", said.refusal)])
        {
            events.extend(
                pieces(words)
                    .into_iter()
                    .map(|piece| self.chunk(json!({ field: piece }), None)),
            );
        }
        for at in 0..said.calls.len() {
            let mut deltas = vec![call(said, at, false)];
            let arguments = pieces(said.calls[at].arguments).into_iter();
            deltas.extend(
                arguments.map(|piece| json!({ "index": at, "function": { "arguments": piece } })),
            );
            let chunks = deltas
                .into_iter()
                .map(|delta| self.chunk(json!({ "tool_calls": [delta] }), None));
            events.extend(chunks);
        }
        let mut counts = self.about("chat.completion.chunk", json!([]));
        counts["usage"] = usage(said.counts);
        let end = self.chunk(json!({}), Some(self.finish(said)));
        Events {
            said: events,
            end: vec![end, counts.to_string(), "[DONE]".to_owned()],
        }
    }

    fn error(&self, status: u16, trouble: Trouble) -> String {
        error(status, trouble)
    }

    fn finish(&self, said: &Said) -> &'static str {
        match said.end {
            End::Usual if said.calls.is_empty() => "stop",
            End::Usual => "tool_calls",
            End::MaxTokens => "length",
            End::Filtered => "content_filter",
            End::Unheard => "something_new",
        }
    }
}

/// The body of an error answer of either of the vendor's interfaces.
pub(super) fn error(status: u16, trouble: Trouble) -> String {
    let (kind, code) = match (trouble, status) {
        (Trouble::Quota, _) => ("insufficient_quota", "insufficient_quota"),
        (Trouble::TooLong, _) => ("invalid_request_error", "context_length_exceeded"),
        (_, 401) => ("invalid_request_error", "invalid_api_key"),
        (_, 404) => ("invalid_request_error", "model_not_found"),
        (_, 429) => ("requests", "rate_limit_exceeded"),
        (_, 500..) => ("server_error", "server_error"),
        _ => ("invalid_request_error", "invalid_value"),
    };
    let error =
        json!({ "message": "The server's words.", "type": kind, "param": null, "code": code });
    json!({ "error": error }).to_string()
}

/// A call; as the first of its chunks has it, with its number and without its arguments.
fn call(said: &Said, at: usize, complete: bool) -> Value {
    let Said { calls, .. } = said;
    let arguments = if complete { calls[at].arguments } else { "" };
    let mut call = json!({
        "index": at, "id": format!("call_{at}"), "type": "function",
        "function": { "name": calls[at].name, "arguments": arguments }
    });
    if complete {
        call.as_object_mut().unwrap().remove("index");
    }
    call
}

fn usage(counts: Counts) -> Value {
    json!({
        "prompt_tokens": counts.input, "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": { "cached_tokens": counts.cached },
        "completion_tokens_details": { "reasoning_tokens": counts.thinking }
    })
}
