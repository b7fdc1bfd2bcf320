//! What a call has to show for itself: every argument must rest on what the person said.
//!
//! The guards know tools only by their annotations, references and schemas, and refuse more than
//! they repair: the only repair is a number the person gave, and everything else that does not fit
//! becomes a question.

use serde_json::{Value, json};

use crate::tool::{Arguments, Reference, ToolDefinition};

use super::doubt::Doubt;
use super::english::{self, Likeness, contains_in_row, order};
use super::nature::{Nature, free_texts, is_verb_of, nature, quotes};
use super::quote::{More, Quote};
use super::said::Said;
use super::things;

/// A call the model wants.
#[derive(Debug)]
pub(super) struct Proposed<'a> {
    pub(super) tool: &'a ToolDefinition,
    /// References by name.
    pub(super) arguments: Arguments,
}

/// A call with ids, or what has to be asked.
pub(super) type Checked<'a> = Result<(&'a str, Arguments), Doubt<'a>>;

pub(super) struct Guard<'a> {
    pub(super) said: &'a Said,
    pub(super) things: Vec<&'a Reference>,
    /// All but those that take words of the person as they are.
    pub(super) tools: Vec<&'a ToolDefinition>,
    /// The words that the message has for those that do.
    pub(super) quotes: Vec<Quote<'a>>,
    /// The rest of the message.
    pub(super) more: More,
    /// The first word of the name of each tool that changes something.
    pub(super) verbs: Vec<&'a str>,
    /// Words of the message that may name something.
    pub(super) words: Vec<String>,
    /// For each thing, which of `words` speak of it.
    pub(super) hits: Vec<Vec<usize>>,
    /// Numbers of the message in digits.
    pub(super) numbers: Vec<String>,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        said: &'a Said,
        references: &'a [Reference],
        tools: &'a [&'a ToolDefinition],
    ) -> Self {
        let things: Vec<&Reference> = references
            .iter()
            .filter(|thing| things::kinds(tools).any(|kind| kind == thing.kind))
            .collect();
        let words = english::content(&said.message);
        let hits = things::hits(&words, &things);
        let numbers = english::numbers(&said.message);
        let speaks_of_things = things
            .iter()
            .zip(&hits)
            .any(|(thing, hits)| !thing.done && !hits.is_empty());
        let (quotes, more) = Quote::all(said, tools, speaks_of_things);
        let verbs = tools
            .iter()
            .filter(|tool| !tool.annotations.read_only)
            .filter_map(|tool| tool.name.as_str().split('_').next())
            .collect();
        let tools = tools
            .iter()
            .copied()
            .filter(|tool| self::quotes(tool).is_none())
            .collect();
        Self {
            said,
            things,
            tools,
            quotes,
            more,
            verbs,
            words,
            hits,
            numbers,
        }
    }

    /// The message is nothing but words of a thing: what should be done with it is not said.
    pub(super) fn bare_mention(&self) -> Option<Doubt<'a>> {
        if self.said.answers() || !self.quotes.is_empty() {
            return None;
        }
        let words: Vec<String> = english::tokens(&self.said.message)
            .into_iter()
            .filter(|word| !english::is_article(word) && !matches!(word.as_str(), "task" | "one"))
            .collect();
        if words.is_empty()
            || words
                .iter()
                .all(|word| english::is_plain(word) || english::is_number(word))
        {
            return None;
        }
        let mut named = self.things.iter().filter(|thing| {
            let own = english::tokens(&thing.label);
            words.iter().all(|word| own.contains(word))
        });
        let first = named.next()?;
        Some(match named.next() {
            None => Doubt::WhatWith {
                what: first.label.clone(),
            },
            Some(_) => Doubt::WhatWith {
                what: self.said.message.trim().to_owned(),
            },
        })
    }

    /// Checks the calls of one answer.
    pub(super) fn check(&self, proposed: &[Proposed<'a>]) -> Vec<Checked<'a>> {
        let mut touched: Vec<&'a Reference> = Vec::new();
        let mut earlier: Vec<(&str, Arguments)> = Vec::new();
        let mut checked = Vec::new();
        for call in proposed {
            if quotes(call.tool).is_some() {
                checked.extend(self.quoted(call.tool));
                continue;
            }
            let one = self
                .check_one(call, proposed)
                .and_then(|(name, arguments, thing)| {
                    let call_again = earlier
                        .iter()
                        .any(|(other, same)| *other == name && *same == arguments);
                    match thing {
                        // Two different things done to one: at most one of them was asked for.
                        Some(thing) if touched.contains(&thing) && !call_again => {
                            return Err(Doubt::Sure {
                                tool: call.tool,
                                what: thing.label.clone(),
                            });
                        }
                        Some(thing) => touched.push(thing),
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
    ) -> Result<(&'a str, Arguments, Option<&'a Reference>), Doubt<'a>> {
        let tool = call.tool;
        let nature = nature(tool);
        let mut arguments = call.arguments.clone();
        let required = tool.parameters.get("required").and_then(Value::as_array);
        if required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(|name| !arguments.contains_key(name))
        {
            return Err(Doubt::NotUnderstood);
        }
        if nature != Nature::Looks {
            self.drop_unsaid(tool, &mut arguments);
            self.check_verb(call, all)?;
        }
        let text = free_texts(tool)
            .find_map(|name| arguments.get(name).and_then(Value::as_str))
            .map(str::to_owned);
        let mut thing = None;
        for reference in &tool.references {
            let Some(name) = arguments.get(&reference.argument).and_then(Value::as_str) else {
                continue;
            };
            let found = self.resolve(call, all, &reference.kind, name, text.as_deref())?;
            arguments.insert(reference.argument.clone(), json!(self.things[found].id));
            thing = Some(found);
        }
        match (nature, thing, text) {
            (Nature::Settles, Some(thing), _) => self.check_settled(tool, thing)?,
            (Nature::Destroys, Some(thing), _) => self.check_destroyed(tool, thing)?,
            (Nature::Rewords, Some(thing), text) => {
                self.check_new_words(tool, thing, &text.unwrap_or_default())?
            }
            (Nature::Makes, _, Some(text)) => self.check_made(tool, &text)?,
            (
                Nature::Looks
                | Nature::Makes
                | Nature::Rewords
                | Nature::Settles
                | Nature::Destroys
                | Nature::Quotes(_),
                _,
                _,
            ) => {}
        }
        Ok((
            tool.name.as_str(),
            arguments,
            thing.map(|thing| self.things[thing]),
        ))
    }

    /// A word that belongs to another changing tool, and to no text of this answer, says that
    /// another one was meant.
    fn check_verb(&self, call: &Proposed<'a>, all: &[Proposed<'a>]) -> Result<(), Doubt<'a>> {
        let words = english::tokens(&self.said.message);
        let order = order(&words);
        let Some(verb) = order.first() else {
            return Ok(());
        };
        let quoted = all
            .iter()
            .flat_map(|call| call.arguments.values())
            .filter_map(Value::as_str)
            .any(|text| english::tokens(text).contains(verb));
        let meant = self
            .tools
            .iter()
            .filter(|tool| !tool.annotations.read_only)
            .find(|tool| is_verb_of(tool, verb));
        match meant {
            Some(meant) if !quoted && all.iter().all(|call| call.tool.name != meant.name) => {
                match (meant.references.first(), nature(call.tool)) {
                    (Some(reference), _) => Err(self.unnamed(&reference.kind)),
                    (None, _) => Err(Doubt::Words {
                        tool: meant,
                        of: None,
                    }),
                }
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_settled(&self, tool: &'a ToolDefinition, thing: usize) -> Result<(), Doubt<'a>> {
        if self.denied(thing) || self.ordered_away(thing) || self.wants_a_fact() {
            return Err(Doubt::Sure {
                tool,
                what: self.things[thing].label.clone(),
            });
        }
        Ok(())
    }

    fn check_destroyed(&self, tool: &'a ToolDefinition, thing: usize) -> Result<(), Doubt<'a>> {
        if self.forbidden(tool) || !self.destroys(tool) || self.wants_a_fact() {
            return Err(Doubt::Sure {
                tool,
                what: self.things[thing].label.clone(),
            });
        }
        Ok(())
    }

    fn check_new_words(
        &self,
        tool: &'a ToolDefinition,
        thing: usize,
        text: &str,
    ) -> Result<(), Doubt<'a>> {
        let label = &self.things[thing].label;
        let missing = || Doubt::Words {
            tool,
            of: Some(label.clone()),
        };
        let (old, new) = (english::tokens(label), english::tokens(text));
        if new.is_empty() || new == old {
            return Err(missing());
        }
        let source = self.source();
        let fresh: Vec<&String> = new.iter().filter(|word| !old.contains(word)).collect();
        let theirs = fresh.iter().any(|word| source.contains(word));
        // Another form of a word is another word here: a reminder is not "remind". Typing errors
        // may be put right.
        let said = |word: &String| {
            source
                .iter()
                .any(|other| other == word || english::likeness(other, word) == Likeness::Typo)
        };
        let invented = fresh
            .iter()
            .any(|word| !english::is_grammar(word) && !said(word));
        if invented || !(theirs || contains_in_row(&source, &new)) {
            return Err(missing());
        }
        // New words that are another thing's: the model took the wrong one.
        let both = [self.things[thing]];
        let near = |things: &[&Reference]| {
            things::hits(&english::content(text), things)
                .first()
                .map_or(0, Vec::len)
        };
        let nearer = self
            .things
            .iter()
            .find(|other| !other.done && near(&[other]) > near(&both).max(1));
        if let Some(other) = nearer.filter(|_| self.named(thing).is_none()) {
            return Err(Doubt::Which {
                kind: &other.kind,
                candidates: vec![self.things[thing], other],
            });
        }
        if self.wants_a_fact() || !self.rewords(tool) {
            return Err(Doubt::Sure {
                tool,
                what: label.clone(),
            });
        }
        Ok(())
    }

    fn check_made(&self, tool: &'a ToolDefinition, text: &str) -> Result<(), Doubt<'a>> {
        let words: Vec<String> = english::tokens(text)
            .into_iter()
            .filter(|word| !english::is_plain(word))
            .collect();
        let source = self.source();
        let theirs = words
            .iter()
            .filter(|word| english::has(&source, word))
            .count();
        // Some words may be the model's own: "we are out of soap" is "Buy soap".
        if theirs == 0 || theirs * 2 < words.len() {
            return Err(Doubt::Words { tool, of: None });
        }
        // "I will wash the car" may speak of "Wash the car"; "add wash the car and the van" does
        // not.
        let spoken = english::tokens(&self.said.message);
        let explicit = spoken
            .iter()
            .any(|word| english::makes(word) || is_verb_of(tool, word));
        let same = |thing: &&&Reference| {
            let own = english::content(&thing.label);
            let inside =
                !explicit && !own.is_empty() && own.iter().all(|word| english::has(&words, word));
            !thing.done && (inside || english::tokens(&thing.label) == english::tokens(text))
        };
        if let Some(thing) = self.things.iter().find(same) {
            return Err(Doubt::Again {
                tool,
                what: thing.label.clone(),
            });
        }
        // One word alone names something, and does not say what to do with it.
        let alone = spoken
            .iter()
            .filter(|word| !english::is_article(word))
            .count()
            == 1;
        if self.wants_a_fact() || (alone && !self.said.answers()) {
            return Err(Doubt::Sure {
                tool,
                what: text.to_owned(),
            });
        }
        Ok(())
    }

    /// The words that new text may come from.
    fn source(&self) -> Vec<String> {
        let mut source = english::tokens(&self.said.message);
        if self.said.answers() || english::looks_back(&self.said.message) {
            let earlier = [&self.said.before, &self.said.earlier];
            source.extend(
                earlier
                    .into_iter()
                    .flatten()
                    .flat_map(|text| english::tokens(text)),
            );
        }
        source
    }

    /// Takes out optional arguments that nothing in the message asks for.
    fn drop_unsaid(&self, tool: &ToolDefinition, arguments: &mut Arguments) {
        let source = self.source();
        let required = tool
            .parameters
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let optional = |name: &str| !required.iter().any(|required| required == name);
        arguments.retain(|name, value| {
            let said = match &*value {
                Value::String(text) => english::tokens(text)
                    .iter()
                    .any(|word| english::has(&source, word)),
                Value::Number(number) => source.contains(&number.to_string()),
                Value::Bool(_) | Value::Null => english::tokens(&name.replace('_', " "))
                    .iter()
                    .any(|word| english::has(&source, word)),
                Value::Array(_) | Value::Object(_) => true,
            };
            said || !optional(name)
                || tool
                    .references
                    .iter()
                    .any(|reference| reference.argument == *name)
        });
    }
}
