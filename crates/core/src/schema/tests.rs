use serde_json::{Value, json};

use super::*;

/// Returns arrays nested to a number of levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// Returns a schema in which each level has two branches that both go deeper.
fn branching() -> Value {
    json!({
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/a"}},
            {"type": "array", "items": {"$ref": "#/$defs/a"}},
            {"const": "never"},
        ]}},
    })
}

fn refused(schema: &Value) -> String {
    Schema::compile(schema).unwrap_err().to_string()
}

#[test]
fn branches_that_double_with_each_level_of_the_value_end() {
    let schema = Schema::compile(&branching()).unwrap();
    for levels in [1, 5, 18, 60, 100] {
        let misfit = schema.check(&json!({ "v": nested(levels) })).unwrap_err();
        assert!(
            levels < 18 || misfit.contains("too large or too deep"),
            "{levels}: {misfit}"
        );
        let fits = schema.check(&json!({"v": "never"}));
        assert_eq!(fits, Ok(()));
    }
    let misfit = schema.check(&json!({ "v": nested(2) })).unwrap_err();
    assert!(
        misfit.starts_with("/v: "),
        "a small one has its place named: {misfit}"
    );
    let misfit = schema.check(&json!({ "v": nested(1_000) })).unwrap_err();
    assert!(misfit.contains("nested too deep"), "{misfit}");
}

#[test]
fn definitions_that_double_are_refused_before_anything_is_checked() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        definitions.insert(
            format!("d{level}"),
            json!({"anyOf": [{"$ref": next}, {"$ref": next}]}),
        );
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    assert!(
        refused(&json!({"$ref": "#/$defs/d0", "$defs": definitions}))
            .contains("branches and references")
    );
}

