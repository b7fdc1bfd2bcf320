//! The items of an answer as parts, and parts as items: what one direction takes apart the other
//! puts together.
//!
//! The state of a part is its item as it came. A message's item may hold several pieces of content;
//! each becomes a part whose state is the item with that one piece, less the words, which are the
//! part's own.

use adjutant_core::{Content, ToolCall};
use serde_json::{Value, json};

use super::wire::Item;
use crate::assembly::{Assembly, CallFragment};
use crate::encode::Encoder;

/// Between pieces of thinking: each is a paragraph with a heading of its own.
pub(super) const BETWEEN_THOUGHTS: &str = "\n\n";

/// What a request takes back of what a model did besides talking and calling our tools, and what it
/// insists on there; an answer may have less, and did in the past. Source: the input items of the
/// vendor's published request schema.
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
/// The notes to a text a request takes.
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
/// The sources of a search a request takes; an answer knows one more, `api`.
const SOURCES: Shapes = &[("url", &["url"])];

/// Kinds of objects, each with the fields that must be there.
type Shapes = &'static [(&'static str, &'static [&'static str])];

/// Adds an item of an answer.
pub(super) fn read(item: Value, index: u64, assembly: &mut Assembly) {
    let Value::Object(mut item) = item else {
        return;
    };
    match kind(&item) {
        "message" => read_message(item, assembly),
        "reasoning" => {
            let words: Vec<&str> = thoughts(&item).map(|(_, _, words)| words).collect();
            assembly.thinking(
                &words.join(BETWEEN_THOUGHTS),
                Some(Value::Object(item.clone())),
            );
        }
        "function_call" => {
            let text = |field: Option<Value>| match field {
                Some(Value::String(text)) => text,
                // Arguments that are no text are the object itself, on servers that take the schema
                // lightly.
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            };
            let (id, name) = (
                text(item.shift_remove("call_id")),
                text(item.shift_remove("name")),
            );
            let arguments = text(item.shift_remove("arguments"));
            let canonical =
                serde_json::from_str::<Value>(&arguments).map(|value| value.to_string());
            if canonical.ok().as_deref() != Some(&arguments) {
                item.insert("arguments".to_owned(), json!(arguments));
            }
            let fragment = CallFragment {
                index: Some(index),
                provider_id: Some(&id),
                name: Some(&name),
                arguments: &arguments,
            };
            assembly.call(fragment, Some(Value::Object(item)));
        }
        _ => {
            let kind = kind(&item).to_owned();
            assembly.opaque(&kind, Value::Object(item));
        }
    }
}

fn read_message(mut item: Item, assembly: &mut Assembly) {
    let pieces = match item.shift_remove("content") {
        Some(Value::Array(pieces)) => pieces,
        Some(Value::String(words)) => vec![json!({ "type": "output_text", "text": words })],
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
        // Thinking may belong to it.
        assembly.text("", Some(state(None)));
    }
    for piece in pieces {
        let Value::Object(mut piece) = piece else {
            continue;
        };
        match words_field(&piece) {
            Some((field, refused)) => {
                let words = match piece.shift_remove(field) {
                    Some(Value::String(words)) => words,
                    _ => String::new(),
                };
                let state = state(Some(piece));
                if refused {
                    assembly.refusal(&words, Some(state));
                } else {
                    assembly.text(&words, Some(state));
                }
            }
            None => assembly.opaque(kind(&piece), state(Some(piece.clone()))),
        }
    }
}

/// What the item is. A message may come without saying so.
pub(super) fn kind(item: &Item) -> &str {
    match item.get("type") {
        Some(Value::String(kind)) => kind,
        _ if item.contains_key("role") => "message",
        _ => "unknown",
    }
}

/// The field that holds the words of a piece of a message's content, and whether they are a
/// refusal.
pub(super) fn words_field(piece: &Item) -> Option<(&'static str, bool)> {
    match kind(piece) {
        "output_text" | "text" => Some(("text", false)),
        "refusal" => Some(("refusal", true)),
        _ => None,
    }
}

/// What a reasoning item lets us see: the summary, then what was thought itself (other servers hand
/// that out).
pub(super) fn thoughts(item: &Item) -> impl Iterator<Item = (Thought, u64, &str)> {
    [(Thought::Summary, "summary"), (Thought::Itself, "content")]
        .into_iter()
        .flat_map(|(thought, field)| {
            let pieces = item
                .get(field)
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            let words = pieces.iter().map(|piece| {
                piece
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            });
            (0..)
                .zip(words)
                .map(move |(at, words)| (thought, at, words))
                .filter(|(_, _, words)| !words.is_empty())
        })
}

/// Which of the two forms of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thought {
    Summary,
    Itself,
}

