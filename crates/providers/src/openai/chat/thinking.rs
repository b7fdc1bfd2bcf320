//! Reasoning, in every form it comes in, and back in the form it came in.
//!
//! A server that thinks between calls wants its thinking back with them: DeepSeek and Moonshot
//! refuse a transcript without (`reasoning_content`, "Thinking mode"), OpenRouter asks for its
//! `reasoning_details` unchanged ("Preserving reasoning"), Mistral for its `thinking` parts
//! (checked 2026-11-22). What a server never said in a form, it is never sent in that form.

use adjutant_core::{Content, ModelId, Part, ProviderState};
use serde_json::{Map, Value, json};

use super::wire::{Loose, Message};

/// The key of a thinking part's state that names the field it came in.
const FIELD: &str = "field";
const DETAILS: &str = "reasoning_details";
/// The field of a message whose content has parts for thinking.
pub(super) const IN_CONTENT: &str = "content";

/// What was heard of how a server thinks.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    field: Option<&'static str>,
    details: Vec<Map<String, Value>>,
}

impl Thinking {
    /// The thinking of a message or of a piece of one.
    pub(super) fn hear(&mut self, message: &Message<'_>, is_piece: bool) -> Option<String> {
        // Some servers send both names of the same words.
        let fields: [(&'static str, &Option<Loose<'_>>); 2] = [
            ("reasoning_content", &message.reasoning_content),
            ("reasoning", &message.reasoning),
        ];
        let said = fields.into_iter().find_map(|(name, value)| {
            let words = value.as_ref()?.as_str().filter(|words| !words.is_empty())?;
            Some((name, words))
        });
        let details = message
            .reasoning_details
            .as_deref()
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        for detail in details.iter().filter_map(Value::as_object) {
            self.detail(detail, is_piece);
        }
        if let Some((name, words)) = said {
            self.field = Some(name);
            return Some(words.to_owned());
        }
        let words = |detail: &Value| {
            Some(
                detail
                    .get("text")
                    .or(detail.get("summary"))?
                    .as_str()?
                    .to_owned(),
            )
        };
        let said: String = details.iter().filter_map(words).collect();
        (!said.is_empty()).then_some(said)
    }

    /// There was thinking among the parts of the content.
    pub(super) fn heard_in_content(&mut self) {
        self.field = Some(IN_CONTENT);
    }

    /// Keeps a detail. Pieces of one share its type and, where there is one, its number.
    fn detail(&mut self, detail: &Map<String, Value>, is_piece: bool) {
        let same = |known: &&mut Map<String, Value>| {
            known.get("type") == detail.get("type") && known.get("index") == detail.get("index")
        };
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
                (Some(Value::String(words)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    words.push_str(more);
                }
                (_, value) => drop(known.insert(name.clone(), value.clone())),
            }
        }
    }

    /// Writes down with the thinking of an answer how it came.
    pub(super) fn settle(self, parts: &mut Vec<Part>, origin: &ModelId) {
        let mut details = (!self.details.is_empty()).then_some(self.details);
        let has_any = parts
            .iter()
            .any(|part| matches!(part.content, Content::Thinking { .. }));
        if details.is_some() && !has_any {
            // Encrypted as a whole: there is nothing to see of it.
            let state = ProviderState {
                origin: origin.clone(),
                data: json!({}),
            };
            parts.insert(
                0,
                Part::from_provider(
                    Content::Thinking {
                        text: String::new(),
                    },
                    Some(state),
                ),
            );
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

/// The form in which a part of thinking came, as its state says.
pub(super) fn field(state: &Value) -> Option<&str> {
    state.get(FIELD)?.as_str()
}

/// Adds a part of thinking to a message that goes back.
pub(super) fn send_back(message: &mut Map<String, Value>, text: &str, state: &Value) {
    if let Some(details) = state.get(DETAILS) {
        message.clear();
        message.insert(DETAILS.to_owned(), details.clone());
    }
    let Some(field) = field(state).filter(|_| !message.contains_key(DETAILS)) else {
        return;
    };
    match message.get_mut(field) {
        Some(Value::String(words)) => words.push_str(text),
        _ => drop(message.insert(field.to_owned(), json!(text))),
    }
}
