//! JSON Schema of a Rust type in the form for models: self-contained, closed objects, standard
//! formats only.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Returns the JSON Schema of `T` (draft 2020-12) in the form for models. Objects allow no
/// properties beyond those listed, unless the type says otherwise.
///
/// # Examples
///
/// ```
/// use adjutant_core::schema_of;
/// use schemars::JsonSchema;
///
/// #[derive(JsonSchema)]
/// struct Weather {
///     /// City and country.
///     place: String,
/// }
///
/// let schema = schema_of::<Weather>();
/// assert_eq!(schema["properties"]["place"]["description"], "City and country.");
/// assert_eq!(schema["additionalProperties"], false);
/// ```
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .with(|settings| {
            // The schema is shown to models as it is, so it has to be self-contained.
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(map) = schema.as_object_mut() {
        // The name of a Rust type tells a model nothing.
        map.shift_remove("title");
    }
    tidy(&mut schema, false);
    refer_to_definitions(&mut schema);
    schema
}

/// Replaces copies of definitions by references to them: a type that holds itself is defined, and
/// inlined in addition where it is used first. The root stays as it is, because providers expect an
/// object there.
fn refer_to_definitions(schema: &mut Value) {
    let Some(Value::Object(definitions)) = schema.get("$defs").cloned() else {
        return;
    };
    let Some(root) = schema.as_object_mut() else {
        return;
    };
    for (keyword, value) in root {
        if keyword == "$defs" {
            // A definition is no copy of itself.
            value
                .as_object_mut()
                .into_iter()
                .flatten()
                .for_each(|(_, definition)| refer_inside(definition, &definitions));
        } else {
            refer_to(value, &definitions);
        }
    }
}

fn refer_to(schema: &mut Value, definitions: &Map<String, Value>) {
    let same = definitions
        .iter()
        .find_map(|(name, definition)| Some((name, own_words(schema, definition)?)));
    match same {
        Some((name, mut words)) => {
            words.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
            *schema = Value::Object(words);
        }
        None => refer_inside(schema, definitions),
    }
}

fn refer_inside(schema: &mut Value, definitions: &Map<String, Value>) {
    match schema {
        Value::Object(map) => map
            .iter_mut()
            // Data may look like a schema.
            .filter(|(keyword, _)| {
                !matches!(keyword.as_str(), "default" | "const" | "enum" | "examples")
            })
            .for_each(|(_, value)| refer_to(value, definitions)),
        Value::Array(all) => all
            .iter_mut()
            .for_each(|value| refer_to(value, definitions)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the description that a copy of a definition has of its own. `None`: it is no copy.
fn own_words(schema: &Value, definition: &Value) -> Option<Map<String, Value>> {
    const WORDS: &str = "description";
    let (mut copy, mut original) = (schema.as_object()?.clone(), definition.as_object()?.clone());
    let (words, known) = (copy.shift_remove(WORDS), original.shift_remove(WORDS));
    (copy == original).then(|| {
        words
            .filter(|words| Some(words) != known.as_ref())
            .map(|words| (WORDS.to_owned(), words))
            .into_iter()
            .collect()
    })
}

/// Simplifies a schema for models. `part`: it describes a part of an object that another schema
/// describes too (a flattened field), so it cannot close the object.
fn tidy(schema: &mut Value, part: bool) {
    // Keywords whose value is a schema, a list of schemas, or a map of schemas. Source: JSON Schema
    // 2020-12, chapters "Applicator" and "Unevaluated". Everything else (`const`, `default`,
    // `enum`, `examples`) is data.
    const ONE: &[&str] = &[
        "items",
        "contains",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
    ];
    const HERE: &[&str] = &["allOf", "anyOf", "oneOf"];
    const NAMED: &[&str] = &["properties", "patternProperties", "$defs"];

    let Some(map) = schema.as_object_mut() else {
        return;
    };
    name_address_formats(map);
    drop_foreign_format(map);
    let composed = HERE
        .iter()
        .chain(&["$ref"])
        .any(|keyword| map.contains_key(*keyword));
    // Two schemas for one object cannot both be closed: each would reject the properties of the
    // other.
    let part_below = part || map.contains_key("properties");
    let says_otherwise = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|word| map.contains_key(*word));
    if is_object(map) && !part && !composed && !says_otherwise {
        map.entry("properties").or_insert_with(|| json!({}));
        map.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for (keyword, value) in map {
        if ONE.contains(&keyword.as_str()) {
            tidy(value, false);
        } else if let Value::Array(schemas) = value {
            // Those of `prefixItems` are whole values, the others may be parts of this object.
            let is_here = HERE.contains(&keyword.as_str());
            if is_here || keyword == "prefixItems" {
                schemas
                    .iter_mut()
                    .for_each(|schema| tidy(schema, is_here && part_below));
            }
        } else if NAMED.contains(&keyword.as_str()) {
            value
                .as_object_mut()
                .into_iter()
                .flatten()
                .for_each(|(_, schema)| tidy(schema, false));
        }
    }
}

fn is_object(map: &Map<String, Value>) -> bool {
    match map.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
        None => false,
    }
}

/// Replaces the format `ip`, which `schemars` writes for an address of either kind, by the two
/// standard ones.
fn name_address_formats(map: &mut Map<String, Value>) {
    if map.get("format").and_then(Value::as_str) != Some("ip") || map.contains_key("anyOf") {
        return;
    }
    map.shift_remove("format");
    let types = match map.shift_remove("type") {
        Some(Value::Array(types)) => types,
        one => one.into_iter().collect(),
    };
    let kinds = types.into_iter().flat_map(|kind| {
        if kind == "string" {
            ["ipv4", "ipv6"]
                .map(|format| json!({ "type": "string", "format": format }))
                .to_vec()
        } else {
            vec![json!({ "type": kind })]
        }
    });
    map.insert("anyOf".to_owned(), kinds.collect());
}

/// Removes formats such as `uint32`, which `schemars` writes for Rust's number types, and which few
/// validators and providers know.
fn drop_foreign_format(map: &mut Map<String, Value>) {
    // Source: JSON Schema Validation 2020-12, 7.3.
    const STANDARD: &[&str] = &[
        "date-time",
        "date",
        "time",
        "duration",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "iri",
        "iri-reference",
        "uuid",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
        "regex",
    ];
    if map
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !STANDARD.contains(&format))
    {
        map.shift_remove("format");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "an `expect!` is written in place"
    )]
    fn check<T: JsonSchema>(expected: Expect) {
        expected.assert_eq(&schema_of::<T>().to_string());
    }

    #[test]
    fn nested_objects_are_inlined_and_closed() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            /// Number of nested items.
            count: u32,
            inner: Vec<Inner>,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Inner {
            name: Option<String>,
        }
        check::<Args>(expect![[
            r#"{"type":"object","properties":{"count":{"type":"integer","minimum":0,"description":"Number of nested items."},"inner":{"type":"array","items":{"type":"object","properties":{"name":{"type":["string","null"]}},"additionalProperties":false}}},"required":["count","inner"],"additionalProperties":false}"#
        ]]);
    }

    #[test]
    fn maps_and_free_values_stay_open() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            labels: BTreeMap<String, String>,
            anything: Value,
            free: Map<String, Value>,
        }
        check::<Args>(expect![[
            r#"{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}},"anything":true,"free":{"type":"object","additionalProperties":true}},"required":["labels","anything","free"],"additionalProperties":false}"#
        ]]);
    }

    #[test]
    fn no_fields_is_an_empty_closed_object() {
        #[derive(JsonSchema)]
        struct Args {}
        check::<Args>(expect![[
            r#"{"type":"object","properties":{},"additionalProperties":false}"#
        ]]);
    }

    #[test]
    fn parts_of_an_object_are_not_closed_each() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            id: u8,
            #[schemars(flatten)]
            how: How,
        }
        #[derive(JsonSchema)]
        #[serde(tag = "how", rename_all = "snake_case")]
        #[expect(dead_code, reason = "only its schema is looked at")]
        enum How {
            Mail { to: String },
            Post,
        }
        check::<Args>(expect![[
            r#"{"type":"object","properties":{"id":{"type":"integer","minimum":0,"maximum":255}},"required":["id"],"oneOf":[{"type":"object","properties":{"how":{"type":"string","const":"mail"},"to":{"type":"string"}},"required":["how","to"]},{"type":"object","properties":{"how":{"type":"string","const":"post"}},"required":["how"]}]}"#
        ]]);
        check::<How>(expect![[
            r#"{"oneOf":[{"type":"object","properties":{"how":{"type":"string","const":"mail"},"to":{"type":"string"}},"required":["how","to"],"additionalProperties":false},{"type":"object","properties":{"how":{"type":"string","const":"post"}},"required":["how"],"additionalProperties":false}]}"#
        ]]);
    }

    #[test]
    fn a_type_that_holds_itself() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            tree: Node,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Node {
            size: u16,
            children: Vec<Node>,
        }
        check::<Args>(expect![[
            r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/Node"}},"required":["tree"],"$defs":{"Node":{"type":"object","properties":{"size":{"type":"integer","minimum":0,"maximum":65535},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["size","children"],"additionalProperties":false}},"additionalProperties":false}"##
        ]]);
    }

    #[test]
    fn addresses_keep_their_formats() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            four: std::net::Ipv4Addr,
            any: std::net::IpAddr,
            perhaps: Option<std::net::IpAddr>,
        }
        check::<Args>(expect![[
            r#"{"type":"object","properties":{"four":{"type":"string","format":"ipv4"},"any":{"anyOf":[{"type":"string","format":"ipv4"},{"type":"string","format":"ipv6"}]},"perhaps":{"anyOf":[{"type":"string","format":"ipv4"},{"type":"string","format":"ipv6"},{"type":"null"}]}},"required":["four","any"],"additionalProperties":false}"#
        ]]);
    }

    #[test]
    fn data_is_left_alone() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Args {
            #[schemars(extend("default" = { "type": "object", "format": "uint8" }))]
            text: String,
        }
        check::<Args>(expect![[
            r#"{"type":"object","properties":{"text":{"type":"string","default":{"type":"object","format":"uint8"}}},"required":["text"],"additionalProperties":false}"#
        ]]);
    }
}
