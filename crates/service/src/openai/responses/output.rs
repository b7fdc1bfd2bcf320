//! The items of a response and the streaming events that build them. A complete response is the
//! result of its events, so streamed and complete responses never differ.

use adjutant_core::{AgentResponse, PendingCall};
use serde_json::{Value, json};

use super::id::ResponseId;
use super::wire::ResponseStatus;
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
    kind: &'static ItemKind,
    id: String,
    text: String,
}

/// Names that items and events of one type have.
#[derive(Debug, PartialEq, Eq)]
struct ItemKind {
    id_prefix: &'static str,
    /// Member of an event with the index of the item's single part.
    index: &'static str,
    /// Prefix of the events about the part.
    part: &'static str,
    /// Prefix of the events about the part's text.
    text: &'static str,
}

static REASONING: ItemKind = ItemKind {
    id_prefix: "rs",
    index: "summary_index",
    part: "response.reasoning_summary_part",
    text: "response.reasoning_summary_text",
};

static MESSAGE: ItemKind = ItemKind {
    id_prefix: "msg",
    index: "content_index",
    part: "response.content_part",
    text: "response.output_text",
};

impl ItemKind {
    /// Returns the item's part with this text.
    fn part(&self, text: &str) -> Value {
        if *self == MESSAGE {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        } else {
            json!({"type": "summary_text", "text": text})
        }
    }
}

impl OpenItem {
    /// Returns the item in its present state.
    fn to_item(&self, status: &str) -> Value {
        let Self { kind, id, text } = self;
        let part = (!text.is_empty()).then(|| kind.part(text));
        let parts = part.as_slice();
        if **kind == MESSAGE {
            json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": parts})
        } else {
            json!({"id": id, "type": "reasoning", "summary": parts, "status": status})
        }
    }

    /// Returns an event about the part.
    fn part_event(&self, at: usize, change: &str, text: &str) -> Value {
        let mut event = self.event(at, self.kind.part, change);
        event["part"] = self.kind.part(text);
        event
    }

    /// Returns an event about the part's text, with the member `change`.
    fn text_event(&self, at: usize, change: &str, member: &str, text: &str) -> Value {
        let mut event = self.event(at, self.kind.text, change);
        if *self.kind == MESSAGE {
            // OpenAI's types demand the member in every event about output text.
            event["logprobs"] = json!([]);
        }
        event[member] = json!(text);
        event
    }

    fn event(&self, at: usize, subject: &str, change: &str) -> Value {
        let name = format!("{subject}.{change}");
        json!({"type": name, "item_id": self.id, "output_index": at, self.kind.index: 0})
    }
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
            AnswerPart::Content(text) => (&MESSAGE, text),
            AnswerPart::Reasoning(text) | AnswerPart::Note(text) => (&REASONING, text),
        };
        let mut events = Vec::new();
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            events.extend(self.close("completed"));
        }
        // At most one item is open, and it comes after the completed ones.
        let (at, is_new) = (self.items.len(), self.open.is_none());
        let open = self.open.get_or_insert_with(|| OpenItem {
            kind,
            id: self.id.item_id(kind.id_prefix, &at),
            text: String::new(),
        });
        if is_new {
            let item = open.to_item("in_progress");
            events.push(
                json!({"type": "response.output_item.added", "output_index": at, "item": item}),
            );
            events.push(open.part_event(at, "added", ""));
        }
        open.text.push_str(&text);
        events.push(open.text_event(at, "delta", "delta", &text));
        events
    }

    /// Completes the open item and adds the client's calls. Returns their events.
    pub(super) fn finish(&mut self, response: &AgentResponse) -> Vec<Value> {
        let mut events = self.close(ResponseStatus::from_response(response).text_status());
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
        vec![
            open.text_event(at, "done", "text", &open.text),
            open.part_event(at, "done", &open.text),
            json!({"type": "response.output_item.done", "output_index": at, "item": item}),
        ]
    }
}
