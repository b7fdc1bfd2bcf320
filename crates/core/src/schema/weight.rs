//! What a schema can cost to check at most, before anything is checked against it.
//!
//! Schemas come from foreign servers and from clients, and a small one can take exponential time: definitions that refer to
//! each other twice, branches within branches, patterns that backtrack. What is counted here is an upper bound, found by
//! looking at the schema once; what it allows is decided in the module above.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;
use regex_syntax::hir::{Hir, HirKind};
use serde_json::{Map, Value};

use super::UnusableSchema;

/// Values in a schema document, whatever they are.
const NODES_MAX: usize = 20_000;
/// Values within values of a schema document.
const DEPTH_MAX: usize = 96;
/// Subschemas, each as often as references lead to it.
const SUBSCHEMAS_MAX: u64 = 20_000;
/// References and parts that lead from one to the next.
const STEPS_MAX: usize = 256;
/// References whose target is not found by name or place; each may lead anywhere.
const UNKNOWN_REFERENCES_MAX: u32 = 8;
/// Bytes of one regular expression.
const PATTERN_BYTES_MAX: usize = 4096;
/// What the regular expressions of a schema may repeat, added up.
const PATTERN_STATES_MAX: u64 = 20_000;

/// What a schema can cost to check at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Weight {
    /// Subschemas, each as often as references lead to it; one that leads back to where it began counts once.
    pub(super) subschemas: u64,
    /// How many subschemas stand in each other for one and the same value.
    pub(super) nesting: usize,
    /// It refers to itself, so it is as deep as the value.
    pub(super) is_recursive: bool,
    /// What its regular expressions repeat, added up. 0: it has none.
    pub(super) states: u64,
    /// One of its regular expressions looks around or back, which takes backtracking.
    pub(super) backtracks: bool,
    /// It compares the elements of arrays with each other.
    pub(super) compares: bool,
}

/// What a subschema is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To<'s> {
    /// The same value.
    Here,
    /// The member of this name.
    Member(&'s str),
    /// The element at this place.
    Nth(usize),
    /// Any member or element.
    Each,
}

/// The subschemas of a schema that are checked against values.
fn applied(schema: &Map<String, Value>) -> Vec<(To<'_>, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("not" | "if" | "then" | "else", _) => found.push((To::Here, value)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                found.extend(all.iter().map(|one| (To::Here, one)));
            }
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                found.extend(all.values().filter(|one| !one.is_array()).map(|one| (To::Here, one)));
            }
            ("items" | "prefixItems", Value::Array(all)) => {
                found.extend(all.iter().enumerate().map(|(at, one)| (To::Nth(at), one)));
            }
            ("properties", Value::Object(all)) => {
                found.extend(all.iter().map(|(name, one)| (To::Member(name), one)));
            }
            ("patternProperties", Value::Object(all)) => {
                found.extend(all.values().map(|one| (To::Each, one)));
            }
            (
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contentSchema",
                _,
            ) => found.push((To::Each, value)),
            _ => {}
        }
    }
    found
}

/// Counts what a schema can cost at most.
///
/// # Errors
/// [`UnusableSchema`] if that cannot be bounded, or is beyond what is checked here.
pub(super) fn weigh(schema: &Value) -> Result<Weight, UnusableSchema> {
    let seen = Seen::of(schema)?;
    let mut count = Count {
        targets: Targets { root: schema, named: &seen.named },
        counted: HashMap::new(),
        entered: HashSet::new(),
        nesting: 0,
        is_recursive: false,
        unknown: 0,
    };
    let subschemas = count.total(schema, &mut Vec::new())?.subschemas;
    Ok(Weight {
        subschemas,
        nesting: count.nesting,
        is_recursive: count.is_recursive || count.unknown > 0,
        states: seen.states,
        backtracks: seen.backtracks,
        compares: seen.compares,
    })
}

/// Counts how many subschemas a check of this value visits at most if it names every place that does not fit: unlike a yes
/// or no, that takes every branch to its end. Gives up at `max`.
pub(super) fn visits(schema: &Value, value: &Value, max: u64) -> u64 {
    let Ok(seen) = Seen::of(schema) else { return max };
    let targets = Targets { root: schema, named: &seen.named };
    Visits { targets, max, known: HashMap::new() }.of(schema, value)
}

