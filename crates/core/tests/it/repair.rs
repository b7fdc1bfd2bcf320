//! Repair of arguments before they are refused: what is corrected, what is not, and what is said.

use std::sync::Arc;

use adjutant_core::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::gate::checked;

/// A tool that must never run here.
struct Declared(ToolDefinition);

impl Tool for Declared {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        panic!("the gate executes nothing")
    }
}

/// Returns a gate with one tool, called `server__tool` so that no rule for own tools applies.
fn gate(schema: &Value, destructive: bool) -> Gate {
    let definition = ToolDefinition::new("server__tool", "Does it.", schema.clone()).unwrap();
    let mut registry = ToolRegistry::new();
    registry
        .register(Arc::new(Declared(definition.annotated(Annotations {
            destructive,
            ..Annotations::default()
        }))))
        .unwrap();
    Gate {
        registry,
        policy: Policy::default(),
    }
}

/// Returns the arguments that would be used with the note for the model, or the refusal.
fn used(gate: &Gate, arguments: &Value) -> Result<(Value, Option<String>), String> {
    let checked = checked(gate, "server__tool", &arguments.to_string(), &[]);
    let arguments = match checked.verdict {
        GateVerdict::Run { arguments } => arguments,
        GateVerdict::Confirm { pending } => pending.arguments,
        GateVerdict::Refuse { message, .. } => return Err(message),
        other => panic!("{other:?}"),
    };
    Ok((Value::Object(arguments), checked.corrections))
}

