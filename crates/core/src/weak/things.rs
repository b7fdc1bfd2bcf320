//! What the person has, by its own words: what is shown, what an answer may name, and which thing
//! is meant.

use std::cmp::Reverse;

use crate::tool::{Reference, ToolDefinition};

use super::english::{self, Likeness};
use super::said::Said;

/// Things shown at most. More of them cost time and confuse a weak model more than they help it.
const SHOWN_MAX: usize = 40;

/// Characters of a thing's words that are shown.
const LABEL_CHARS_MAX: usize = 80;

/// The things a request shows.
#[derive(Debug)]
pub(super) struct Things<'a> {
    /// In the order they were given.
    pub(super) shown: Vec<&'a Reference>,
    /// How many are not shown.
    pub(super) hidden: usize,
}

impl<'a> Things<'a> {
    /// Those the message speaks of first, then open ones, then the newest; shown in the order they
    /// were given.
    pub(super) fn new(references: &'a [Reference], said: &Said, tools: &[&ToolDefinition]) -> Self {
        let known: Vec<(usize, &Reference)> = references
            .iter()
            .enumerate()
            .filter(|(_, thing)| kinds(tools).any(|kind| kind == thing.kind))
            .collect();
        let mut words = english::content(&said.message);
        if english::looks_back(&said.message) || said.answers() {
            words.extend(
                said.before
                    .as_deref()
                    .map(english::content)
                    .unwrap_or_default(),
            );
        }
        let numbers = english::numbers(&said.message);
        let mut ranked: Vec<(bool, usize, bool, usize, &Reference)> = known
            .iter()
            .map(|(at, thing)| {
                let own = english::content(&thing.label);
                let hits = words.iter().filter(|word| english::has(&own, word)).count();
                (numbers.contains(&thing.id), hits, !thing.done, *at, *thing)
            })
            .collect();
        ranked.sort_by_key(|(named, hits, open, at, _)| Reverse((*named, *hits, *open, *at)));
        ranked.truncate(SHOWN_MAX);
        ranked.sort_by_key(|(_, _, _, at, _)| *at);
        let shown: Vec<&Reference> = ranked
            .into_iter()
            .map(|(_, _, _, _, thing)| thing)
            .collect();
        let hidden = known.len() - shown.len();
        Self { shown, hidden }
    }

    /// The names an answer may use for things of a kind, each once.
    pub(super) fn names(&self, kind: &str, offered: impl Fn(&Reference) -> bool) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for thing in self
            .shown
            .iter()
            .filter(|thing| thing.kind == kind && offered(thing))
        {
            let name = name(thing);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The kinds of thing that tools name, in order, each once.
pub(super) fn kinds<'a>(tools: &'a [&ToolDefinition]) -> impl Iterator<Item = &'a str> {
    let all: Vec<&str> = tools
        .iter()
        .flat_map(|tool| &tool.references)
        .map(|reference| reference.kind.as_str())
        .collect();
    let first: Vec<&str> = all
        .iter()
        .enumerate()
        .filter(|(at, kind)| !all[..*at].contains(kind))
        .map(|(_, kind)| *kind)
        .collect();
    first.into_iter()
}

/// The words a model sees and uses for a thing: its own, on one line, bounded.
pub(super) fn name(thing: &Reference) -> String {
    shortened(&thing.label)
}

/// Words on one line, bounded.
pub(super) fn shortened(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= LABEL_CHARS_MAX {
        return line;
    }
    let cut: String = line.chars().take(LABEL_CHARS_MAX).collect();
    match cut.rsplit_once(' ') {
        Some((words, _)) if !words.is_empty() => words.to_owned(),
        Some(_) | None => cut,
    }
}

/// Which words of a text speak of which thing: for each thing the places of the words in `words`
/// that are its own.
///
/// A mistyped word counts only where no thing has the word as it stands.
pub(super) fn hits(words: &[String], things: &[&Reference]) -> Vec<Vec<usize>> {
    let own: Vec<Vec<String>> = things
        .iter()
        .map(|thing| english::content(&thing.label))
        .collect();
    let mut hits = vec![Vec::new(); things.len()];
    for (at, word) in words.iter().enumerate() {
        let likeness: Vec<Likeness> = own
            .iter()
            .map(|own| {
                own.iter()
                    .map(|other| english::likeness(word, other))
                    .max()
                    .unwrap_or(Likeness::Different)
            })
            .collect();
        let best = likeness
            .iter()
            .copied()
            .max()
            .unwrap_or(Likeness::Different);
        if best == Likeness::Different {
            continue;
        }
        for (thing, _) in likeness
            .iter()
            .enumerate()
            .filter(|(_, likeness)| **likeness == best)
        {
            hits[thing].push(at);
        }
    }
    hits
}
