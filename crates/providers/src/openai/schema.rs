//! JSON Schema in the subset that OpenAI takes. Pure; arguments and answers are always checked
//! against the original.
//!
//! Source: "Structured Outputs" (supported schemas) and "Function calling" in the vendor's guide,
//! checked 2026-11-22. Functions are sent without `strict`, so their schemas are hints and may use
//! nearly every keyword. An answer's schema is enforced (`strict`) if it can be expressed in the
//! subset for that: objects name all their properties, which are all required, and the keywords
//! below.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{
    convert_list, convert_members, is_one_of, modern_keyword, modern_reference, unite,
};

/// Formats the vendor enforces.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The schema of an answer as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerSchema {
    pub(super) schema: Value,
    /// True if the vendor enforces the schema.
    pub(super) strict: bool,
    /// Descriptions of everything that was dropped or changed.
    pub(super) losses: Vec<String>,
}

/// Converts the schema of a function's parameters: an object at the top, where the vendor refuses
/// choices.
pub(super) fn parameters(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    let mut out = schema.as_object().cloned().unwrap_or_default();
    out.remove("$schema");
    let mut properties = match out.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for keyword in ["allOf", "anyOf", "oneOf", "enum", "not"] {
        let Some(members) = out.shift_remove(keyword) else {
            continue;
        };
        dropped.insert(keyword.to_owned());
        // Their properties are at least named.
        for member in members.as_array().into_iter().flatten() {
            for (name, property) in member
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                properties
                    .entry(name.clone())
                    .or_insert_with(|| property.clone());
            }
        }
    }
    let mut whole = Map::new();
    whole.insert("type".to_owned(), json!("object"));
    whole.insert("properties".to_owned(), Value::Object(properties));
    whole.extend(out.into_iter().filter(|(keyword, _)| keyword != "type"));
    Value::Object(whole)
}

/// Converts the schema of an answer; `None` if it is not an object's, which the vendor refuses.
pub(super) fn answer(schema: &Value) -> Option<AnswerSchema> {
    let object = schema.as_object()?;
    if object.get("type") != Some(&json!("object")) {
        return None;
    }
    let mut lowering = Lowering::default();
    if object.contains_key("anyOf") || object.contains_key("oneOf") {
        lowering.stop("a choice at its top");
    }
    let lowered = lowering.object(object);
    Some(match lowering.obstacle {
        Some(obstacle) => AnswerSchema {
            schema: parameters(schema, &mut BTreeSet::new()),
            strict: false,
            losses: vec![format!(
                "the response schema is not enforced by the vendor: it has {obstacle}"
            )],
        },
        None => AnswerSchema {
            schema: Value::Object(lowered),
            strict: true,
            losses: lowering.losses(),
        },
    })
}

#[derive(Debug, Default)]
struct Lowering {
    dropped: BTreeSet<String>,
    required: BTreeSet<String>,
    /// The first construct that the subset cannot express.
    obstacle: Option<String>,
}

impl Lowering {
    fn losses(self) -> Vec<String> {
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let mut losses = Vec::new();
        if !self.dropped.is_empty() {
            losses.push(format!(
                "the response schema was sent without {}",
                list(self.dropped)
            ));
        }
        if !self.required.is_empty() {
            losses.push(format!(
                "the response schema was sent with {} required",
                list(self.required)
            ));
        }
        losses
    }

    fn stop(&mut self, obstacle: impl Into<String>) {
        self.obstacle.get_or_insert(obstacle.into());
    }

