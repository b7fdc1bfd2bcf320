//! JSON Schema in the subset that Claude takes. Pure; arguments and answers are always checked
//! against the original schema.
//!
//! Source: "Define tools" and "Structured outputs" (limitations) in the vendor's guide, and its own
//! error messages (recorded, and quoted in public issues; checked 2026-11-22). A tool's schema is a
//! hint for the model: any draft 2020-12 schema of an object, without a choice at the top. An
//! answer's schema is enforced, and may use only the keywords below.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{
    Schema, convert_list, convert_members, is_one_of, modern_keyword, modern_reference, unite,
};

/// Formats the vendor enforces.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Converts the schema of a tool's parameters. Dropped keywords are added to `dropped`.
pub(super) fn parameters(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    let mut top = modern(schema, dropped)
        .as_object()
        .cloned()
        .unwrap_or_default();
    // A recursive type is a reference at its top, which the vendor refuses there.
    if let Some(target) = top
        .shift_remove("$ref")
        .and_then(|target| resolve(schema, target.as_str()?).cloned())
    {
        for (keyword, value) in modern(&target, dropped)
            .as_object()
            .cloned()
            .unwrap_or_default()
        {
            top.entry(keyword).or_insert(value);
        }
    }
    let mut whole = Schema::from_iter([("type".to_owned(), json!("object"))]);
    let choices = ["allOf", "anyOf", "oneOf"].map(|keyword| (keyword, top.shift_remove(keyword)));
    whole.extend(
        top.into_iter()
            .filter(|(keyword, _)| !matches!(keyword.as_str(), "type" | "$schema")),
    );
    for (keyword, members) in choices {
        let Some(Value::Array(members)) = members else {
            continue;
        };
        if keyword != "allOf" {
            // The alternatives' properties are named; which of them belong together is lost.
            dropped.insert(keyword.to_owned());
        }
        for member in members {
            let member = match member.get("$ref").and_then(Value::as_str) {
                Some(target) => {
                    resolve(schema, target).map_or(Value::Null, |target| modern(target, dropped))
                }
                None => member,
            };
            // Properties of one alternative are required by that alternative only.
            for part in ["properties", "required"] {
                if let Some(value) = member.get(part)
                    && (part == "properties" || keyword == "allOf")
                {
                    unite(&mut whole, part.to_owned(), value.clone());
                }
            }
        }
    }
    Value::Object(whole)
}

/// Converts older drafts to 2020-12, where the vendor would refuse the older form.
fn modern(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut out = Schema::new();
            for (keyword, value) in fields {
                let (name, value) = match (keyword.as_str(), value) {
                    ("items", Value::Array(_)) => ("prefixItems", modern(value, dropped)),
                    ("exclusiveMinimum" | "exclusiveMaximum" | "required", Value::Bool(_)) => {
                        dropped.insert(keyword.clone());
                        continue;
                    }
                    // Values, not schemas.
                    (name @ ("enum" | "const" | "default" | "examples"), _) => {
                        (name, value.clone())
                    }
                    (name, _) => (name, modern(value, dropped)),
                };
                out.insert(name.to_owned(), value);
            }
            Value::Object(out)
        }
        Value::Array(members) => members
            .iter()
            .map(|member| modern(member, dropped))
            .collect(),
        other => other.clone(),
    }
}

fn resolve<'a>(schema: &'a Value, target: &str) -> Option<&'a Value> {
    schema.pointer(target.strip_prefix('#')?)
}

/// Converts the schema of an answer.
///
/// # Errors
/// The reason why the vendor cannot enforce it, as the end of a sentence about it.
pub(super) fn answer(
    schema: &Value,
    dropped: &mut BTreeSet<String>,
) -> Result<Value, &'static str> {
    if is_cyclic(schema, schema, &mut Vec::new(), &mut BTreeSet::new()) {
        return Err("refers to itself");
    }
    if has_free_names(schema) {
        return Err("has an object whose names are free");
    }
    Ok(strict(schema, dropped))
}

/// Returns true if some object may have properties that the schema does not name. The vendor closes
/// all objects, so one without named properties would always be empty.
fn has_free_names(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let names = fields
                .get("properties")
                .and_then(Value::as_object)
                .map_or(0, Map::len);
            let others = fields.get("additionalProperties");
            let open = is_object(schema) && names == 0 && others != Some(&json!(false));
            let values =
                |keyword: &str| matches!(keyword, "enum" | "const" | "default" | "examples");
            open || others.is_some_and(Value::is_object)
                || fields
                    .iter()
                    .any(|(keyword, value)| !values(keyword) && has_free_names(value))
        }
        Value::Array(members) => members.iter().any(has_free_names),
        _ => false,
    }
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
        || schema["type"]
            .as_array()
            .is_some_and(|kinds| kinds.contains(&json!("object")))
}

