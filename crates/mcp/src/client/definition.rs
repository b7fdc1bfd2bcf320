//! Conversion of a server's tool definition into ours, or the reason for rejecting it.

use std::borrow::Cow;

use adjutant_core::{Annotations, Schema, ToolDefinition};
use rmcp::model::Tool;
use serde_json::{Map, Value};

use super::config::{Injected, ToolRules, is_listed};
use super::server_message::needs_task;
use super::{LeftOut, ServerName};

/// Most characters of a description.
const DESCRIPTION_MAX: usize = 1_000;
/// Most bytes of a tool's JSON Schema, which is part of every request to the model.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// The mark at the end of a description that was cut.
const CUT: &str = " … (cut)";

/// A tool that was accepted.
#[derive(Debug, Clone)]
pub(super) struct AcceptedTool {
    /// The server's name for the tool.
    pub(super) original: String,
    /// The server's title, for people.
    pub(super) title: Option<String>,
    /// The definition for the model, under our name.
    pub(super) definition: ToolDefinition,
    /// The values to inject, and their arguments.
    pub(super) inject: Vec<(Injected, String)>,
}

/// Checks a tool against the rules, and converts its definition.
///
/// # Errors
/// The reason for which the tool is not registered.
pub(super) fn accept_tool(
    server: &ServerName,
    name: &str,
    tool: &Tool,
    rules: &ToolRules,
) -> Result<AcceptedTool, LeftOut> {
    let original = tool.name.to_string();
    let left_out = |reason: String, by_rule| LeftOut {
        original: original.clone(),
        reason,
        by_rule,
    };
    if is_listed(&rules.deny, &original) {
        return Err(left_out("denied by the configuration".to_owned(), true));
    }
    if rules
        .allow
        .as_ref()
        .is_some_and(|allow| !is_listed(allow, &original))
    {
        return Err(left_out(
            "not in `allow` of the configuration".to_owned(),
            true,
        ));
    }
    if needs_task(tool) {
        let reason = "it runs only as a task of the protocol, which is not supported here";
        return Err(left_out(reason.to_owned(), false));
    }
    let title = title(tool);
    let (parameters, inject) = parameters(tool, rules).map_err(|reason| left_out(reason, false))?;
    let mut annotations = annotations(tool, rules);
    annotations.keyed = inject
        .iter()
        .any(|(what, _)| *what == Injected::IdempotencyKey);
    let description = description(server, tool, title.as_deref());
    let definition = ToolDefinition::new(name, &description, parameters)
        .map_err(|error| left_out(error.to_string(), false))?
        .annotated(annotations);
    Ok(AcceptedTool {
        original,
        title,
        definition,
        inject,
    })
}

/// Returns the tool's title as one line.
fn title(tool: &Tool) -> Option<String> {
    let annotated = tool
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.title.clone());
    let title = one_line(&tool.title.clone().or(annotated)?);
    let title: String = title.chars().take(100).collect();
    (!title.is_empty()).then_some(title)
}

/// Replaces line breaks and other control characters by spaces.
pub(super) fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Returns the server's description, or a default: the model chooses tools by it.
fn description(server: &ServerName, tool: &Tool, title: Option<&str>) -> String {
    let own = tool
        .description
        .as_deref()
        .map(str::trim)
        .filter(|words| !words.is_empty());
    let words: Cow<'_, str> = match (own, title) {
        (Some(own), _) => Cow::Borrowed(own),
        (None, Some(title)) => Cow::Borrowed(title),
        (None, None) => Cow::Owned(format!(
            "{} of the MCP server {server}, which does not describe it",
            one_line(&tool.name)
        )),
    };
    if words.chars().count() <= DESCRIPTION_MAX {
        return words.into_owned();
    }
    words
        .chars()
        .take(DESCRIPTION_MAX - CUT.chars().count())
        .chain(CUT.chars())
        .collect()
}

/// Derives the annotations. Without hints MCP assumes the worst case: the tool changes data, and
/// may be destructive.
fn annotations(tool: &Tool, rules: &ToolRules) -> Annotations {
    let hints = tool.annotations.clone().unwrap_or_default();
    let destructive = is_listed(&rules.destructive, &tool.name);
    // The operator's rules go before the server's hints.
    let is_trusted = is_listed(&rules.read_only, &tool.name);
    let read_only = !destructive && (is_trusted || hints.read_only_hint.unwrap_or(false));
    // A person who lets undescribed reads of a server run means this server, and not any
    // address that a call names. Otherwise the protocol assumes that a tool reaches out.
    let reaches_out = hints
        .open_world_hint
        .unwrap_or_else(|| !is_trusted || takes_address(tool));
    // If the server's hint about destruction is overruled, its hint about repeats is not trusted
    // either.
    let idempotent =
        is_listed(&rules.idempotent, &tool.name) || (hints.is_idempotent() && !destructive);
    Annotations {
        read_only,
        destructive: !read_only && (destructive || hints.is_destructive()),
        idempotent: !read_only && idempotent,
        closed_world: read_only && !reaches_out,
        ..Annotations::default()
    }
}

