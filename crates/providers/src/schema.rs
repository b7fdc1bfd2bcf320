//! Conversions of JSON Schema that the vendors' dialects share. Pure.

use serde_json::{Map, Value, json};

/// A schema that is an object, by its keywords.
pub(crate) type Schema = Map<String, Value>;

/// Returns a reference in which `definitions`, the name in older drafts, is `$defs`.
pub(crate) fn modern_reference(target: &str) -> Value {
    json!(target.replacen("#/definitions/", "#/$defs/", 1))
}

/// Returns the present name of a keyword of older drafts, and `anyOf` for `oneOf`: they are
/// equivalent if the choices exclude each other, as they mostly do.
pub(crate) fn modern_keyword(keyword: &str) -> &str {
    match keyword {
        "definitions" => "$defs",
        "oneOf" => "anyOf",
        keyword => keyword,
    }
}

/// Returns true if a value is one of these texts.
pub(crate) fn is_one_of(value: &Value, texts: &[&str]) -> bool {
    value.as_str().is_some_and(|text| texts.contains(&text))
}

/// Converts every schema of an object of schemas, such as `properties`.
pub(crate) fn convert_members(schemas: &Value, mut convert: impl FnMut(&Value) -> Value) -> Value {
    let members = schemas.as_object().into_iter().flatten();
    let converted = members.map(|(name, schema)| (name.clone(), convert(schema)));
    Value::Object(converted.collect())
}

/// Converts every schema of a list of schemas, such as `anyOf`.
pub(crate) fn convert_list(schemas: &Value, convert: impl FnMut(&Value) -> Value) -> Value {
    let schemas = schemas.as_array().into_iter().flatten();
    schemas.map(convert).collect()
}

/// Adds a keyword to a schema that may have it. Properties and `required` are united; another value
/// that is there stays. Returns false if that loses something.
pub(crate) fn unite(schema: &mut Schema, keyword: String, value: Value) -> bool {
    match (schema.get_mut(&keyword), value) {
        (None, value) => {
            schema.insert(keyword, value);
        }
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (name, schema) in more {
                known.entry(name).or_insert(schema);
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
            for name in more {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        (Some(known), value) => return *known == value,
    }
    true
}
