//! Folds the events of a stream. The last event holds the whole answer, which is the valid one; the
//! items before it are used if a server omits them there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use serde_json::{Map, Value, json};

use super::item::{self, THINKING_SEPARATOR, ThinkingForm};
use super::response;
use super::wire::{Item, Reply};
use crate::decode::{AnswerFold, Progress};
use crate::encode::{object, str_field};
use crate::error::Vendor;
use crate::openai::error;

/// An answer whose events are still arriving.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    began: bool,
    /// The items by their index in the output.
    items: BTreeMap<u64, OpenItem>,
    /// The indices of the calls, in the order they began.
    calls: Vec<u64>,
    end: Option<(&'static str, Reply)>,
}

/// An item of the output, perhaps incomplete.
#[derive(Debug, Default)]
struct OpenItem {
    json: Item,
    whole: bool,
    /// The texts that arrived as deltas, by field and index.
    texts: BTreeMap<(TextField, u64), String>,
}

/// The field of an item that a streamed text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextField {
    Text,
    Refusal,
    Thinking(ThinkingForm),
    Arguments,
}

impl TextField {
    /// Returns the field that events of this name extend, without the `.delta` or `.done` of the
    /// name. With it come the names of the event's fields for the index and for the whole text.
    fn for_event(name: &str) -> Option<(Self, &'static str, &'static str)> {
        let (summary, full) = (ThinkingForm::Summary, ThinkingForm::Full);
        Some(match name {
            "response.output_text" => (Self::Text, "content_index", "text"),
            "response.refusal" => (Self::Refusal, "content_index", "refusal"),
            "response.reasoning_summary_text" => (Self::Thinking(summary), "summary_index", "text"),
            "response.reasoning_text" => (Self::Thinking(full), "content_index", "text"),
            // A call has one text of arguments, so its events have no index.
            "response.function_call_arguments" => (Self::Arguments, "", "arguments"),
            _ => return None,
        })
    }
}

/// A streamed text: its field in an item, and the index within that field.
#[derive(Debug, Clone, Copy)]
struct Target {
    item: u64,
    field: TextField,
    index: u64,
}

impl PartialAnswer {
    pub(super) fn new(vendor: Arc<Vendor>, losses: Vec<String>) -> Self {
        Self {
            vendor,
            losses,
            began: false,
            items: BTreeMap::new(),
            calls: Vec::new(),
            end: None,
        }
    }

    fn end_with(
        &mut self,
        status: &'static str,
        mut event: Item,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let body = event.shift_remove("response").unwrap_or_default();
        let reply = response::parse_reply(&body, &self.vendor)?;
        // Items that were not streamed are emitted before the end.
        for (at, item) in (0..).zip(reply.output.iter().flatten()) {
            if let Value::Object(item) = item {
                self.add_missing_deltas(at, item, deltas);
            }
        }
        self.end = Some((status, reply));
        Ok(())
    }

    /// Returns the index of the item an event belongs to: the one it states, else that of the item
    /// it names, else that of the last item.
    fn item_index(&self, event: &Item, item: Option<&Item>) -> u64 {
        let id = event
            .get("item_id")
            .or_else(|| item?.get("id"))
            .filter(|id| id.is_string());
        let named = || {
            self.items
                .iter()
                .find(|(_, open)| id.is_some() && open.json.get("id") == id)
        };
        let last = self
            .items
            .last_key_value()
            .map(|(at, open)| (*at, open.whole));
        let next = |new: bool| {
            last.map_or(0, |(at, whole)| {
                if new || whole {
                    at.saturating_add(1)
                } else {
                    at
                }
            })
        };
        let begins = event
            .get("type")
            .is_some_and(|kind| kind == "response.output_item.added");
        event
            .get("output_index")
            .and_then(Value::as_u64)
            .or_else(|| named().map(|(at, _)| *at))
            // Servers that leave the index out send one item after the other.
            .unwrap_or_else(|| next(begins))
    }

    fn add_item(&mut self, at: u64, item: Item, deltas: &mut VecDeque<Delta>) {
        let open = self.items.entry(at).or_default();
        if !open.whole {
            open.json = item;
        }
        self.begin_call(at, deltas);
    }

