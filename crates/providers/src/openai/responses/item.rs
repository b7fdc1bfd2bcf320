//! Converts the items of an answer to parts, and parts back to items.
//!
//! The state of a part is its item as it was sent. A message's item may have several pieces of
//! content; each becomes a part whose state is the item with that one piece, without the text,
//! which is the part's content.

use adjutant_core::{Content, ToolCall};
use serde_json::{Value, json};

use super::wire::Item;
use crate::assembly::{Assembly, CallFragment};
use crate::encode::{Encoder, object};

/// Separates summaries of thinking in a part: each is a paragraph with its own heading.
pub(super) const THINKING_SEPARATOR: &str = "\n\n";

/// Types of items that a request may take back besides messages, reasoning and function calls, with
/// their required fields. Answers may lack some, and did in the past. Source: the input items of
/// the vendor's published request schema.
const TAKEN_BACK: Shapes = &[
    ("additional_tools", &["role", "tools"]),
    ("apply_patch_call", &["call_id", "status", "operation"]),
    ("apply_patch_call_output", &["call_id", "status"]),
    ("code_interpreter_call", &["status", "container_id"]),
    ("compaction", &["encrypted_content"]),
    (
        "computer_call",
        &["id", "call_id", "pending_safety_checks", "status"],
    ),
    ("computer_call_output", &["call_id", "output"]),
    ("custom_tool_call", &["call_id", "name", "input"]),
    ("custom_tool_call_output", &["call_id", "output"]),
    ("file_search_call", &["id", "status", "queries"]),
    ("image_generation_call", &["id", "status"]),
    ("local_shell_call", &["id", "call_id", "action", "status"]),
    ("local_shell_call_output", &["id", "output"]),
    (
        "mcp_approval_request",
        &["id", "server_label", "name", "arguments"],
    ),
    ("mcp_approval_response", &["approve", "approval_request_id"]),
    ("mcp_call", &["id", "server_label", "name", "arguments"]),
    ("mcp_list_tools", &["id", "server_label", "tools"]),
    ("program", &["id", "call_id", "code", "fingerprint"]),
    ("program_output", &["id", "call_id", "result", "status"]),
    ("shell_call", &["call_id", "action"]),
    ("shell_call_output", &["call_id", "output"]),
    ("tool_search_call", &["arguments"]),
    ("tool_search_output", &["tools"]),
    ("web_search_call", &["id", "status", "action"]),
];
/// Types of annotations of a text that a request may have.
const ANNOTATIONS: Shapes = &[
    (
        "container_file_citation",
        &[
            "container_id",
            "file_id",
            "start_index",
            "end_index",
            "filename",
        ],
    ),
    ("file_citation", &["file_id", "index", "filename"]),
    ("file_path", &["file_id", "index"]),
    (
        "url_citation",
        &["url", "start_index", "end_index", "title"],
    ),
];
/// Types of sources of a search that a request may have; an answer may also have `api`.
const SOURCES: Shapes = &[("url", &["url"])];

/// Types of objects, each with its required fields.
type Shapes = &'static [(&'static str, &'static [&'static str])];

/// Adds an item of an answer.
pub(super) fn add_to(assembly: &mut Assembly, item: Value) {
    let Value::Object(mut item) = item else {
        return;
    };
    match kind(&item) {
        "message" => add_message(item, assembly),
        "reasoning" => {
            let text: Vec<&str> = thinking_texts(&item).map(|(_, _, text)| text).collect();
            let text = text.join(THINKING_SEPARATOR);
            assembly.thinking(&text, Some(Value::Object(item)));
        }
        "function_call" => {
            let text = |field: Option<Value>| match field {
                Some(Value::String(text)) => text,
                // Some servers send the object itself instead of its JSON text.
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            };
            let (id, name) = (
                text(item.shift_remove("call_id")),
                text(item.shift_remove("name")),
            );
            let arguments = text(item.shift_remove("arguments"));
            // The text is kept if it is spelled otherwise than we would: sent back, it has to match
            // the vendor's cache to the byte.
            let canonical =
                serde_json::from_str::<Value>(&arguments).map(|value| value.to_string());
            if canonical.ok().as_deref() != Some(&arguments) {
                item.insert("arguments".to_owned(), json!(arguments));
            }
            let fragment = CallFragment {
                index: None,
                provider_id: Some(&id),
                name: Some(&name),
                arguments: &arguments,
            };
            // Every item is a call of its own, whatever ids the server gave them.
            assembly.begin_call(fragment, Some(Value::Object(item)));
        }
        _ => {
            let kind = kind(&item).to_owned();
            assembly.opaque(&kind, Value::Object(item));
        }
    }
}

