//! Arguments that come value by value, each with its place.
//!
//! Source: `FunctionCall.partialArgs`, `FunctionCall.willContinue` and `PartialArg` in the vendor's
//! published types (Vertex AI, checked 2026-11-22). A vendor sends them where they are asked for;
//! we never do, a server in between may.

use serde_json::{Map, Value};

use super::wire;

/// A call whose arguments are not all there.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// Its number in the answer.
    pub(super) index: u64,
    name: Option<String>,
    id: Option<String>,
    arguments: Value,
}

/// A step of a JSON Path (RFC 9535), of the two kinds that name one value.
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

    /// Whether this is more of the same call: name and id may be repeated, or not.
    pub(super) fn continues_with(&self, call: &wire::FunctionCall) -> bool {
        let same = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => theirs.is_empty() || ours == theirs,
            (None, Some(theirs)) => theirs.is_empty(),
            (_, None) => true,
        };
        same(&self.name, &call.name) && same(&self.id, &call.id)
    }

    /// Adds what came. Fails with the path of a value that has no place.
    pub(super) fn add(&mut self, call: &wire::FunctionCall) -> Result<(), String> {
        if let Some(Value::Object(whole)) = &call.args {
            self.arguments = Value::Object(whole.clone());
        }
        for argument in call.partial_args.iter().flatten() {
            let path = argument.json_path.as_deref().unwrap_or_default();
            let place = steps(path).and_then(|steps| place(&mut self.arguments, &steps));
            let place = place.ok_or_else(|| path.to_owned())?;
            match (argument.value(), place) {
                // Text comes in pieces.
                (Some(Value::String(more)), Value::String(text)) => text.push_str(&more),
                (Some(value), place) => *place = value,
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// The arguments as JSON text.
    pub(super) fn whole(&self) -> String {
        self.arguments.to_string()
    }

    /// The same without its end, because it did not come: no JSON, so that nobody runs the call.
    pub(super) fn cut_off(&self) -> String {
        let mut text = self.whole();
        text.pop();
        text
    }
}

/// The value there; made if it is the next one of its list or a new member.
fn place<'a>(root: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
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

/// Values within values that arguments may have, as in JSON text.
const DEPTH_MAX: usize = 127;

/// `$.a.b[0]['c d']` as steps; at least one, and not deeper than JSON text is read.
fn steps(path: &str) -> Option<Vec<Step>> {
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
                    let (name, behind) = quoted(&inside[1..], quote)?;
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

/// Text up to an unescaped quote, and what is behind the quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
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
