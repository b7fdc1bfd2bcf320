//! JSON Schema check of tool arguments and of structured answers, compiled once.

mod weight; // what a schema can cost to check at most

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use weight::{Weight, visits, weigh};

/// How many subschemas may be visited to name every place that does not fit.
const VISITS_MAX: u64 = 200_000;
/// How many may be visited to say yes or no: each subschema for each part of a value.
const CHECKS_MAX: u64 = 5_000_000;
/// Subschemas within each other, along the depth of a value: a check is that deep on the stack.
const LEVELS_MAX: usize = 512;
/// Characters of a value for each repeated place of the regular expressions.
const MATCHES_MAX: u64 = 20_000_000;
/// Bytes of text in a value that expressions which backtrack are matched against, and steps back they may take.
const BACKTRACKED_BYTES_MAX: u64 = 32 * 1024;
const BACKTRACKS_MAX: usize = 2_000;
/// Elements of an array that are compared with each other.
const COMPARED_MAX: usize = 5_000;
/// Bytes of a reason that may repeat the value it is about.
const REASON_BYTES_MAX: usize = 300;

/// A compiled schema whose checks are bounded: what could take too long, or too much memory or stack, is refused with words
/// before it begins.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    weight: Weight,
    /// The document, if it refers to itself: what a check costs then depends on the value.
    recursive: Option<Value>,
}

/// A schema that cannot be used, with what the validator says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableSchema(pub String);

impl Schema {
    /// Compiles `schema`. The draft is the one `$schema` names, 2020-12 if it names none. A `$ref` to another document
    /// is refused, never fetched; so is a schema whose branches, references or patterns could not be checked in bounded time.
    ///
    /// # Errors
    /// [`UnusableSchema`].
    pub fn compile(schema: &Value) -> Result<Self, UnusableSchema> {
        let weight = weigh(schema)?;
        let validator = jsonschema::options()
            .with_retriever(NoRemote)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX))
            .build(schema)
            .map_err(|error| UnusableSchema(error.to_string()))?;
        let recursive = weight.is_recursive.then(|| schema.clone());
        Ok(Self { validator, weight, recursive })
    }

    /// Checks arguments; the error lists every place that does not fit: the path and what was expected there. A value that is
    /// too large or too deep to be checked against this schema does not fit; the error says so.
    ///
    /// # Errors
    /// The places, joined with `; `, at most eight of them.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.check_as("the arguments", value)
    }

    /// The same for a value of another name.
    pub(crate) fn check_as(&self, whole: &str, value: &Value) -> Result<(), String> {
        let size = Size::of(value);
        if let Some(bound) = self.is_beyond(&size) {
            return Err(format!("{whole}: too large to be checked: {bound}"));
        }
        if !self.can_name_places(value, &size) {
            let fits = self.validator.is_valid(value);
            let misfit =
                || format!("{whole}: does not fit the JSON Schema (too large or too deep to say where)");
            return if fits { Ok(()) } else { Err(misfit()) };
        }
        let places: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(8)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = if path.is_empty() { whole.to_owned() } else { path };
                let reason = error.to_string();
                // What is long was said by whoever reads this.
                let reason =
                    if reason.len() > REASON_BYTES_MAX { error.masked().to_string() } else { reason };
                format!("{path}: {reason}")
            })
            .collect();
        if places.is_empty() { Ok(()) } else { Err(places.join("; ")) }
    }

    /// Which bound a check of a value of this size would exceed.
    fn is_beyond(&self, size: &Size) -> Option<&'static str> {
        let Weight { subschemas, nesting, states, backtracks, compares, .. } = &self.weight;
        if subschemas.saturating_mul(size.parts) > CHECKS_MAX {
            Some("it has too many parts for this schema")
        } else if nesting.saturating_mul(size.depth) > LEVELS_MAX {
            Some("it is nested too deep for this schema")
        } else if states.saturating_mul(size.text_bytes) > MATCHES_MAX {
            Some("its text is too long for the patterns of this schema")
        } else if *backtracks && size.text_bytes > BACKTRACKED_BYTES_MAX {
            Some("its text is too long for a pattern that looks around")
        } else if *compares && size.elements > COMPARED_MAX {
            Some("it has too many elements to compare them with each other")
        } else {
            None
        }
    }

    /// Whether every place that does not fit can be named in bounded time: then all branches are taken to their ends.
    fn can_name_places(&self, value: &Value, size: &Size) -> bool {
        match &self.recursive {
            Some(schema) => visits(schema, value, VISITS_MAX) < VISITS_MAX,
            None => {
                let nesting = u64::try_from(self.weight.nesting).unwrap_or(u64::MAX);
                self.weight.subschemas.saturating_mul(size.parts).saturating_mul(nesting) <= VISITS_MAX
            }
        }
    }
}

/// How large a value is.
#[derive(Debug, Default)]
struct Size {
    /// Values in it, itself and names of members with them.
    parts: u64,
    /// Values within each other.
    depth: usize,
    /// Bytes of text and of names of members.
    text_bytes: u64,
    /// Elements of the longest array.
    elements: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let mut size = Self::default();
        let mut rest = vec![(value, 1)];
        while let Some((value, depth)) = rest.pop() {
            size.parts += 1;
            size.depth = size.depth.max(depth);
            match value {
                Value::String(text) => size.text_bytes += text.len() as u64,
                Value::Array(elements) => {
                    size.elements = size.elements.max(elements.len());
                    rest.extend(elements.iter().map(|element| (element, depth + 1)));
                }
                Value::Object(members) => {
                    size.text_bytes += members.keys().map(|name| name.len() as u64).sum::<u64>();
                    rest.extend(members.values().map(|member| (member, depth + 1)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        size
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

#[cfg(test)]
mod tests;