    fn end_item(&mut self, at: u64, item: Item, deltas: &mut VecDeque<Delta>) {
        self.add_missing_deltas(at, &item, deltas);
        let open = self.items.entry(at).or_default();
        (open.json, open.whole) = (item, true);
    }

    fn begin_call(&mut self, at: u64, deltas: &mut VecDeque<Delta>) {
        let Some(open) = self.items.get(&at) else {
            return;
        };
        if item::kind(&open.json) == "function_call" && !self.calls.contains(&at) {
            self.calls.push(at);
            let target = Target {
                item: at,
                field: TextField::Arguments,
                index: 0,
            };
            deltas.extend(self.delta(target, ""));
        }
    }

    /// Appends text to a field.
    fn append(&mut self, target: Target, text: &str, deltas: &mut VecDeque<Delta>) {
        let Target { item, field, index } = target;
        let is_thinking = |field: TextField| matches!(field, TextField::Thinking(_));
        let open = self.items.entry(item).or_default();
        let starts_another_thought = is_thinking(field)
            && !open.texts.contains_key(&(field, index))
            && open.texts.keys().any(|(field, _)| is_thinking(*field));
        if field == TextField::Arguments && !open.json.contains_key("type") {
            open.json.insert("type".to_owned(), json!("function_call"));
        }
        open.texts.entry((field, index)).or_default().push_str(text);
        self.begin_call(item, deltas);
        if text.is_empty() {
            return;
        }
        if starts_another_thought {
            deltas.push_back(Delta::Thinking(THINKING_SEPARATOR.to_owned()));
        }
        deltas.extend(self.delta(target, text));
    }

    /// Appends the rest of a field whose whole text is now known.
    fn complete(&mut self, target: Target, text: &str, deltas: &mut VecDeque<Delta>) {
        let so_far = self
            .items
            .get(&target.item)
            .and_then(|open| open.texts.get(&(target.field, target.index)))
            .map_or("", String::as_str);
        // A text that differs from its deltas cannot be emitted again; the response has it right.
        if let Some(rest) = text.strip_prefix(so_far).filter(|rest| !rest.is_empty()) {
            self.append(target, rest, deltas);
        }
    }

    /// Adds deltas for the text of a whole item that did not arrive as deltas.
    fn add_missing_deltas(&mut self, at: u64, item: &Item, deltas: &mut VecDeque<Delta>) {
        let target = |field, index| Target {
            item: at,
            field,
            index,
        };
        match item::kind(item) {
            "message" => {
                let pieces = item
                    .get("content")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                for (index, piece) in (0..).zip(pieces) {
                    if let Some(("text", _)) = piece.as_object().and_then(item::text_field) {
                        let text = piece.get("text").and_then(Value::as_str);
                        let target = target(TextField::Text, index);
                        self.complete(target, text.unwrap_or_default(), deltas);
                    }
                }
            }
            "reasoning" => {
                for (form, index, text) in item::thinking_texts(item) {
                    self.complete(target(TextField::Thinking(form), index), text, deltas);
                }
            }
            "function_call" => {
                let open = self.items.entry(at).or_default();
                if open.json.is_empty() {
                    open.json = item.clone();
                }
                self.begin_call(at, deltas);
                let arguments = item.get("arguments").and_then(Value::as_str);
                let target = target(TextField::Arguments, 0);
                self.complete(target, arguments.unwrap_or_default(), deltas);
            }
            _ => {}
        }
    }

