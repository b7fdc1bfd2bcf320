//! A schema as a graph: its subschemas, and which others a check goes on to from each.
//!
//! References are followed by the resolver that the validator itself uses: whatever else found
//! another target would count another schema than the one that is checked.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jsonschema::{Draft, ReferencingError, Registry, RegistryBuilder, uri};
use referencing::Resolver;
use serde_json::{Map, Value};

use super::error::UnusableSchema;
use super::load::Load;
use super::pattern::Pattern;
use super::remote::NoRemote;

/// Subschemas in all, those of other documents that come with the validator with them.
const SUBSCHEMAS_MAX: usize = 20_000;
/// References and parts that lead from one to the next, on the shortest way to each.
const STEPS_MAX: usize = 256;
/// Documents with an identifier of their own that references lead through, and names of dynamic
/// anchors in them.
const DOCUMENTS_MAX: usize = 32;
const DYNAMIC_ANCHORS_MAX: usize = 8;
/// The dynamic anchor of the documents that come with the validator.
const ANCHOR_OF_METASCHEMAS: &str = "meta";
/// What a schema without an identifier of its own is called, as in the validator.
const DEFAULT_BASE: &str = "json-schema:///";

/// The subschemas of a schema. The first is the schema itself.
#[derive(Debug)]
pub(super) struct Graph(Vec<Subschema>);

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Subschema {
    /// What its own keywords cost for one value.
    pub(super) own: Load,
    /// Its `unevaluatedProperties` or `unevaluatedItems` ask for each of its parts once more what
    /// that has accepted.
    pub(super) asks_again: bool,
    /// Where a check goes on.
    pub(super) parts: Vec<(To, usize)>,
}

/// What a subschema is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// The same value.
    Here,
    /// The same value, by reference.
    Reference,
    /// The member of this name.
    Member(Box<str>),
    /// The element at this place.
    Nth(usize),
    /// Any member or element.
    Each,
}

impl To {
    /// Returns whether it is applied to the value that is being checked, not to a part of it.
    pub(super) fn is_same_value(&self) -> bool {
        matches!(self, Self::Here | Self::Reference)
    }
}

impl Graph {
    /// Finds the subschemas of a schema and follows its references.
    ///
    /// # Errors
    /// [`UnusableSchema`] if a reference leads out of the document, or there are too many
    /// subschemas.
    pub(super) fn of(schema: &Value, references: References<'_>) -> Result<Self, UnusableSchema> {
        if !references.are_any {
            return Builder::default().build(Place {
                schema,
                draft: Draft::default(),
                resolver: None,
                steps: 0,
            });
        }
        let mut anchors = references.dynamic_anchors;
        anchors.insert(ANCHOR_OF_METASCHEMAS);
        if anchors.len() > DYNAMIC_ANCHORS_MAX {
            return Err(UnusableSchema(format!(
                "it has more than {DYNAMIC_ANCHORS_MAX} dynamic anchors"
            )));
        }
        let unusable = |error: ReferencingError| UnusableSchema(error.to_string());
        let draft = Draft::default().detect(schema);
        let root = draft.create_resource_ref(schema);
        let base = uri::from_str(root.id().unwrap_or(DEFAULT_BASE)).map_err(unusable)?;
        let registry = Registry::new()
            .retriever(NoRemote)
            .draft(draft)
            .add(base.as_str(), schema)
            .and_then(RegistryBuilder::prepare)
            .map_err(unusable)?;
        let root = Place {
            schema,
            draft,
            resolver: Some(registry.resolver(base)),
            steps: 0,
        };
        Builder {
            anchors: anchors.into_iter().collect(),
            ..Builder::default()
        }
        .build(root)
    }

    /// Returns the subschema of a number.
    pub(super) fn get(&self, number: usize) -> &Subschema {
        &self.0[number]
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What the references of a schema are like.
#[derive(Debug, Default)]
pub(super) struct References<'s> {
    pub(super) are_any: bool,
    /// Names that dynamic references may lead to in another document than the next.
    pub(super) dynamic_anchors: BTreeSet<&'s str>,
}

/// A subschema in its document.
struct Place<'r> {
    schema: &'r Value,
    draft: Draft,
    /// What its references are relative to; none in a schema without any.
    resolver: Option<Resolver<'r>>,
    /// How far it is from the schema itself.
    steps: usize,
}

