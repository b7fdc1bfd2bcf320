//! Structured output: JSON Schemas that the final answer of a turn has to fit.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::repair::with_integers;
use crate::schema::{Schema, UnusableSchema};
use crate::schema_of::schema_of;

/// A compiled JSON Schema for the final answer of a turn. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OutputSchema(Arc<Compiled>);

/// Attempts to deserialise a value as the type that a schema is of. Returns the error.
type Read = fn(&Value) -> Result<(), String>;

#[derive(Debug)]
struct Compiled {
    json: Value,
    schema: Schema,
    /// `None`: the schema is of no Rust type.
    reads: Option<Read>,
}

/// An answer that fits its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Structured {
    /// The JSON text as the model wrote it, without surrounding text.
    pub text: String,
    /// The JSON text as a parsed value.
    pub value: Value,
}

impl OutputSchema {
    /// Compiles a schema like [`Schema::compile`].
    ///
    /// # Errors
    ///
    /// [`UnusableSchema`], also for a boolean schema, which would allow everything or nothing.
    pub fn new(schema: Value) -> Result<Self, UnusableSchema> {
        Self::compile(schema, None)
    }

    fn compile(schema: Value, reads: Option<Read>) -> Result<Self, UnusableSchema> {
        if !schema.is_object() {
            return Err(UnusableSchema("it must be a JSON object".to_owned()));
        }
        let compiled = Schema::compile(&schema)?;
        Ok(Self(Arc::new(Compiled {
            json: schema,
            schema: compiled,
            reads,
        })))
    }

    /// Compiles the schema of a Rust type ([`schema_of`]). An answer fits only if it can be
    /// deserialised as `T`, too.
    ///
    /// # Errors
    ///
    /// [`UnusableSchema`] if the type's annotations make an unusable schema.
    pub fn of<T: JsonSchema + DeserializeOwned>() -> Result<Self, UnusableSchema> {
        let reads = |value: &Value| match as_type::<T>(value) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        Self::compile(schema_of::<T>(), Some(reads))
    }

    /// Returns the schema as it was given.
    #[must_use]
    pub fn as_json(&self) -> &Value {
        &self.0.json
    }

    /// Returns true if the schema describes an object, which is all that the native formats of some
    /// providers accept.
    #[must_use]
    pub fn is_of_an_object(&self) -> bool {
        self.0.json.get("type").and_then(Value::as_str) == Some("object")
    }

    /// Returns the instruction for models without a native format for schemas. Always the same
    /// bytes.
    #[must_use]
    pub fn instruction(&self) -> String {
        format!(
            "When no more tools are needed, give your final answer as JSON and nothing else: one value that fits this \
             JSON Schema, without words or a code fence around it.\n{}",
            self.0.json
        )
    }

    /// Parses and validates an answer. A Markdown code fence around the JSON, with text before and
    /// after it, is tolerated.
    ///
    /// # Errors
    ///
    /// A message for the model: that there is no JSON, or which paths do not fit and what was
    /// expected. An answer that no `T` can be made of has the error of the type.
    pub fn read(&self, answer: &str) -> Result<Structured, String> {
        let text = unfenced(answer).trim();
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the answer is not JSON: {error}"))?;
        // Also where a provider enforces the schema: it may enforce a part of it.
        let fits = self.0.schema.check_as("the answer", &value);
        let reads = self.0.reads.map_or(Ok(()), |reads| reads(&value));
        match (fits, reads) {
            (Ok(()), Ok(())) => {}
            (Err(places), Ok(())) => return Err(places),
            (Ok(()), Err(reason)) => return Err(format!("the answer: {reason}")),
            // The type knows the names of its variants, and the schema the places.
            (Err(places), Err(reason)) => return Err(format!("{places}; {reason}")),
        }
        Ok(Structured {
            text: text.to_owned(),
            value,
        })
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

/// Deserialises an answer. An integer may be written with a fraction of zero.
pub(crate) fn as_type<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
        .or_else(|error| T::deserialize(&with_integers(value.clone())).map_err(|_| error))
}

/// Returns the content of the only code fence of an answer, or all of it. An answer that begins as
/// JSON has no fence, because strings may contain one.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    if answer.starts_with(['{', '[', '"']) {
        return answer;
    }
    let mut pieces = answer.split("```");
    match (pieces.next(), pieces.next(), pieces.next(), pieces.next()) {
        (Some(_), Some(fenced), Some(_), None) => {
            let inside = fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            // "```true```" has a language name and no content.
            if inside.trim().is_empty() {
                fenced
            } else {
                inside
            }
        }
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn person() -> OutputSchema {
        OutputSchema::new(json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
            "required": ["name", "age"],
            "additionalProperties": false,
        }))
        .unwrap()
    }

    #[test]
    fn json_is_read_with_or_without_a_fence() {
        for answer in [
            r#"{"name": "Ann", "age": 3}"#,
            "\n {\"name\": \"Ann\", \"age\": 3}\n",
            "```json\n{\"name\": \"Ann\", \"age\": 3}\n```",
            "Here it is:\n```\n{\"name\": \"Ann\", \"age\": 3}\n```\nAnything else?",
            "```json5 {\"name\": \"Ann\", \"age\": 3}```",
        ] {
            let read = person().read(answer).unwrap();
            assert_eq!(read.value, json!({"name": "Ann", "age": 3}), "{answer}");
            assert_eq!(read.text, r#"{"name": "Ann", "age": 3}"#);
        }
        let fence_inside = r#"{"name": "```json {} ```", "age": 3}"#;
        assert_eq!(person().read(fence_inside).unwrap().text, fence_inside);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (answer, words) in [
            ("Ann is three.", "not JSON"),
            (r#"{"name": "Ann", "age": 3"#, "not JSON"),
            (
                r#"{"name": "Ann", "age": 3} {"name": "Bob", "age": 4}"#,
                "not JSON",
            ),
            ("```\n{}\n``` or ```\n{}\n```", "not JSON"),
            (
                r#"{"name": "Ann", "age": "three"}"#,
                r#"/age: "three" is not of type "integer""#,
            ),
            (
                r#"{"name": "Ann"}"#,
                r#"the answer: "age" is a required property"#,
            ),
            (
                r#"{"name": "Ann", "age": 3, "pet": "cat"}"#,
                "'pet' was unexpected",
            ),
            ("[]", r#"the answer: [] is not of type "object""#),
        ] {
            let error = person().read(answer).unwrap_err();
            assert!(error.contains(words), "{answer} => {error}");
        }
    }

    #[test]
    fn any_type_may_be_asked_for() {
        let truth = OutputSchema::new(json!({"type": "boolean"})).unwrap();
        assert_eq!(truth.read("```true```").unwrap().value, json!(true));
        let list = OutputSchema::of::<Vec<u8>>().unwrap();
        assert_eq!(list.read("[1, 2]").unwrap().value, json!([1, 2]));
        assert!(list.read("[256]").is_err());
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused() {
        for schema in [
            json!(true),
            json!({"type": "objekt"}),
            json!({"$ref": "https://a.example/s.json"}),
        ] {
            assert!(OutputSchema::new(schema.clone()).is_err(), "{schema}");
        }
    }

    #[test]
    fn the_instruction_holds_the_schema_and_is_the_same_every_time() {
        let text = person().instruction();
        assert!(text.contains(r#""required":["name","age"]"#));
        assert_eq!(text, person().instruction());
    }
}
