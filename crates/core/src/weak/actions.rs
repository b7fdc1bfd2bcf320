//! What the answer may be: a JSON Schema made of the tools' own.

use serde_json::{Map, Value, json};

use crate::tool::ToolDefinition;
use crate::turn::{ASK_USER, DECLINE};

use super::guard::Guard;
use super::said::Said;
use super::things::Things;

/// Actions of one answer at most.
pub(super) const ACTIONS_MAX: usize = 4;

/// Characters of a sentence to the person at most.
const SENTENCE_CHARS_MAX: usize = 240;

/// An action without a tool: words for the person.
#[derive(Debug)]
pub(super) struct Control {
    /// What the model calls it. Says when to use it, which helps a weak model more than what it
    /// does ("decline", "ask"). No tool has this name: it is none a tool may have, or it is one of
    /// [`crate::RESERVED`].
    pub(super) name: &'static str,
    /// The argument that holds the words.
    pub(super) argument: &'static str,
    /// What the model is told about it.
    pub(super) description: &'static str,
    /// The turn's control function it stands for. `None`: a reply in plain text.
    pub(super) function: Option<&'static str>,
}

/// All of them.
pub(super) const CONTROLS: [Control; 3] = [
    Control {
        name: "small-talk",
        argument: "text",
        description: "a short friendly statement, for greetings, thanks, chat and questions about you",
        function: None,
    },
    Control {
        name: "unclear",
        argument: "question",
        description: "ask back when too little is said to do anything",
        function: Some(ASK_USER),
    },
    Control {
        name: "off-topic",
        argument: "message",
        description: "for questions, wishes and jobs that have nothing to do with the list",
        function: Some(DECLINE),
    },
];

/// The control action of that name.
pub(super) fn control(name: &str) -> Option<&'static Control> {
    CONTROLS.iter().find(|control| control.name == name)
}

/// One to four calls, or exactly one word to the person.
pub(super) fn schema(
    tools: &[&ToolDefinition],
    things: &Things<'_>,
    said: &Said,
    guard: &Guard<'_>,
) -> Value {
    // No argument quotes more than the message and some words of the model's own.
    let chars_max = said.message.chars().count() + 80;
    let calls: Vec<Value> = tools
        .iter()
        .filter(|tool| guard.offers(tool))
        .filter_map(|tool| {
            Some(action(
                tool.name.as_str(),
                arguments(tool, things, chars_max, guard)?,
            ))
        })
        .collect();
    let fits = |control: &&Control| match control.function {
        Some(DECLINE) => true,
        Some(ASK_USER) => !guard.wants_a_fact() && !guard.only_declines(),
        _ => !guard.only_declines(),
    };
    let fitting = CONTROLS.iter().filter(fits);
    let word = fitting.map(|Control { name, argument, .. }| {
        action(
            name,
            json!({
                "type": "object",
                "properties": { *argument: text(SENTENCE_CHARS_MAX) },
                "required": [argument],
                "additionalProperties": false
            }),
        )
    });
    let word = list(word.collect(), 1, 1);
    if calls.is_empty() {
        word
    } else if guard.is_certain() {
        list(calls, guard.actions_min(), ACTIONS_MAX)
    } else {
        json!({ "anyOf": [list(calls, guard.actions_min(), ACTIONS_MAX), word] })
    }
}

fn list(items: Vec<Value>, min: usize, max: usize) -> Value {
    json!({ "type": "array", "items": { "anyOf": items }, "minItems": min, "maxItems": max })
}

/// The name is the key: an object of name and arguments would say the same in more tokens, in every
/// example and answer.
fn action(name: &str, arguments: Value) -> Value {
    json!({
        "type": "object",
        "properties": { name: arguments },
        "required": [name],
        "additionalProperties": false
    })
}

/// The tool's own schema with references as a choice of names and bounded strings. `None`: it names
/// something, and there is nothing to name (an empty choice cannot be satisfied).
fn arguments(
    tool: &ToolDefinition,
    things: &Things<'_>,
    chars_max: usize,
    guard: &Guard<'_>,
) -> Option<Value> {
    if let Some(quote) = guard.quote_for(tool) {
        return Some(quote.schema());
    }
    let mut schema = bounded(&tool.parameters, chars_max);
    let fields = schema.as_object_mut()?;
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    let required: Vec<String> = fields
        .get("required")
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
    let properties = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()?;
    for reference in &tool.references {
        let names = things.names(&reference.kind, |thing| guard.offers_for(tool, thing));
        if !names.is_empty() {
            properties.insert(
                reference.argument.clone(),
                json!({ "type": "string", "enum": names }),
            );
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
                && !["enum", "const", "pattern", "format"]
                    .iter()
                    .any(|key| fields.contains_key(*key));
            if free {
                let own = fields
                    .get("maxLength")
                    .and_then(Value::as_u64)
                    .and_then(|max| usize::try_from(max).ok());
                return text(own.map_or(chars_max, |own| own.min(chars_max)));
            }
            fields
                .iter()
                // A property may have one of these names: then its value is a schema, not a text.
                .filter(|(key, value)| {
                    !matches!(
                        key.as_str(),
                        "description" | "title" | "$schema" | "default" | "examples"
                    ) || value.is_object()
                })
                .map(|(key, value)| (key.clone(), bounded(value, chars_max)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| bounded(item, chars_max))
            .collect::<Vec<_>>()
            .into(),
        other => other.clone(),
    }
}

/// A line of text. Quotes, braces and brackets are left out: a weak model hides the end of the JSON
/// inside of strings.
fn text(chars_max: usize) -> Value {
    const LINE: &str = r#"[^"\\{}\[\]\x00-\x1f\x7f]"#;
    const WORD: &str = r#"[^"\\{}\[\]\x00-\x20\x7f]"#;
    json!({ "type": "string", "pattern": format!("^{WORD}{LINE}{{0,{}}}$", chars_max.max(1) - 1) })
}
