//! Events to deltas. The last event holds the whole answer, and what it says wins; the items before
//! it count where a server leaves them out there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use serde_json::{Map, Value, json};

use super::item::{self, BETWEEN_THOUGHTS, Thought};
use super::response;
use super::wire::{Item, Reply};
use crate::decode::{Answer, Progress};
use crate::error::Vendor;
use crate::openai::error;

/// An answer taking shape.
#[derive(Debug)]
pub(super) struct Reading {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    began: bool,
    /// By their place in the output.
    items: BTreeMap<u64, OpenItem>,
    /// The places of the calls, in the order they began.
    calls: Vec<u64>,
    end: Option<(&'static str, Reply)>,
}

/// An item on its way.
#[derive(Debug, Default)]
struct OpenItem {
    json: Item,
    whole: bool,
    said: BTreeMap<(Stretch, u64), String>,
}

/// What words belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stretch {
    Text,
    Refusal,
    Thinking(Thought),
    Arguments,
}

impl Reading {
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

    fn ended(
        &mut self,
        status: &'static str,
        mut event: Item,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let body = event.shift_remove("response").unwrap_or_default();
        let reply = response::reply(&body, &self.vendor)?;
        for (at, item) in (0..).zip(reply.output.iter().flatten()) {
            if let Value::Object(item) = item {
                self.catch_up(at, item, deltas);
            }
        }
        self.end = Some((status, reply));
        Ok(())
    }

    /// Where an event belongs: its place in the output, else that of the item it names, else where
    /// the last one was.
    fn place(&self, event: &Item, item: Option<&Item>) -> u64 {
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
            .unwrap_or_else(|| next(begins))
    }

    fn added(&mut self, at: u64, item: Item, deltas: &mut VecDeque<Delta>) {
        let open = self.items.entry(at).or_default();
        if !open.whole {
            open.json = item;
        }
        self.begin_call(at, deltas);
    }

    fn done(&mut self, at: u64, item: Item, deltas: &mut VecDeque<Delta>) {
        self.catch_up(at, &item, deltas);
        let open = self.items.entry(at).or_default();
        (open.json, open.whole) = (item, true);
    }

    fn begin_call(&mut self, at: u64, deltas: &mut VecDeque<Delta>) {
        let Some(open) = self.items.get(&at) else {
            return;
        };
        if item::kind(&open.json) == "function_call" && !self.calls.contains(&at) {
            self.calls.push(at);
            deltas.extend(self.delta(at, Stretch::Arguments, ""));
        }
    }

    /// More words.
    fn more(
        &mut self,
        at: u64,
        stretch: Stretch,
        piece: u64,
        words: &str,
        deltas: &mut VecDeque<Delta>,
    ) {
        let open = self.items.entry(at).or_default();
        let another_thought = matches!(stretch, Stretch::Thinking(_))
            && !open.said.contains_key(&(stretch, piece))
            && open
                .said
                .keys()
                .any(|(stretch, _)| matches!(stretch, Stretch::Thinking(_)));
        if stretch == Stretch::Arguments && !open.json.contains_key("type") {
            open.json.insert("type".to_owned(), json!("function_call"));
        }
        open.said
            .entry((stretch, piece))
            .or_default()
            .push_str(words);
        self.begin_call(at, deltas);
        if words.is_empty() {
            return;
        }
        if another_thought {
            deltas.push_back(Delta::Thinking(BETWEEN_THOUGHTS.to_owned()));
        }
        deltas.extend(self.delta(at, stretch, words));
    }

    /// All the words of a stretch: what of them did not come as deltas yet.
    fn all(
        &mut self,
        at: u64,
        stretch: Stretch,
        piece: u64,
        words: &str,
        deltas: &mut VecDeque<Delta>,
    ) {
        let said = self
            .items
            .get(&at)
            .and_then(|open| open.said.get(&(stretch, piece)));
        let said = said.map_or("", String::as_str);
        if let Some(rest) = words.strip_prefix(said).filter(|rest| !rest.is_empty()) {
            let rest = rest.to_owned();
            self.more(at, stretch, piece, &rest, deltas);
        }
    }

    /// What of a whole item did not come as deltas yet.
    fn catch_up(&mut self, at: u64, item: &Item, deltas: &mut VecDeque<Delta>) {
        match item::kind(item) {
            "message" => {
                let pieces = item
                    .get("content")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                for (piece, content) in (0..).zip(pieces) {
                    if let Some(("text", _)) = content.as_object().and_then(item::words_field) {
                        let words = content
                            .get("text")
                            .and_then(Value::as_str)
                            .unwrap_or_default();
                        self.all(at, Stretch::Text, piece, words, deltas);
                    }
                }
            }
            "reasoning" => {
                for (thought, piece, words) in item::thoughts(item) {
                    self.all(at, Stretch::Thinking(thought), piece, words, deltas);
                }
            }
            "function_call" => {
                let open = self.items.entry(at).or_default();
                if open.json.is_empty() {
                    open.json = item.clone();
                }
                self.begin_call(at, deltas);
                let words = item
                    .get("arguments")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                self.all(at, Stretch::Arguments, 0, words, deltas);
            }
            _ => {}
        }
    }

    fn delta(&self, at: u64, stretch: Stretch, words: &str) -> Option<Delta> {
        let words = words.to_owned();
        match stretch {
            Stretch::Text => Some(Delta::Text(words)),
            Stretch::Thinking(_) => Some(Delta::Thinking(words)),
            Stretch::Refusal => None,
            Stretch::Arguments => {
                let index = self.calls.iter().position(|call| *call == at)?;
                let name = self
                    .items
                    .get(&at)?
                    .json
                    .get("name")
                    .and_then(Value::as_str);
                Some(Delta::ToolCall {
                    index,
                    name: name.unwrap_or_default().to_owned(),
                    arguments: words,
                })
            }
        }
    }
}

