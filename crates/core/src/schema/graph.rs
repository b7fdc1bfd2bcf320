//! A schema as a graph: its subschemas, and the transitions of validation between them.
//!
//! References are resolved by the resolver of the validator, so that the analysed schema is the one
//! that is validated.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jsonschema::{Draft, ReferencingError, Registry, RegistryBuilder, uri};
use referencing::Resolver;
use serde_json::{Map, Value};

use super::error::UnusableSchema;
use super::load::Load;
use super::pattern::Pattern;
use super::remote::NoRemote;

/// Maximum number of subschemas, including those of the meta-schemas that come with the validator.
const SUBSCHEMAS_MAX: usize = 20_000;
/// Maximum length of the shortest path to a subschema.
const STEPS_MAX: usize = 256;
/// Maximum number of embedded documents that references lead through, and of names of dynamic
/// anchors in them.
const DOCUMENTS_MAX: usize = 32;
const DYNAMIC_ANCHORS_MAX: usize = 8;
/// Dynamic anchor of the meta-schemas that come with the validator.
const ANCHOR_OF_METASCHEMAS: &str = "meta";
/// Base URI of a schema without an identifier, as in the validator.
const DEFAULT_BASE: &str = "json-schema:///";

/// The subschemas of a schema. The first is the schema itself.
#[derive(Debug)]
pub(super) struct Graph(Vec<Subschema>);

/// A node of the graph: a subschema with its transitions.
#[derive(Debug, Default)]
pub(super) struct Subschema {
    /// Cost of its own keywords for one value.
    pub(super) own: Load,
    /// True if its `unevaluatedProperties` or `unevaluatedItems` repeat the validation of its
    /// parts.
    pub(super) asks_again: bool,
    /// Transitions to other subschemas, by number.
    pub(super) parts: Vec<(To, usize)>,
}

/// The part of a value that a subschema is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// The same value, in place.
    Here,
    /// The same value, by reference.
    Reference,
    /// The member with this name.
    Member(Box<str>),
    /// The element with this index.
    Nth(usize),
    /// Every member or element.
    Each,
}

impl To {
    /// Returns true if the subschema is applied to the validated value itself, not to a part of it.
    pub(super) fn is_same_value(&self) -> bool {
        matches!(self, Self::Here | Self::Reference)
    }
}

impl Graph {
    /// Builds the graph of a schema and resolves its references.
    ///
    /// # Errors
    ///
    /// [`UnusableSchema`] if a reference leads out of the document, or there are too many
    /// subschemas.
    pub(super) fn build(
        schema: &Value,
        references: References<'_>,
    ) -> Result<Self, UnusableSchema> {
        // Most schemas have none, and need no registry of documents.
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

    /// Returns a subschema by its number.
    pub(super) fn get(&self, number: usize) -> &Subschema {
        &self.0[number]
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Properties of a schema's references.
#[derive(Debug, Default)]
pub(super) struct References<'s> {
    pub(super) are_any: bool,
    /// Names of dynamic anchors that exist in more than one document.
    pub(super) dynamic_anchors: BTreeSet<&'s str>,
}

/// A subschema with the document that it is in.
struct Place<'r> {
    schema: &'r Value,
    draft: Draft,
    /// Resolver of its references; `None` in a schema without any.
    resolver: Option<Resolver<'r>>,
    /// Length of the path from the root schema.
    steps: usize,
}

#[derive(Default)]
struct Builder<'r> {
    found: Vec<Subschema>,
    /// Numbers of known subschemas. One counts once for all paths on which its dynamic references
    /// have the same targets.
    numbers: HashMap<(*const Value, usize), usize>,
    anchors: Vec<&'r str>,
    targets: HashMap<(String, Vec<*const Value>), usize>,
    /// Numbers of known lists of documents on a path, which decide the targets of dynamic
    /// references.
    ways: HashMap<Vec<String>, usize>,
    open: VecDeque<(usize, Place<'r>)>,
}

impl<'r> Builder<'r> {
    fn build(mut self, root: Place<'r>) -> Result<Graph, UnusableSchema> {
        self.number(root)?;
        // First found, first visited, so that `steps` is the length of the shortest path.
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
                asks_again: keywords.contains_key("unevaluatedProperties")
                    || keywords.contains_key("unevaluatedItems"),
                parts,
            };
        }
        Ok(Graph(self.found))
    }

    /// Returns the number of a subschema, and queues it if it is new.
    fn number(&mut self, mut place: Place<'r>) -> Result<usize, UnusableSchema> {
        if place.steps > STEPS_MAX {
            return Err(UnusableSchema(format!(
                "its references lead more than {STEPS_MAX} steps deep"
            )));
        }
        // Before the key is made: an identifier in the subschema changes where its references lead.
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
        // A placeholder until the subschema is visited, for references that lead here before.
        self.found.push(Subschema {
            own: Load::ONE_CHECK,
            ..Subschema::default()
        });
        // Before its parts are visited: they may refer back to it.
        self.numbers.insert(key, number);
        self.open.push_back((number, place));
        Ok(number)
    }

    /// Returns a number for the targets of dynamic references from here on.
    fn dynamic_targets(&mut self, place: &Place<'r>) -> Result<usize, UnusableSchema> {
        let Some(resolver) = &place.resolver else {
            return Ok(0);
        };
        let way = way(resolver)?;
        // Most subschemas share one path of documents, so the look-ups are made once for each path.
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

/// Returns the documents on the path to a subschema, the outermost first, each once, including its
/// own.
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
    // Once more at the end: relative references depend on the document in which a path ends.
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

    /// Applies the draft and identifier that the subschema declares.
    fn enter(&mut self) {
        self.draft = self.draft.detect(self.schema);
        let Some(resolver) = &self.resolver else {
            return;
        };
        // An invalid identifier is reported when the validator is built.
        if let Ok(inside) = resolver.in_subresource(self.draft.create_resource_ref(self.schema)) {
            self.resolver = Some(inside);
        }
    }

    /// Returns the targets of the subschema's references. A dangling one is reported when the
    /// validator is built.
    fn targets(&self, keywords: &Map<String, Value>) -> Vec<Self> {
        let Some(resolver) = &self.resolver else {
            return Vec::new();
        };
        let named = ["$ref", "$dynamicRef"]
            .into_iter()
            .filter_map(|keyword| keywords.get(keyword).and_then(Value::as_str))
            // The validator ignores an empty reference.
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

/// Returns the subschemas of a schema that are applied to values.
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
                        // In older drafts `dependencies` may list names in the place of a schema.
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

/// Returns the cost of the keywords that lead to no other subschema.
fn own_load(keywords: &Map<String, Value>) -> Load {
    let mut load = Load::ONE_CHECK;
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
            ("pattern", Value::String(pattern)) => {
                load = load.plus(Pattern::measure(pattern).load())
            }
            ("patternProperties", Value::Object(patterns)) => {
                load = patterns.keys().fold(load, |load, pattern| {
                    load.plus(Pattern::measure(pattern).load())
                });
            }
            ("minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType", _) => {
                load.reads += 1
            }
            _ => {}
        }
    }
    load
}

/// Returns true if the validator finds a value among these by hash and not by comparison with each.
fn is_looked_up(values: &[Value]) -> bool {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    all(Value::is_string) || all(Value::is_i64)
}

/// Returns the number of values in a value, including itself.
fn parts(value: &Value) -> u64 {
    match value {
        Value::Array(all) => 1 + all.iter().map(parts).sum::<u64>(),
        Value::Object(all) => 1 + all.values().map(parts).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