fn unusable(reason: impl Into<String>) -> UnusableSchema {
    UnusableSchema(reason.into())
}

/// A look at every value of the document, each once.
struct Seen<'s> {
    nodes: usize,
    states: u64,
    backtracks: bool,
    compares: bool,
    /// Schemas with a name: `$id`, `$anchor`, `$dynamicAnchor`.
    named: HashMap<String, &'s Value>,
}

impl<'s> Seen<'s> {
    fn of(schema: &'s Value) -> Result<Self, UnusableSchema> {
        let mut seen =
            Self { nodes: 0, states: 0, backtracks: false, compares: false, named: HashMap::new() };
        seen.document(schema, 0)?;
        Ok(seen)
    }

    fn document(&mut self, value: &'s Value, depth: usize) -> Result<(), UnusableSchema> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(unusable(format!("it has more than {NODES_MAX} parts")));
        }
        if depth > DEPTH_MAX {
            return Err(unusable(format!("it is nested more than {DEPTH_MAX} deep")));
        }
        match value {
            Value::Object(map) => {
                self.keywords(map, value)?;
                map.values().try_for_each(|value| self.document(value, depth + 1))
            }
            Value::Array(all) => all.iter().try_for_each(|value| self.document(value, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn keywords(&mut self, map: &'s Map<String, Value>, schema: &'s Value) -> Result<(), UnusableSchema> {
        for name in ["$id", "id", "$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = map.get(name) {
                self.named.entry(last_part(name).to_owned()).or_insert(schema);
            }
        }
        if let Some(Value::String(pattern)) = map.get("pattern") {
            self.pattern(pattern)?;
        }
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            patterns.keys().try_for_each(|pattern| self.pattern(pattern))?;
        }
        self.compares |= map.get("uniqueItems") == Some(&Value::Bool(true));
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), UnusableSchema> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(unusable(format!("a pattern of it is longer than {PATTERN_BYTES_MAX} bytes")));
        }
        match regex_syntax::parse(pattern) {
            Ok(hir) => self.states = self.states.saturating_add(states(&hir)),
            // It looks around or back, or is no expression at all; then it is refused where it is compiled.
            Err(_) => {
                self.backtracks = true;
                self.states = self.states.saturating_add(pattern.len() as u64);
            }
        }
        if self.states > PATTERN_STATES_MAX {
            return Err(unusable("its patterns repeat too much to be checked in bounded time"));
        }
        Ok(())
    }
}

/// How many places a regular expression has, each as often as it is repeated.
fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            states(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => states(&capture.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            all.iter().map(states).fold(0, u64::saturating_add)
        }
    }
}

/// The name in a reference or identifier: what stands behind the last `/` and `#`.
fn last_part(reference: &str) -> &str {
    let name = reference.trim_end_matches('#');
    name.rsplit(['/', '#']).next().unwrap_or(name)
}

/// Where references lead.
#[derive(Clone, Copy)]
struct Targets<'s, 'n> {
    root: &'s Value,
    named: &'n HashMap<String, &'s Value>,
}

impl<'s> Targets<'s, '_> {
    /// What the references of a schema lead to, where that is found in the document.
    fn of(self, schema: &'s Map<String, Value>) -> impl Iterator<Item = Option<&'s Value>> {
        ["$ref", "$dynamicRef", "$recursiveRef"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword).and_then(Value::as_str))
            .map(move |reference| self.find(reference))
    }

    fn find(self, reference: &str) -> Option<&'s Value> {
        let unescaped = |place: &str| percent_decode_str(place).decode_utf8_lossy().into_owned();
        match reference.split_once('#') {
            Some(("", "")) => Some(self.root),
            Some(("", place)) if place.starts_with('/') => self.root.pointer(&unescaped(place)),
            Some((document, place)) if place.starts_with('/') => {
                self.named.get(last_part(document))?.pointer(&unescaped(place))
            }
            _ => self.named.get(last_part(reference)).copied(),
        }
    }
}

/// Follows references from the root, as a check does.
struct Count<'s, 'n> {
    targets: Targets<'s, 'n>,
    counted: HashMap<*const Value, Total>,
    entered: HashSet<*const Value>,
    nesting: usize,
    is_recursive: bool,
    unknown: u32,
}

