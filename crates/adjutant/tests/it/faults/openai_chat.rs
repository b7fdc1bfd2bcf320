//! The form of OpenAI's Chat Completions. Source: the vendor's published schema, `CreateChatCompletionResponse` and
//! `CreateChatCompletionStreamResponse`; `reasoning_content` is what compatible servers add.

use adjutant::OutcomeCategory::{ContentFilter, LlmFailure, TaskCompleted};
use serde_json::{Value, json};

use super::dialect::{Dialect, Events};
use super::said::{End, Reply, Said, Trouble, text};
use super::table::{Row, ends, fine, recovers};

/// A provider that speaks it.
pub(super) struct OpenAiChat {
    pub(super) provider: &'static str,
}

impl Dialect for OpenAiChat {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn model(&self) -> &'static str {
        "gpt-4.1"
    }

    fn whole(&self, said: &Said) -> String {
        let mut message = json!({ "role": "assistant", "content": null });
        if !said.thinking.is_empty() {
            message["reasoning_content"] = said.thinking.into();
        }
        if !said.text.is_empty() {
            message["content"] = said.text.into();
        }
        if !said.calls.is_empty() {
            message["tool_calls"] = (0..said.calls.len()).map(|at| header(said, at, true)).collect();
        }
        whole(message, finish(said))
    }

    fn events(&self, said: &Said) -> Events {
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        if !said.thinking.is_empty() {
            events.push(chunk(json!({ "reasoning_content": said.thinking }), None));
        }
        if !said.text.is_empty() {
            events.push(chunk(json!({ "content": said.text }), None));
        }
        for (at, call) in said.calls.iter().enumerate() {
            events.push(chunk(json!({ "tool_calls": [header(said, at, false)] }), None));
            let more = json!({ "index": at, "function": { "arguments": call.arguments } });
            events.push(chunk(json!({ "tool_calls": [more] }), None));
        }
        Events { said: events, end: end(finish(said)) }
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
        self.error(500, Trouble::Plain)
    }

    fn own(&self) -> Vec<Row> {
        let filtered = || ends(ContentFilter, "refused").says(&["can't help"]);
        let declined = json!({ "role": "assistant", "content": null, "refusal": "I won't." });
        let called = json!({ "tool_calls": [{
            "index": 0, "id": "call_0", "type": "function",
            "function": { "name": "add_note", "arguments": "{\"text\": \"milk\"}" }
        }] });
        let nothing = json!({ "role": "assistant", "content": null });
        let choiceless = json!({ "id": "x", "object": "chat.completion", "model": "m", "choices": [] });
        let mut rows = vec![
            Row::new("content_filter", [own(nothing.clone(), "content_filter"), fine()], filtered()),
            Row::new("content_filter behind a call", [own(called, "content_filter"), fine()], filtered()),
            Row::new(
                "a refusal",
                [own(declined, "stop"), fine()],
                ends(ContentFilter, "refused").cause(&["I won't."]),
            ),
            Row::new(
                "no choices",
                [
                    Reply::Own {
                        whole: choiceless.to_string(),
                        events: vec![choiceless.to_string(), "[DONE]".to_owned()],
                    },
                    fine(),
                ],
                recovers(),
            )
            .whole(ends(LlmFailure, "invalid_response")),
        ];
        if ["llama-cpp", "lm-studio", "vllm"].contains(&self.provider) {
            let tagged = "{\"name\": \"add_note\", \"arguments\": {\"text\": \"milk\"}}";
            let cut = "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"mi";
            rows.extend([
                Row::new(
                    "a call that comes as text",
                    [text(tagged).into(), fine()],
                    ends(TaskCompleted, None).asked(2).effects(1).told(&["milk added"]),
                ),
                Row::new(
                    "a cut call that comes as text",
                    [text(cut).into(), fine()],
                    recovers().told(&["not a JSON object"]),
                ),
                Row::new(
                    "max_tokens inside a call that comes as text",
                    [text(cut).end(End::MaxTokens).into(), fine()],
                    recovers(),
                ),
            ]);
        }
        rows
    }
}

/// An answer with this message alone.
fn own(message: Value, finish: &str) -> Reply {
    let events = [chunk(message.clone(), None)].into_iter().chain(end(finish)).collect();
    Reply::Own { whole: whole(message, finish), events }
}

/// A call; without its arguments, as the first of its chunks has it.
fn header(said: &Said, at: usize, complete: bool) -> Value {
    let call = said.calls[at];
    let arguments = if complete { call.arguments } else { "" };
    json!({
        "index": at, "id": format!("call_{at}"), "type": "function",
        "function": { "name": call.name, "arguments": arguments }
    })
}

fn usage() -> Value {
    json!({ "prompt_tokens": 90, "completion_tokens": 3, "total_tokens": 93 })
}

fn whole(message: Value, finish: &str) -> String {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage(),
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }]
    })
    .to_string()
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }]
    })
    .to_string()
}

fn end(finish: &str) -> Vec<String> {
    let usage = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [], "usage": usage()
    });
    vec![chunk(json!({}), Some(finish)), usage.to_string(), "[DONE]".to_owned()]
}

fn finish(said: &Said) -> &'static str {
    match said.end {
        End::Usual if said.calls.is_empty() => "stop",
        End::Usual => "tool_calls",
        End::MaxTokens => "length",
        End::Unheard => "something_new",
    }
}
