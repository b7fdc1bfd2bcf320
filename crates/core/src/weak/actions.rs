//! What the answer may be: a JSON Schema made of the tools' own.

use serde_json::{Map, Value, json};

use crate::tool::ToolDefinition;

use super::said::Said;
use super::things::Things;

/// Actions of one answer at most.
pub(super) const ACTIONS_MAX: usize = 4;

/// Characters of a sentence to the person at most.
const SENTENCE_CHARS_MAX: usize = 240;

/// The control actions: name, the argument that holds their words.
pub(super) const CONTROLS: [(&str, &str); 3] =
    [("reply", "text"), ("ask_user", "question"), ("decline", "message")];

/// One to four calls, or exactly one word to the person.
pub(super) fn schema(tools: &[&ToolDefinition], things: &Things<'_>, said: &Said) -> Value {
    // No argument quotes more than the message and some words of the model's own.
    let chars_max = said.message.chars().count() + 80;
    let calls: Vec<Value> = tools
        .iter()
        .filter_map(|tool| Some(action(tool.name.as_str(), arguments(tool, things, chars_max)?)))
        .collect();
    let word = CONTROLS.map(|(name, argument)| {
        action(
            name,
            json!({
                "type": "object",
                "properties": { argument: text(SENTENCE_CHARS_MAX) },
                "required": [argument],
                "additionalProperties": false
            }),
        )
    });
    let word = list(word.to_vec(), 1);
    if calls.is_empty() { word } else { json!({ "anyOf": [list(calls, ACTIONS_MAX), word] }) }
}

fn list(items: Vec<Value>, max: usize) -> Value {
    json!({ "type": "array", "items": { "anyOf": items }, "minItems": 1, "maxItems": max })
}

fn action(name: &str, arguments: Value) -> Value {
    json!({
        "type": "object",
        "properties": { "tool": { "const": name }, "args": arguments },
        "required": ["tool", "args"],
        "additionalProperties": false
    })
}

/// The tool's own schema with references as a choice of names and bounded strings. `None`: it names something, and
/// there is nothing to name (an empty choice cannot be satisfied).
fn arguments(tool: &ToolDefinition, things: &Things<'_>, chars_max: usize) -> Option<Value> {
    let mut schema = bounded(&tool.parameters, chars_max);
    let fields = schema.as_object_mut()?;
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    let required: Vec<String> = fields
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let properties =
        fields.entry("properties").or_insert_with(|| Value::Object(Map::new())).as_object_mut()?;
    for reference in &tool.references {
        let names = things.names(&reference.kind);
        if !names.is_empty() {
            properties.insert(reference.argument.clone(), json!({ "type": "string", "enum": names }));
        } else if required.contains(&reference.argument) {
            return None;
        } else {
            properties.shift_remove(&reference.argument);
        }
    }
    Some(schema)
}

/// The same schema without what only people read, and with every free string bounded.
fn bounded(schema: &Value, chars_max: usize) -> Value {
    match schema {
        Value::Object(fields) => {
            let free = fields.get("type").and_then(Value::as_str) == Some("string")
                && !["enum", "const", "pattern", "format"].iter().any(|key| fields.contains_key(*key));
            if free {
                let own =
                    fields.get("maxLength").and_then(Value::as_u64).and_then(|max| usize::try_from(max).ok());
                return text(own.map_or(chars_max, |own| own.min(chars_max)));
            }
            fields
                .iter()
                // A property may have one of these names: then its value is a schema, not a text.
                .filter(|(key, value)| {
                    !(matches!(key.as_str(), "description" | "title" | "$schema" | "default" | "examples")
                        && !value.is_object())
                })
                .map(|(key, value)| (key.clone(), bounded(value, chars_max)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(|item| bounded(item, chars_max)).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// A line of text. Quotes, braces and brackets are left out: a weak model hides the end of the JSON inside of strings.
fn text(chars_max: usize) -> Value {
    const LINE: &str = r#"[^"\\{}\[\]\x00-\x1f\x7f]"#;
    const WORD: &str = r#"[^"\\{}\[\]\x00-\x20\x7f]"#;
    json!({ "type": "string", "pattern": format!("^{WORD}{LINE}{{0,{}}}$", chars_max.max(1) - 1) })
}