#[derive(Debug, Clone, Copy)]
struct Total {
    subschemas: u64,
    nesting: usize,
}

impl<'s> Count<'s, '_> {
    /// `here`: the schemas that are applied to the same value already.
    fn total(&mut self, schema: &'s Value, here: &mut Vec<*const Value>) -> Result<Total, UnusableSchema> {
        let Value::Object(map) = schema else { return Ok(Total { subschemas: 1, nesting: 1 }) };
        let id: *const Value = schema;
        if here.contains(&id) {
            return Err(unusable(
                "it refers to itself without going into the value, so a check would not end",
            ));
        }
        if let Some(total) = self.counted.get(&id) {
            return Ok(*total);
        }
        if !self.entered.insert(id) {
            self.is_recursive = true;
            return Ok(Total { subschemas: 1, nesting: 1 });
        }
        if self.entered.len() > STEPS_MAX {
            return Err(unusable(format!("its references lead more than {STEPS_MAX} steps deep")));
        }
        here.push(id);
        let mut total = Total { subschemas: 1, nesting: 0 };
        for (to, part) in applied(map) {
            match to {
                To::Here => total.add(to, self.total(part, here)?)?,
                To::Member(_) | To::Nth(_) | To::Each => {
                    total.add(to, self.total(part, &mut Vec::new())?)?;
                }
            }
        }
        for target in self.targets.of(map) {
            match target {
                Some(target) => total.add(To::Here, self.total(target, here)?)?,
                None => self.unknown += 1,
            }
        }
        if self.unknown > UNKNOWN_REFERENCES_MAX {
            return Err(unusable("it has too many references whose targets are not in it"));
        }
        total.nesting += 1;
        self.nesting = self.nesting.max(total.nesting);
        here.pop();
        self.entered.remove(&id);
        self.counted.insert(id, total);
        Ok(total)
    }
}

/// What a check visits, subschema by subschema and value by value; what is the same again is not counted again.
struct Visits<'s, 'n> {
    targets: Targets<'s, 'n>,
    max: u64,
    known: HashMap<(*const Value, *const Value), u64>,
}

impl<'s> Visits<'s, '_> {
    fn of(&mut self, schema: &'s Value, value: &Value) -> u64 {
        let Value::Object(map) = schema else { return 1 };
        let pair: (*const Value, *const Value) = (schema, value);
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        if self.known.len() as u64 >= self.max {
            return self.max;
        }
        let mut visits: u64 = 1;
        for (to, part) in applied(map) {
            let more = match (to, value) {
                // First whether it fits, then why not.
                (To::Here, _) => self.of(part, value).saturating_mul(2),
                (To::Member(name), Value::Object(members)) => {
                    members.get(name).map_or(0, |member| self.of(part, member))
                }
                (To::Nth(at), Value::Array(elements)) => {
                    elements.get(at).map_or(0, |element| self.of(part, element))
                }
                (To::Each, Value::Object(members)) => {
                    members.values().fold(0, |sum: u64, member| sum.saturating_add(self.of(part, member)))
                }
                (To::Each, Value::Array(elements)) => {
                    elements.iter().fold(0, |sum: u64, element| sum.saturating_add(self.of(part, element)))
                }
                _ => 0,
            };
            visits = visits.saturating_add(more);
            if visits >= self.max {
                return self.max;
            }
        }
        for target in self.targets.of(map) {
            visits = match target {
                Some(target) => visits.saturating_add(self.of(target, value)),
                None => self.max,
            };
        }
        let visits = visits.min(self.max);
        self.known.insert(pair, visits);
        visits
    }
}

impl Total {
    fn add(&mut self, to: To<'_>, part: Self) -> Result<(), UnusableSchema> {
        self.subschemas = self.subschemas.saturating_add(part.subschemas);
        if to == To::Here {
            self.nesting = self.nesting.max(part.nesting);
        }
        if self.subschemas > SUBSCHEMAS_MAX {
            return Err(unusable(format!(
                "its branches and references come to more than {SUBSCHEMAS_MAX} checks of one value"
            )));
        }
        Ok(())
    }
}
