//! Declarations of tools as MCP clients see them.

use adjutant_core::{ToolDefinition, name_in_words};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::confirmation::{CONFIRMATION_ID, ConfirmationMode};

/// Declares a tool. `mode`: the way in which it is confirmed, if it is.
pub(super) fn describe(definition: &ToolDefinition, mode: Option<ConfirmationMode>) -> Tool {
    let title = title_of(definition.name.as_str());
    let mut input = object(definition.parameters.clone());
    if mode.is_some() && !has_argument(definition, CONFIRMATION_ID) {
        add_id(&mut input);
    }
    let hints = definition.annotations;
    let annotations = ToolAnnotations::with_title(title.clone())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        // What changes nothing can be repeated.
        .idempotent(hints.read_only || hints.idempotent)
        .open_world(!hints.closed_world);
    Tool::new(
        definition.name.to_string(),
        definition.description.clone(),
        input,
    )
    .with_title(title)
    .with_raw_output_schema(object(output_schema(definition.output_schema.as_ref(), mode)).into())
    .with_annotations(annotations)
}

/// Returns true if the tool has an argument of that name.
pub(super) fn has_argument(definition: &ToolDefinition, name: &str) -> bool {
    definition.parameters["properties"].get(name).is_some()
}

/// Returns a tool's name for people: "Delete task" for `delete_task`, and "Git log (git)" for
/// `git__git_log`.
fn title_of(name: &str) -> String {
    match name.split_once("__") {
        Some((server, own)) if !server.is_empty() => format!("{} ({server})", name_in_words(own)),
        _ => name_in_words(name),
    }
}

/// Adds the argument for the id of a pending call.
fn add_id(input: &mut Map<String, Value>) {
    let properties = input.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(
            CONFIRMATION_ID.to_owned(),
            json!({
                "type": "string",
                "description": "Leave it out. If the answer says confirmation_required, the person is asked elsewhere: when \
                                they have answered, send the same call again with the confirmation_id of that answer",
            }),
        );
    }
}

/// Returns the schema of every result: `{success, data?, error?, note?}`, and the members for a
/// confirmation.
fn output_schema(data: Option<&Value>, mode: Option<ConfirmationMode>) -> Value {
    let (data, definitions) = embedded(data);
    let mut properties = json!({
        "success": { "type": "boolean", "description": "Whether it was done" },
        "data": data,
        "error": { "type": "string", "description": "Why it was not done" },
        "note": { "type": "string", "description": "Which arguments were corrected, and how" },
    });
    if mode.is_some() {
        properties["status"] =
            json!({ "type": "string", "enum": ["confirmation_required", "queued", "declined"] });
        properties["message"] = json!({ "type": "string", "description": "What to do now" });
        properties[CONFIRMATION_ID] = json!({ "type": "string" });
        properties["preview"] = json!({ "type": "string", "description": "What would be touched" });
        properties["expires_at"] = json!({ "type": "string", "format": "date-time" });
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": ["success"],
        "additionalProperties": false,
    });
    for (name, definitions) in definitions {
        schema[name] = definitions;
    }
    schema
}

/// Embeds a schema into another: its definitions move to the top level, where its references point.
/// A schema that refers to itself as a whole cannot move, and becomes `{}`.
fn embedded(schema: Option<&Value>) -> (Value, Vec<(&'static str, Value)>) {
    let Some(Value::Object(schema)) = schema else {
        return (json!({}), Vec::new());
    };
    let mut schema = schema.clone();
    // It belongs to the top level of a schema only.
    schema.shift_remove("$schema");
    let definitions: Vec<_> = ["$defs", "definitions"]
        .into_iter()
        .filter_map(|name| Some((name, schema.shift_remove(name)?)))
        .collect();
    let schema = Value::Object(schema);
    // A reference to the whole schema, or into it by its path, would point elsewhere after the
    // move.
    let all_found = |value: &Value| {
        references(value).iter().all(|to| {
            definitions
                .iter()
                .any(|(name, _)| to.strip_prefix("#/").is_some_and(|to| to.starts_with(name)))
        })
    };
    if all_found(&schema) && definitions.iter().all(|(_, value)| all_found(value)) {
        (schema, definitions)
    } else {
        (json!({}), Vec::new())
    }
}

/// Returns every `$ref` in a schema.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str);
            own.into_iter()
                .chain(map.values().flat_map(references))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else {
        return Map::new();
    };
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(output: Value) -> Value {
        let definition = ToolDefinition::new("look_up", "Looks up.", json!({"type": "object"}))
            .unwrap()
            .returning(output);
        json!(describe(&definition, None))
    }

    #[test]
    fn references_of_an_output_schema_still_lead_somewhere() {
        let declared = declared(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "array",
            "items": { "$ref": "#/$defs/Hit" },
            "$defs": { "Hit": { "type": "string" } },
        }));
        let output = &declared["outputSchema"];
        assert_eq!(
            output["properties"]["data"],
            json!({"type": "array", "items": {"$ref": "#/$defs/Hit"}})
        );
        assert_eq!(output["$defs"], json!({"Hit": {"type": "string"}}));
    }

    #[test]
    fn a_schema_that_cannot_move_becomes_empty() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}});
        assert_eq!(
            declared(tree)["outputSchema"]["properties"]["data"],
            json!({})
        );
        let elsewhere = json!({"$ref": "#/properties/a", "properties": {"a": {"type": "string"}}});
        assert_eq!(
            declared(elsewhere)["outputSchema"]["properties"]["data"],
            json!({})
        );
    }

    #[test]
    fn a_tool_without_hints_may_be_open_to_the_world() {
        let declared = declared(json!({}));
        assert_eq!(declared["title"], "Look up");
        assert_eq!(title_of("git__git_log"), "Git log (git)");
        assert_eq!(
            declared["annotations"],
            json!({"title": "Look up", "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false,
                   "openWorldHint": true})
        );
    }
}
