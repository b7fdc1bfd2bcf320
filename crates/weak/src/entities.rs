//! The user's entities that tools refer to: which of them the model is shown, and which words of
//! the message match them.

use std::cmp::Reverse;

use adjutant_core::{Reference, ToolDefinition};

use super::analysis::{self, Likeness};
use super::dialogue::Dialogue;

/// Most entities that a request shows. More of them cost time, and confuse a weak model more than
/// they help it.
const SHOWN_MAX: usize = 40;

/// Most characters of a label that are shown.
const LABEL_CHARS_MAX: usize = 80;

/// The selection of entities that a request shows.
#[derive(Debug)]
pub(super) struct Entities<'a> {
    /// Entities in the order they were given.
    pub(super) shown: Vec<&'a Reference>,
    /// Number of entities that are left out.
    pub(super) hidden: usize,
}

impl<'a> Entities<'a> {
    /// Selects those the message names first, then open ones, then the newest. They stay in the
    /// order they were given.
    pub(super) fn new(
        references: &'a [Reference],
        dialogue: &Dialogue,
        tools: &[&ToolDefinition],
    ) -> Self {
        let known: Vec<(usize, &Reference)> = references
            .iter()
            .enumerate()
            .filter(|(_, entity)| kinds(tools).any(|kind| kind == entity.kind))
            .collect();
        let mut words = analysis::content_words(&dialogue.message);
        // Such a message may be about what the assistant named before it.
        if analysis::has_anaphora(&dialogue.message) || dialogue.answers() {
            words.extend(
                dialogue
                    .assistant_before
                    .as_deref()
                    .map(analysis::content_words)
                    .unwrap_or_default(),
            );
        }
        let numbers = analysis::numbers(&dialogue.message);
        let mut ranked: Vec<(bool, usize, bool, usize, &Reference)> = known
            .iter()
            .map(|(at, entity)| {
                let own = analysis::content_words(&entity.label);
                let hits = words
                    .iter()
                    .filter(|word| analysis::has_similar(&own, word))
                    .count();
                (
                    // In this order: a number is exact, words may fit by chance, and what is done
                    // is seldom meant.
                    numbers.contains(&entity.id),
                    hits,
                    !entity.done,
                    *at,
                    *entity,
                )
            })
            .collect();
        ranked.sort_by_key(|(named, hits, open, at, _)| Reverse((*named, *hits, *open, *at)));
        ranked.truncate(SHOWN_MAX);
        // Back in the order of the list, in which the user counts "the second one".
        ranked.sort_by_key(|(_, _, _, at, _)| *at);
        let shown: Vec<&Reference> = ranked
            .into_iter()
            .map(|(_, _, _, _, entity)| entity)
            .collect();
        let hidden = known.len() - shown.len();
        Self { shown, hidden }
    }

    /// Returns the names an answer may use for entities of a kind, each once.
    pub(super) fn names(&self, kind: &str, offered: impl Fn(&Reference) -> bool) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for entity in self
            .shown
            .iter()
            .filter(|entity| entity.kind == kind && offered(entity))
        {
            let name = name(entity);
            // Entities with one label are one choice; which of them is meant is asked if it
            // matters.
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Returns the kinds of entity that tools refer to, in order, each once.
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

/// Returns the name a model sees and uses for an entity: its label, on one line, bounded.
pub(super) fn name(entity: &Reference) -> String {
    shortened(&entity.label)
}

/// Puts a text on one line and bounds it.
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

/// Matches the words of a text with entities: for each entity, the indexes in `words` of those that
/// are in its label.
///
/// A misspelt word counts only where no entity has the word as it is.
pub(super) fn hits(words: &[String], entities: &[&Reference]) -> Vec<Vec<usize>> {
    let own: Vec<Vec<String>> = entities
        .iter()
        .map(|entity| analysis::content_words(&entity.label))
        .collect();
    let mut hits = vec![Vec::new(); entities.len()];
    for (at, word) in words.iter().enumerate() {
        let likeness: Vec<Likeness> = own
            .iter()
            .map(|own| {
                own.iter()
                    .map(|other| analysis::likeness(word, other))
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
        for (entity, _) in likeness
            .iter()
            .enumerate()
            .filter(|(_, likeness)| **likeness == best)
        {
            hits[entity].push(at);
        }
    }
    hits
}
