//! Guards: every argument of a call must rest on what the user wrote.
//!
//! The guards know tools only by their annotations, references and schemas, and refuse more than
//! they repair: the only repair is a number that the message has, and everything else that does not
//! fit becomes a question.

use serde_json::{Value, json};

use adjutant_core::{Arguments, Language, Reference, ToolDefinition};

use super::analysis::{self, Likeness, contains_phrase, imperative};
use super::clarification::Clarification;
use super::detect::detect;
use super::dialogue::Dialogue;
use super::entities;
use super::language::lists;
use super::quote::{More, Quote};
use super::tool_kind::{ToolKind, free_texts, is_verb_of, tool_kind, verbatim};

/// A call that the model asks for.
#[derive(Debug)]
pub(super) struct Proposed<'a> {
    pub(super) tool: &'a ToolDefinition,
    /// Arguments as the model wrote them, with references by name.
    pub(super) arguments: Arguments,
}

/// A call with ids, or the question that has to be asked instead.
pub(super) type Checked<'a> = Result<(&'a str, Arguments), Clarification<'a>>;

pub(super) struct Guard<'a> {
    pub(super) dialogue: &'a Dialogue,
    pub(super) entities: Vec<&'a Reference>,
    /// All tools but those that take a text verbatim.
    pub(super) tools: Vec<&'a ToolDefinition>,
    /// Texts of the message for the tools that do.
    pub(super) quotes: Vec<Quote<'a>>,
    /// The rest of the message.
    pub(super) more: More,
    /// The first word of the name of each tool that changes something.
    pub(super) verbs: Vec<&'a str>,
    /// Words of the message that may name something.
    pub(super) words: Vec<String>,
    /// For each entity, the indexes in `words` of those that match it.
    pub(super) hits: Vec<Vec<usize>>,
    /// True if words of the message match an open entity.
    pub(super) names_an_entity: bool,
    /// Numbers of the message in digits.
    pub(super) numbers: Vec<String>,
    /// The language of the message, in which questions are asked.
    pub(super) language: Language,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        dialogue: &'a Dialogue,
        references: &'a [Reference],
        tools: &'a [&'a ToolDefinition],
    ) -> Self {
        let entities: Vec<&Reference> = references
            .iter()
            .filter(|entity| entities::kinds(tools).any(|kind| kind == entity.kind))
            .collect();
        let words = analysis::content_words(&dialogue.message);
        let hits = entities::hits(&words, &entities);
        let numbers = analysis::numbers(&dialogue.message);
        let names_an_entity = entities
            .iter()
            .zip(&hits)
            .any(|(entity, hits)| !entity.done && !hits.is_empty());
        let (quotes, more) = Quote::all(dialogue, tools, names_an_entity);
        let verbs = tools
            .iter()
            .filter(|tool| !tool.annotations.read_only)
            .filter_map(|tool| tool.name.as_str().split('_').next())
            .collect();
        let tools = tools
            .iter()
            .copied()
            .filter(|tool| verbatim(tool).is_none())
            .collect();
        Self {
            dialogue,
            entities,
            tools,
            quotes,
            more,
            verbs,
            words,
            hits,
            names_an_entity,
            numbers,
            language: detect(&dialogue.message),
        }
    }

    /// Returns a question if the message is nothing but words of an entity: the action is missing.
    pub(super) fn bare_mention(&self) -> Option<Clarification<'a>> {
        if self.dialogue.answers() || !self.quotes.is_empty() {
            return None;
        }
        let words: Vec<String> = analysis::tokens(&self.dialogue.message)
            .into_iter()
            .filter(|word| !analysis::is_article(word) && !lists().message.generic_nouns.has(word))
            .collect();
        if words.is_empty()
            || words
                .iter()
                .all(|word| analysis::is_stop_word(word) || analysis::is_number(word))
        {
            return None;
        }
        // All words have to be of one label: otherwise there is more than a name.
        let mut named = self.entities.iter().filter(|entity| {
            let own = analysis::tokens(&entity.label);
            words.iter().all(|word| own.contains(word))
        });
        let first = named.next()?;
        let what = match named.next() {
            None => first.label.clone(),
            Some(_) => self.dialogue.message.trim().to_owned(),
        };
        Some(Clarification::WhatWith { what })
    }

    /// Checks the calls of one answer.
    pub(super) fn check(&self, proposed: &[Proposed<'a>]) -> Vec<Checked<'a>> {
        let mut touched: Vec<&'a Reference> = Vec::new();
        let mut earlier: Vec<(&str, Arguments)> = Vec::new();
        let mut checked = Vec::new();
        for call in proposed {
            // Whatever text the model gave: the one of the message counts.
            if verbatim(call.tool).is_some() {
                checked.extend(self.verbatim_calls(call.tool));
                continue;
            }
            let one = self
                .check_one(call, proposed)
                .and_then(|(name, arguments, entity)| {
                    let call_again = earlier
                        .iter()
                        .any(|(other, same)| *other == name && *same == arguments);
                    match entity {
                        // Two different actions on one entity: at most one of them was asked for.
                        Some(entity) if touched.contains(&entity) && !call_again => {
                            return Err(Clarification::Sure {
                                tool: call.tool,
                                what: vec![entity.label.clone()],
                            });
                        }
                        Some(entity) => touched.push(entity),
                        None => {}
                    }
                    earlier.push((name, arguments.clone()));
                    Ok((name, arguments))
                });
            checked.push(one);
        }
        checked
    }

    fn check_one(
        &self,
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
    ) -> Result<(&'a str, Arguments, Option<&'a Reference>), Clarification<'a>> {
        let tool = call.tool;
        let kind = tool_kind(tool);
        let mut arguments = call.arguments.clone();
        if tool.required().any(|name| !arguments.contains_key(name)) {
            return Err(Clarification::NotUnderstood);
        }
        if kind != ToolKind::Reads {
            self.drop_unrequested(tool, &mut arguments);
            self.check_verb(all)?;
        }
        let text = free_texts(tool)
            .find_map(|name| arguments.get(name).and_then(Value::as_str))
            .map(str::to_owned);
        let mut entity = None;
        for reference in &tool.references {
            let Some(name) = arguments.get(&reference.argument).and_then(Value::as_str) else {
                continue;
            };
            let found = self.resolve(call, all, &reference.kind, name, text.as_deref())?;
            arguments.insert(reference.argument.clone(), json!(self.entities[found].id));
            entity = Some(found);
        }
        match (kind, entity, text) {
            (ToolKind::Completes, Some(entity), _) => self.check_completed(tool, entity)?,
            (ToolKind::Deletes, Some(entity), _) => self.check_deleted(tool, entity)?,
            (ToolKind::Rewords, Some(entity), text) => {
                self.check_reworded(tool, entity, &text.unwrap_or_default())?
            }
            (ToolKind::Creates, _, Some(text)) => self.check_created(tool, &text)?,
            _ => {}
        }
        Ok((
            tool.name.as_str(),
            arguments,
            entity.map(|entity| self.entities[entity]),
        ))
    }

    /// Checks that no other tool was asked for: the order may begin with the verb of another
    /// changing tool, if that word is in no text of this answer.
    fn check_verb(&self, all: &[Proposed<'a>]) -> Result<(), Clarification<'a>> {
        let words = analysis::tokens(&self.dialogue.message);
        let order = imperative(&words);
        let Some(verb) = order.first() else {
            return Ok(());
        };
        let quoted = all
            .iter()
            .flat_map(|call| call.arguments.values())
            .filter_map(Value::as_str)
            .any(|text| analysis::tokens(text).contains(verb));
        let meant = self
            .tools
            .iter()
            .filter(|tool| !tool.annotations.read_only)
            .find(|tool| is_verb_of(tool, verb));
        match meant {
            Some(meant) if !quoted && all.iter().all(|call| call.tool.name != meant.name) => {
                Err(match meant.references.first() {
                    Some(reference) => self.unnamed(&reference.kind),
                    None => Clarification::Words {
                        tool: meant,
                        of: None,
                    },
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_completed(
        &self,
        tool: &'a ToolDefinition,
        entity: usize,
    ) -> Result<(), Clarification<'a>> {
        let doubtful =
            self.is_denied(entity) || self.asks_deletion(entity) || self.asks_information();
        ask_if(doubtful, tool, &self.entities[entity].label)
    }

    fn check_deleted(
        &self,
        tool: &'a ToolDefinition,
        entity: usize,
    ) -> Result<(), Clarification<'a>> {
        let doubtful =
            self.is_forbidden(tool) || !self.allows_deletion(tool) || self.asks_information();
        ask_if(doubtful, tool, &self.entities[entity].label)
    }

    fn check_reworded(
        &self,
        tool: &'a ToolDefinition,
        entity: usize,
        text: &str,
    ) -> Result<(), Clarification<'a>> {
        let label = &self.entities[entity].label;
        let missing = || Clarification::Words {
            tool,
            of: Some(label.clone()),
        };
        let (old, new) = (analysis::tokens(label), analysis::tokens(text));
        if new.is_empty() || new == old {
            return Err(missing());
        }
        let source = self.source();
        let fresh: Vec<&String> = new.iter().filter(|word| !old.contains(word)).collect();
        let theirs = fresh.iter().any(|word| source.contains(word));
        // Another form of a word is another word here: a reminder is not "remind". Misspellings may
        // be corrected.
        let is_in_source = |word: &String| {
            source
                .iter()
                .any(|other| other == word || analysis::likeness(other, word) == Likeness::Typo)
        };
        let invented = fresh
            .iter()
            .any(|word| !analysis::is_function_word(word) && !is_in_source(word));
        if invented || !(theirs || contains_phrase(&source, &new)) {
            return Err(missing());
        }
        // The new text is that of another entity: the model chose the wrong one.
        let both = [self.entities[entity]];
        let near = |entities: &[&Reference]| {
            entities::hits(&analysis::content_words(text), entities)
                .first()
                .map_or(0, Vec::len)
        };
        let nearer = self
            .entities
            .iter()
            .find(|other| !other.done && near(&[other]) > near(&both).max(1));
        if let Some(other) = nearer.filter(|_| self.number_in_message(entity).is_none()) {
            return Err(Clarification::Which {
                kind: &other.kind,
                candidates: vec![self.entities[entity], other],
            });
        }
        // A question is no order, even if the model takes it for one.
        let doubtful = self.asks_information() || !self.allows_rewording(tool);
        ask_if(doubtful, tool, label)
    }

    fn check_created(&self, tool: &'a ToolDefinition, text: &str) -> Result<(), Clarification<'a>> {
        let words: Vec<String> = analysis::tokens(text)
            .into_iter()
            .filter(|word| !analysis::is_stop_word(word))
            .collect();
        let source = self.source();
        let theirs = words
            .iter()
            .filter(|word| analysis::has_similar(&source, word))
            .count();
        // Some words may be the model's: "we are out of soap" is "Buy soap".
        if theirs == 0 || theirs * 2 < words.len() {
            return Err(Clarification::Words { tool, of: None });
        }
        // "I will wash the car" may mean "Wash the car"; "add wash the car and the van" does not.
        let spoken = analysis::tokens(&self.dialogue.message);
        let explicit = spoken
            .iter()
            .any(|word| analysis::is_create_word(word) || is_verb_of(tool, word));
        let same = |entity: &&&Reference| {
            let own = analysis::content_words(&entity.label);
            let inside = !explicit
                && !own.is_empty()
                && own.iter().all(|word| analysis::has_similar(&words, word));
            !entity.done && (inside || analysis::tokens(&entity.label) == analysis::tokens(text))
        };
        if let Some(entity) = self.entities.iter().find(same) {
            return Err(Clarification::Again {
                tool,
                what: entity.label.clone(),
            });
        }
        // One word alone names something, and does not say what to do with it.
        let alone = spoken
            .iter()
            .filter(|word| !analysis::is_article(word))
            .count()
            == 1;
        let doubtful = self.asks_information() || (alone && !self.dialogue.answers());
        ask_if(doubtful, tool, text)
    }

    /// Returns the words that a new text may be made of.
    fn source(&self) -> Vec<String> {
        analysis::tokens(&self.dialogue.source())
    }

    /// Removes optional arguments that nothing in the message asks for.
    fn drop_unrequested(&self, tool: &ToolDefinition, arguments: &mut Arguments) {
        let source = self.source();
        let is_required = |name: &str| tool.required().any(|required| required == name);
        arguments.retain(|name, value| {
            let requested = match &*value {
                Value::String(text) => analysis::tokens(text)
                    .iter()
                    .any(|word| analysis::has_similar(&source, word)),
                Value::Number(number) => source.contains(&number.to_string()),
                Value::Bool(_) | Value::Null => analysis::tokens(&name.replace('_', " "))
                    .iter()
                    .any(|word| analysis::has_similar(&source, word)),
                // Lists and objects are not words that the message could have.
                Value::Array(_) | Value::Object(_) => true,
            };
            requested
                || is_required(name)
                || tool
                    .references
                    .iter()
                    .any(|reference| reference.argument == *name)
        });
    }
}

/// Asks for certainty about a call that is doubtful.
fn ask_if<'a>(
    doubtful: bool,
    tool: &'a ToolDefinition,
    what: &str,
) -> Result<(), Clarification<'a>> {
    if !doubtful {
        return Ok(());
    }
    let what = vec![what.to_owned()];
    Err(Clarification::Sure { tool, what })
}