    fn any(&mut self, schema: &Value) -> Value {
        match schema {
            Value::Object(schema) if !schema.is_empty() => Value::Object(self.object(schema)),
            _ => {
                self.stop("a value that may be anything");
                json!({})
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let schema = &self.flattened(schema);
        let mut out = Map::new();
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let annotations = ["$ref", "description", "title", "default", "examples"];
            let beside = schema
                .keys()
                .filter(|keyword| !annotations.contains(&keyword.as_str()));
            self.dropped.extend(beside.cloned());
            out.insert("$ref".to_owned(), modern_reference(target));
            return out;
        }
        for (keyword, value) in schema {
            self.keyword(keyword, value, &mut out);
        }
        if is_object(&out) {
            self.close(schema, &mut out);
        }
        out
    }

    fn keyword(&mut self, keyword: &str, value: &Value, out: &mut Map<String, Value>) {
        let lowered = match keyword {
            // Annotations, which constrain nothing.
            "$schema" | "$id" | "$comment" | "default" | "examples" | "deprecated" | "readOnly"
            | "writeOnly" => return,
            "additionalProperties" | "required" => return,
            "type" | "title" | "description" | "enum" | "const" | "pattern" | "multipleOf"
            | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minItems"
            | "maxItems" => value.clone(),
            "format" if is_one_of(value, FORMATS) => value.clone(),
            "items" => self.any(value),
            "properties" | "$defs" | "definitions" => {
                convert_members(value, |schema| self.any(schema))
            }
            "anyOf" | "oneOf" => convert_list(value, |member| self.any(member)),
            "prefixItems" => {
                self.stop("a list with a schema for each place (prefixItems)");
                return;
            }
            "patternProperties" | "if" | "then" | "else" | "dependentSchemas" => {
                self.stop(format!("the keyword {keyword}"));
                return;
            }
            _ => {
                self.dropped.insert(keyword.to_owned());
                return;
            }
        };
        out.insert(modern_keyword(keyword).to_owned(), lowered);
    }

    /// Closes an object: all named properties are required, and no others are allowed.
    fn close(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>) {
        let names: Vec<String> = out
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        let more = schema.get("additionalProperties");
        if more.is_some_and(Value::is_object) || (names.is_empty() && more != Some(&json!(false))) {
            self.stop("an object with properties it does not name");
        }
        let required = schema.get("required").and_then(Value::as_array);
        let known = |name: &String| required.is_some_and(|known| known.contains(&json!(name)));
        self.required
            .extend(names.iter().filter(|name| !known(name)).cloned());
        out.insert("required".to_owned(), json!(names));
        out.insert("additionalProperties".to_owned(), json!(false));
    }

    /// Returns the schema with the members of `allOf` merged into it: properties and `required` are
    /// united, other keywords keep their first value.
    fn flattened(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut out = schema.clone();
        let Some(Value::Array(members)) = out.shift_remove("allOf") else {
            return out;
        };
        for member in members {
            let Value::Object(member) = member else {
                continue;
            };
            for (keyword, value) in self.flattened(&member) {
                if !unite(&mut out, keyword.clone(), value) {
                    self.dropped.insert(format!("a second {keyword} (allOf)"));
                }
            }
        }
        out
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.contains(&json!("object")),
        Some(kind) => *kind == "object",
        None => schema.contains_key("properties"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(schema: Value, expected: Expect) {
        let AnswerSchema {
            schema,
            strict,
            losses,
        } = answer(&schema).unwrap();
        expected.assert_eq(&format!("{schema}\nstrict {strict} {losses:?}"));
    }

    #[test]
    fn what_schemars_makes_of_a_struct() {
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Report",
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "format": "uint32", "minimum": 0},
                    "when": {"type": ["string", "null"], "format": "date-time", "default": null},
                    "kind": {"$ref": "#/$defs/Kind", "description": "lost beside a $ref"},
                    "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}},
                },
                "required": ["count", "kind", "parts"],
                "$defs": {"Kind": {"oneOf": [{"const": "a", "type": "string"}, {"type": "string", "enum": ["b", "c"]}]}},
            }),
            expect![[r##"
                {"title":"Report","type":"object","properties":{"count":{"type":"integer","minimum":0},"when":{"type":["string","null"],"format":"date-time"},"kind":{"$ref":"#/$defs/Kind"},"parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}}},"$defs":{"Kind":{"anyOf":[{"const":"a","type":"string"},{"type":"string","enum":["b","c"]}]}},"required":["count","when","kind","parts"],"additionalProperties":false}
                strict true ["the response schema was sent without format, minLength", "the response schema was sent with when required"]"##]],
        );
    }

    #[test]
    fn all_of_is_one_object() {
        check(
            json!({
                "type": "object",
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"], "additionalProperties": false},
                ],
            }),
            expect![[r#"
                {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}
                strict true []"#]],
        );
    }

    #[test]
    fn what_cannot_be_enforced_goes_out_as_it_is() {
        check(
            json!({
                "type": "object",
                "properties": {"counts": {"type": "object", "additionalProperties": {"type": "integer"}}},
                "required": ["counts"],
            }),
            expect![[r#"
                {"type":"object","properties":{"counts":{"type":"object","additionalProperties":{"type":"integer"}}},"required":["counts"]}
                strict false ["the response schema is not enforced by the vendor: it has an object with properties it does not name"]"#]],
        );
        assert_eq!(
            answer(&json!({"type": "array", "items": {"type": "string"}})),
            None
        );
    }

    #[test]
    fn parameters_are_an_object_whatever_they_were() {
        let mut dropped = BTreeSet::new();
        assert_eq!(
            parameters(&json!({"$schema": "x", "type": "object"}), &mut dropped),
            json!({"type": "object", "properties": {}})
        );
        assert!(dropped.is_empty());
        let choice = json!({
            "oneOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "description": "One of two.",
        });
        assert_eq!(
            parameters(&choice, &mut dropped),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "description": "One of two."})
        );
        assert_eq!(dropped, BTreeSet::from(["oneOf".to_owned()]));
    }
}