/// The item of a message's part, with the part's words in it.
pub(super) fn message(state: &Value, content: &Content, common: &mut Encoder<'_>) -> Item {
    let mut item = without_nulls(state);
    keep_known_status(&mut item);
    let nothing_but_words = [json!({})];
    let pieces = state
        .get("content")
        .and_then(Value::as_array)
        .map_or(&nothing_but_words[..], Vec::as_slice);
    let pieces = pieces.iter().map(|piece| match content {
        Content::Refusal { text } => json!({ "type": "refusal", "refusal": text }),
        Content::Text { text } => {
            let mut words = Item::new();
            words.insert("type".to_owned(), json!("output_text"));
            words.insert("text".to_owned(), json!(text));
            let mut rest = without_nulls(piece);
            rest.shift_remove("type");
            words.extend(rest);
            let annotations = words.entry("annotations").or_insert_with(|| json!([]));
            keep_fitting(annotations, ANNOTATIONS, "annotations", common);
            Value::Object(words)
        }
        // The words of a message are one of the two.
        _ => piece.clone(),
    });
    let pieces = pieces.collect();
    item.insert("type".to_owned(), json!("message"));
    item.insert("role".to_owned(), json!("assistant"));
    item.insert("content".to_owned(), pieces);
    item
}

/// The reasoning item behind a part, if there is something in it that the vendor can go on from:
/// without a copy of its own it only finds what it holds encrypted, or what was thought in the
/// open.
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
    // Required, empty or not.
    item.entry("summary").or_insert_with(|| json!([]));
    Some(item)
}

/// The item of a call. `state`: what came with it, if it is this model's own.
pub(super) fn call(state: Option<&Value>, call: &ToolCall, call_id: &str) -> Item {
    let mut item = Item::new();
    item.insert("type".to_owned(), json!("function_call"));
    item.insert("call_id".to_owned(), json!(call_id));
    item.insert("name".to_owned(), json!(call.name));
    let arguments = Value::Object(call.arguments.clone());
    let mut text = match &call.malformed {
        Some(malformed) => malformed.text.clone(),
        None => arguments.to_string(),
    };
    if let Some(state) = state {
        let mut rest = without_nulls(state);
        keep_known_status(&mut rest);
        // The model's own spelling, as long as it means the same.
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

/// An item of something the vendor ran itself; `None`: a request does not take it.
pub(super) fn opaque(state: &Value) -> Option<Item> {
    let mut item = state.as_object()?.clone();
    // Only answers have it.
    item.shift_remove("created_by");
    fits(&item, TAKEN_BACK).then_some(item)
}

/// Takes out of an item what a request does not take in it.
pub(super) fn trim(item: &mut Item, common: &mut Encoder<'_>) {
    if let Some(sources) = item
        .get_mut("action")
        .and_then(|action| action.get_mut("sources"))
    {
        keep_fitting(sources, SOURCES, "sources of a search", common);
    }
}

fn fits(object: &Item, shapes: Shapes) -> bool {
    let has = |field: &&str| object.get(*field).is_some_and(|value| !value.is_null());
    shapes
        .iter()
        .any(|(name, fields)| *name == kind(object) && fields.iter().all(has))
}

fn keep_fitting(list: &mut Value, shapes: Shapes, what: &str, common: &mut Encoder<'_>) {
    let all = list.as_array_mut().map(std::mem::take).unwrap_or_default();
    let before = all.len();
    let kept: Vec<Value> = all
        .into_iter()
        .filter(|value| value.as_object().is_some_and(|value| fits(value, shapes)))
        .collect();
    if kept.len() < before {
        common.lose(format!("{what} that a request does not take were left out"));
    }
    *list = Value::Array(kept);
}

/// The call an item is the answer to.
pub(super) fn answers(item: &Item) -> Option<&str> {
    kind(item)
        .ends_with("_output")
        .then(|| item.get("call_id")?.as_str())?
}

/// The call of a tool that is run on our side, as far as the vendor is concerned: it insists on an
/// answer.
pub(super) fn awaits_answer(item: &Item) -> Option<&str> {
    let ours = match kind(item) {
        "apply_patch_call" | "computer_call" | "custom_tool_call" | "local_shell_call"
        | "shell_call" => true,
        "tool_search_call" => item.get("execution").and_then(Value::as_str) == Some("client"),
        _ => false,
    };
    item.get("call_id")?.as_str().filter(|_| ours)
}

/// A null in an answer is a missing field in a request.
fn without_nulls(state: &Value) -> Item {
    let mut item = state.as_object().cloned().unwrap_or_default();
    item.retain(|_, value| !value.is_null());
    item
}

/// Other servers have words of their own here; the schema does not.
fn keep_known_status(item: &mut Item) {
    let known = ["in_progress", "completed", "incomplete"];
    if item
        .get("status")
        .is_some_and(|status| !known.iter().any(|known| status == known))
    {
        item.shift_remove("status");
    }
}