/// Returns true if a tool's schema says that an argument is an address.
fn takes_address(tool: &Tool) -> bool {
    let properties = tool
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    let is_address = |(name, schema): (&String, &Value)| {
        let name = name.to_lowercase();
        let format = schema.get("format").and_then(Value::as_str);
        ["url", "uri", "urls", "uris"]
            .iter()
            .any(|end| name.ends_with(end))
            || matches!(format, Some("uri" | "url" | "uri-reference"))
    };
    properties.is_some_and(|properties| properties.iter().any(is_address))
}

/// Returns the JSON Schema for the model, and the values to inject.
fn parameters(tool: &Tool, rules: &ToolRules) -> Result<(Value, Vec<(Injected, String)>), String> {
    let mut schema: Map<String, Value> = tool.input_schema.as_ref().clone();
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        // Many servers describe a tool without arguments as `{}`.
        None => {
            schema.insert("type".to_owned(), Value::String("object".to_owned()));
        }
        Some(other) => return Err(format!("its arguments are of type {other}, not an object")),
    }
    // PHP writes an empty object as an empty list.
    if let Some(properties @ Value::Array(_)) = schema.get_mut("properties")
        && properties.as_array().is_some_and(Vec::is_empty)
    {
        *properties = Value::Object(Map::new());
    }
    let inject: Vec<(Injected, String)> = rules
        .inject
        .iter()
        .filter(|(_, argument)| mentions(&schema, argument))
        .map(|(what, argument)| (*what, argument.clone()))
        .collect();
    for (_, argument) in &inject {
        strip(&mut schema, argument);
        // An argument that cannot be hidden must not be left to the model either.
        if mentions(&schema, argument) {
            return Err(format!(
                "`inject` cannot take {argument:?} away from its JSON Schema, which names it in more than one place"
            ));
        }
    }
    let schema = Value::Object(schema);
    let size = schema.to_string().len();
    if size > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its JSON Schema has {size} bytes, more than {SCHEMA_BYTES_MAX}"
        ));
    }
    // Compiled already here, so that a schema that cannot be used is reported at the start and not
    // by the first call.
    Schema::compile(&schema).map_err(|error| format!("its JSON Schema cannot be used: {error}"))?;
    Ok((schema, inject))
}

/// Returns true if the schema describes a property of that name anywhere.
fn mentions(schema: &Map<String, Value>, argument: &str) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.contains_key(argument))
        || schema.values().any(|value| value_mentions(value, argument))
}