fn object(properties: Value, required: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn many() -> Value {
    object(
        json!({
            "id": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "done": {"type": "boolean"},
            "level": {"enum": ["error", "warning"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "filter": {"$ref": "#/$defs/filter"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
            "open": {"type": "object", "additionalProperties": {"type": "integer"}},
            "nothing": {"type": ["string", "null"]}
        }),
        json!(["id"]),
    )
    .as_object()
    .cloned()
    .map(|mut schema| {
        let filter = object(
            json!({"since": {"type": "string"}, "limit": {"type": "integer"}}),
            json!(["limit"]),
        );
        schema.insert("$defs".to_owned(), json!({ "filter": filter }));
        Value::Object(schema)
    })
    .unwrap()
}

#[test]
fn a_slip_with_one_repair_is_repaired_and_told() {
    let gate = gate(&many(), false);
    for (written, used_instead, told) in [
        (
            json!({"id": "a", "count": null}),
            json!({"id": "a"}),
            "/count: null",
        ),
        (
            json!({"id": "a", "tags": null}),
            json!({"id": "a"}),
            "/tags: null",
        ),
        (
            json!({"id": "a", "level": null}),
            json!({"id": "a"}),
            "/level: null",
        ),
        (
            json!({"id": "a", "either": null}),
            json!({"id": "a"}),
            "/either: null",
        ),
        (
            json!({"id": "a", "filter": {"since": null, "limit": 3}}),
            json!({"id": "a", "filter": {"limit": 3}}),
            "/filter/since: null",
        ),
        (
            json!({"id": "a", "level": ""}),
            json!({"id": "a"}),
            "/level: the empty text",
        ),
        (
            json!({"id": "a", "count": ""}),
            json!({"id": "a"}),
            "/count: the empty text",
        ),
        (
            json!({"id": "a", "level": "Error"}),
            json!({"id": "a", "level": "error"}),
            "/level: upper",
        ),
        (
            json!({"id": "a", "count": "12"}),
            json!({"id": "a", "count": 12}),
            "/count: quotation",
        ),
        (
            json!({"id": "a", "count": "-3.0"}),
            json!({"id": "a", "count": -3}),
            "/count: quotation",
        ),
        (
            json!({"id": "a", "ratio": "0.5"}),
            json!({"id": "a", "ratio": 0.5}),
            "/ratio: quotation",
        ),
        (
            json!({"id": "a", "done": "true"}),
            json!({"id": "a", "done": true}),
            "/done: quotation",
        ),
        (
            json!({"id": "a", "done": "False"}),
            json!({"id": "a", "done": false}),
            "/done: quotation",
        ),
        (
            json!({"id": "a", "either": "true"}),
            json!({"id": "a", "either": true}),
            "/either: quotation",
        ),
        (json!({"id": 5}), json!({"id": "5"}), "/id: the number"),
        (
            json!({"id": 9_007_199_254_740_993_u64}),
            json!({"id": "9007199254740993"}),
            "/id: the number",
        ),
        (
            json!({"id": "a", "tags": "x"}),
            json!({"id": "a", "tags": ["x"]}),
            "/tags: the value",
        ),
        (
            json!({"id": "a", "numbers": 3}),
            json!({"id": "a", "numbers": [3]}),
            "/numbers: the value",
        ),
        (
            json!({"id": "a", "tags": "[\"x\", \"y\"]"}),
            json!({"id": "a", "tags": ["x", "y"]}),
            "/tags: the text",
        ),
        (
            json!({"id": "a", "filter": {"limit": "3"}}),
            json!({"id": "a", "filter": {"limit": 3}}),
            "/filter/limit: quotation",
        ),
        (
            json!({"id": "a", "open": {"a/b": "3"}}),
            json!({"id": "a", "open": {"a/b": 3}}),
            "/open/a~1b: quotation",
        ),
        (
            json!({"arguments": {"id": "a"}}),
            json!({"id": "a"}),
            "taken out of \"arguments\"",
        ),
        (
            json!({"arguments": {"id": 5, "level": "Warning", "count": null}}),
            json!({"id": "5", "level": "warning"}),
            "taken out of \"arguments\"; ",
        ),
    ] {
        let (arguments, corrections) = used(&gate, &written).unwrap();
        assert_eq!(arguments, used_instead, "{written}");
        let corrections = corrections.unwrap();
        assert!(corrections.contains(told), "{written}: {corrections}");
    }
}

#[test]
fn arguments_with_no_or_several_repairs_are_refused() {
    let gate = gate(&many(), false);
    for (written, place) in [
        (json!({"id": null}), "/id"),
        (
            json!({"id": "a", "count": "12345678901234567890123"}),
            "/count",
        ),
        (json!({"id": "a", "count": "3.5"}), "/count"),
        (json!({"id": "a", "count": "three"}), "/count"),
        (
            json!({"id": "a", "ratio": "0.12345678901234567890"}),
            "/ratio",
        ),
        (json!({"id": "a", "done": "yes"}), "/done"),
        (json!({"id": "a", "done": 1}), "/done"),
        (json!({"id": "a", "level": "fatal"}), "/level"),
        (json!({"id": 1.5}), "/id"),
        (json!({"id": true}), "/id"),
        (json!({"id": "a", "tags": [null]}), "/tags/0"),
        (json!({"id": "a", "open": {"a": null}}), "/open/a"),
        (
            json!({"id": "a", "filter": {"limit": null}}),
            "/filter/limit",
        ),
        (json!({"id": "a", "filter": {"limit": ""}}), "/filter/limit"),
        (json!({"id": "a", "filter": "{\"limit\": 3}"}), "/filter"),
        (
            json!({"id": "a", "numbers": "[12345678901234567890123]"}),
            "/numbers",
        ),
        (json!({"id": "a", "extra": 1}), "extra"),
        (json!({"arguments": {"id": "a"}, "id": "a"}), "arguments"),
        (json!({"arguments": {"name": "a"}}), "arguments"),
    ] {
        let refused = used(&gate, &written).unwrap_err();
        assert!(refused.contains(place), "{written}: {refused}");
    }
}

#[test]
fn two_readings_of_one_value_are_refused() {
    for (schema, written) in [
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "array"}]}),
            json!("5"),
        ),
        (json!({"enum": ["Error", "ERROR"]}), json!("error")),
        (json!({"enum": [1, "One", true]}), json!("ONE ")),
        (
            json!({"anyOf": [{"type": "boolean"}, {"enum": ["True"]}]}),
            json!("TRUE"),
        ),
    ] {
        let gate = gate(&object(json!({ "x": schema }), json!(["x"])), false);
        assert!(used(&gate, &json!({ "x": written })).is_err(), "{schema}");
    }
}

#[test]
fn a_branch_of_a_union_is_repaired_where_only_one_fits() {
    let schema = json!({
        "type": "object",
        "oneOf": [
            object(json!({"kind": {"const": "page"}, "number": {"type": "integer"}}), json!(["kind", "number"])),
            object(json!({"kind": {"const": "name"}, "name": {"type": "string"}}), json!(["kind", "name"]))
        ]
    });
    let gate = gate(&schema, false);
    for (written, used_instead) in [
        (
            json!({"kind": "page", "number": "4"}),
            json!({"kind": "page", "number": 4}),
        ),
        (
            json!({"kind": "Page", "number": "4"}),
            json!({"kind": "page", "number": 4}),
        ),
        (
            json!({"kind": "name", "name": 4}),
            json!({"kind": "name", "name": "4"}),
        ),
    ] {
        assert_eq!(used(&gate, &written).unwrap().0, used_instead);
    }
    assert!(used(&gate, &json!({"kind": "page", "name": "4"})).is_err());
}

