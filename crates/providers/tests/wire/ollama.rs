//! Ollama's form. Source: the project's published schema, `ChatResponse` and `ChatStreamEvent`, and
//! its documentation of `/api/chat`.

use serde_json::{Value, json};

use super::said::{End, Said, Trouble};
use super::{Events, Form, pieces};

pub(crate) struct Ollama;

impl Form for Ollama {
    fn model(&self) -> &'static str {
        "qwen3:4b"
    }

    fn whole(&self, said: &Said) -> String {
        let mut message = json!({ "role": "assistant", "content": said.text });
        if !said.thinking.is_empty() {
            message["thinking"] = said.thinking.into();
        }
        if !said.calls.is_empty() {
            message["tool_calls"] = (0..said.calls.len()).map(|at| call(said, at)).collect();
        }
        line(message, Some(said))
    }

    fn events(&self, said: &Said) -> Events {
        let one = |name: &str, value: Value| {
            let mut message = json!({ "role": "assistant", "content": "" });
            message[name] = value;
            line(message, None)
        };
        let thinking = pieces(said.thinking)
            .into_iter()
            .map(|piece| one("thinking", piece.into()));
        let words = pieces(said.text)
            .into_iter()
            .map(|piece| one("content", piece.into()));
        let calls = (0..said.calls.len()).map(|at| one("tool_calls", json!([call(said, at)])));
        let end = line(json!({ "role": "assistant", "content": "" }), Some(said));
        Events {
            said: thinking.chain(words).chain(calls).collect(),
            end: vec![end],
        }
    }

    fn error(&self, _: u16, trouble: Trouble) -> String {
        let message = match trouble {
            Trouble::Plain => "The server's words.",
            Trouble::Quota => "you have reached your weekly usage limit, upgrade to continue",
            Trouble::TooLong => "input length exceeds the context length",
        };
        json!({ "error": message }).to_string()
    }

    fn finish(&self, said: &Said) -> &'static str {
        match said.end {
            // It has no filter.
            End::Usual | End::Filtered => "stop",
            End::MaxTokens => "length",
            End::Unheard => "something_new",
        }
    }

    fn frame(&self, event: &str) -> String {
        format!("{event}\n")
    }
}

fn call(said: &Said, at: usize) -> Value {
    let call = said.calls[at];
    // No arguments are an empty object here.
    let arguments = if call.arguments.is_empty() {
        json!({})
    } else {
        call.value()
    };
    json!({ "function": { "index": at, "name": call.name, "arguments": arguments } })
}

/// A line of a stream; with what was said, the last one.
fn line(message: Value, said: Option<&Said>) -> String {
    let mut line = json!({
        "model": Ollama.model(), "created_at": "2026-11-22T00:00:00Z", "message": message,
        "done": said.is_some()
    });
    if let Some(said) = said {
        line["done_reason"] = Ollama.finish(said).into();
        line["total_duration"] = 3_000_000.into();
        line["load_duration"] = 1_000_000.into();
        line["prompt_eval_count"] = said.counts.input.into();
        line["prompt_eval_duration"] = 1_000_000.into();
        line["eval_count"] = said.counts.output.into();
        line["eval_duration"] = 1_000_000.into();
    }
    line.to_string()
}
