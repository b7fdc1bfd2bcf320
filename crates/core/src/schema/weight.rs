//! An upper bound of the cost of validating against a schema, computed before the first validation.
//!
//! Schemas come from foreign servers and clients, and a small one can take exponential time:
//! definitions that refer to each other twice, nested branches, patterns that backtrack. The bound
//! is found by visiting the schema once; the module above decides which bounds are acceptable.

use std::collections::HashMap;

use serde_json::Value;

use super::error::UnusableSchema;
use super::graph::{Graph, References, Subschema, To};
use super::load::Load;
use super::pattern::Pattern;

/// Maximum number of values in a schema document.
const NODES_MAX: usize = 20_000;
/// Maximum depth of a schema document.
const DEPTH_MAX: usize = 96;
/// Maximum number of checks for one value: each subschema and each name or value that it lists, as
/// often as references lead to it.
const CHECKS_MAX: u64 = 20_000;
/// Maximum length of a chain of references and parts.
const STEPS_MAX: usize = 256;
/// Maximum length of a regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;
/// Maximum work for each byte of text: 20,000 states of regular expressions, or sixteen times as
/// many keywords that read text.
const READS_MAX: u64 = 320_000;
/// Maximum number of character ranges in all regular expressions, repetitions expanded: their
/// memory.
const RANGES_MAX: u64 = 200_000;

/// The upper bound of a schema's cost, and what is needed to count the checks of one value.
#[derive(Debug)]
pub(super) struct Weight {
    /// Cost for one value, multiplied by the number of references to it; a reference that returns
    /// to its origin counts once.
    pub(super) load: Load,
    /// Maximum nesting of subschemas that apply to the same value.
    pub(super) nesting: usize,
    /// True if it compares array elements with each other.
    pub(super) compares: bool,
    graph: Graph,
}

impl Weight {
    /// Computes the maximum cost of a schema.
    ///
    /// # Errors
    ///
    /// [`UnusableSchema`] if the cost is unbounded, or beyond the limits of this module.
    pub(super) fn compute(schema: &Value) -> Result<Self, UnusableSchema> {
        let mut seen = Seen::default();
        seen.value(schema, 0)?;
        let graph = Graph::build(schema, seen.references)?;
        let mut count = Count {
            graph: &graph,
            known: vec![None; graph.len()],
            entered: Vec::new(),
            nesting: 0,
        };
        let load = count.total(0)?.load;
        Ok(Self {
            load,
            nesting: count.nesting,
            compares: seen.compares,
            graph,
        })
    }

    /// Counts the checks that report every path of this value that does not fit. Unlike a yes or
    /// no, that follows every branch to its end. Stops at `max`.
    pub(super) fn visits(&self, value: &Value, max: u64) -> u64 {
        Visits {
            graph: &self.graph,
            max,
            known: HashMap::new(),
        }
        .of(0, value)
        .to_name
    }
}

fn unusable(reason: impl Into<String>) -> UnusableSchema {
    UnusableSchema(reason.into())
}

/// A visit of every value of the document, each once.
#[derive(Default)]
struct Seen<'s> {
    nodes: usize,
    ranges: u64,
    compares: bool,
    references: References<'s>,
}

impl<'s> Seen<'s> {
    fn value(&mut self, value: &'s Value, depth: usize) -> Result<(), UnusableSchema> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(unusable(format!("it has more than {NODES_MAX} parts")));
        }
        if depth > DEPTH_MAX {
            return Err(unusable(format!("it is nested more than {DEPTH_MAX} deep")));
        }
        match value {
            Value::Object(map) => {
                for (keyword, value) in map {
                    match (keyword.as_str(), value) {
                        ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                        ("patternProperties", Value::Object(patterns)) => {
                            patterns
                                .keys()
                                .try_for_each(|pattern| self.pattern(pattern))?;
                        }
                        ("uniqueItems", Value::Bool(true)) => self.compares = true,
                        ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                            self.references.are_any = true
                        }
                        ("$dynamicAnchor", Value::String(name)) => {
                            self.references.dynamic_anchors.insert(name);
                        }
                        _ => {}
                    }
                    self.value(value, depth + 1)?;
                }
                Ok(())
            }
            Value::Array(all) => all
                .iter()
                .try_for_each(|value| self.value(value, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), UnusableSchema> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(unusable(format!(
                "a pattern of it is longer than {PATTERN_BYTES_MAX} bytes"
            )));
        }
        // All patterns together: each of them is compiled, also in parts of the schema that nothing
        // refers to.
        self.ranges = self.ranges.saturating_add(Pattern::measure(pattern).ranges);
        if self.ranges > RANGES_MAX {
            return Err(unusable(
                "its patterns repeat too much to be checked in bounded memory",
            ));
        }
        Ok(())
    }
}

/// A sum over the subschemas, from the first on.
struct Count<'g> {
    graph: &'g Graph,
    known: Vec<Option<Total>>,
    /// Path from the first subschema to the current one, with the kind of each step.
    entered: Vec<(usize, bool)>,
    nesting: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    /// Cost of deciding whether a value fits.
    load: Load,
    /// Cost of repeating which parts of the value were accepted.
    again: Load,
    nesting: usize,
}

