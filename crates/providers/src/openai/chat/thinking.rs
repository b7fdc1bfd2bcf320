//! Reasoning, decoded from every server's form, and sent back in the same form.
//!
//! A server that thinks between calls wants its thinking back with them: DeepSeek and Moonshot
//! refuse a transcript without it (`reasoning_content`, "Thinking mode"), OpenRouter asks for its
//! `reasoning_details` unchanged ("Preserving reasoning"), Mistral for its `thinking` parts
//! (checked 2026-11-22). A server is only sent forms that it sent itself.

use adjutant_core::{Content, ModelId, Part, ProviderState};
use serde_json::{Map, Value, json};

use super::wire::{LooseValue, Message};

/// The key of a thinking part's state that names the field in which it came.
const FIELD: &str = "field";
const DETAILS: &str = "reasoning_details";
/// The field of thinking that came as parts of the content.
pub(super) const IN_CONTENT: &str = "content";

/// The form of a server's thinking, as far as its answer showed it.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    field: Option<&'static str>,
    details: Vec<Map<String, Value>>,
}

impl Thinking {
    /// Takes the thinking out of a message or a chunk of one.
    pub(super) fn extract(&mut self, message: &Message<'_>, is_piece: bool) -> Option<String> {
        // Some servers send the same text under both names.
        let fields: [(&'static str, &Option<LooseValue<'_>>); 2] = [
            ("reasoning_content", &message.reasoning_content),
            ("reasoning", &message.reasoning),
        ];
        let found = fields.into_iter().find_map(|(name, value)| {
            let text = value.as_ref()?.as_str().filter(|text| !text.is_empty())?;
            Some((name, text))
        });
        let details = message
            .reasoning_details
            .as_deref()
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        for detail in details.iter().filter_map(Value::as_object) {
            self.add_detail(detail, is_piece);
        }
        if let Some((name, text)) = found {
            self.field = Some(name);
            return Some(text.to_owned());
        }
        let text = |detail: &Value| {
            let text = detail.get("text").or(detail.get("summary"))?;
            Some(text.as_str()?.to_owned())
        };
        let text: String = details.iter().filter_map(text).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Notes that thinking came as parts of the content.
    pub(super) fn found_in_content(&mut self) {
        self.field = Some(IN_CONTENT);
    }

    /// Keeps a detail. Fragments of one share its type and, if there is one, its index.
    fn add_detail(&mut self, detail: &Map<String, Value>, is_piece: bool) {
        let same = |known: &&mut Map<String, Value>| {
            known.get("type") == detail.get("type") && known.get("index") == detail.get("index")
        };
        // Details without an index arrive one after the other, so only the last one can go on.
        let known = if detail.contains_key("index") {
            self.details.iter_mut().rev().find(same)
        } else {
            self.details.last_mut().filter(same)
        };
        let Some(known) = known.filter(|_| is_piece) else {
            self.details.push(detail.clone());
            return;
        };
        for (name, value) in detail {
            match (known.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    text.push_str(more);
                }
                (_, value) => {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
    }

    /// Records the form of the thinking in the state of an answer's parts.
    pub(super) fn record_in(self, parts: &mut Vec<Part>, origin: &ModelId) {
        let mut details = (!self.details.is_empty()).then_some(self.details);
        let has_any = parts
            .iter()
            .any(|part| matches!(part.content, Content::Thinking { .. }));
        if details.is_some() && !has_any {
            // Encrypted completely, so there is no text of it.
            let state = ProviderState {
                origin: origin.clone(),
                data: json!({}),
            };
            let content = Content::Thinking {
                text: String::new(),
            };
            parts.insert(0, Part::from_provider(content, Some(state)));
        }
        for part in parts
            .iter_mut()
            .filter(|part| matches!(part.content, Content::Thinking { .. }))
        {
            let Some(Value::Object(data)) = part.state.as_mut().map(|state| &mut state.data) else {
                continue;
            };
            if let Some(field) = self.field {
                data.insert(FIELD.to_owned(), json!(field));
            }
            if let Some(details) = details.take() {
                data.insert(DETAILS.to_owned(), json!(details));
            }
        }
    }
}

/// Returns the field in which a part of thinking came, from its state.
pub(super) fn field(state: &Value) -> Option<&str> {
    state.get(FIELD)?.as_str()
}

/// Adds a part of thinking to the fields of a message that is sent back.
pub(super) fn add_to_message(message: &mut Map<String, Value>, text: &str, state: &Value) {
    if let Some(details) = state.get(DETAILS) {
        // The details contain the text too, which must not go back twice.
        message.clear();
        message.insert(DETAILS.to_owned(), details.clone());
    }
    let Some(field) = field(state).filter(|_| !message.contains_key(DETAILS)) else {
        return;
    };
    match message.entry(field).or_insert_with(|| json!("")) {
        Value::String(before) => before.push_str(text),
        other => *other = json!(text),
    }
}
