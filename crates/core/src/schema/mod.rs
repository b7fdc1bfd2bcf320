//! JSON Schema check of tool arguments and of structured answers, compiled once.

mod error; // what cannot be used
mod graph; // its subschemas, and where references lead
mod load; // what a check costs
mod pattern; // what a regular expression costs
mod remote; // other documents
mod weight; // what it can cost to check at most

pub use error::UnusableSchema;
use jsonschema::{PatternOptions, Validator};
use remote::NoRemote;
use serde_json::Value;
use weight::Weight;

/// How many checks may be made to name every place that does not fit.
const VISITS_MAX: u64 = 200_000;
/// How many to say yes or no: those of one value, for each part of it.
const CHECKS_MAX: u64 = 5_000_000;
/// Subschemas within each other, along the depth of a value: a check is that deep on the stack.
const LEVELS_MAX: usize = 512;
/// Work for the text of a value: 20,000,000 times a byte at a place of a regular expression.
const READS_MAX: u64 = 16 * 20_000_000;
/// Bytes of text in a value that expressions which backtrack are matched against, those bytes for
/// each of these expressions, and steps back that each may take.
const BACKTRACKED_BYTES_MAX: u64 = 32 * 1024;
const BACKTRACKED_IN_ALL_MAX: u64 = 1024 * 1024;
const BACKTRACKS_MAX: usize = 2_000;
/// How often the validator begins anew where an expression has taken all its steps back.
const RUNS_MAX: u64 = 64;
/// Elements of an array that are compared with each other.
const COMPARED_MAX: usize = 5_000;
/// Bytes of a reason; a longer one does not repeat the value it is about, and is cut if it is still
/// too long.
const REASON_BYTES_MAX: usize = 300;

/// A compiled schema whose checks are bounded: what could take too long, or too much memory or
/// stack, is refused with words before it begins.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    weight: Weight,
}

impl Schema {
    /// Compiles `schema`. The draft is the one `$schema` names, 2020-12 if it names none. A `$ref`
    /// to another document is refused, never fetched; so is a schema whose branches, references or
    /// patterns could not be checked in bounded time.
    ///
    /// # Errors
    /// [`UnusableSchema`].
    pub fn compile(schema: &Value) -> Result<Self, UnusableSchema> {
        let weight = Weight::of(schema)?;
        let validator = jsonschema::options()
            .with_retriever(NoRemote)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX))
            .build(schema)
            .map_err(|error| UnusableSchema(error.to_string()))?;
        Ok(Self { validator, weight })
    }

    /// Checks arguments; the error lists every place that does not fit: the path and what was
    /// expected there. A value that is too large or too deep to be checked against this schema does
    /// not fit; the error says so.
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
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let misfit = |why: &str| Err(format!("{whole}: does not fit the JSON Schema{why}"));
        let visits_max = VISITS_MAX / self.runs();
        if self.weight.visits(value, visits_max) >= visits_max {
            return misfit(" (too large or too deep to say where)");
        }
        let places: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(8)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = if path.is_empty() {
                    whole.to_owned()
                } else {
                    path
                };
                let mut reason = error.to_string();
                if reason.len() > REASON_BYTES_MAX {
                    // What is long was said by whoever reads this.
                    reason = error.masked().to_string();
                }
                if reason.len() > REASON_BYTES_MAX {
                    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
                    reason.push('…');
                }
                format!("{path}: {reason}")
            })
            .collect();
        if places.is_empty() {
            misfit("")
        } else {
            Err(places.join("; "))
        }
    }

    /// Which bound a check of a value of this size would exceed.
    fn is_beyond(&self, size: &Size) -> Option<&'static str> {
        let Weight {
            load,
            nesting,
            compares,
            ..
        } = &self.weight;
        if load
            .checks
            .saturating_mul(size.parts)
            .saturating_mul(self.runs())
            > CHECKS_MAX
        {
            Some("it has too many parts for this schema")
        } else if nesting.saturating_mul(size.depth) > LEVELS_MAX {
            Some("it is nested too deep for this schema")
        } else if load.reads.saturating_mul(size.text_bytes) > READS_MAX {
            Some("its text is too long for the patterns of this schema")
        } else if load.backtracks > 0
            && (size.text_bytes > BACKTRACKED_BYTES_MAX
                || load.backtracks.saturating_mul(size.text_bytes) > BACKTRACKED_IN_ALL_MAX)
        {
            Some("its text is too long for a pattern that looks around")
        } else if *compares && size.elements > COMPARED_MAX {
            Some("it has too many elements to compare them with each other")
        } else {
            None
        }
    }

    /// How often a check may be made from the beginning.
    fn runs(&self) -> u64 {
        if self.weight.load.backtracks > 0 {
            RUNS_MAX
        } else {
            1
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

#[cfg(test)]
mod tests;