    fn delta(&self, target: Target, text: &str) -> Option<Delta> {
        let text = text.to_owned();
        match target.field {
            TextField::Text => Some(Delta::Text(text)),
            TextField::Thinking(_) => Some(Delta::Thinking(text)),
            TextField::Refusal => None,
            TextField::Arguments => {
                let index = self.calls.iter().position(|call| *call == target.item)?;
                let name = str_field(&self.items.get(&target.item)?.json, "name");
                Some(Delta::ToolCall {
                    index,
                    name: name.unwrap_or_default().to_owned(),
                    arguments: text,
                })
            }
        }
    }
}

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let event: Value =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(error, json))?;
        let Value::Object(mut event) = event else {
            return Err(self.vendor.invalid("an event that is no JSON object", json));
        };
        self.began = true;
        // Anything after the last event belongs to no answer.
        if self.end.is_some() {
            return Ok(());
        }
        let kind = str_field(&event, "type").unwrap_or_default().to_owned();
        let item = match event.shift_remove("item") {
            Some(Value::Object(item)) => Some(item),
            _ => None,
        };
        let at = self.item_index(&event, item.as_ref());
        let text = |field: &str| str_field(&event, field).unwrap_or_default();
        if let Some((name, step)) = kind.rsplit_once('.')
            && let Some((field, index, whole)) = TextField::for_event(name)
        {
            let target = Target {
                item: at,
                field,
                index: event.get(index).and_then(Value::as_u64).unwrap_or(0),
            };
            match step {
                "delta" => self.append(target, text("delta"), deltas),
                "done" => {
                    // A server may announce no item; the name then comes only at the end of the
                    // arguments.
                    if field == TextField::Arguments && !text("name").is_empty() {
                        let open = &mut self.items.entry(at).or_default().json;
                        open.entry("type").or_insert_with(|| json!("function_call"));
                        open.entry("name").or_insert_with(|| json!(text("name")));
                    }
                    self.complete(target, text(whole), deltas);
                }
                _ => {}
            }
            return Ok(());
        }
        match (kind.as_str(), item) {
            ("response.output_item.added", Some(item)) => self.add_item(at, item, deltas),
            ("response.output_item.done", Some(item)) => self.end_item(at, item, deltas),
            ("response.completed", _) => self.end_with("completed", event, deltas)?,
            ("response.incomplete", _) => self.end_with("incomplete", event, deltas)?,
            ("response.failed", _) => self.end_with("failed", event, deltas)?,
            // Documented flat, but sent nested as well (openai/openai-dotnet#881).
            ("error" | "response.error", _) => {
                return Err(error::in_answer(&self.vendor, &Value::Object(event)));
            }
            // Some proxies send errors without a type.
            ("", _) if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(error::in_answer(&self.vendor, &Value::Object(event)));
            }
            // Progress, tools that the vendor runs itself (their items suffice), and events added
            // later.
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.end.is_some() {
            Progress::Over
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        _: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        let losses = std::mem::take(&mut self.losses);
        let Some((status, mut reply)) = self.end.take() else {
            return match error::parse_stray(stray) {
                // No stream at all, but an error or the answer of a server that does not stream.
                Some(body) => response::decode(&body.to_string(), &self.vendor, losses),
                None if self.began => {
                    Err(self.vendor.truncated("it ended without response.completed"))
                }
                None => Err(self.vendor.truncated("it ended before its first event")),
            };
        };
        // Some servers leave the output out of the last event; the items of the stream stand in.
        if reply.output.as_ref().is_none_or(Vec::is_empty) {
            let items = std::mem::take(&mut self.items).into_values();
            reply.output = Some(items.map(OpenItem::into_json).collect());
        }
        response::to_response(reply, status, &self.vendor, losses)
    }

    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        response::decode(body, &self.vendor, std::mem::take(&mut self.losses))
    }
}

impl OpenItem {
    /// Returns the item, assembled from its texts if it never arrived as a whole.
    fn into_json(self) -> Value {
        let mut item = self.json;
        if self.whole {
            return Value::Object(item);
        }
        let mut lists: Map<String, Value> = Map::new();
        for ((field, _), text) in self.texts {
            let (kind, list, text_kind) = match field {
                TextField::Text => ("message", "content", "output_text"),
                TextField::Refusal => ("message", "content", "refusal"),
                TextField::Thinking(ThinkingForm::Summary) => {
                    ("reasoning", "summary", "summary_text")
                }
                TextField::Thinking(ThinkingForm::Full) => {
                    ("reasoning", "content", "reasoning_text")
                }
                TextField::Arguments => {
                    item.insert("arguments".to_owned(), json!(text));
                    continue;
                }
            };
            let name = if field == TextField::Refusal {
                "refusal"
            } else {
                "text"
            };
            item.entry("type").or_insert_with(|| json!(kind));
            if let Value::Array(pieces) = lists.entry(list).or_insert_with(|| json!([])) {
                pieces.push(Value::Object(object([
                    ("type", json!(text_kind)),
                    (name, json!(text)),
                ])));
            }
        }
        item.extend(lists);
        Value::Object(item)
    }
}
