//! JSON Schema of the configuration file, made from the table of settings: editors complete and
//! check with it.

use serde_json::{Map, Value, json};

use super::key::{FOREVER, KEYS, Key, Kind};
use super::{mcp, memory};

/// A time as files have it.
const TIME: &str = "^[0-9]+ *(ms|s|m|min|h|d)$";

/// The schema, draft 2020-12.
pub(crate) fn schema() -> Value {
    let mut top = Map::new();
    let mut sections: Map<String, Value> = Map::new();
    for key in KEYS.iter() {
        let (section, name) = key.place();
        let of_key = of_key(key);
        let alias = key.alias.map(|alias| (alias.to_owned(), of_alias(key)));
        if section.is_empty() {
            top.insert(name.to_owned(), of_key);
            top.extend(alias);
            continue;
        }
        let mut keys = Map::from_iter([(name.to_owned(), of_key)]);
        if let Some((alias, schema)) = alias {
            keys.insert(alias.clone(), schema.clone());
            if section == "vault" {
                put(
                    &mut sections,
                    memory::OLD_SECTION,
                    Map::from_iter([(alias.clone(), schema.clone())]),
                );
            }
            top.insert(alias, schema);
        }
        put(&mut sections, section, keys);
    }
    top.extend(sections);
    top.insert(
        mcp::SECTION.to_owned(),
        json!({
            "type": "object",
            "description": "MCP servers: other people's tools.",
            "properties": { "servers": { "type": "object", "additionalProperties": server() } },
            "additionalProperties": false,
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "config.toml of adjutant",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    })
}

fn put(sections: &mut Map<String, Value>, section: &str, keys: Map<String, Value>) {
    let entry = sections.entry(section.to_owned()).or_insert_with(
        || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    );
    if let Some(properties) = entry["properties"].as_object_mut() {
        properties.extend(keys);
    }
}

fn of_key(key: &Key) -> Value {
    let mut schema = of_kind(key.kind);
    let variables = [Some(key.own_variable()), key.variable.map(str::to_owned)];
    let variables: Vec<String> = variables.into_iter().flatten().collect();
    schema["description"] = json!(format!(
        "{}. Variable: {}.",
        capital(&key.kind.expected()),
        variables.join(", ")
    ));
    schema
}

fn of_alias(key: &Key) -> Value {
    let mut schema = of_kind(key.kind);
    schema["description"] = json!(format!("Another name of {}.", key.name));
    schema
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Secret => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Path | Kind::Database => json!({ "type": "string", "minLength": 1 }),
        Kind::Address => json!({ "type": "string", "pattern": "^.+:[0-9]+$" }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Duration { .. } => json!({ "type": "string", "pattern": TIME }),
        Kind::Keep => json!({ "type": "string", "pattern": format!("{TIME}|^{FOREVER}$") }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Paths => json!({
            "type": "object", "additionalProperties": { "type": "string", "minLength": 1 },
        }),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "enum": words }),
    }
}

/// The table of one server.
fn server() -> Value {
    let properties: Map<String, Value> = mcp::FIELDS
        .iter()
        .map(|field| ((*field).to_owned(), of_field(field)))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "oneOf": [{ "required": ["command"] }, { "required": ["url"] }],
        "additionalProperties": false,
    })
}

fn of_field(field: &str) -> Value {
    match field {
        "command" => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        "allow" | "deny" | "confirm" | "read_only" | "destructive" | "idempotent" => {
            of_kind(Kind::List)
        }
        "env" | "headers" | "inject" => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        "timeout" | "start_timeout" => json!({ "type": "string", "pattern": TIME }),
        "max_result_bytes" => json!({ "type": "integer", "minimum": 1_000 }),
        "required" | "disabled" => json!({ "type": "boolean" }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let table: toml::Table = text.parse().unwrap();
        validator.is_valid(&serde_json::to_value(table).unwrap())
    }

    #[test]
    fn it_is_a_valid_schema() {
        jsonschema::meta::validate(&schema()).unwrap();
    }

    #[test]
    fn it_takes_and_refuses_what_the_binary_takes_and_refuses() {
        for text in [
            "model = \"demo\"\nvaultPath = \"~/Notes\"\n",
            "[llm]\ntemperature = 1\ntimeout = \"30s\"\n",
            "[log]\nkeep = \"forever\"\n",
            "[obsidian]\nvaultPath = \"x\"\n[ollama]\ncontextSize = 8192\n",
            "[mcp.servers.files]\ncommand = [\"x\"]\nconfirm = [\"*\"]\nenv = { A = \"${A}\" }\n",
        ] {
            assert!(accepts(text), "{text}");
            super::super::layers::toml(text, "/c".as_ref(), super::super::layers::Owner::User)
                .unwrap();
        }
        for text in [
            "modle = \"demo\"\n",
            "[llm]\ntemperature = 3\n",
            "[llm]\ntimeout = 30\n",
            "[gemini]\napi_key = \"x\"\n",
            "[log]\ncontent = \"some\"\n",
            "[vault]\nlog_conversations = \"yes\"\n",
        ] {
            assert!(!accepts(text), "{text}");
            super::super::layers::toml(text, "/c".as_ref(), super::super::layers::Owner::User)
                .unwrap_err();
        }
        assert!(!accepts(
            "[mcp.servers.x]\nurl = \"http://x\"\ncommand = [\"x\"]\n"
        ));
    }

    /// The example in the documentation is one that works.
    #[test]
    fn the_documented_example_is_right() {
        let page = include_str!("../../../../docs/configuration.md");
        let example = page
            .split("```toml\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();
        assert!(accepts(example), "{example}");
        super::super::layers::toml(example, "/c".as_ref(), super::super::layers::Owner::User)
            .unwrap();
    }
}
