//! What a call has to show for itself: every argument must rest on what the person said.
//!
//! The guards know tools only by their annotations, references and schemas, and refuse more than they repair: the only
//! repair is a number the person gave, and everything else that does not fit becomes a question.

use serde_json::{Value, json};

use crate::tool::{Arguments, Reference, ToolDefinition};

use super::doubt::Doubt;
use super::english;
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

/// What a tool does, as far as its definition tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Changes nothing.
    Looks,
    /// Makes something that has no reference yet.
    Makes,
    /// Gives a thing other words.
    Rewords,
    /// Does one fixed thing to a thing, such as completing it.
    Settles,
    /// Destroys a thing; a human confirms it.
    Destroys,
}

pub(super) struct Guard<'a> {
    said: &'a Said,
    things: Vec<&'a Reference>,
    tools: &'a [&'a ToolDefinition],
    /// Words of the message that may name something.
    words: Vec<String>,
    /// For each thing, which of `words` speak of it.
    hits: Vec<Vec<usize>>,
    /// Numbers of the message in digits.
    numbers: Vec<String>,
}

impl<'a> Guard<'a> {
    pub(super) fn new(said: &'a Said, references: &'a [Reference], tools: &'a [&'a ToolDefinition]) -> Self {
        let things: Vec<&Reference> =
            references.iter().filter(|thing| things::kinds(tools).any(|kind| kind == thing.kind)).collect();
        let words = english::content(&said.message);
        let hits = things::hits(&words, &things);
        let numbers = english::numbers(&said.message);
        Self { said, things, tools, words, hits, numbers }
    }

    /// The message is nothing but words of a thing: what should be done with it is not said.
    pub(super) fn bare_mention(&self) -> Option<Doubt<'a>> {
        if self.said.answers() {
            return None;
        }
        let words: Vec<String> = english::tokens(&self.said.message)
            .into_iter()
            .filter(|word| !english::is_article(word) && !matches!(word.as_str(), "task" | "one"))
            .collect();
        if words.is_empty() || words.iter().all(|word| english::is_plain(word) || english::is_number(word)) {
            return None;
        }
        let mut named = self.things.iter().filter(|thing| {
            let own = english::tokens(&thing.label);
            words.iter().all(|word| own.contains(word))
        });
        let first = named.next()?;
        Some(match named.next() {
            None => Doubt::WhatWith { what: first.label.clone() },
            Some(_) => Doubt::WhatWith { what: self.said.message.trim().to_owned() },
        })
    }

    /// Whether words to the person say that something was changed: nothing is when there is no call.
    pub(super) fn claims_a_change(&self, words: &str) -> bool {
        let words = english::tokens(words);
        let verbs: Vec<&str> = self
            .tools
            .iter()
            .filter(|tool| !tool.annotations.read_only)
            .filter_map(|tool| tool.name.as_str().split('_').next())
            .collect();
        words.iter().enumerate().any(|(at, word)| {
            let past = word.ends_with("ed")
                && verbs.iter().any(|verb| english::likeness(word, verb) == english::Likeness::Same);
            let by_us = at == 0
                || matches!(words[at - 1].as_str(), "i" | "i've" | "have" | "been" | "now" | "successfully");
            past && by_us
        })
    }

    /// Whether a tool fits the message at all. What the guards would refuse is not offered, so that a weak model cannot
    /// choose it in the place of what is meant.
    pub(super) fn offers(&self, tool: &ToolDefinition) -> bool {
        !self.says_nothing() && (nature(tool) == Nature::Looks || !self.wants_a_fact())
    }

    /// How many actions the message asks for at least: two, if an order follows something else that was said.
    pub(super) fn actions_min(&self) -> usize {
        let clauses = english::clauses(&self.said.message);
        let is_order = |verb: &String| {
            let changing = |tool: &&&ToolDefinition| !tool.annotations.read_only;
            english::makes(verb) || self.tools.iter().filter(changing).any(|tool| is_verb_of(tool, verb))
        };
        let orders = |clause: &Vec<String>| order(clause).first().is_some_and(is_order);
        let speaks = |clause: &Vec<String>| clause.iter().any(|word| !english::is_plain(word));
        let first = clauses.iter().position(speaks).unwrap_or(clauses.len());
        if clauses.iter().skip(first + 1).any(|clause| orders(clause) && speaks(clause)) { 2 } else { 1 }
    }

    /// "Thanks, that's all": no thing, nothing that is done to things, no question.
    fn says_nothing(&self) -> bool {
        let words = english::tokens(&self.said.message);
        let kind = |word: &String| {
            things::kinds(self.tools).any(|kind| english::likeness(kind, word) == english::Likeness::Same)
        };
        let question = english::asks_for_a_fact(&self.said.message) || self.said.message.contains('?');
        let pointed = things::kinds(self.tools).any(|kind| self.place(kind).is_some());
        !(question || pointed || self.said.answers() || self.says_what_to_do() || words.iter().any(kind))
            && self.words.is_empty()
    }

    /// Whether a tool may be offered for a thing: if the message speaks of things, only for those, and not for what it
    /// says is not so.
    pub(super) fn offers_for(&self, tool: &ToolDefinition, thing: &Reference) -> bool {
        let Some(at) = self.things.iter().position(|other| *other == thing) else { return false };
        let spoken_of = |at: usize| !self.hits[at].is_empty() || self.numbers.contains(&self.things[at].id);
        let same_kind = |other: &usize| self.things[*other].kind == thing.kind;
        let any =
            (0..self.things.len()).filter(same_kind).any(spoken_of) && self.place(&thing.kind).is_none();
        if any && !spoken_of(at) {
            return false;
        }
        match nature(tool) {
            Nature::Settles => {
                let open_too = (0..self.things.len())
                    .filter(same_kind)
                    .any(|other| !self.things[other].done && (!any || spoken_of(other)));
                let prefers_open = thing.done && open_too;
                !prefers_open && !self.denied(at)
            }
            Nature::Destroys => self.destroys(tool) && !self.forbidden(tool),
            Nature::Rewords if !self.rewords(tool) => false,
            Nature::Rewords => !any || self.numbers.contains(&thing.id) || !self.verb_only(at, None),
            Nature::Looks | Nature::Makes => true,
        }
    }

    /// Whether the message has a word for what is done to things, a number, or a place in the list.
    fn says_what_to_do(&self) -> bool {
        let words = english::tokens(&self.said.message);
        !self.numbers.is_empty()
            || words.iter().any(|word| {
                english::is_list_verb(word) || self.tools.iter().any(|tool| is_verb_of(tool, word))
            })
    }

    /// Whether the person wants to know something, which neither a change nor a question answers.
    pub(super) fn wants_a_fact(&self) -> bool {
        let makes = |tool: &&&ToolDefinition| nature(tool) == Nature::Makes;
        let asks_to_make = english::tokens(&self.said.message)
            .iter()
            .any(|word| self.tools.iter().filter(makes).any(|tool| is_named_for(tool, word)));
        english::asks_for_a_fact(&self.said.message) && !asks_to_make && !self.said.answers()
    }

    /// Checks the calls of one answer.
    pub(super) fn check(&self, proposed: &[Proposed<'a>]) -> Vec<Checked<'a>> {
        proposed.iter().map(|call| self.check_one(call, proposed)).collect()
    }

    fn check_one(&self, call: &Proposed<'a>, all: &[Proposed<'a>]) -> Checked<'a> {
        let tool = call.tool;
        let nature = nature(tool);
        let mut arguments = call.arguments.clone();
        let required = tool.parameters.get("required").and_then(Value::as_array);
        if required.into_iter().flatten().filter_map(Value::as_str).any(|name| !arguments.contains_key(name))
        {
            return Err(Doubt::NotUnderstood);
        }
        if nature != Nature::Looks {
            self.drop_unsaid(tool, &mut arguments);
            self.check_verb(call, all)?;
        }
        let text =
            free_texts(tool).find_map(|name| arguments.get(name).and_then(Value::as_str)).map(str::to_owned);
        let mut thing = None;
        for reference in &tool.references {
            let Some(name) = arguments.get(&reference.argument).and_then(Value::as_str) else { continue };
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
            (Nature::Looks | Nature::Makes | Nature::Rewords | Nature::Settles | Nature::Destroys, _, _) => {}
        }
        Ok((tool.name.as_str(), arguments))
    }

    /// The thing a call means.
    fn resolve(
        &self,
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
        kind: &'a str,
        name: &str,
        text: Option<&str>,
    ) -> Result<usize, Doubt<'a>> {
        let of_kind: Vec<usize> = (0..self.things.len()).filter(|&at| self.things[at].kind == kind).collect();
        let which = |candidates: Vec<usize>| Doubt::Which {
            kind,
            candidates: candidates.into_iter().map(|at| self.things[at]).collect(),
        };
        let mut chosen: Vec<usize> =
            of_kind.iter().copied().filter(|&at| things::name(self.things[at]) == name).collect();
        let message = &self.said.message;
        let by_id = |id: &String| of_kind.iter().copied().find(|&at| self.things[at].id == *id);

        // A number that is given as a name wins over words, and over the model.
        let named = english::named_numbers(message, &[kind]);
        let known: Vec<usize> = named.iter().filter_map(by_id).collect();
        if let (Some(id), true) = (named.first(), known.is_empty()) {
            return Err(Doubt::NoSuch { kind, id: id.clone() });
        }
        if let Some(&at) = known.iter().find(|at| chosen.contains(at)) {
            return Ok(at);
        }
        let alone = all.iter().filter(|other| !other.tool.references.is_empty()).count() == 1;
        if let [only] = known[..] {
            return if alone { Ok(only) } else { Err(which(vec![only])) };
        }
        if !known.is_empty() {
            return Err(which(known));
        }
        if let Some(place) = self.place(kind) {
            let mentioned = self
                .said
                .before
                .as_deref()
                .map(|before| self.quoted_in(before, &of_kind))
                .unwrap_or_default();
            let row = if mentioned.is_empty() { &of_kind } else { &mentioned };
            let meant = match place {
                None => row.last(),
                Some(number) => row.get(number - 1),
            };
            return match meant {
                Some(&at) if alone || chosen.contains(&at) => Ok(at),
                Some(_) | None => Err(which(Vec::new())),
            };
        }

        // Things with the same words: only the open one of them can be settled, otherwise they cannot be told apart.
        if chosen.len() > 1 && nature(call.tool) == Nature::Settles {
            chosen.retain(|&at| !self.things[at].done);
        }
        let [chosen] = chosen[..] else { return Err(which(chosen)) };

        // A number on its own counts as long as nothing else in the message could be what is counted.
        let others = self.unexplained(chosen, text);
        let bare: Vec<usize> = self.numbers.iter().filter_map(by_id).collect();
        if !bare.is_empty() && others.is_empty() {
            return match bare[..] {
                _ if bare.contains(&chosen) => Ok(chosen),
                [only] if alone && self.hits[chosen].is_empty() => Ok(only),
                _ => Err(which(bare)),
            };
        }

        if !self.hits[chosen].is_empty() {
            return self
                .rivals(chosen, &of_kind, call, all, text)
                .map_or(Ok(chosen), |rivals| Err(which(rivals)));
        }
        if contains_in_row(&english::tokens(message), &english::tokens(&self.things[chosen].label)) {
            return Ok(chosen);
        }
        // Nothing in the message speaks of it. "It" may be what was spoken of just before, or the only one there is.
        if others.is_empty() {
            for earlier in [&self.said.before, &self.said.earlier].into_iter().flatten() {
                match self.quoted_in(earlier, &of_kind)[..] {
                    [] => {}
                    [only] if only == chosen => return Ok(chosen),
                    ref several => return Err(which(several.to_vec())),
                }
            }
            if of_kind.iter().filter(|&&at| !self.things[at].done).all(|&at| at == chosen) {
                return Ok(chosen);
            }
        }
        Err(which(Vec::new()))
    }

    fn place(&self, kind: &str) -> Option<Option<usize>> {
        english::place(&self.said.message, &[kind])
    }

    /// Words of the message that speak neither of the thing nor of its new words.
    fn unexplained(&self, thing: usize, text: Option<&str>) -> Vec<&str> {
        let new = text.map(english::content).unwrap_or_default();
        let rest = self
            .words
            .iter()
            .enumerate()
            .filter(|(at, word)| !self.hits[thing].contains(at) && !new.contains(word));
        rest.map(|(_, word)| word.as_str()).collect()
    }

    /// Whether nothing but its first word speaks for a thing, and the message has words for something else: "bought the
    /// bread" does not speak of "Buy milk", though "bought" does.
    fn verb_only(&self, thing: usize, text: Option<&str>) -> bool {
        let own = english::content(&self.things[thing].label);
        let is_verb = |at: &usize| {
            own.first().is_some_and(|verb| english::has(std::slice::from_ref(verb), &self.words[*at]))
        };
        own.len() > 1 && self.hits[thing].iter().all(is_verb) && !self.unexplained(thing, text).is_empty()
    }

    /// Whether other open things are hit by the same words, or only a verb speaks for this one.
    fn rivals(
        &self,
        chosen: usize,
        of_kind: &[usize],
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
        text: Option<&str>,
    ) -> Option<Vec<usize>> {
        // Words of the new text say what it will be, not which one it is.
        let new = text.map(english::tokens).unwrap_or_default();
        let own = english::content(&self.things[chosen].label);
        let counts = |at: &&usize| !new.contains(&self.words[**at]) || english::has(&own, &self.words[**at]);
        let mine: Vec<usize> = self.hits[chosen].iter().filter(counts).copied().collect();
        let whole = own.iter().all(|word| english::has(&self.words, word));
        let mut rivals: Vec<usize> = Vec::new();
        for &other in of_kind.iter().filter(|&&other| other != chosen && !self.things[other].done) {
            let theirs: Vec<usize> = self.hits[other].iter().filter(counts).copied().collect();
            let more = theirs.len() > mine.len();
            let others_own = english::content(&self.things[other].label);
            let whole_too = others_own.iter().all(|word| english::has(&self.words, word));
            let named_too = all.iter().any(|call| {
                call.arguments.values().any(|value| value.as_str() == Some(&things::name(self.things[other])))
            });
            if mine.iter().all(|at| theirs.contains(at))
                && (whole_too || !whole || more)
                && !(named_too && more)
            {
                rivals.push(other);
            }
        }
        let verb_only = match nature(call.tool) {
            Nature::Settles => self.verb_only(chosen, text),
            // "Remind me to call Ann" does not speak of "Call Bob": "call" is a word of the new text.
            Nature::Rewords => {
                let count =
                    |words: &[String], word: &String| words.iter().filter(|other| *other == word).count();
                let spoken = english::tokens(&self.said.message);
                let outside =
                    mine.iter().any(|&at| count(&spoken, &self.words[at]) > count(&new, &self.words[at]));
                !outside && self.verb_only(chosen, None)
            }
            Nature::Looks | Nature::Makes | Nature::Destroys => false,
        };
        if rivals.is_empty() && !verb_only {
            return None;
        }
        rivals.push(chosen);
        rivals.sort_unstable();
        Some(rivals)
    }

    /// The things a text quotes, in the order of the text.
    fn quoted_in(&self, text: &str, of_kind: &[usize]) -> Vec<usize> {
        let words = english::tokens(text);
        let mut found: Vec<(usize, usize)> = of_kind
            .iter()
            .filter_map(|&at| {
                place_in_row(&words, &english::tokens(&self.things[at].label)).map(|place| (place, at))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// A word that belongs to another changing tool, and to no text of this answer, says that another one was meant.
    fn check_verb(&self, call: &Proposed<'a>, all: &[Proposed<'a>]) -> Result<(), Doubt<'a>> {
        let words = english::tokens(&self.said.message);
        let order = order(&words);
        let Some(verb) = order.first() else { return Ok(()) };
        let quoted = all
            .iter()
            .flat_map(|call| call.arguments.values())
            .filter_map(Value::as_str)
            .any(|text| english::tokens(text).contains(verb));
        let meant =
            self.tools.iter().filter(|tool| !tool.annotations.read_only).find(|tool| is_verb_of(tool, verb));
        match meant {
            Some(meant) if !quoted && all.iter().all(|call| call.tool.name != meant.name) => {
                match (meant.references.first(), nature(call.tool)) {
                    (Some(reference), _) => {
                        Err(Doubt::Which { kind: &reference.kind, candidates: Vec::new() })
                    }
                    (None, _) => Err(Doubt::Words { tool: meant, of: None }),
                }
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_settled(&self, tool: &'a ToolDefinition, thing: usize) -> Result<(), Doubt<'a>> {
        if self.denied(thing) || self.wants_a_fact() {
            return Err(Doubt::Sure { tool, what: self.things[thing].label.clone() });
        }
        Ok(())
    }

    /// Whether the message says of a thing that it is not done, or not yet.
    fn denied(&self, thing: usize) -> bool {
        let own = english::content(&self.things[thing].label);
        let clauses = english::clauses(&self.said.message);
        let speaks = |clause: &&Vec<String>| {
            clause.iter().any(|word| {
                *word == self.things[thing].id || (!english::is_plain(word) && english::has(&own, word))
            })
        };
        let about: Vec<&Vec<String>> = clauses.iter().filter(speaks).collect();
        if about.is_empty() {
            clauses.iter().any(|clause| english::denies(clause))
        } else {
            about.iter().any(|clause| english::denies(clause))
        }
    }

    fn check_destroyed(&self, tool: &'a ToolDefinition, thing: usize) -> Result<(), Doubt<'a>> {
        if self.forbidden(tool) || !self.destroys(tool) || self.wants_a_fact() {
            return Err(Doubt::Sure { tool, what: self.things[thing].label.clone() });
        }
        Ok(())
    }

    /// Whether the message says, or answers, that something should have other words.
    fn rewords(&self, tool: &ToolDefinition) -> bool {
        self.said.answers()
            || english::rewords(&self.said.message)
            || !english::is_english(&self.said.message)
            || english::tokens(&self.said.message).iter().any(|word| is_verb_of(tool, word))
    }

    /// Whether the message says, or answers, that something should go.
    fn destroys(&self, tool: &ToolDefinition) -> bool {
        self.said.answers()
            || english::destroys(&self.said.message)
            || !english::is_english(&self.said.message)
            || english::tokens(&self.said.message).iter().any(|word| is_verb_of(tool, word))
    }

    fn forbidden(&self, tool: &ToolDefinition) -> bool {
        english::clauses(&self.said.message)
            .iter()
            .any(|clause| english::forbids(clause).is_some_and(|verb| is_verb_of(tool, verb)))
    }

    fn check_new_words(&self, tool: &'a ToolDefinition, thing: usize, text: &str) -> Result<(), Doubt<'a>> {
        let label = &self.things[thing].label;
        let missing = || Doubt::Words { tool, of: Some(label.clone()) };
        let (old, new) = (english::tokens(label), english::tokens(text));
        if new.is_empty() || new == old {
            return Err(missing());
        }
        let source = self.source();
        let fresh: Vec<&String> = new.iter().filter(|word| !old.contains(word)).collect();
        let theirs = fresh.iter().any(|word| source.contains(word));
        let invented =
            fresh.iter().filter(|word| !english::is_plain(word) && !english::has(&source, word)).count();
        if invented > 0 || !(theirs || contains_in_row(&source, &new)) {
            return Err(missing());
        }
        // New words that are another thing's: the model took the wrong one.
        let both = [self.things[thing]];
        let near =
            |things: &[&Reference]| things::hits(&english::content(text), things).first().map_or(0, Vec::len);
        let nearer = self.things.iter().find(|other| !other.done && near(&[other]) > near(&both).max(1));
        if let Some(other) = nearer.filter(|_| self.named(thing).is_none()) {
            return Err(Doubt::Which { kind: &other.kind, candidates: vec![self.things[thing], other] });
        }
        if self.wants_a_fact() || !self.rewords(tool) {
            return Err(Doubt::Sure { tool, what: label.clone() });
        }
        Ok(())
    }

    fn check_made(&self, tool: &'a ToolDefinition, text: &str) -> Result<(), Doubt<'a>> {
        let words: Vec<String> =
            english::tokens(text).into_iter().filter(|word| !english::is_plain(word)).collect();
        let source = self.source();
        let theirs = words.iter().filter(|word| english::has(&source, word)).count();
        // Some words may be the model's own: "we are out of soap" is "Buy soap".
        if theirs == 0 || theirs * 2 < words.len() {
            return Err(Doubt::Words { tool, of: None });
        }
        // "I will wash the car" may speak of "Wash the car"; "add wash the car and the van" does not.
        let spoken = english::tokens(&self.said.message);
        let explicit = spoken.iter().any(|word| english::makes(word) || is_verb_of(tool, word));
        let same = |thing: &&&Reference| {
            let own = english::content(&thing.label);
            let inside = !explicit && !own.is_empty() && own.iter().all(|word| english::has(&words, word));
            !thing.done && (inside || english::tokens(&thing.label) == english::tokens(text))
        };
        if let Some(thing) = self.things.iter().find(same) {
            return Err(Doubt::Again { tool, what: thing.label.clone() });
        }
        // One word alone names something, and does not say what to do with it.
        let alone = spoken.iter().filter(|word| !english::is_article(word)).count() == 1;
        if self.wants_a_fact() || (alone && !self.said.answers()) {
            return Err(Doubt::Sure { tool, what: text.to_owned() });
        }
        Ok(())
    }

    /// The number of a thing, if the message has it.
    fn named(&self, thing: usize) -> Option<&String> {
        self.numbers.iter().find(|number| **number == self.things[thing].id)
    }

    /// The words that new text may come from.
    fn source(&self) -> Vec<String> {
        let mut source = english::tokens(&self.said.message);
        if self.said.answers() || english::looks_back(&self.said.message) {
            let earlier = [&self.said.before, &self.said.earlier];
            source.extend(earlier.into_iter().flatten().flat_map(|text| english::tokens(text)));
        }
        source
    }

    /// Takes out optional arguments that nothing in the message asks for.
    fn drop_unsaid(&self, tool: &ToolDefinition, arguments: &mut Arguments) {
        let source = self.source();
        let required = tool.parameters.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let optional = |name: &str| !required.iter().any(|required| required == name);
        arguments.retain(|name, value| {
            let said = match &*value {
                Value::String(text) => english::tokens(text).iter().any(|word| english::has(&source, word)),
                Value::Number(number) => source.contains(&number.to_string()),
                Value::Bool(_) | Value::Null => {
                    english::tokens(&name.replace('_', " ")).iter().any(|word| english::has(&source, word))
                }
                Value::Array(_) | Value::Object(_) => true,
            };
            said || !optional(name) || tool.references.iter().any(|reference| reference.argument == *name)
        });
    }
}

fn nature(tool: &ToolDefinition) -> Nature {
    if tool.annotations.read_only {
        Nature::Looks
    } else if tool.annotations.destructive {
        Nature::Destroys
    } else if tool.references.is_empty() {
        Nature::Makes
    } else if free_texts(tool).next().is_some() {
        Nature::Rewords
    } else {
        Nature::Settles
    }
}

/// The required arguments that hold words of the person.
fn free_texts(tool: &ToolDefinition) -> impl Iterator<Item = &str> {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let required = tool.parameters.get("required").and_then(Value::as_array);
    properties
        .into_iter()
        .flatten()
        .filter(move |(name, schema)| {
            schema.get("type").and_then(Value::as_str) == Some("string")
                && schema.get("enum").is_none()
                && required.is_some_and(|required| required.iter().any(|required| required == name.as_str()))
                && tool.references.iter().all(|reference| reference.argument != **name)
        })
        .map(|(name, _)| name.as_str())
}

/// Whether a word is one that a tool's name or description uses for what it does.
fn is_verb_of(tool: &ToolDefinition, word: &str) -> bool {
    is_named_for(tool, word)
        || (word.len() > 3
            && english::tokens(&tool.description)
                .iter()
                .any(|other| other == word && !is_noun_of(tool, other)))
}

fn is_named_for(tool: &ToolDefinition, word: &str) -> bool {
    tool.name
        .as_str()
        .split('_')
        .next()
        .is_some_and(|verb| english::likeness(verb, word) == english::Likeness::Same)
}

/// The things a tool is about are no verbs: "task" says nothing about which tool is meant.
fn is_noun_of(tool: &ToolDefinition, word: &str) -> bool {
    const COMMON: &[&str] = &[
        "when",
        "user",
        "wants",
        "want",
        "uses",
        "something",
        "from",
        "with",
        "that",
        "permanently",
        "description",
        "words",
        "says",
        "their",
    ];
    COMMON.contains(&word)
        || tool
            .references
            .iter()
            .any(|reference| english::likeness(&reference.kind, word) == english::Likeness::Same)
        || tool
            .name
            .as_str()
            .split('_')
            .skip(1)
            .any(|noun| english::likeness(noun, word) == english::Likeness::Same)
}

/// The words of a message, or of a part of it, from its verb on, if it is an order.
fn order(message: &[String]) -> &[String] {
    const BEFORE_THE_VERB: &[&str] = &[
        "please", "pls", "can", "could", "would", "you", "hey", "hi", "hello", "ok", "okay", "now", "just",
        "kindly", "i'd", "i", "want", "like", "to", "let's", "lets", "and", "also", "then", "actually", "oh",
        "yes", "no",
    ];
    let start = message.iter().position(|word| !BEFORE_THE_VERB.contains(&word.as_str()));
    &message[start.unwrap_or(message.len())..]
}

/// Where words stand in a row inside of others.
fn place_in_row(words: &[String], row: &[String]) -> Option<usize> {
    if row.is_empty() { None } else { words.windows(row.len()).position(|window| window == row) }
}

fn contains_in_row(words: &[String], row: &[String]) -> bool {
    place_in_row(words, row).is_some()
}
