//! JSON Schema in the subset that Gemini takes. Pure; arguments are always checked against the
//! original schema.
//!
//! Source: the vendor's reference of `responseJsonSchema` / `parametersJsonSchema`, which lists the
//! keywords it knows (checked 2026-11-21): `$id $defs $ref $anchor type format title description
//! enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties
//! additionalProperties required propertyOrdering`, `enum` for strings and numbers only, and
//! nothing but `$`-keywords beside a `$ref`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{convert_list, convert_members, is_one_of, modern_reference, unite};

/// Formats the vendor documents.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "int32",
    "int64",
    "float",
    "double",
];

/// Converts a schema to Gemini's dialect. Dropped keywords that constrain values are added to
/// `dropped`.
pub(super) fn lower(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    match schema {
        Value::Object(schema) => Value::Object(lower_object(schema, dropped)),
        // `true` allows everything, and `false` cannot be expressed.
        _ => json!({}),
    }
}

fn lower_object(schema: &Map<String, Value>, dropped: &mut BTreeSet<String>) -> Map<String, Value> {
    let mut out = Map::new();
    let beside_ref = schema.contains_key("$ref");
    for (keyword, value) in schema {
        let name = keyword.as_str();
        let converted = match name {
            "$ref" => Some((name, modern_reference(value.as_str().unwrap_or_default()))),
            "$defs" | "definitions" => {
                let schemas = convert_members(value, |schema| lower(schema, dropped));
                Some(("$defs", schemas))
            }
            "$id" | "$anchor" => Some((name, value.clone())),
            // Annotations, which constrain nothing.
            "$schema" | "$comment" | "default" | "examples" | "deprecated" | "readOnly"
            | "writeOnly" => continue,
            // The vendor takes nothing else beside a reference.
            _ if beside_ref => continue,
            // United with the rest below, whatever its place.
            "allOf" => continue,
            "title" | "description" | "type" | "required" | "minItems" | "maxItems" | "minimum"
            | "maximum" | "propertyOrdering" => Some((name, value.clone())),
            "properties" => {
                let schemas = convert_members(value, |schema| lower(schema, dropped));
                Some((name, schemas))
            }
            "additionalProperties" if value.is_boolean() => Some((name, value.clone())),
            "additionalProperties" => Some((name, lower(value, dropped))),
            "items" if value.is_object() => Some((name, lower(value, dropped))),
            "prefixItems" | "anyOf" | "oneOf" => {
                Some((name, convert_list(value, |member| lower(member, dropped))))
            }
            "const" => choices(std::slice::from_ref(value)),
            "enum" => choices(value.as_array().map_or(&[], Vec::as_slice)),
            "exclusiveMinimum" => inclusive("minimum", value, 1, schema),
            "exclusiveMaximum" => inclusive("maximum", value, -1, schema),
            "format" if is_one_of(value, FORMATS) => Some((name, value.clone())),
            _ => None,
        };
        match converted {
            Some((name, value)) => {
                out.insert(name.to_owned(), value);
            }
            None => {
                dropped.insert(keyword.clone());
            }
        }
    }
    let all_of = schema
        .get("allOf")
        .filter(|_| !beside_ref)
        .and_then(Value::as_array);
    for member in all_of.into_iter().flatten().filter_map(Value::as_object) {
        for (keyword, value) in lower_object(member, dropped) {
            unite(&mut out, keyword, value);
        }
    }
    out
}

/// Returns `enum`, which takes strings and numbers only; `null` is left to the type.
fn choices(values: &[Value]) -> Option<(&'static str, Value)> {
    let values = values.iter().filter(|value| !value.is_null());
    let values: Vec<Value> = values.cloned().collect();
    let is_taken = |value: &Value| value.is_string() || value.is_number();
    let taken = !values.is_empty() && values.iter().all(is_taken);
    taken.then_some(("enum", Value::Array(values)))
}

/// Returns the inclusive form of an exclusive bound, which only integers have.
fn inclusive<'a>(
    name: &'a str,
    bound: &Value,
    step: i64,
    schema: &Map<String, Value>,
) -> Option<(&'a str, Value)> {
    let is_integer = schema.get("type").is_some_and(|kind| kind == "integer");
    let bound = bound.as_i64().filter(|_| is_integer)?;
    Some((name, json!(bound.saturating_add(step))))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(schema: Value, expected: Expect) {
        let mut dropped = BTreeSet::new();
        let lowered = lower(&schema, &mut dropped);
        expected.assert_eq(&format!("{lowered}\nwithout {dropped:?}"));
    }

    #[test]
    fn what_schemars_makes_of_a_struct() {
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Args",
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "format": "uint32", "minimum": 0},
                    "when": {"type": ["string", "null"], "format": "date-time", "default": null},
                    "kind": {"$ref": "#/$defs/Kind", "description": "lost beside a $ref"},
                },
                "required": ["count"],
                "additionalProperties": false,
                "$defs": {"Kind": {"oneOf": [{"const": "a", "description": "A."}, {"type": "string", "enum": ["b", null]}]}},
            }),
            expect![[r##"
                {"title":"Args","type":"object","properties":{"count":{"type":"integer","minimum":0},"when":{"type":["string","null"],"format":"date-time"},"kind":{"$ref":"#/$defs/Kind"}},"required":["count"],"additionalProperties":false,"$defs":{"Kind":{"oneOf":[{"enum":["a"],"description":"A."},{"type":"string","enum":["b"]}]}}}
                without {"format"}"##]],
        );
    }

    #[test]
    fn what_a_foreign_tool_may_bring() {
        check(
            json!({
                "type": "object",
                "allOf": [
                    {"properties": {"a": {"type": "string", "pattern": "^x", "minLength": 1}}, "required": ["a"]},
                    {"properties": {"b": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}}, "required": ["a", "b"]},
                ],
                "properties": {
                    "c": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0.5}, "uniqueItems": true},
                    "d": true,
                    "e": {"const": true, "type": "boolean"},
                    "f": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
                    "g": {"$ref": "#/definitions/G"},
                },
                "definitions": {"G": {"type": "array", "prefixItems": [{"type": "string"}], "items": false, "maxItems": 1}},
            }),
            expect![[r##"
                {"type":"object","properties":{"c":{"type":"array","items":{"type":"number"}},"d":{},"e":{"type":"boolean"},"f":{"type":"object","additionalProperties":{"type":"string"}},"g":{"$ref":"#/$defs/G"},"a":{"type":"string"},"b":{"type":"integer","minimum":1,"maximum":9}},"$defs":{"G":{"type":"array","prefixItems":[{"type":"string"}],"maxItems":1}},"required":["a","b"]}
                without {"const", "exclusiveMinimum", "items", "minLength", "pattern", "uniqueItems"}"##]],
        );
    }
}