fn add_message(mut item: Item, assembly: &mut Assembly) {
    let pieces = match item.shift_remove("content") {
        Some(Value::Array(pieces)) => pieces,
        Some(Value::String(text)) => vec![json!({ "type": "output_text", "text": text })],
        _ => Vec::new(),
    };
    let state = |piece: Option<Item>| {
        let mut item = item.clone();
        item.insert(
            "content".to_owned(),
            piece.map(Value::Object).into_iter().collect(),
        );
        Value::Object(item)
    };
    if pieces.is_empty() {
        // Kept although it is empty: reasoning must be followed by the item it belongs to.
        assembly.text("", Some(state(None)));
    }
    for piece in pieces {
        let Value::Object(mut piece) = piece else {
            continue;
        };
        match text_field(&piece) {
            Some((field, is_refusal)) => {
                let text = match piece.shift_remove(field) {
                    Some(Value::String(text)) => text,
                    _ => String::new(),
                };
                let state = state(Some(piece));
                if is_refusal {
                    assembly.refusal(&text, Some(state));
                } else {
                    assembly.text(&text, Some(state));
                }
            }
            None => assembly.opaque(kind(&piece), state(Some(piece.clone()))),
        }
    }
}

/// Returns the type of an item. A message's may be omitted.
pub(super) fn kind(item: &Item) -> &str {
    match item.get("type") {
        Some(Value::String(kind)) => kind,
        _ if item.contains_key("role") => "message",
        _ => "unknown",
    }
}

/// Returns the field that holds the text of a piece of a message, and true if it is a refusal.
pub(super) fn text_field(piece: &Item) -> Option<(&'static str, bool)> {
    match kind(piece) {
        "output_text" | "text" => Some(("text", false)),
        "refusal" => Some(("refusal", true)),
        _ => None,
    }
}

/// Returns the visible text of a reasoning item, each with its form and index: the summary, then
/// the full text (which only other servers return).
pub(super) fn thinking_texts(item: &Item) -> impl Iterator<Item = (ThinkingForm, u64, &str)> {
    [
        (ThinkingForm::Summary, "summary"),
        (ThinkingForm::Full, "content"),
    ]
    .into_iter()
    .flat_map(|(form, field)| {
        let pieces = item
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let texts = pieces
            .iter()
            .map(|piece| piece["text"].as_str().unwrap_or_default());
        (0..)
            .zip(texts)
            .map(move |(at, text)| (form, at, text))
            .filter(|(_, _, text)| !text.is_empty())
    })
}

/// The forms in which a reasoning item shows thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ThinkingForm {
    Summary,
    Full,
}

/// Converts a part of a message back to its item, with the text in it.
pub(super) fn message(state: &Value, content: &Content, common: &mut Encoder<'_>) -> Item {
    let mut item = without_nulls(state);
    keep_known_status(&mut item);
    let only_text = [json!({})];
    let pieces = state
        .get("content")
        .and_then(Value::as_array)
        .map_or(&only_text[..], Vec::as_slice);
    let pieces = pieces.iter().map(|piece| match content {
        Content::Refusal { text } => json!({ "type": "refusal", "refusal": text }),
        Content::Text { text } => {
            let mut fields = object([("type", json!("output_text")), ("text", json!(text))]);
            let mut rest = without_nulls(piece);
            rest.shift_remove("type");
            fields.extend(rest);
            let annotations = fields.entry("annotations").or_insert_with(|| json!([]));
            keep_supported(annotations, ANNOTATIONS, "annotations", common);
            Value::Object(fields)
        }
        // The text of a message is one of the two.
        _ => piece.clone(),
    });
    let pieces = pieces.collect();
    item.insert("type".to_owned(), json!("message"));
    item.insert("role".to_owned(), json!("assistant"));
    item.insert("content".to_owned(), pieces);
    item
}

