use serde_json::{Value, json};

use super::*;

/// As deep as it says: arrays within arrays.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// Each level is checked against two branches that both go deeper.
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
        assert!(levels < 18 || misfit.contains("too large or too deep"), "{levels}: {misfit}");
        let fits = schema.check(&json!({"v": "never"}));
        assert_eq!(fits, Ok(()));
    }
    let misfit = schema.check(&json!({ "v": nested(2) })).unwrap_err();
    assert!(misfit.starts_with("/v: "), "a small one is told where: {misfit}");
    let misfit = schema.check(&json!({ "v": nested(1_000) })).unwrap_err();
    assert!(misfit.contains("nested too deep"), "{misfit}");
}

#[test]
fn definitions_that_double_are_refused_before_anything_is_checked() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        definitions.insert(format!("d{level}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    assert!(
        refused(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).contains("branches and references")
    );
}

#[test]
fn a_schema_that_is_no_use_to_check_is_refused() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert!(refused(&deep).contains("nested more than"));
    let wide: Vec<Value> = (0..30_000).map(|number| json!(number)).collect();
    assert!(refused(&json!({ "enum": wide })).contains("parts"));
    let endless =
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}});
    assert!(refused(&endless).contains("would not end"));
    let chain: serde_json::Map<String, Value> = (0..1_000)
        .map(|level| (format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)})))
        .chain([("d1000".to_owned(), json!(true))])
        .collect();
    assert!(refused(&json!({"$ref": "#/$defs/d0", "$defs": chain})).contains("steps deep"));
    let long = json!({"type": "string", "pattern": "a".repeat(5_000)});
    assert!(refused(&long).contains("pattern"));
    let repeated = json!({"type": "string", "pattern": "((a{1,500}){1,500}){1,500}"});
    assert!(refused(&repeated).contains("repeat"));
}

#[test]
fn patterns_are_matched_in_bounded_time() {
    let with = |pattern: &str| {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        Schema::compile(&schema).unwrap()
    };
    let hostile = with("(?<!x)(a+)+$");
    for length in [10, 3_000, 30_000] {
        let text = format!("{}!", "a".repeat(length));
        assert!(hostile.check(&json!({ "x": text })).is_err(), "{length}");
    }
    let misfit = hostile.check(&json!({"x": "a".repeat(40_000)})).unwrap_err();
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
    let objects = |count: usize| Value::Array((0..count).map(|number| json!({ "n": number })).collect());
    assert_eq!(schema.check(&objects(4_000)), Ok(()));
    assert!(schema.check(&objects(40_000)).unwrap_err().contains("compare"));
}

/// What real tools and answers are like is checked to the last place.
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
    let wide: Vec<Value> = (0..500).map(|number| leaf(json!(format!("leaf {number}")))).collect();
    assert_eq!(tree.check(&json!({ "name": "root", "children": wide })), Ok(()));
    let mut deep = leaf(json!(7));
    for level in 0..20 {
        deep = json!({ "name": format!("level {level}"), "children": [deep] });
    }
    let misfit = tree.check(&deep).unwrap_err();
    assert!(misfit.contains("/children/0/name: 7 is not of type \"string\""), "{misfit}");
    let rows = Schema::compile(&json!({
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}, "words": {"type": "string"}}},
    }))
    .unwrap();
    let table: Vec<Value> = (0..20_000).map(|id| json!({ "id": id, "words": "some words" })).collect();
    assert_eq!(rows.check(&Value::Array(table)), Ok(()));
}
