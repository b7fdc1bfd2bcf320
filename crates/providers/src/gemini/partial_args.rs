//! Function arguments that arrive value by value, each with its JSON path.
//!
//! Source: `FunctionCall.partialArgs`, `FunctionCall.willContinue` and `PartialArg` in the vendor's
//! published types (Vertex AI, checked 2026-11-22). The vendor sends them on request; we do not
//! request them, but a proxy may.

use serde_json::{Map, Value};

use super::wire;

/// A call whose arguments are incomplete.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// The call's index in the answer.
    pub(super) index: u64,
    name: Option<String>,
    id: Option<String>,
    arguments: Value,
}

/// A step of a JSON Path (RFC 9535), of the two kinds that select a single value.
#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Item(usize),
}

impl OpenCall {
    pub(super) fn new(index: u64, call: &wire::FunctionCall) -> Self {
        let arguments = Value::Object(Map::new());
        Self {
            index,
            name: call.name.clone(),
            id: call.id.clone(),
            arguments,
        }
    }

    /// Returns true if `call` continues this one: name and id may be repeated, or absent.
    pub(super) fn continues_with(&self, call: &wire::FunctionCall) -> bool {
        let same = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => theirs.is_empty() || ours == theirs,
            (None, Some(theirs)) => theirs.is_empty(),
            (_, None) => true,
        };
        same(&self.name, &call.name) && same(&self.id, &call.id)
    }

    /// Adds the arguments of an event.
    ///
    /// # Errors
    /// The path of a value that cannot be placed.
    pub(super) fn add(&mut self, call: &wire::FunctionCall) -> Result<(), String> {
        if let Some(Value::Object(whole)) = &call.args {
            self.arguments = Value::Object(whole.clone());
        }
        for argument in call.partial_args.iter().flatten() {
            let path = argument.json_path.as_deref().unwrap_or_default();
            let place = parse_path(path).and_then(|steps| slot(&mut self.arguments, &steps));
            let place = place.ok_or_else(|| path.to_owned())?;
            match (argument.value(), place) {
                // Text arrives in pieces.
                (Some(Value::String(more)), Value::String(text)) => text.push_str(&more),
                (Some(value), place) => *place = value,
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Returns the arguments so far as JSON text.
    pub(super) fn to_json_text(&self) -> String {
        self.arguments.to_string()
    }

    /// Returns the arguments as JSON text without its last bracket: malformed on purpose, so that
    /// the incomplete call is never run.
    pub(super) fn to_truncated_json(&self) -> String {
        let mut text = self.to_json_text();
        text.pop();
        text
    }
}

/// Returns the place of a value; creates it if it is a new member or the next item of its list.
fn slot<'a>(root: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    let mut value = root;
    for step in steps {
        if value.is_null() {
            *value = match step {
                Step::Member(_) => Value::Object(Map::new()),
                Step::Item(_) => Value::Array(Vec::new()),
            };
        }
        value = match (step, value) {
            (Step::Member(name), Value::Object(members)) => {
                members.entry(name.as_str()).or_insert(Value::Null)
            }
            (Step::Item(at), Value::Array(items)) => {
                // Only the next item: a path to item 1,000,000 must not allocate a million.
                if *at == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*at)?
            }
            (_, _) => return None,
        };
    }
    Some(value)
}

/// Levels of nesting at most: `serde_json` parses no deeper.
const DEPTH_MAX: usize = 127;

/// Parses a path like `$.a.b[0]['c d']`, which has at least one step and at most [`DEPTH_MAX`].
fn parse_path(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, behind) = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            (Step::Member(name[..end].to_owned()), &name[end..])
        } else {
            let inside = rest.strip_prefix('[')?;
            match inside.chars().next()? {
                quote @ ('\'' | '"') => {
                    let (name, behind) = parse_quoted(&inside[1..], quote)?;
                    (Step::Member(name), behind.strip_prefix(']')?)
                }
                _ => {
                    let (at, behind) = inside.split_once(']')?;
                    (Step::Item(at.parse().ok()?), behind)
                }
            }
        };
        steps.push(step);
        if steps.len() > DEPTH_MAX {
            return None;
        }
        rest = behind;
    }
    (!steps.is_empty()).then_some(steps)
}

/// Splits text at an unescaped quote; the part before it is unescaped.
fn parse_quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            c if c == quote => return Some((name, &text[at + c.len_utf8()..])),
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn added(pieces: Value) -> Result<Value, String> {
        let call = json!({ "name": "t", "partialArgs": pieces });
        let call: wire::FunctionCall = serde_json::from_value(call).unwrap();
        let mut open = OpenCall::new(0, &call);
        open.add(&call)?;
        Ok(open.arguments)
    }

    #[test]
    fn values_find_their_place() {
        let pieces = json!([
            {"jsonPath": "$.city", "stringValue": "Grü", "willContinue": true},
            {"jsonPath": "$.city", "stringValue": "nau"},
            {"jsonPath": "$.days", "numberValue": 3},
            {"jsonPath": "$.exact", "boolValue": false},
            {"jsonPath": "$.until", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.stops[0].name", "stringValue": "a"},
            {"jsonPath": "$.stops[1]['the name']", "stringValue": "b"},
            {"jsonPath": "$[\"it\\\"s\"][0][0]", "numberValue": 0.5},
            {"jsonPath": "$.nothing"},
        ]);
        assert_eq!(
            added(pieces).unwrap(),
            json!({
                "city": "Grünau", "days": 3, "exact": false, "until": null,
                "stops": [{"name": "a"}, {"the name": "b"}], "it\"s": [[0.5]], "nothing": null,
            })
        );
    }

    #[test]
    fn what_has_no_place_is_an_error() {
        // Deeper than anything that is JSON: it would be freed level by level on the stack.
        let deep = format!("${}", ".a".repeat(1_000_000));
        assert_eq!(
            added(json!([{"jsonPath": deep, "stringValue": "x"}])),
            Err(deep)
        );
        for path in [
            "",
            "$",
            "city",
            "$.list[1]",
            "$.list[-1]",
            "$.list[*]",
            "$['open",
            "$[0]",
            "$..a..",
            "$.a[4294967296]",
        ] {
            let pieces = json!([{"jsonPath": path, "stringValue": "x"}]);
            // `..` is a member without a name here, which no schema has.
            assert_eq!(added(pieces).is_err(), !path.starts_with("$.."), "{path}");
        }
        let through_text =
            json!([{"jsonPath": "$.a", "numberValue": 1}, {"jsonPath": "$.a.b", "numberValue": 1}]);
        assert_eq!(added(through_text), Err("$.a.b".to_owned()));
    }

    proptest! {
        #[test]
        fn no_path_breaks_it(path in "\\$[.\\[\\]'\"a-c0-2\\\\ä]{0,12}") {
            let _ = added(json!([{"jsonPath": path, "stringValue": "x"}]));
        }
    }
}
