//! JSON Schema of the configuration file, made from the list of settings: editors use it to
//! complete and check.

use serde_json::{Map, Value, json};

use super::key::Key;
use super::mcp::SERVER_KEYS;
use super::toml_file::MCP_SECTION;
use super::value::{FOREVER, Kind};
use super::{KEYS, OLD_VAULT_SECTION};

/// Pattern of a length of time with its unit.
const TIME: &str = "^[0-9]+ *(ms|s|m|min|h|d)$";

/// Returns the schema, by JSON Schema draft 2020-12.
pub(crate) fn schema() -> Value {
    let mut top = Map::new();
    let mut sections: Map<String, Value> = Map::new();
    let mut add = |section: &str, name: &str, schema: Value| match section {
        "" => {
            top.insert(name.to_owned(), schema);
        }
        _ => {
            let empty =
                || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let section = sections.entry(section).or_insert_with(empty);
            section["properties"][name] = schema;
        }
    };
    for key in KEYS.iter() {
        let (section, name) = key.section_and_name();
        add(section, name, key_schema(key));
        let Some(alias) = key.alias else { continue };
        let older = if section == "vault" {
            OLD_VAULT_SECTION
        } else {
            section
        };
        for section in ["", section, older] {
            add(
                section,
                alias,
                described(key, format!("Another name of {}.", key.name)),
            );
        }
    }
    top.extend(sections);
    top.insert(
        MCP_SECTION.to_owned(),
        json!({
            "type": "object",
            "description": "MCP servers: other people's tools.",
            "properties": { "servers": { "type": "object", "additionalProperties": server_schema() } },
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

fn key_schema(key: &Key) -> Value {
    let expected = capitalized(&key.kind.expected());
    let variables = key.variables().join(", ");
    described(
        key,
        format!("{} {expected}. Variable: {variables}.", key.description),
    )
}

fn described(key: &Key, description: String) -> Value {
    let mut schema = kind_schema(key.kind);
    schema["description"] = description.into();
    schema
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

fn kind_schema(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Secret => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Path | Kind::Database => json!({ "type": "string", "minLength": 1 }),
        Kind::Address => json!({ "type": "string", "pattern": "^.+:[0-9]+$" }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Duration { .. } => json!({ "type": "string", "pattern": TIME }),
        Kind::DurationOrForever => {
            json!({ "type": "string", "pattern": format!("{TIME}|^{FOREVER}$") })
        }
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Paths => json!({
            "type": "object", "additionalProperties": { "type": "string", "minLength": 1 },
        }),
        Kind::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::OneOf(names) => json!({ "enum": names }),
    }
}

fn server_schema() -> Value {
    let mut properties: Map<String, Value> = SERVER_KEYS
        .iter()
        .map(|key| (key.name.clone(), kind_schema(key.kind)))
        .collect();
    properties["command"]["minItems"] = json!(1);
    let program = json!({ "type": "string", "minLength": 1 });
    properties["command"] = json!({ "anyOf": [properties["command"], program] });
    let transports = [
        "stdio",
        "http",
        "streamable-http",
        "streamable_http",
        "streamableHttp",
    ];
    properties["type"] = json!({ "enum": transports });
    json!({
        "type": "object",
        "properties": properties,
        "oneOf": [{ "required": ["command"] }, { "required": ["url"] }],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::toml_file::{self, Owner};
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
            toml_file::parse(text, "/c".as_ref(), Owner::User).unwrap();
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
            toml_file::parse(text, "/c".as_ref(), Owner::User).unwrap_err();
        }
        assert!(!accepts(
            "[mcp.servers.x]\nurl = \"http://x\"\ncommand = [\"x\"]\n"
        ));
    }

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
        toml_file::parse(example, "/c".as_ref(), Owner::User).unwrap();
    }
}