fn value_mentions(value: &Value, argument: &str) -> bool {
    match value {
        Value::Object(map) => mentions(map, argument),
        Value::Array(values) => values.iter().any(|value| value_mentions(value, argument)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Removes a property of the top level.
fn strip(schema: &mut Map<String, Value>, argument: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove(argument);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str() != Some(argument));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepted(tool: Value, rules: &ToolRules) -> Result<AcceptedTool, LeftOut> {
        let tool: Tool = serde_json::from_value(tool).unwrap();
        accept_tool(&ServerName::new("s").unwrap(), "s__t", &tool, rules)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn nature(hints: Value, rules: &ToolRules) -> Annotations {
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": hints});
        accepted(tool, rules).unwrap().definition.annotations
    }

    #[track_caller]
    fn left_out(schema: Value, reason: &str) {
        let error = accepted(
            json!({"name": "t", "inputSchema": schema}),
            &ToolRules::default(),
        )
        .unwrap_err();
        assert!(error.reason.contains(reason), "{}", error.reason);
        assert!(!error.by_rule);
    }

    #[test]
    fn a_tool_without_hints_may_destroy() {
        let careful = Annotations {
            destructive: true,
            ..Annotations::default()
        };
        let rules = ToolRules::default();
        assert_eq!(nature(json!({}), &rules), careful);
        let tool = json!({"name": "t", "inputSchema": {}});
        assert_eq!(
            accepted(tool, &rules).unwrap().definition.annotations,
            careful
        );
        let reads = nature(
            json!({"readOnlyHint": true, "destructiveHint": true}),
            &rules,
        );
        assert_eq!(
            reads,
            Annotations {
                read_only: true,
                ..Annotations::default()
            }
        );
        let adds = nature(
            json!({"destructiveHint": false, "idempotentHint": true}),
            &rules,
        );
        assert_eq!(
            adds,
            Annotations {
                idempotent: true,
                ..Annotations::default()
            }
        );
    }

    #[test]
    fn a_server_that_lies_is_overruled() {
        let rules = ToolRules {
            destructive: names(&["t"]),
            read_only: names(&["*"]),
            ..ToolRules::default()
        };
        let lie = json!({"readOnlyHint": true, "idempotentHint": true});
        assert_eq!(
            nature(lie, &rules),
            Annotations {
                destructive: true,
                ..Annotations::default()
            }
        );
        let rules = ToolRules {
            read_only: names(&["t"]),
            ..ToolRules::default()
        };
        let trusted = nature(json!({}), &rules);
        assert!(trusted.read_only && trusted.closed_world);
        let tool = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"pageUrl": {"type": "string"}}}});
        let fetches = accepted(tool, &rules).unwrap().definition.annotations;
        assert!(fetches.read_only && !fetches.closed_world);
        let mailbox = json!({"readOnlyHint": true, "openWorldHint": false});
        assert!(nature(mailbox, &ToolRules::default()).closed_world);
        let rules = ToolRules {
            idempotent: names(&["t"]),
            ..ToolRules::default()
        };
        let both = Annotations {
            destructive: true,
            idempotent: true,
            ..Annotations::default()
        };
        assert_eq!(nature(json!({}), &rules), both);
    }

    #[test]
    fn what_is_not_allowed_does_not_join() {
        let tool = json!({"name": "t", "inputSchema": {}});
        let rules = ToolRules {
            allow: Some(names(&["other"])),
            ..ToolRules::default()
        };
        assert!(accepted(tool.clone(), &rules).unwrap_err().by_rule);
        let rules = ToolRules {
            allow: Some(names(&["t"])),
            deny: names(&["t"]),
            ..ToolRules::default()
        };
        assert!(accepted(tool.clone(), &rules).unwrap_err().by_rule);
        let rules = ToolRules {
            allow: Some(names(&["*"])),
            ..ToolRules::default()
        };
        assert!(accepted(tool, &rules).is_ok());
    }

    #[test]
    fn schemas_that_cannot_be_checked_are_named() {
        left_out(
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}),
            "not fetched",
        );
        left_out(
            json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}),
            "cannot be used",
        );
        left_out(json!({"type": "array"}), "not an object");
        left_out(
            json!({"type": "object", "description": "x".repeat(70_000)}),
            "bytes",
        );
    }

    #[test]
    fn an_empty_list_of_properties_is_an_empty_object() {
        let schema = json!({"type": "object", "properties": []});
        let tool = accepted(
            json!({"name": "t", "inputSchema": schema}),
            &ToolRules::default(),
        );
        assert_eq!(
            tool.unwrap().definition.parameters,
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn the_draft_is_the_one_that_the_server_names() {
        let draft7 = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}}
        });
        let tool = json!({"name": "t", "inputSchema": draft7});
        assert_eq!(
            accepted(tool, &ToolRules::default())
                .unwrap()
                .definition
                .parameters,
            draft7
        );
    }

    #[test]
    fn descriptions_are_cut_visibly_and_never_empty() {
        let long = json!({"name": "t", "description": "ä".repeat(2_000), "inputSchema": {}});
        let description = accepted(long, &ToolRules::default())
            .unwrap()
            .definition
            .description;
        assert_eq!(description.chars().count(), 1_000);
        assert!(description.ends_with(" … (cut)"));
        let none = json!({"name": "t", "description": "  ", "inputSchema": {}});
        let description = accepted(none, &ToolRules::default())
            .unwrap()
            .definition
            .description;
        assert_eq!(
            description,
            "t of the MCP server s, which does not describe it"
        );
    }

    #[test]
    fn an_injected_argument_is_not_the_models() {
        let rules = ToolRules {
            inject: [
                (Injected::UserId, "who".to_owned()),
                (Injected::IdempotencyKey, "key".to_owned()),
            ]
            .into(),
            ..ToolRules::default()
        };
        let properties = json!({"who": {"type": "string"}, "what": {"type": "string"}});
        let schema =
            json!({"type": "object", "properties": properties, "required": ["who", "what"]});
        let joins = accepted(json!({"name": "t", "inputSchema": schema}), &rules).unwrap();
        assert_eq!(
            joins.definition.parameters,
            json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]})
        );
        assert_eq!(joins.inject, [(Injected::UserId, "who".to_owned())]);
        assert!(!joins.definition.annotations.keyed);
        let keyed = json!({"type": "object", "properties": {"key": {"type": "string"}}});
        assert!(
            accepted(json!({"name": "t", "inputSchema": keyed}), &rules)
                .unwrap()
                .definition
                .annotations
                .keyed
        );
        let hidden =
            json!({"type": "object", "anyOf": [{"properties": {"who": {"type": "string"}}}]});
        let error = accepted(json!({"name": "t", "inputSchema": hidden}), &rules).unwrap_err();
        assert!(
            error.reason.contains("more than one place"),
            "{}",
            error.reason
        );
    }
}