impl Answer for Reading {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let event: Value =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(&error, json))?;
        let Value::Object(mut event) = event else {
            return Err(self
                .vendor
                .unreadable("an event that is no JSON object", json));
        };
        self.began = true;
        if self.end.is_some() {
            return Ok(());
        }
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let item = match event.shift_remove("item") {
            Some(Value::Object(item)) => Some(item),
            _ => None,
        };
        let at = self.place(&event, item.as_ref());
        let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
        let piece = |field: &str| event.get(field).and_then(Value::as_u64).unwrap_or(0);
        let (summary, thought) = (
            Stretch::Thinking(Thought::Summary),
            Stretch::Thinking(Thought::Itself),
        );
        match (kind.as_str(), item) {
            ("response.output_item.added", Some(item)) => self.added(at, item, deltas),
            ("response.output_item.done", Some(item)) => self.done(at, item, deltas),
            ("response.output_text.delta", _) => {
                self.more(
                    at,
                    Stretch::Text,
                    piece("content_index"),
                    text("delta"),
                    deltas,
                );
            }
            ("response.output_text.done", _) => {
                self.all(
                    at,
                    Stretch::Text,
                    piece("content_index"),
                    text("text"),
                    deltas,
                );
            }
            ("response.refusal.delta", _) => {
                self.more(
                    at,
                    Stretch::Refusal,
                    piece("content_index"),
                    text("delta"),
                    deltas,
                );
            }
            ("response.refusal.done", _) => {
                self.all(
                    at,
                    Stretch::Refusal,
                    piece("content_index"),
                    text("refusal"),
                    deltas,
                );
            }
            ("response.reasoning_summary_text.delta", _) => {
                self.more(at, summary, piece("summary_index"), text("delta"), deltas);
            }
            ("response.reasoning_summary_text.done", _) => {
                self.all(at, summary, piece("summary_index"), text("text"), deltas);
            }
            ("response.reasoning_text.delta", _) => {
                self.more(at, thought, piece("content_index"), text("delta"), deltas);
            }
            ("response.reasoning_text.done", _) => {
                self.all(at, thought, piece("content_index"), text("text"), deltas);
            }
            ("response.function_call_arguments.delta", _) => {
                self.more(at, Stretch::Arguments, 0, text("delta"), deltas);
            }
            ("response.function_call_arguments.done", _) => {
                if !text("name").is_empty() {
                    let open = &mut self.items.entry(at).or_default().json;
                    open.entry("type").or_insert_with(|| json!("function_call"));
                    open.entry("name").or_insert_with(|| json!(text("name")));
                }
                self.all(at, Stretch::Arguments, 0, text("arguments"), deltas);
            }
            ("response.completed", _) => self.ended("completed", event, deltas)?,
            ("response.incomplete", _) => self.ended("incomplete", event, deltas)?,
            ("response.failed", _) => self.ended("failed", event, deltas)?,
            // Documented flat, sent nested as well (openai/openai-dotnet#881).
            ("error" | "response.error", _) => {
                return Err(error::inside(&self.vendor, &Value::Object(event)));
            }
            // A server in between has no types.
            ("", _) if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(error::inside(&self.vendor, &Value::Object(event)));
            }
            // Progress, tools the vendor runs itself (their items tell), and what is yet to be
            // invented.
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
            return match error::stray(stray) {
                // Not a stream at all: an error, or a server that does not stream.
                Some(body) => response::decode(&body.to_string(), &self.vendor, losses),
                None if self.began => {
                    Err(self.vendor.truncated("it ended without response.completed"))
                }
                None => Err(self.vendor.truncated("it ended before its first event")),
            };
        };
        if reply.output.as_ref().is_none_or(Vec::is_empty) {
            let items = std::mem::take(&mut self.items).into_values();
            reply.output = Some(items.map(OpenItem::into_json).collect());
        }
        response::conclude(reply, status, &self.vendor, losses)
    }
}

impl OpenItem {
    /// The item, put together from its pieces if it never came whole.
    fn into_json(self) -> Value {
        let mut item = self.json;
        if self.whole {
            return Value::Object(item);
        }
        let mut lists: Map<String, Value> = Map::new();
        for ((stretch, _), words) in self.said {
            let (kind, list, piece) = match stretch {
                Stretch::Text => (
                    "message",
                    "content",
                    json!({ "type": "output_text", "text": words }),
                ),
                Stretch::Refusal => (
                    "message",
                    "content",
                    json!({ "type": "refusal", "refusal": words }),
                ),
                Stretch::Thinking(Thought::Summary) => (
                    "reasoning",
                    "summary",
                    json!({ "type": "summary_text", "text": words }),
                ),
                Stretch::Thinking(Thought::Itself) => (
                    "reasoning",
                    "content",
                    json!({ "type": "reasoning_text", "text": words }),
                ),
                Stretch::Arguments => {
                    item.insert("arguments".to_owned(), json!(words));
                    continue;
                }
            };
            item.entry("type").or_insert_with(|| json!(kind));
            if let Value::Array(pieces) = lists.entry(list).or_insert_with(|| json!([])) {
                pieces.push(piece);
            }
        }
        item.extend(lists);
        Value::Object(item)
    }
}
