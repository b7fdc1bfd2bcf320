//! Ollama's form. Source: the project's published schema, `ChatResponse`, and its documentation of `/api/chat`.

use adjutant::OutcomeCategory::{LlmFailure, TaskCompleted};
use serde_json::{Value, json};

use super::dialect::{Dialect, Events};
use super::said::{End, Reply, Said, Trouble, text};
use super::table::{Row, ends, fine, recovers};

pub(super) struct Ollama;

impl Dialect for Ollama {
    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn model(&self) -> &'static str {
        "qwen3:4b"
    }

    fn whole(&self, said: &Said) -> String {
        let calls: Vec<Value> = (0..said.calls.len()).map(|at| call(said, at)).collect();
        let mut message = empty();
        for (name, words) in pieces(said).into_iter().flatten() {
            message[name] = words;
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        line(message, Some(said.end))
    }

    fn events(&self, said: &Said) -> Events {
        let said_events = pieces(said).into_iter().flatten().map(|(name, words)| {
            let mut message = empty();
            message[name] = words;
            line(message, None)
        });
        let calls = (0..said.calls.len()).map(|at| {
            let mut message = empty();
            message["tool_calls"] = json!([call(said, at)]);
            line(message, None)
        });
        Events { said: said_events.chain(calls).collect(), end: vec![line(empty(), Some(said.end))] }
    }

    fn error(&self, _: u16, trouble: Trouble) -> String {
        let message = match trouble {
            Trouble::Plain | Trouble::Page => "The server's words.",
            Trouble::Quota => "you have reached your weekly usage limit, upgrade to continue",
            Trouble::TooLong => "input length exceeds the context length",
        };
        json!({ "error": message }).to_string()
    }

    fn quota_status(&self) -> u16 {
        402
    }

    fn error_event(&self) -> String {
        json!({ "error": "llama runner process has terminated: exit status 2" }).to_string()
    }

    fn own(&self) -> Vec<Row> {
        let tagged =
            "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"milk\"}}\n</tool_call>";
        let cut = "<tool_call>\n{\"name\": \"add_note\", \"arguments\": {\"text\": \"mi";
        let missing = json!({ "error": "model \"qwen3:4b\" not found, try pulling it first" }).to_string();
        let toolless = json!({ "error": "qwen3:4b does not support tools" }).to_string();
        vec![
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
            Row::new(
                "a model that was not pulled",
                [Reply::OwnStatus { status: 404, body: missing }, fine()],
                ends(LlmFailure, "not_found").cause(&["ollama pull qwen3:4b"]),
            ),
            Row::new(
                "a model without tools",
                [Reply::OwnStatus { status: 400, body: toolless }, fine()],
                ends(LlmFailure, "bad_request").cause(&["does not support tools"]),
            ),
        ]
    }

    fn frame(&self, event: &str) -> String {
        format!("{event}\n")
    }
}

fn empty() -> Value {
    json!({ "role": "assistant", "content": "" })
}

fn pieces(said: &Said) -> [Option<(String, Value)>; 2] {
    let piece = |name: &str, words: &str| (!words.is_empty()).then(|| (name.to_owned(), words.into()));
    [piece("thinking", said.thinking), piece("content", said.text)]
}

fn call(said: &Said, at: usize) -> Value {
    let call = said.calls[at];
    // No arguments are an empty object here.
    let arguments = if call.arguments.is_empty() { json!({}) } else { call.value() };
    json!({ "function": { "index": at, "name": call.name, "arguments": arguments } })
}

fn line(message: Value, end: Option<End>) -> String {
    let mut line = json!({
        "model": "qwen3:4b", "created_at": "2026-11-22T00:00:00Z", "message": message, "done": end.is_some()
    });
    if let Some(end) = end {
        line["done_reason"] = match end {
            End::Usual => "stop",
            End::MaxTokens => "length",
            End::Unheard => "something_new",
        }
        .into();
        line["prompt_eval_count"] = 300.into();
        line["eval_count"] = 3.into();
    }
    line.to_string()
}