fn is_cyclic<'a>(
    value: &'a Value,
    root: &'a Value,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> bool {
    match value {
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                if path.contains(&target) || target == "#" {
                    return true;
                }
                // Each definition once: shared ones would otherwise be walked once per use.
                if done.insert(target) {
                    path.push(target);
                    if resolve(root, target)
                        .is_some_and(|schema| is_cyclic(schema, root, path, done))
                    {
                        return true;
                    }
                    path.pop();
                }
            }
            // A definition that nothing refers to closes no circle.
            let definitions = |keyword: &str| matches!(keyword, "$defs" | "definitions");
            fields
                .iter()
                .any(|(keyword, value)| !definitions(keyword) && is_cyclic(value, root, path, done))
        }
        Value::Array(values) => values
            .iter()
            .any(|value| is_cyclic(value, root, path, done)),
        _ => false,
    }
}

fn strict(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    // `true` allows everything, and `false` cannot be expressed.
    let Value::Object(fields) = schema else {
        return json!({});
    };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        let mut out = Schema::from_iter([("$ref".to_owned(), modern_reference(target))]);
        let definitions = fields.get("$defs").or_else(|| fields.get("definitions"));
        out.extend(definitions.map(|schemas| {
            (
                "$defs".to_owned(),
                convert_members(schemas, |schema| strict(schema, dropped)),
            )
        }));
        return Value::Object(out);
    }
    let mut out = Schema::new();
    for (keyword, value) in fields {
        let kept = match keyword.as_str() {
            // Annotations, which constrain nothing.
            "$schema" | "$id" | "$comment" | "examples" | "deprecated" | "readOnly"
            | "writeOnly" => continue,
            // Every object is closed below.
            "additionalProperties" if value == &json!(false) => continue,
            "type" | "title" | "description" | "const" | "required" | "default" => true,
            "properties" | "$defs" | "definitions" | "anyOf" | "oneOf" => true,
            "items" => value.is_object(),
            // The vendor refuses it together with a reference.
            "allOf" => !has_reference(value),
            "enum" => is_plain(value),
            "format" => is_one_of(value, FORMATS),
            "minItems" => matches!(value.as_u64(), Some(0 | 1)),
            "pattern" => value.as_str().is_some_and(is_simple),
            _ => false,
        };
        if !kept {
            dropped.insert(keyword.clone());
            continue;
        }
        let converted = match keyword.as_str() {
            "properties" | "$defs" | "definitions" => {
                convert_members(value, |schema| strict(schema, dropped))
            }
            "anyOf" | "oneOf" | "allOf" => convert_list(value, |schema| strict(schema, dropped)),
            "items" => strict(value, dropped),
            _ => value.clone(),
        };
        out.insert(modern_keyword(keyword).to_owned(), converted);
    }
    let closed = out.contains_key("properties") || is_object(schema);
    out.extend(closed.then(|| ("additionalProperties".to_owned(), json!(false))));
    Value::Object(out)
}

fn has_reference(members: &Value) -> bool {
    members
        .as_array()
        .into_iter()
        .flatten()
        .any(|member| member.get("$ref").is_some())
}

fn is_plain(values: &Value) -> bool {
    values.as_array().is_some_and(|values| {
        values
            .iter()
            .all(|value| !value.is_object() && !value.is_array())
    })
}

