//! The JSON Schema of the model's answer: a bounded list of actions, made from the schemas of the
//! tools.

use serde_json::{Map, Value, json};

use adjutant_core::ToolDefinition;
use adjutant_core::turn::{ASK_USER, DECLINE};

use super::dialogue::Dialogue;
use super::entities::Entities;
use super::guard::Guard;

/// Most actions that one answer may hold.
pub(super) const ACTIONS_MAX: usize = 12;

/// Most characters of a sentence to the user.
pub(super) const SENTENCE_CHARS_MAX: usize = 240;

/// An action without a tool: a reply, a question or a refusal.
#[derive(Debug)]
pub(super) struct Control {
    /// The name that the model calls it by. It says when to use the action, which helps a weak
    /// model more than what the action does ("decline", "ask"). No tool can have this name: it is
    /// not a valid [`adjutant_core::ToolName`], or it is one of [`adjutant_core::RESERVED`].
    pub(super) name: &'static str,
    /// The argument that holds the text.
    pub(super) argument: &'static str,
    /// The line about it in the instruction.
    pub(super) description: &'static str,
    /// The turn's control function that the action stands for. `None`: a reply in plain text.
    pub(super) function: Option<&'static str>,
}

/// Every action without a tool.
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

/// Returns the control action of a name.
pub(super) fn control(name: &str) -> Option<&'static Control> {
    CONTROLS.iter().find(|control| control.name == name)
}

/// Returns the schema of an answer: one to [`ACTIONS_MAX`] calls, or exactly one text to the user.
pub(super) fn schema(
    tools: &[&ToolDefinition],
    entities: &Entities<'_>,
    dialogue: &Dialogue,
    guard: &Guard<'_>,
) -> Value {
    // No argument quotes more than the message and a few words that the model adds.
    let chars_max = dialogue.message.chars().count() + 80;
    let calls: Vec<Value> = tools
        .iter()
        .filter(|tool| guard.offers_tool(tool))
        .filter_map(|tool| {
            Some(action_schema(
                tool.name.as_str(),
                arguments_schema(tool, entities, chars_max, guard)?,
            ))
        })
        .collect();
    let fits = |control: &&Control| match control.function {
        Some(DECLINE) => true,
        Some(ASK_USER) => !guard.asks_information() && !guard.is_off_topic(),
        _ => !guard.is_off_topic(),
    };
    let word = text_schema(CONTROLS.iter().filter(fits));
    if calls.is_empty() {
        word
    } else if guard.must_call() {
        array_schema(calls, guard.actions_min(), ACTIONS_MAX)
    } else {
        // Calls or one text, never both: what was done is said by the tools, not by the model.
        json!({ "anyOf": [array_schema(calls, guard.actions_min(), ACTIONS_MAX), word] })
    }
}

/// Returns the schema of exactly one text to the user, by one of these actions.
pub(super) fn text_schema<'a>(controls: impl IntoIterator<Item = &'a Control>) -> Value {
    let text = |Control { name, argument, .. }: &Control| {
        action_schema(
            name,
            json!({
                "type": "object",
                "properties": { *argument: line_schema(SENTENCE_CHARS_MAX) },
                "required": [argument],
                "additionalProperties": false
            }),
        )
    };
    array_schema(controls.into_iter().map(text).collect(), 1, 1)
}

pub(super) fn array_schema(items: Vec<Value>, min: usize, max: usize) -> Value {
    json!({ "type": "array", "items": { "anyOf": items }, "minItems": min, "maxItems": max })
}

/// Returns the schema of one action. The name is the key: an object of name and arguments would say
/// the same in more tokens, in every example and answer.
pub(super) fn action_schema(name: &str, arguments: Value) -> Value {
    json!({
        "type": "object",
        "properties": { name: arguments },
        "required": [name],
        "additionalProperties": false
    })
}

/// Returns the tool's schema with each reference as a choice of names, and with bounded strings.
/// `None` if the tool needs a reference and there is no entity to name: an empty choice cannot be
/// satisfied.
fn arguments_schema(
    tool: &ToolDefinition,
    entities: &Entities<'_>,
    chars_max: usize,
    guard: &Guard<'_>,
) -> Option<Value> {
    if let Some(quote) = guard.quote_for(tool) {
        return Some(quote.schema());
    }
    let mut schema = bounded(&tool.parameters, chars_max);
    let fields = schema.as_object_mut()?;
    // A weak model invents arguments where it may.
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    let properties = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()?;
    for reference in &tool.references {
        let names = entities.names(&reference.kind, |entity| guard.offers_entity(tool, entity));
        if !names.is_empty() {
            properties.insert(
                reference.argument.clone(),
                json!({ "type": "string", "enum": names }),
            );
        } else if tool.required().any(|name| name == reference.argument) {
            return None;
        } else {
            properties.shift_remove(&reference.argument);
        }
    }
    Some(schema)
}

/// Returns a schema without its descriptions, and with a bound for every free string.
pub(super) fn bounded(schema: &Value, chars_max: usize) -> Value {
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
                return line_schema(own.map_or(chars_max, |own| own.min(chars_max)));
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

/// Returns the schema of one line of text. Quotation marks, braces and brackets are excluded: a
/// weak model hides the end of the JSON inside of strings.
pub(super) fn line_schema(chars_max: usize) -> Value {
    const LINE: &str = r#"[^"\\{}\[\]\x00-\x1f\x7f]"#;
    const WORD: &str = r#"[^"\\{}\[\]\x00-\x20\x7f]"#;
    json!({ "type": "string", "pattern": format!("^{WORD}{LINE}{{0,{}}}$", chars_max.max(1) - 1) })
}
