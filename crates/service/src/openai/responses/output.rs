//! The items of an answer, as a turn says them, and the events that tell of them. A whole answer is
//! what its events come to, so both are always the same.

use adjutant_core::{AgentResponse, PendingCall};
use serde_json::{Value, json};

use super::id::ResponseId;
use crate::openai::answer::Piece;

/// The items of one answer, while they are made.
#[derive(Debug)]
pub(super) struct Output {
    id: ResponseId,
    items: Vec<Value>,
    open: Option<Open>,
}

/// The item that grows.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

/// The type of an item that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Message,
}

impl Open {
    /// Returns the item as far as it is known.
    fn item(&self, status: &str) -> Value {
        let Self { kind, id, text } = self;
        let is_begun = !text.is_empty();
        match kind {
            Kind::Reasoning => {
                let summary = is_begun.then(|| summary(text));
                json!({"id": id, "type": "reasoning", "summary": summary.as_slice(), "status": status})
            }
            Kind::Message => {
                let content = is_begun.then(|| words(text));
                json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content.as_slice()})
            }
        }
    }
}

fn summary(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn words(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

impl Output {
    pub(super) fn new(id: ResponseId) -> Self {
        Self {
            id,
            items: Vec::new(),
            open: None,
        }
    }

    /// Returns the items that are complete.
    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    /// Returns the items that are complete.
    pub(super) fn into_items(self) -> Vec<Value> {
        self.items
    }

    /// Adds what a turn says. Returns the events that tell it.
    pub(super) fn piece(&mut self, piece: Piece) -> Vec<Value> {
        let (kind, text) = match piece {
            Piece::Content(text) => (Kind::Message, text),
            Piece::Reasoning(text) | Piece::Note(text) => (Kind::Reasoning, text),
        };
        let mut events = Vec::new();
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            events.extend(self.close("completed"));
        }
        let (at, is_new) = (self.items.len(), self.open.is_none());
        let new = || {
            let id = self
                .id
                .item(if kind == Kind::Message { "msg" } else { "rs" }, &at);
            Open {
                kind,
                id,
                text: String::new(),
            }
        };
        let open = self.open.get_or_insert_with(new);
        if is_new {
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": open.item("in_progress")}));
            events.push(match kind {
                Kind::Message => part(open, at, "response.content_part.added", words("")),
                Kind::Reasoning => part(
                    open,
                    at,
                    "response.reasoning_summary_part.added",
                    summary(""),
                ),
            });
        }
        open.text.push_str(&text);
        let mut delta = of_part(
            open,
            at,
            if kind == Kind::Message {
                "response.output_text.delta"
            } else {
                "response.reasoning_summary_text.delta"
            },
        );
        delta["delta"] = json!(text);
        events.push(delta);
        events
    }

    /// Ends what is said, and adds the calls that the client is to execute. Returns the events that
    /// tell them. `status`: how the words end.
    pub(super) fn end(&mut self, response: &AgentResponse, status: &str) -> Vec<Value> {
        let mut events = self.close(status);
        for call in response
            .decision
            .pending
            .iter()
            .filter(|call| call.awaits_result())
        {
            events.extend(self.call(call));
        }
        events
    }

    fn call(&mut self, call: &PendingCall) -> [Value; 4] {
        let (at, id) = (self.items.len(), self.id.item("fc", &call.call_id));
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let item = |status: &str, arguments: &str| {
            json!({"id": id, "type": "function_call", "status": status, "call_id": call.call_id,
                "name": call.tool, "arguments": arguments})
        };
        let whole = item("completed", &arguments);
        self.items.push(whole.clone());
        [
            json!({"type": "response.output_item.added", "output_index": at, "item": item("in_progress", "")}),
            json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": at, "delta": arguments}),
            json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": at, "name": call.tool,
                "arguments": arguments}),
            json!({"type": "response.output_item.done", "output_index": at, "item": whole}),
        ]
    }

    /// Ends the item that grows, if there is one. Returns the events that tell it.
    pub(super) fn close(&mut self, status: &str) -> Vec<Value> {
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        let at = self.items.len();
        let item = open.item(status);
        self.items.push(item.clone());
        let (text, part) = match open.kind {
            Kind::Message => (
                of_part(&open, at, "response.output_text.done"),
                part(&open, at, "response.content_part.done", words(&open.text)),
            ),
            Kind::Reasoning => (
                of_part(&open, at, "response.reasoning_summary_text.done"),
                part(
                    &open,
                    at,
                    "response.reasoning_summary_part.done",
                    summary(&open.text),
                ),
            ),
        };
        let mut text = text;
        text["text"] = json!(open.text);
        let done = json!({"type": "response.output_item.done", "output_index": at, "item": item});
        vec![text, part, done]
    }
}

/// Returns an event about the one part of an item.
fn of_part(open: &Open, at: usize, name: &str) -> Value {
    let mut event = json!({"type": name, "item_id": open.id, "output_index": at});
    match open.kind {
        Kind::Reasoning => event["summary_index"] = json!(0),
        Kind::Message => event["content_index"] = json!(0),
    }
    if name.contains("output_text") {
        event["logprobs"] = json!([]);
    }
    event
}

fn part(open: &Open, at: usize, name: &str, part: Value) -> Value {
    let mut event = of_part(open, at, name);
    event["part"] = part;
    event
}