#[test]
fn what_is_asked_again_at_each_level_is_refused_before_anything_is_checked() {
    for (again, inner) in [
        ("unevaluatedProperties", json!({"properties": {"a": true}})),
        ("unevaluatedItems", json!({"prefixItems": [true]})),
    ] {
        let levels = |count: usize| {
            (0..count).fold(
                inner.clone(),
                |inner, _| json!({"allOf": [inner], again: {"type": "string"}}),
            )
        };
        assert!(
            refused(&levels(30)).contains("branches and references"),
            "{again}"
        );
        let usual = Schema::compile(&levels(3)).unwrap();
        assert_eq!(usual.check(&json!({"a": 1, "b": "text"})), Ok(()));
    }
    let closed = Schema::compile(&json!({
        "$ref": "#/$defs/animal",
        "properties": {"barks": {"type": "boolean"}},
        "unevaluatedProperties": false,
        "$defs": {"animal": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }))
    .unwrap();
    assert_eq!(closed.check(&json!({"name": "Rex", "barks": true})), Ok(()));
    assert!(
        closed
            .check(&json!({"name": "Rex", "meows": true}))
            .is_err()
    );
}

/// References are analysed as the validator resolves them: definitions that refer to each other
/// twice are rejected, the same names for other definitions are not.
#[test]
fn references_lead_where_the_validator_follows_them() {
    let definitions = |reference: &dyn Fn(usize) -> String| -> serde_json::Map<String, Value> {
        let doubling = |level: usize| {
            let next = json!({"$ref": reference(level + 1)});
            (format!("d{level}"), json!({"anyOf": [next, next]}))
        };
        (0..20)
            .map(doubling)
            .chain([("d20".to_owned(), json!({"type": "integer"}))])
            .collect()
    };
    let light = || (0..=20).map(|level| (format!("d{level}"), json!(true)));
    // JSON pointers are relative to the document that a schema is in, not to the outermost.
    let inner = json!({
        "$id": "https://example.com/inner",
        "$ref": "#/$defs/d0",
        "$defs": definitions(&|level| format!("#/$defs/d{level}")),
    });
    let mut defs: serde_json::Map<String, Value> = light().collect();
    defs.insert("inner".to_owned(), inner);
    let places = json!({"$ref": "https://example.com/inner", "$defs": defs});
    // The end of an identifier is not the whole of it.
    let identified = |folder: &str, schemas: serde_json::Map<String, Value>| {
        let id = |name: &str| json!(format!("https://example.com/{folder}/{name}"));
        let named = schemas.into_iter().map(|(name, schema)| {
            let mut schema = if schema.is_object() {
                schema
            } else {
                json!({})
            };
            schema["$id"] = id(&name);
            (format!("{folder} {name}"), schema)
        });
        named.collect::<serde_json::Map<String, Value>>()
    };
    let mut defs = identified("light", light().collect());
    defs.append(&mut identified(
        "heavy",
        definitions(&|level| format!("https://example.com/heavy/d{level}")),
    ));
    let names = json!({"$ref": "https://example.com/heavy/d0", "$defs": defs});
    // The document itself has a name even where it says none.
    let defs = definitions(&|level| format!("json-schema:///#/$defs/d{level}"));
    let whole = json!({"$ref": "#/$defs/d0", "$defs": defs});
    for schema in [places, names, whole] {
        assert!(
            refused(&schema).contains("branches and references"),
            "{}",
            refused(&schema)
        );
    }
    // A dynamic reference leads elsewhere when its schema is come to by another way.
    let item = |folder: &str, kind: Value| {
        json!({
            "$id": format!("https://example.com/{folder}"),
            "$ref": "https://example.com/list",
            "$defs": {"item": {"$dynamicAnchor": "item", "anyOf": [kind]}},
        })
    };
    let mut heavy = item("heavy", json!({"$ref": "#/$defs/d0"}));
    heavy["$defs"]
        .as_object_mut()
        .unwrap()
        .append(&mut definitions(&|level| format!("#/$defs/d{level}")));
    let list = json!({
        "$id": "https://example.com/list",
        "items": {"$dynamicRef": "#item"},
        "$defs": {"item": {"$dynamicAnchor": "item"}},
    });
    let dynamic = json!({
        "properties": {"light": {"$ref": "https://example.com/light"}, "heavy": {"$ref": "https://example.com/heavy"}},
        "$defs": {"list": list, "light": item("light", json!({"type": "string"})), "heavy": heavy},
    });
    assert!(
        refused(&dynamic).contains("branches and references"),
        "{}",
        refused(&dynamic)
    );
}

#[test]
fn lists_of_names_and_values_count() {
    let names: Vec<String> = (0..5_000).map(|number| format!("name {number}")).collect();
    let objects = |count: usize| json!({ "v": vec![json!({}); count] });
    for keywords in [
        json!({ "required": names }),
        json!({ "enum": names.iter().map(|name| json!({ "is": name })).collect::<Vec<_>>() }),
    ] {
        let each =
            Schema::compile(&json!({"properties": {"v": {"type": "array", "items": keywords}}}))
                .unwrap();
        assert!(
            each.check(&objects(100))
                .unwrap_err()
                .contains("too large or too deep to say where")
        );
        assert!(
            each.check(&objects(10_000))
                .unwrap_err()
                .contains("too many parts")
        );
    }
    // Names that are looked up cost nothing more.
    let named = Schema::compile(&json!({"items": {"enum": names}})).unwrap();
    assert_eq!(named.check(&json!(vec!["name 7"; 10_000])), Ok(()));
    let measured = json!({"allOf": vec![json!({"$ref": "#/$defs/short"}); 5_000], "$defs": {"short": {"maxLength": 1_000_000}}});
    let measured = Schema::compile(&measured).unwrap();
    assert_eq!(measured.check(&json!("a short text")), Ok(()));
    assert!(
        measured
            .check(&json!("a".repeat(900_000)))
            .unwrap_err()
            .contains("text is too long")
    );
}

#[test]
fn reasons_are_short_whatever_the_value_is() {
    let closed =
        Schema::compile(&json!({"properties": {"name": true}, "additionalProperties": false}))
            .unwrap();
    let members: serde_json::Map<String, Value> = (0..50_000)
        .map(|number| (format!("größe {number}"), json!(1)))
        .collect();
    let reason = closed.check(&Value::Object(members)).unwrap_err();
    assert!(reason.len() < 400 && reason.ends_with('…'), "{reason:.500}");
}

#[test]
fn a_schema_that_is_no_use_to_check_is_refused() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert!(refused(&deep).contains("nested more than"));
    let wide: Vec<Value> = (0..30_000).map(|number| json!(number)).collect();
    assert!(refused(&json!({ "enum": wide })).contains("parts"));
    let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}});
    assert!(refused(&endless).contains("would not end"));
    let chain: serde_json::Map<String, Value> = (0..1_000)
        .map(|level| {
            (
                format!("d{level}"),
                json!({"$ref": format!("#/$defs/d{}", level + 1)}),
            )
        })
        .chain([("d1000".to_owned(), json!(true))])
        .collect();
    assert!(refused(&json!({"$ref": "#/$defs/d0", "$defs": chain})).contains("steps deep"));
    let long = json!({"type": "string", "pattern": "a".repeat(5_000)});
    assert!(refused(&long).contains("pattern"));
    let repeated = json!({"type": "string", "pattern": "((a{1,500}){1,500}){1,500}"});
    assert!(refused(&repeated).contains("repeat"));
    // Letters of all languages take much memory when they are repeated, also where the expression
    // looks around.
    for pattern in ["^\\p{L}{1,60}$", "^(?!x)\\p{L}{1,60}$"] {
        let named = |count: usize| -> serde_json::Map<String, Value> {
            (0..count)
                .map(|number| (format!("n{number}"), json!({ "pattern": pattern })))
                .collect()
        };
        assert!(
            Schema::compile(&json!({ "properties": named(3) })).is_ok(),
            "{pattern}"
        );
        assert!(
            refused(&json!({ "properties": named(30) })).contains("repeat"),
            "{pattern}"
        );
    }
}