impl Count<'_> {
    fn total(&mut self, number: usize) -> Result<Total, UnusableSchema> {
        // Each subschema is visited once, however many references lead to it: the sum may be
        // exponential, the count of it must not be.
        if let Some(total) = self.known[number] {
            return Ok(total);
        }
        let graph = self.graph;
        let Subschema {
            own,
            asks_again,
            parts,
        } = graph.get(number);
        let mut total = Total {
            load: *own,
            again: Load::ONE_CHECK,
            nesting: 0,
        };
        for (to, part) in parts {
            total.add(to, self.part(number, to, *part)?, *asks_again)?;
        }
        if *asks_again {
            total.load = total.load.plus(total.again);
        }
        total.is_bounded()?;
        total.nesting += 1;
        self.nesting = self.nesting.max(total.nesting);
        self.known[number] = Some(total);
        Ok(total)
    }

    fn part(&mut self, number: usize, to: &To, part: usize) -> Result<Total, UnusableSchema> {
        // A path that returns to itself is a loop; see below which ones end.
        self.entered.push((number, to.is_same_value()));
        if self.entered.len() > STEPS_MAX {
            return Err(unusable(format!(
                "its references lead more than {STEPS_MAX} steps deep"
            )));
        }
        let total = match self
            .entered
            .iter()
            .position(|(entered, _)| *entered == part)
        {
            None => self.total(part)?,
            Some(at)
                if self.entered[at..]
                    .iter()
                    .all(|(_, is_same_value)| *is_same_value) =>
            {
                return Err(unusable(
                    "it refers to itself without going into the value, so a check would not end",
                ));
            }
            // Costs deeper in the value are counted with its parts.
            Some(_) => Total {
                load: Load::ONE_CHECK,
                nesting: 1,
                ..Total::default()
            },
        };
        self.entered.pop();
        Ok(total)
    }
}

impl Total {
    fn add(&mut self, to: &To, part: Self, asks_again: bool) -> Result<(), UnusableSchema> {
        self.load = self.load.plus(part.load);
        self.again = match to {
            To::Here => self.again.plus(part.load).plus(part.again),
            To::Reference => self.again.plus(part.again),
            To::Each if asks_again => self.again.plus(part.load),
            To::Each | To::Member(_) | To::Nth(_) => self.again,
        };
        if to.is_same_value() {
            self.nesting = self.nesting.max(part.nesting);
        }
        self.is_bounded()
    }

    fn is_bounded(&self) -> Result<(), UnusableSchema> {
        if self.load.checks > CHECKS_MAX {
            return Err(unusable(format!(
                "its branches and references come to more than {CHECKS_MAX} checks of one value"
            )));
        }
        if self.load.reads > READS_MAX {
            return Err(unusable(
                "its patterns repeat too much to be checked in bounded time",
            ));
        }
        Ok(())
    }
}

/// The visits of a validation, by subschema and value; equal ones count once.
struct Visits<'g> {
    graph: &'g Graph,
    max: u64,
    known: HashMap<(usize, *const Value), Visited>,
}

/// The checks of a value by a subschema.
#[derive(Debug, Clone, Copy, Default)]
struct Visited {
    /// Checks to decide whether it fits.
    to_decide: u64,
    /// Checks to repeat which parts were accepted.
    again: u64,
    /// Checks to report every path that does not fit.
    to_name: u64,
}

impl Visits<'_> {
    fn of(&mut self, number: usize, value: &Value) -> Visited {
        // Values are borrowed for as long as the visits last, so their addresses tell them apart.
        let key: (usize, *const Value) = (number, value);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let gives_up = Visited {
            to_decide: self.max,
            again: self.max,
            to_name: self.max,
        };
        // The memory of the visits is bounded with their number.
        if self.known.len() as u64 >= self.max {
            return gives_up;
        }
        // A reference that returns to the same value would have been rejected.
        let graph = self.graph;
        let Subschema {
            own,
            asks_again,
            parts,
        } = graph.get(number);
        let mut visited = Visited {
            to_decide: own.checks,
            again: 1,
            to_name: own.checks,
        };
        for (to, part) in parts {
            let part = self.part(to, *part, value);
            let Visited {
                to_decide,
                again,
                to_name,
            } = part;
            visited = visited.plus(match to {
                // First whether it fits, then the reasons.
                To::Here => Visited {
                    again: to_decide.saturating_add(again),
                    to_name: to_decide.saturating_add(to_name),
                    ..part
                },
                To::Reference => part,
                To::Each if *asks_again => Visited {
                    again: to_decide,
                    ..part
                },
                To::Each | To::Member(_) | To::Nth(_) => Visited { again: 0, ..part },
            });
            if visited.to_name >= self.max {
                return gives_up;
            }
        }
        if *asks_again {
            let Visited {
                to_decide,
                again,
                to_name,
            } = visited;
            visited.to_decide = to_decide.saturating_add(again);
            visited.to_name = to_name.saturating_add(again);
        }
        self.known.insert(key, visited);
        visited
    }

    /// Visits the parts of the value that a transition applies to.
    fn part(&mut self, to: &To, part: usize, value: &Value) -> Visited {
        let mut all = |values: &mut dyn Iterator<Item = &Value>| {
            values.fold(Visited::default(), |sum, value| {
                sum.plus(self.of(part, value))
            })
        };
        match (to, value) {
            (To::Here | To::Reference, _) => all(&mut std::iter::once(value)),
            (To::Member(name), Value::Object(members)) => {
                all(&mut members.get(&**name).into_iter())
            }
            (To::Nth(at), Value::Array(elements)) => all(&mut elements.get(*at).into_iter()),
            (To::Each, Value::Object(members)) => all(&mut members.values()),
            (To::Each, Value::Array(elements)) => all(&mut elements.iter()),
            _ => Visited::default(),
        }
    }
}

impl Visited {
    fn plus(self, other: Self) -> Self {
        Self {
            to_decide: self.to_decide.saturating_add(other.to_decide),
            again: self.again.saturating_add(other.again),
            to_name: self.to_name.saturating_add(other.to_name),
        }
    }
}
