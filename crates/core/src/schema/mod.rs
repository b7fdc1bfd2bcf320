//! JSON Schema validation of tool arguments and structured answers, compiled once and bounded in
//! cost.

mod error; // what cannot be used
mod graph; // its subschemas, and where references lead
mod load; // what a check costs
mod pattern; // what a regular expression costs
mod remote; // other documents
mod weight; // what it can cost to check at most

pub use error::UnusableSchema;
use jsonschema::{PatternOptions, ValidationError, Validator};
use remote::NoRemote;
use serde_json::Value;
use weight::Weight;

/// Maximum number of checks to report every path that does not fit.
const VISITS_MAX: u64 = 200_000;
/// Maximum number of checks for a yes or no: those of one value, for each of its parts.
const CHECKS_MAX: u64 = 5_000_000;
/// Maximum nesting of subschemas along the depth of a value, which is the depth of the stack.
const LEVELS_MAX: usize = 512;
/// Maximum work on the text of a value: 20,000,000 pairs of a byte and a state of a regular
/// expression.
const READS_MAX: u64 = 16 * 20_000_000;
/// Maximum number of bytes that backtracking expressions are matched against, counted for each
/// expression, and of backtracking steps that each may take.
const BACKTRACKED_BYTES_MAX: u64 = 32 * 1024;
const BACKTRACKED_IN_ALL_MAX: u64 = 1024 * 1024;
const BACKTRACKS_MAX: usize = 2_000;
/// Maximum number of restarts of the validator after an expression used up its backtracking steps.
const RUNS_MAX: u64 = 64;
/// Maximum number of array elements that are compared with each other (`uniqueItems`).
const COMPARED_MAX: usize = 5_000;
/// Maximum length of an error message, in bytes. A longer one omits the value, and is cut if it is
/// still too long.
const REASON_BYTES_MAX: usize = 300;

/// A compiled schema with bounded validation: a value that could take too much time, memory or
/// stack is rejected with a message before validation starts.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    weight: Weight,
}

impl Schema {
    /// Compiles a schema. The draft is the one that `$schema` names, 2020-12 by default. References
    /// to other documents are rejected, never fetched; so are schemas whose branches, references or
    /// patterns could not be validated in bounded time.
    ///
    /// # Errors
    ///
    /// [`UnusableSchema`] with the reason.
    pub fn compile(schema: &Value) -> Result<Self, UnusableSchema> {
        // First: building the validator of a hostile schema can take all memory by itself.
        let weight = Weight::compute(schema)?;
        let validator = jsonschema::options()
            // Otherwise a schema of a foreign server could make this process send requests.
            .with_retriever(NoRemote)
            // The engine for look-around backtracks, in the worst case exponentially.
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX))
            .build(schema)
            .map_err(|error| UnusableSchema(error.to_string()))?;
        Ok(Self { validator, weight })
    }

    /// Validates arguments. A value that is too large or too deep for this schema does not fit.
    ///
    /// # Errors
    ///
    /// The paths that do not fit and what was expected there, joined with `; `, at most eight.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.check_as("the arguments", value)
    }

    /// Validates a value under another name in messages.
    pub(crate) fn check_as(&self, whole: &str, value: &Value) -> Result<(), String> {
        let size = Size::measure(value);
        if let Some(bound) = self.is_beyond(&size) {
            return Err(format!("{whole}: too large to be checked: {bound}"));
        }
        // A yes or no stops at the first answer. Reasons follow every branch to its end, so they
        // are only asked for if their number is bounded, too.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let misfit = |why: &str| Err(format!("{whole}: does not fit the JSON Schema{why}"));
        let Some(errors) = self.errors(value, &mut self.visits_max()) else {
            return misfit(" (too large or too deep to say where)");
        };
        let places: Vec<String> = errors
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
                    // The reader of the message knows a long value already.
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

    /// Returns the maximum number of checks for listings of all errors.
    pub(crate) fn visits_max(&self) -> u64 {
        VISITS_MAX / self.runs()
    }

    /// Returns all errors of a value, and takes the number of checks from `visits`. `None`: not
    /// enough of them are left.
    pub(crate) fn errors<'v>(
        &'v self,
        value: &'v Value,
        visits: &mut u64,
    ) -> Option<impl Iterator<Item = ValidationError<'v>> + use<'v>> {
        if self.is_beyond(&Size::measure(value)).is_some() {
            return None;
        }
        let cost = self.weight.visits(value, *visits);
        if cost >= *visits {
            return None;
        }
        *visits -= cost;
        Some(self.validator.iter_errors(value))
    }

    /// Returns the limit that validating a value of this size would exceed.
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

    /// Returns the number of times that validation may restart.
    fn runs(&self) -> u64 {
        if self.weight.load.backtracks > 0 {
            RUNS_MAX
        } else {
            1
        }
    }
}

/// The size of a value that is validated.
#[derive(Debug, Default)]
struct Size {
    /// Number of values in it, including itself and the names of members.
    parts: u64,
    /// Depth of nesting.
    depth: usize,
    /// Total length of texts and member names, in bytes.
    text_bytes: u64,
    /// Length of the longest array.
    elements: usize,
}

impl Size {
    fn measure(value: &Value) -> Self {
        let mut size = Self::default();
        // A list and no recursion: a value may be nested deeper than the stack, which is to be
        // found out here.
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