#[derive(Default)]
struct Builder<'r> {
    found: Vec<Subschema>,
    /// A subschema counts once for all ways to come to it that lead its dynamic references to the
    /// same targets.
    numbers: HashMap<(*const Value, usize), usize>,
    anchors: Vec<&'r str>,
    targets: HashMap<(String, Vec<*const Value>), usize>,
    /// The targets for the documents on a way.
    ways: HashMap<Vec<String>, usize>,
    open: VecDeque<(usize, Place<'r>)>,
}

impl<'r> Builder<'r> {
    fn build(mut self, root: Place<'r>) -> Result<Graph, UnusableSchema> {
        self.number(root)?;
        while let Some((number, place)) = self.open.pop_front() {
            let Value::Object(keywords) = place.schema else {
                continue;
            };
            let mut parts = Vec::new();
            for (to, part) in applied(keywords) {
                parts.push((to, self.number(place.at(part))?));
            }
            for target in place.targets(keywords) {
                parts.push((To::Reference, self.number(target)?));
            }
            self.found[number] = Subschema {
                own: own_load(keywords),
                asks_again: asks_again(keywords),
                parts,
            };
        }
        Ok(Graph(self.found))
    }

    /// Returns the number of a subschema, which is looked at later if it is new.
    fn number(&mut self, mut place: Place<'r>) -> Result<usize, UnusableSchema> {
        if place.steps > STEPS_MAX {
            return Err(UnusableSchema(format!(
                "its references lead more than {STEPS_MAX} steps deep"
            )));
        }
        place.enter();
        let key: (*const Value, usize) = (place.schema, self.dynamic_targets(&place)?);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = self.found.len();
        if number == SUBSCHEMAS_MAX {
            return Err(UnusableSchema(format!(
                "it has more than {SUBSCHEMAS_MAX} subschemas"
            )));
        }
        self.found.push(Subschema {
            own: Load {
                checks: 1,
                ..Load::default()
            },
            ..Subschema::default()
        });
        self.numbers.insert(key, number);
        self.open.push_back((number, place));
        Ok(number)
    }

    /// Returns a number for where dynamic references lead from here on.
    fn dynamic_targets(&mut self, place: &Place<'r>) -> Result<usize, UnusableSchema> {
        let Some(resolver) = &place.resolver else {
            return Ok(0);
        };
        let way = way(resolver)?;
        if let Some(number) = self.ways.get(&way) {
            return Ok(*number);
        }
        let by_anchor = self.anchors.iter().filter_map(|anchor| {
            way.iter().find_map(|document| {
                let found = resolver
                    .lookup(&format!("{document}#{anchor}"))
                    .ok()?
                    .contents();
                let is_dynamic =
                    found.get("$dynamicAnchor").and_then(Value::as_str) == Some(anchor);
                is_dynamic.then_some(std::ptr::from_ref(found))
            })
        });
        let recursive = resolver
            .lookup_recursive_ref()
            .ok()
            .map(|found| std::ptr::from_ref(found.contents()));
        let base = resolver.base_uri().as_str().to_owned();
        let targets = (base, by_anchor.chain(recursive).collect());
        let next = self.targets.len();
        let number = *self.targets.entry(targets).or_insert(next);
        self.ways.insert(way, number);
        Ok(number)
    }
}

/// Returns the documents on the way to a subschema, the outermost first, each once, and the one it
/// is in.
fn way(resolver: &Resolver<'_>) -> Result<Vec<String>, UnusableSchema> {
    let passed = resolver.dynamic_scope();
    let mut passed: Vec<&str> = passed.iter().map(jsonschema::Uri::as_str).collect();
    passed.reverse();
    let base = resolver.base_uri();
    passed.push(base.as_str());
    let mut way: Vec<String> = Vec::new();
    for document in passed {
        if !way.iter().any(|seen| seen == document) {
            way.push(document.to_owned());
        }
    }
    if way.len() > DOCUMENTS_MAX {
        return Err(UnusableSchema(format!(
            "its references lead through more than {DOCUMENTS_MAX} documents"
        )));
    }
    way.push(base.as_str().to_owned());
    Ok(way)
}

