//! JSON Schema as Claude takes it. Pure; arguments and answers are always checked against the
//! original.
//!
//! Source: "Define tools" and "Structured outputs" (limitations) in the vendor's guide, and its own
//! error messages (recorded, and quoted in public issues; checked 2026-11-22). A tool's schema is
//! advice: any draft 2020-12 schema of an object, without a choice at the top. An answer's schema
//! is enforced, and says only what follows.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

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

type Schema = Map<String, Value>;

/// The schema of a tool's parameters. Keywords that had to go are added to `dropped`.
pub(super) fn parameters(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    let mut top = modern(schema, dropped)
        .as_object()
        .cloned()
        .unwrap_or_default();
    // A type that refers to itself is a reference at its top.
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
            // What may be given is still named; which of it belongs together is not.
            dropped.insert(keyword.to_owned());
        }
        for member in members {
            let member = match member.get("$ref").and_then(Value::as_str) {
                Some(target) => {
                    resolve(schema, target).map_or(Value::Null, |target| modern(target, dropped))
                }
                None => member,
            };
            unite(&mut whole, &member, "properties");
            if keyword == "allOf" {
                unite(&mut whole, &member, "required");
            }
        }
    }
    Value::Object(whole)
}

/// The same schema in draft 2020-12, where an older draft's form would be refused.
fn modern(schema: &Value, dropped: &mut BTreeSet<String>) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut out = Schema::new();
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("items", Value::Array(_)) => {
                        drop(out.insert("prefixItems".to_owned(), modern(value, dropped)))
                    }
                    ("exclusiveMinimum" | "exclusiveMaximum" | "required", Value::Bool(_)) => {
                        dropped.insert(keyword.clone());
                    }
                    // Values, not schemas.
                    ("enum" | "const" | "default" | "examples", _) => {
                        drop(out.insert(keyword.clone(), value.clone()))
                    }
                    (_, _) => drop(out.insert(keyword.clone(), modern(value, dropped))),
                }
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

/// Adds what `member` has under `keyword` and `whole` has not.
fn unite(whole: &mut Schema, member: &Value, keyword: &str) {
    match (whole.get_mut(keyword), member.get(keyword)) {
        (Some(Value::Object(known)), Some(Value::Object(more))) => {
            for (name, schema) in more {
                known.entry(name).or_insert_with(|| schema.clone());
            }
        }
        (Some(Value::Array(known)), Some(Value::Array(more))) => {
            let new: Vec<_> = more
                .iter()
                .filter(|name| !known.contains(name))
                .cloned()
                .collect();
            known.extend(new);
        }
        (None, Some(more)) => drop(whole.insert(keyword.to_owned(), more.clone())),
        (_, _) => {}
    }
}

fn resolve<'a>(schema: &'a Value, target: &str) -> Option<&'a Value> {
    schema.pointer(target.strip_prefix('#')?)
}

/// The schema of an answer.
///
/// # Errors
/// What the vendor cannot enforce of it at all, as the end of a sentence about it.
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

/// Objects have to be closed; one that lists no names would always be empty.
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
    // `true` allows everything, and `false` cannot be said.
    let Value::Object(fields) = schema else {
        return json!({});
    };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        let mut out = Schema::from_iter([(
            "$ref".to_owned(),
            json!(target.replacen("#/definitions/", "#/$defs/", 1)),
        )]);
        let definitions = fields.get("$defs").or_else(|| fields.get("definitions"));
        out.extend(definitions.map(|schemas| ("$defs".to_owned(), strict_map(schemas, dropped))));
        return Value::Object(out);
    }
    let mut out = Schema::new();
    for (keyword, value) in fields {
        let mut keep = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
        match keyword.as_str() {
            // Says nothing about values.
            "$schema" | "$id" | "$comment" | "examples" | "deprecated" | "readOnly"
            | "writeOnly" => {}
            "type" | "title" | "description" | "const" | "required" | "default" => {
                keep(keyword, value.clone())
            }
            "properties" => keep(keyword, strict_map(value, dropped)),
            "$defs" | "definitions" => keep("$defs", strict_map(value, dropped)),
            "items" if value.is_object() => keep(keyword, strict(value, dropped)),
            "anyOf" | "oneOf" => keep("anyOf", strict_list(value, dropped)),
            // Together with a reference it is refused.
            "allOf" if !has_reference(value) => keep(keyword, strict_list(value, dropped)),
            "enum" if is_plain(value) => keep(keyword, value.clone()),
            "format"
                if value
                    .as_str()
                    .is_some_and(|format| FORMATS.contains(&format)) =>
            {
                keep(keyword, value.clone());
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => keep(keyword, value.clone()),
            "pattern" if value.as_str().is_some_and(is_simple) => keep(keyword, value.clone()),
            "additionalProperties" if value == &json!(false) => {}
            _ => drop(dropped.insert(keyword.clone())),
        }
    }
    let closed = out.contains_key("properties") || is_object(schema);
    out.extend(closed.then(|| ("additionalProperties".to_owned(), json!(false))));
    Value::Object(out)
}

fn strict_map(schemas: &Value, dropped: &mut BTreeSet<String>) -> Value {
    let schemas = schemas.as_object().into_iter().flatten();
    Value::Object(
        schemas
            .map(|(name, schema)| (name.clone(), strict(schema, dropped)))
            .collect(),
    )
}

fn strict_list(schemas: &Value, dropped: &mut BTreeSet<String>) -> Value {
    schemas
        .as_array()
        .into_iter()
        .flatten()
        .map(|schema| strict(schema, dropped))
        .collect()
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

/// Without what the vendor's regular expressions lack: groups that look around, back references,
/// word boundaries.
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