/// Returns true if a pattern uses none of the constructs that the vendor's regular expressions
/// lack: look-around, back references, word boundaries.
fn is_simple(pattern: &str) -> bool {
    let escapes = pattern
        .split('\\')
        .skip(1)
        .filter_map(|rest| rest.chars().next());
    !pattern.contains("(?")
        && !escapes
            .into_iter()
            .any(|escape| matches!(escape, 'b' | 'B' | '1'..='9'))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check_parameters(schema: Value, expected: Expect) {
        let mut dropped = BTreeSet::new();
        let lowered = parameters(&schema, &mut dropped);
        expected.assert_eq(&format!("{lowered}\nwithout {dropped:?}"));
    }

    fn check_answer(schema: Value, expected: Expect) {
        let mut dropped = BTreeSet::new();
        let lowered =
            answer(&schema, &mut dropped).map_or_else(str::to_owned, |schema| schema.to_string());
        expected.assert_eq(&format!("{lowered}\nwithout {dropped:?}"));
    }

    #[test]
    fn parameters_stay_what_they_are() {
        check_parameters(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Args",
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "format": "uint32", "minimum": 0},
                    "kind": {"$ref": "#/$defs/Kind"},
                },
                "required": ["count"],
                "additionalProperties": false,
                "$defs": {"Kind": {"enum": ["a", null]}},
            }),
            expect![[r##"
                {"type":"object","title":"Args","properties":{"count":{"type":"integer","format":"uint32","minimum":0},"kind":{"$ref":"#/$defs/Kind"}},"required":["count"],"additionalProperties":false,"$defs":{"Kind":{"enum":["a",null]}}}
                without {}"##]],
        );
        check_parameters(
            json!({}),
            expect![[r#"
            {"type":"object"}
            without {}"#]],
        );
        check_parameters(
            json!(true),
            expect![[r#"
            {"type":"object"}
            without {}"#]],
        );
    }

    #[test]
    fn a_choice_at_the_top_is_spread_and_old_drafts_are_rewritten() {
        check_parameters(
            json!({
                "anyOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"$ref": "#/definitions/B"},
                ],
                "allOf": [{"properties": {"c": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}, "required": ["c"]}],
                "properties": {"d": {"type": "array", "items": [{"type": "string"}], "default": {"items": [1]}}},
                "required": ["d"],
                "definitions": {"B": {"properties": {"b": {"type": "string"}}}},
            }),
            expect![[r#"
                {"type":"object","properties":{"d":{"type":"array","prefixItems":[{"type":"string"}],"default":{"items":[1]}},"c":{"type":"number","minimum":0},"a":{"type":"string"},"b":{"type":"string"}},"required":["d","c"],"definitions":{"B":{"properties":{"b":{"type":"string"}}}}}
                without {"anyOf", "exclusiveMinimum"}"#]],
        );
        check_parameters(
            json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}),
            expect![[r##"
                {"type":"object","$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}},"properties":{"next":{"$ref":"#/$defs/Node"}}}
                without {}"##]],
        );
    }

    #[test]
    fn an_answer_says_what_can_be_enforced() {
        check_answer(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Trip",
                "type": "object",
                "properties": {
                    "city": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
                    "code": {"type": "string", "pattern": "^(?=a)"},
                    "days": {"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
                    "when": {"type": ["string", "null"], "format": "date"},
                    "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop", "description": "One."}, "minItems": 1, "maxItems": 5},
                    "by": {"oneOf": [{"const": "train"}, {"type": "object", "properties": {"car": {"type": "string"}}}]},
                    "notes": {"type": "object", "properties": {"x": true}, "additionalProperties": true},
                },
                "required": ["city"],
                "additionalProperties": false,
                "$defs": {"Stop": {"allOf": [{"type": "object", "properties": {"name": {"type": "string"}}}]}},
            }),
            expect![[r##"
                {"title":"Trip","type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"},"code":{"type":"string"},"days":{"type":"integer"},"when":{"type":["string","null"],"format":"date"},"stops":{"type":"array","items":{"$ref":"#/$defs/Stop"},"minItems":1},"by":{"anyOf":[{"const":"train"},{"type":"object","properties":{"car":{"type":"string"}},"additionalProperties":false}]},"notes":{"type":"object","properties":{"x":{}},"additionalProperties":false}},"required":["city"],"$defs":{"Stop":{"allOf":[{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false}]}},"additionalProperties":false}
                without {"additionalProperties", "format", "maxItems", "maximum", "minLength", "minimum", "pattern"}"##]],
        );
    }

    #[test]
    fn what_cannot_be_enforced_is_named() {
        check_answer(
            json!({"properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}),
            expect![[r#"
                has an object whose names are free
                without {}"#]],
        );
        check_answer(
            json!({"items": {"type": ["object", "null"]}}),
            expect![[r#"
            has an object whose names are free
            without {}"#]],
        );
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        check_answer(
            json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}}),
            expect![[r#"
            refers to itself
            without {}"#]],
        );
        check_answer(
            json!({"type": "array", "items": {"$ref": "#"}}),
            expect![[r#"
            refers to itself
            without {}"#]],
        );
        check_answer(
            json!({"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}),
            expect![[r##"
                {"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}},"additionalProperties":false}
                without {}"##]],
        );
    }
}