impl<'r> Place<'r> {
    fn at(&self, part: &'r Value) -> Self {
        Self {
            schema: part,
            draft: self.draft,
            resolver: self.resolver.clone(),
            steps: self.steps + 1,
        }
    }

    /// Takes over what the subschema says of itself: its draft and its identifier.
    fn enter(&mut self) {
        self.draft = self.draft.detect(self.schema);
        let Some(resolver) = &self.resolver else {
            return;
        };
        // An identifier that is none is told when the validator is built.
        if let Ok(inside) = resolver.in_subresource(self.draft.create_resource_ref(self.schema)) {
            self.resolver = Some(inside);
        }
    }

    /// Returns what the references of the subschema lead to. One that leads nowhere is told when
    /// the validator is built.
    fn targets(&self, keywords: &Map<String, Value>) -> Vec<Self> {
        let Some(resolver) = &self.resolver else {
            return Vec::new();
        };
        let named = ["$ref", "$dynamicRef"]
            .into_iter()
            .filter_map(|keyword| keywords.get(keyword).and_then(Value::as_str))
            // An empty one is none to the validator.
            .filter(|reference| !reference.is_empty())
            .filter_map(|reference| resolver.lookup(reference).ok());
        let recursive = keywords
            .get("$recursiveRef")
            .and_then(|_| resolver.lookup_recursive_ref().ok());
        named
            .chain(recursive)
            .map(|resolved| {
                let (schema, resolver, draft) = resolved.into_inner();
                Self {
                    schema,
                    draft,
                    resolver: Some(resolver),
                    steps: self.steps + 1,
                }
            })
            .collect()
    }
}

/// The subschemas of a schema that are checked against values.
fn applied(keywords: &Map<String, Value>) -> Vec<(To, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("not" | "if" | "then" | "else", _) => found.push((To::Here, value)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                found.extend(all.iter().map(|one| (To::Here, one)));
            }
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                found.extend(
                    all.values()
                        .filter(|one| !one.is_array())
                        .map(|one| (To::Here, one)),
                );
            }
            ("items" | "prefixItems", Value::Array(all)) => {
                found.extend(all.iter().enumerate().map(|(at, one)| (To::Nth(at), one)));
            }
            ("properties", Value::Object(all)) => {
                found.extend(
                    all.iter()
                        .map(|(name, one)| (To::Member(name.as_str().into()), one)),
                );
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

fn asks_again(keywords: &Map<String, Value>) -> bool {
    ["unevaluatedProperties", "unevaluatedItems"]
        .iter()
        .any(|keyword| keywords.contains_key(*keyword))
}

/// What the keywords of a subschema cost that lead to no other.
fn own_load(keywords: &Map<String, Value>) -> Load {
    let mut load = Load {
        checks: 1,
        ..Load::default()
    };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("required", Value::Array(names)) => load.checks += names.len() as u64,
            ("dependentRequired" | "dependencies", Value::Object(all)) => {
                let names = all
                    .values()
                    .filter_map(Value::as_array)
                    .map(|names| names.len() as u64 + 1);
                load.checks += names.sum::<u64>();
            }
            ("enum", Value::Array(values)) if !is_looked_up(values) => {
                load.checks += values.iter().map(parts).sum::<u64>();
            }
            ("pattern", Value::String(pattern)) => load = load.plus(Pattern::of(pattern).load()),
            ("patternProperties", Value::Object(patterns)) => {
                load = patterns
                    .keys()
                    .fold(load, |load, pattern| load.plus(Pattern::of(pattern).load()));
            }
            ("minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType", _) => {
                load.reads += 1
            }
            _ => {}
        }
    }
    load
}

/// Returns whether the validator finds a value among these without comparing it with each.
fn is_looked_up(values: &[Value]) -> bool {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    all(Value::is_string) || all(Value::is_i64)
}

/// Returns how many values are in a value, itself with them.
fn parts(value: &Value) -> u64 {
    match value {
        Value::Array(all) => 1 + all.iter().map(parts).sum::<u64>(),
        Value::Object(all) => 1 + all.values().map(parts).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