/// Converts a part of thinking back to its item; `None` if the vendor could not use it. The vendor
/// stores nothing, so the item needs encrypted content, or the full text.
pub(super) fn reasoning(state: &Value) -> Option<Item> {
    let mut item = without_nulls(state);
    let has = |field: &str| match item.get(field) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(pieces)) => !pieces.is_empty(),
        _ => false,
    };
    if !has("encrypted_content") && !has("content") {
        return None;
    }
    keep_known_status(&mut item);
    // The vendor requires it, even if it is empty.
    item.entry("summary").or_insert_with(|| json!([]));
    Some(item)
}

/// Converts a call to an item. `state` is its provider state, if this model made the call.
pub(super) fn call(state: Option<&Value>, call: &ToolCall, call_id: &str) -> Item {
    let mut item = object([
        ("type", json!("function_call")),
        ("call_id", json!(call_id)),
        ("name", json!(call.name)),
    ]);
    let arguments = Value::Object(call.arguments.clone());
    let mut text = match &call.malformed {
        Some(malformed) => malformed.text.clone(),
        None => arguments.to_string(),
    };
    if let Some(state) = state {
        let mut rest = without_nulls(state);
        keep_known_status(&mut rest);
        // The model's own spelling, if it still means the same.
        if let Some(Value::String(own)) = rest.shift_remove("arguments")
            && serde_json::from_str::<Value>(&own).is_ok_and(|own| own == arguments)
        {
            text = own;
        }
        item.extend(rest);
    }
    item.insert("arguments".to_owned(), json!(text));
    item
}

/// Returns the item of a tool that the vendor ran itself; `None` if a request may not have it.
pub(super) fn opaque(state: &Value) -> Option<Item> {
    let mut item = state.as_object()?.clone();
    // A field of answers only.
    item.shift_remove("created_by");
    has_shape(&item, TAKEN_BACK).then_some(item)
}

/// Removes fields of an item that a request may not have.
pub(super) fn remove_unsupported(item: &mut Item, common: &mut Encoder<'_>) {
    if let Some(sources) = item
        .get_mut("action")
        .and_then(|action| action.get_mut("sources"))
    {
        keep_supported(sources, SOURCES, "sources of a search", common);
    }
}

fn has_shape(object: &Item, shapes: Shapes) -> bool {
    let has = |field: &&str| object.get(*field).is_some_and(|value| !value.is_null());
    shapes
        .iter()
        .any(|(name, fields)| *name == kind(object) && fields.iter().all(has))
}

fn keep_supported(list: &mut Value, shapes: Shapes, what: &str, common: &mut Encoder<'_>) {
    let mut values = list.as_array_mut().map(std::mem::take).unwrap_or_default();
    let before = values.len();
    values.retain(|value| {
        value
            .as_object()
            .is_some_and(|value| has_shape(value, shapes))
    });
    if values.len() < before {
        common.record_loss(format!("{what} that a request does not take were left out"));
    }
    *list = Value::Array(values);
}

/// Returns the id of the call that an output item answers.
pub(super) fn answered_call(item: &Item) -> Option<&str> {
    kind(item)
        .ends_with("_output")
        .then(|| item.get("call_id")?.as_str())?
}

/// Returns the id of a call that the client has to answer: the vendor refuses a request without an
/// output for it.
pub(super) fn call_awaiting_output(item: &Item) -> Option<&str> {
    let ours = match kind(item) {
        "apply_patch_call" | "computer_call" | "custom_tool_call" | "local_shell_call"
        | "shell_call" => true,
        "tool_search_call" => item.get("execution").and_then(Value::as_str) == Some("client"),
        _ => false,
    };
    item.get("call_id")?.as_str().filter(|_| ours)
}

/// Removes null fields: an answer may have them, a request may not.
fn without_nulls(state: &Value) -> Item {
    let mut item = state.as_object().cloned().unwrap_or_default();
    item.retain(|_, value| !value.is_null());
    item
}

/// Removes a status that the vendor's schema does not have, but other servers send.
fn keep_known_status(item: &mut Item) {
    let known = ["in_progress", "completed", "incomplete"];
    if item
        .get("status")
        .is_some_and(|status| !known.iter().any(|known| status == known))
    {
        item.shift_remove("status");
    }
}