#[test]
fn a_destructive_tool_gets_no_list_that_was_not_written() {
    let gate = gate(&many(), true);
    for written in [
        json!({"id": "a", "tags": "x"}),
        json!({"id": "a", "tags": "[\"x\"]"}),
        json!({"id": "a", "numbers": 3}),
    ] {
        assert!(used(&gate, &written).is_err(), "{written}");
    }
    let (arguments, corrections) = used(&gate, &json!({"id": 5, "level": null})).unwrap();
    assert_eq!(arguments, json!({"id": "5"}));
    assert!(corrections.is_some());
}

#[test]
fn a_wrapper_that_may_be_a_property_stays() {
    let declared = object(json!({"arguments": {"type": "array"}}), json!([]));
    let refused = used(&gate(&declared, true), &json!({"arguments": {}})).unwrap_err();
    assert!(refused.contains("/arguments"), "{refused}");
    // An open schema takes the property as it is.
    let open = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let written = json!({"arguments": {"id": "a"}});
    assert_eq!(used(&gate(&open, false), &written), Ok((written, None)));
}

#[test]
fn a_number_with_a_fraction_of_zero_is_an_integer_in_every_draft() {
    let mut schema = object(json!({"count": {"type": "integer"}}), json!(["count"]));
    schema["$schema"] = json!("http://json-schema.org/draft-04/schema#");
    let (arguments, corrections) = used(&gate(&schema, true), &json!({"count": 3.0})).unwrap();
    assert_eq!(arguments.to_string(), r#"{"count":3}"#);
    assert!(corrections.unwrap().contains("/count: the number"));
    assert!(used(&gate(&schema, true), &json!({"count": 3.5})).is_err());
}

#[test]
fn the_work_for_a_repair_is_bounded() {
    // Each element has a repair of its own, and the union asks for all of them together.
    let item = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
    let list = json!({"type": "array", "items": item});
    let schema = json!({
        "type": "object",
        "anyOf": [
            object(json!({ "a": list }), json!(["a"])),
            object(json!({ "b": list }), json!(["b"]))
        ]
    });
    let gate = gate(&schema, false);
    let elements = |count: usize| json!({ "a": vec!["1"; count] });
    assert_eq!(
        used(&gate, &elements(3)).unwrap().0,
        json!({"a": [1, 1, 1]})
    );
    assert!(used(&gate, &elements(20)).is_err());
    assert!(used(&gate, &elements(20_000)).is_err());
}

/// Kinds of properties, each with values that fit.
#[derive(Debug, Clone)]
enum Kind {
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Digits(u64),
    Choice(usize),
    Integers(Vec<i64>),
    Words(Vec<String>),
}

const CHOICES: [&str; 3] = ["open", "Done", "in Work"];

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Self::Integer(_) => json!({"type": "integer"}),
            Self::Number(_) => json!({"type": "number"}),
            Self::Boolean(_) => json!({"type": "boolean"}),
            Self::Digits(_) => json!({"type": "string"}),
            Self::Choice(_) => json!({"type": "string", "enum": CHOICES}),
            Self::Integers(_) => json!({"type": "array", "items": {"type": "integer"}}),
            Self::Words(_) => json!({"type": "array", "items": {"type": "string"}}),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Integer(value) => json!(value),
            Self::Number(value) => json!(value),
            Self::Boolean(value) => json!(value),
            Self::Digits(value) => json!(value.to_string()),
            Self::Choice(at) => json!(CHOICES[*at]),
            Self::Integers(values) => json!(values),
            Self::Words(values) => json!(values),
        }
    }

    /// Returns the slips in this value, and for each whether it concerns a list.
    fn slips(&self) -> Vec<(Value, bool)> {
        match self {
            Self::Integer(_) | Self::Number(_) | Self::Boolean(_) => {
                vec![(json!(self.value().to_string()), false)]
            }
            Self::Digits(value) => vec![(json!(value), false)],
            Self::Choice(at) => vec![
                (json!(CHOICES[*at].to_uppercase()), false),
                (json!(CHOICES[*at].to_lowercase()), false),
            ],
            Self::Integers(_) | Self::Words(_) => {
                let whole = self.value();
                let single = match whole.as_array().map(Vec::as_slice) {
                    // A text may be a list as JSON text.
                    Some([only])
                        if !only
                            .as_str()
                            .is_some_and(|text| text.trim_start().starts_with('[')) =>
                    {
                        Some((only.clone(), true))
                    }
                    _ => None,
                };
                [(json!(whole.to_string()), true)]
                    .into_iter()
                    .chain(single)
                    .collect()
            }
        }
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        any::<i64>().prop_map(Kind::Integer),
        (-1e6..1e6).prop_map(Kind::Number),
        any::<bool>().prop_map(Kind::Boolean),
        any::<u64>().prop_map(Kind::Digits),
        (0..CHOICES.len()).prop_map(Kind::Choice),
        prop::collection::vec(any::<i64>(), 0..4).prop_map(Kind::Integers),
        prop::collection::vec("[ -~]{1,6}", 0..4).prop_map(Kind::Words),
    ]
}

