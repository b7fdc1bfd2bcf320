//! The items of a response and the streaming events that build them. A complete response is the
//! result of its events, so streamed and complete responses never differ.

use adjutant_core::{AgentResponse, PendingCall};
use serde_json::{Value, json};

use super::id::ResponseId;
use crate::openai::answer::AnswerPart;

/// The items of a response while its turn runs.
#[derive(Debug)]
pub(super) struct Output {
    id: ResponseId,
    items: Vec<Value>,
    open: Option<OpenItem>,
}

/// An item to which text is appended.
#[derive(Debug)]
struct OpenItem {
    kind: ItemKind,
    id: String,
    text: String,
}

/// Type of an open item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Reasoning,
    Message,
}

impl OpenItem {
    /// Returns the item in its present state.
    fn to_item(&self, status: &str) -> Value {
        let Self { kind, id, text } = self;
        let has_text = !text.is_empty();
        match kind {
            ItemKind::Reasoning => {
                let summary = has_text.then(|| summary_part(text));
                json!({"id": id, "type": "reasoning", "summary": summary.as_slice(), "status": status})
            }
            ItemKind::Message => {
                let content = has_text.then(|| text_part(text));
                json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content.as_slice()})
            }
        }
    }
}

fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn text_part(text: &str) -> Value {
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

    /// Returns the completed items.
    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    /// Converts to the completed items.
    pub(super) fn into_items(self) -> Vec<Value> {
        self.items
    }

    /// Appends a part of the answer, and returns its events.
    pub(super) fn add(&mut self, piece: AnswerPart) -> Vec<Value> {
        let (kind, text) = match piece {
            AnswerPart::Content(text) => (ItemKind::Message, text),
            AnswerPart::Reasoning(text) | AnswerPart::Note(text) => (ItemKind::Reasoning, text),
        };
        let mut events = Vec::new();
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            events.extend(self.close("completed"));
        }
        let (at, is_new) = (self.items.len(), self.open.is_none());
        let new = || {
            let id = self.id.item_id(
                if kind == ItemKind::Message {
                    "msg"
                } else {
                    "rs"
                },
                &at,
            );
            OpenItem {
                kind,
                id,
                text: String::new(),
            }
        };
        let open = self.open.get_or_insert_with(new);
        if is_new {
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": open.to_item("in_progress")}));
            events.push(match kind {
                ItemKind::Message => {
                    part_event(open, at, "response.content_part.added", text_part(""))
                }
                ItemKind::Reasoning => part_event(
                    open,
                    at,
                    "response.reasoning_summary_part.added",
                    summary_part(""),
                ),
            });
        }
        open.text.push_str(&text);
        let mut delta = new_part_event(
            open,
            at,
            if kind == ItemKind::Message {
                "response.output_text.delta"
            } else {
                "response.reasoning_summary_text.delta"
            },
        );
        delta["delta"] = json!(text);
        events.push(delta);
        events
    }

    /// Completes the open item and adds the client's calls. Returns their events. `status`: that of
    /// the completed text.
    pub(super) fn finish(&mut self, response: &AgentResponse, status: &str) -> Vec<Value> {
        let mut events = self.close(status);
        for call in response
            .decision
            .pending
            .iter()
            .filter(|call| call.awaits_result())
        {
            events.extend(self.add_call(call));
        }
        events
    }

    fn add_call(&mut self, call: &PendingCall) -> [Value; 4] {
        let (at, id) = (self.items.len(), self.id.item_id("fc", &call.call_id));
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

    /// Completes the open item, if there is one, and returns its events.
    pub(super) fn close(&mut self, status: &str) -> Vec<Value> {
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        let at = self.items.len();
        let item = open.to_item(status);
        self.items.push(item.clone());
        let (text, part) = match open.kind {
            ItemKind::Message => (
                new_part_event(&open, at, "response.output_text.done"),
                part_event(
                    &open,
                    at,
                    "response.content_part.done",
                    text_part(&open.text),
                ),
            ),
            ItemKind::Reasoning => (
                new_part_event(&open, at, "response.reasoning_summary_text.done"),
                part_event(
                    &open,
                    at,
                    "response.reasoning_summary_part.done",
                    summary_part(&open.text),
                ),
            ),
        };
        let mut text = text;
        text["text"] = json!(open.text);
        let done = json!({"type": "response.output_item.done", "output_index": at, "item": item});
        vec![text, part, done]
    }
}

/// Returns an event about the single part of an item.
fn new_part_event(open: &OpenItem, at: usize, name: &str) -> Value {
    let mut event = json!({"type": name, "item_id": open.id, "output_index": at});
    match open.kind {
        ItemKind::Reasoning => event["summary_index"] = json!(0),
        ItemKind::Message => event["content_index"] = json!(0),
    }
    if name.contains("output_text") {
        event["logprobs"] = json!([]);
    }
    event
}

fn part_event(open: &OpenItem, at: usize, name: &str, part: Value) -> Value {
    let mut event = new_part_event(open, at, name);
    event["part"] = part;
    event
}