#[test]
fn patterns_are_matched_in_bounded_time() {
    let with = |pattern: &str| {
        let schema =
            json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        Schema::compile(&schema).unwrap()
    };
    let hostile = with("(?<!x)(a+)+$");
    for length in [10, 3_000, 30_000] {
        let text = format!("{}!", "a".repeat(length));
        assert!(hostile.check(&json!({ "x": text })).is_err(), "{length}");
    }
    let misfit = hostile
        .check(&json!({"x": "a".repeat(40_000)}))
        .unwrap_err();
    assert!(misfit.contains("pattern that looks around"), "{misfit}");
    // What people write works as it did.
    let password = with(r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,}$");
    assert_eq!(password.check(&json!({"x": "Passw0rd"})), Ok(()));
    assert!(password.check(&json!({"x": "password"})).is_err());
    let name = with(r"^[\p{L}\p{N}_-]{1,64}$");
    assert_eq!(name.check(&json!({"x": "größe_1"})), Ok(()));
}

#[test]
fn elements_are_compared_up_to_a_bound() {
    let schema = Schema::compile(&json!({"type": "array", "uniqueItems": true})).unwrap();
    let objects =
        |count: usize| Value::Array((0..count).map(|number| json!({ "n": number })).collect());
    assert_eq!(schema.check(&objects(4_000)), Ok(()));
    assert!(
        schema
            .check(&objects(40_000))
            .unwrap_err()
            .contains("compare")
    );
}

/// Schemas of real tools and answers are validated to the last path.
#[test]
fn usual_schemas_and_values_are_checked_as_ever() {
    let tree = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["name"],
    }))
    .unwrap();
    let leaf = |name: Value| json!({ "name": name, "children": [] });
    let wide: Vec<Value> = (0..500)
        .map(|number| leaf(json!(format!("leaf {number}"))))
        .collect();
    assert_eq!(
        tree.check(&json!({ "name": "root", "children": wide })),
        Ok(())
    );
    let mut deep = leaf(json!(7));
    for level in 0..20 {
        deep = json!({ "name": format!("level {level}"), "children": [deep] });
    }
    let misfit = tree.check(&deep).unwrap_err();
    assert!(
        misfit.contains("/children/0/name: 7 is not of type \"string\""),
        "{misfit}"
    );
    let branches = (0..20).fold(
        json!({"type": "string"}),
        |inner, _| json!({"anyOf": [{"allOf": [inner]}, {"type": "null"}]}),
    );
    let misfit = Schema::compile(&json!({"properties": {"v": branches}}))
        .unwrap()
        .check(&json!({"v": 1}));
    assert!(
        misfit
            .unwrap_err()
            .starts_with("/v: 1 is not valid under any"),
        "branches within branches"
    );
    let rows = Schema::compile(&json!({
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}, "words": {"type": "string"}}},
    }))
    .unwrap();
    let table: Vec<Value> = (0..20_000)
        .map(|id| json!({ "id": id, "words": "some words" }))
        .collect();
    assert_eq!(rows.check(&Value::Array(table)), Ok(()));
}
