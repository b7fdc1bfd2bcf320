//! JSON Schema check of tool arguments and of structured answers, compiled once.

use jsonschema::Validator;
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// A schema that cannot be used, with what the validator says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableSchema(pub String);

impl Schema {
    /// Compiles `schema`. The draft is the one `$schema` names, 2020-12 if it names none. A `$ref` to another document
    /// is refused, never fetched.
    ///
    /// # Errors
    /// [`UnusableSchema`].
    pub fn compile(schema: &Value) -> Result<Self, UnusableSchema> {
        jsonschema::options()
            .with_retriever(NoRemote)
            .build(schema)
            .map(Self)
            .map_err(|error| UnusableSchema(error.to_string()))
    }

    /// Checks arguments; the error lists every place that does not fit: the path and what was expected there.
    ///
    /// # Errors
    /// The places, joined with `; `, at most eight of them.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.check_as("the arguments", value)
    }

    /// The same for a value of another name.
    pub(crate) fn check_as(&self, whole: &str, value: &Value) -> Result<(), String> {
        let places: Vec<String> = self
            .0
            .iter_errors(value)
            .take(8)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = if path.is_empty() { whole.to_owned() } else { path };
                format!("{path}: {error}")
            })
            .collect();
        if places.is_empty() { Ok(()) } else { Err(places.join("; ")) }
    }
}

/// Looks nothing up: a schema that needs another document is refused.
struct NoRemote;

impl jsonschema::Retrieve for NoRemote {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("it refers to {uri}, and other documents are not fetched").into())
    }
}