/// A property: what it is, whether it is required, whether it is there.
fn any_property() -> impl Strategy<Value = (Kind, bool, bool)> {
    (any_kind(), any::<bool>(), any::<bool>())
}

fn declared(properties: &[(Kind, bool, bool)]) -> (Value, Map<String, Value>) {
    let mut schemas = Map::new();
    let mut required = Vec::new();
    let mut values = Map::new();
    for (at, (kind, is_required, is_there)) in properties.iter().enumerate() {
        let name = format!("p{at}");
        schemas.insert(name.clone(), kind.schema());
        if *is_required {
            required.push(name.clone());
        }
        if *is_required || *is_there {
            values.insert(name, kind.value());
        }
    }
    (object(Value::Object(schemas), json!(required)), values)
}

/// Returns the values with one slip each, and for each whether it concerns a list.
fn slips(properties: &[(Kind, bool, bool)], is_top_level: bool) -> Vec<(Map<String, Value>, bool)> {
    let (_, values) = declared(properties);
    let mut all = Vec::new();
    for (at, (kind, ..)) in properties.iter().enumerate() {
        let name = format!("p{at}");
        let mut with = |value: Value, is_list| {
            let mut values = values.clone();
            values.insert(name.clone(), value);
            all.push((values, is_list));
        };
        if values.contains_key(&name) {
            for (value, is_list) in kind.slips() {
                with(value, is_list);
            }
        } else {
            with(Value::Null, false);
            if is_top_level && !matches!(kind, Kind::Digits(_)) {
                with(json!(""), false);
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// A value with one slip becomes the value without it, and one that fits is never touched.
    #[test]
    fn a_slip_is_undone_and_what_fits_is_untouched(
        outer in prop::collection::vec(any_property(), 1..5),
        inner in prop::collection::vec(any_property(), 1..4),
        destructive in any::<bool>(),
    ) {
        let (inner_schema, inner_values) = declared(&inner);
        let (mut schema, values) = declared(&outer);
        schema["properties"]["inner"] = inner_schema;
        let gate = gate(&schema, destructive);
        let whole = |values: Map<String, Value>, inner: Map<String, Value>| {
            let mut values = values;
            values.insert("inner".to_owned(), Value::Object(inner));
            Value::Object(values)
        };
        let right = whole(values.clone(), inner_values.clone());
        prop_assert_eq!(used(&gate, &right), Ok((right.clone(), None)));

        let of_outer = slips(&outer, true)
            .into_iter()
            .map(|(values, is_list)| (whole(values, inner_values.clone()), is_list));
        let of_inner = slips(&inner, false)
            .into_iter()
            .map(|(inner, is_list)| (whole(values.clone(), inner), is_list));
        let wrapped = [(json!({ "arguments": right }), false)];
        for (slip, is_list) in of_outer.chain(of_inner).chain(wrapped) {
            match used(&gate, &slip) {
                // Not a slip: the lower case of a choice that is written so.
                Ok((arguments, None)) => prop_assert_eq!(&arguments, &slip),
                Ok((arguments, Some(_))) => {
                    prop_assert!(!(destructive && is_list), "{}", slip);
                    prop_assert_eq!(&arguments, &right, "{}", slip);
                }
                Err(_) => prop_assert!(destructive && is_list, "{}", slip),
            }
        }
    }
}
