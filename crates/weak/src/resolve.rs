//! Entity resolution: which entity a call means, and whether the message supports it.

use super::analysis::{self, contains_phrase, find_phrase};
use super::clarification::Clarification;
use super::entities;
use super::guard::{Guard, Proposed};
use super::tool_kind::{ToolKind, tool_kind};

impl<'a> Guard<'a> {
    /// Returns the index of the entity a call means, or the question which one it is.
    pub(super) fn resolve(
        &self,
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
        kind: &'a str,
        name: &str,
        text: Option<&str>,
    ) -> Result<usize, Clarification<'a>> {
        let of_kind: Vec<usize> = (0..self.entities.len())
            .filter(|&at| self.entities[at].kind == kind)
            .collect();
        let which = |candidates: Vec<usize>| match candidates[..] {
            [] => self.unnamed(kind),
            _ => Clarification::Which {
                kind,
                candidates: candidates.into_iter().map(|at| self.entities[at]).collect(),
            },
        };
        let mut chosen: Vec<usize> = of_kind
            .iter()
            .copied()
            .filter(|&at| entities::name(self.entities[at]) == name)
            .collect();
        let message = &self.dialogue.message;
        let by_id = |id: &String| {
            of_kind
                .iter()
                .copied()
                .find(|&at| self.entities[at].id == *id)
        };

        // A number that is given as a name wins over words, and over the model.
        let named = analysis::named_numbers(message, &[kind]);
        let known: Vec<usize> = named.iter().filter_map(by_id).collect();
        if let (Some(id), true) = (named.first(), known.is_empty()) {
            return Err(Clarification::NoSuch {
                kind,
                id: id.clone(),
            });
        }
        if let Some(&at) = known.iter().find(|at| chosen.contains(at)) {
            return Ok(at);
        }
        // With several calls the number may belong to another of them.
        let alone = all
            .iter()
            .filter(|other| !other.tool.references.is_empty())
            .count()
            == 1;
        if let [only] = known[..] {
            return if alone {
                Ok(only)
            } else {
                Err(which(vec![only]))
            };
        }
        if !known.is_empty() {
            return Err(which(known));
        }
        if let Some(place) = self.ordinal_position(kind) {
            // In what the assistant listed before, if it did; else in the whole list.
            let mentioned = self
                .dialogue
                .assistant_before
                .as_deref()
                .map(|before| self.quoted_in(before, &of_kind))
                .unwrap_or_default();
            let row = if mentioned.is_empty() {
                &of_kind
            } else {
                &mentioned
            };
            let meant = match place {
                None => row.last(),
                Some(number) => row.get(number - 1),
            };
            return match meant {
                Some(&at) if alone || chosen.contains(&at) => Ok(at),
                Some(_) | None => Err(which(Vec::new())),
            };
        }

        // Of entities with the same label only the open one can be completed; otherwise they cannot
        // be told apart.
        if chosen.len() > 1 && tool_kind(call.tool) == ToolKind::Completes {
            chosen.retain(|&at| !self.entities[at].done);
        }
        let [chosen] = chosen[..] else {
            return Err(which(chosen));
        };

        // A number on its own counts as long as nothing else in the message could be what is
        // counted.
        let others = self.unmatched_words(chosen, text);
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
        if contains_phrase(
            &analysis::tokens(message),
            &analysis::tokens(&self.entities[chosen].label),
        ) {
            return Ok(chosen);
        }
        // Nothing in the message matches the entity. "It" may be the one that was mentioned just
        // before, or the only one there is.
        if others.is_empty() {
            for earlier in [&self.dialogue.assistant_before, &self.dialogue.user_before]
                .into_iter()
                .flatten()
            {
                match self.quoted_in(earlier, &of_kind)[..] {
                    [] => {}
                    [only] if only == chosen => return Ok(chosen),
                    ref several => return Err(which(several.to_vec())),
                }
            }
            if of_kind
                .iter()
                .filter(|&&at| !self.entities[at].done)
                .all(|&at| at == chosen)
            {
                return Ok(chosen);
            }
        }
        Err(which(Vec::new()))
    }

    /// Returns the question which entity is meant, where nothing speaks for any of them.
    pub(super) fn unnamed(&self, kind: &'a str) -> Clarification<'a> {
        let open = self
            .entities
            .iter()
            .copied()
            .filter(|entity| entity.kind == kind && !entity.done)
            .collect();
        Clarification::Unnamed { kind, open }
    }

    pub(super) fn ordinal_position(&self, kind: &str) -> Option<Option<usize>> {
        analysis::ordinal_position(&self.dialogue.message, &[kind])
    }

    /// Returns the words of the message that match neither the entity nor its new text.
    pub(super) fn unmatched_words(&self, entity: usize, text: Option<&str>) -> Vec<&str> {
        let new = text.map(analysis::content_words).unwrap_or_default();
        let rest = self
            .words
            .iter()
            .enumerate()
            .filter(|(at, word)| !self.hits[entity].contains(at) && !new.contains(word));
        rest.map(|(_, word)| word.as_str()).collect()
    }

    /// Returns true if only the first word of the label matches, and the message has words for
    /// something else: "bought the bread" does not name "Buy milk", though "bought" matches.
    pub(super) fn only_verb_matches(&self, entity: usize, text: Option<&str>) -> bool {
        let own = analysis::content_words(&self.entities[entity].label);
        let is_verb = |at: &usize| {
            own.first().is_some_and(|verb| {
                analysis::has_similar(std::slice::from_ref(verb), &self.words[*at])
            })
        };
        own.len() > 1
            && self.hits[entity].iter().all(is_verb)
            && !self.unmatched_words(entity, text).is_empty()
    }

    /// Returns the entities that the same words match as well, or the chosen one if only a verb
    /// matches it.
    fn rivals(
        &self,
        chosen: usize,
        of_kind: &[usize],
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
        text: Option<&str>,
    ) -> Option<Vec<usize>> {
        // Words of the new text say what it will be, not which entity it is.
        let new = text.map(analysis::tokens).unwrap_or_default();
        let own = analysis::content_words(&self.entities[chosen].label);
        let counts = |at: &&usize| {
            !new.contains(&self.words[**at]) || analysis::has_similar(&own, &self.words[**at])
        };
        let mine: Vec<usize> = self.hits[chosen].iter().filter(counts).copied().collect();
        let whole = own
            .iter()
            .all(|word| analysis::has_similar(&self.words, word));
        let mut rivals: Vec<usize> = Vec::new();
        for &other in of_kind
            .iter()
            .filter(|&&other| other != chosen && !self.entities[other].done)
        {
            let theirs: Vec<usize> = self.hits[other].iter().filter(counts).copied().collect();
            let more = theirs.len() > mine.len();
            let others_own = analysis::content_words(&self.entities[other].label);
            let whole_too = others_own
                .iter()
                .all(|word| analysis::has_similar(&self.words, word));
            let named_too = all.iter().any(|call| {
                call.arguments
                    .values()
                    .any(|value| value.as_str() == Some(&entities::name(self.entities[other])))
            });
            if mine.iter().all(|at| theirs.contains(at))
                && (whole_too || !whole || more)
                && !(named_too && more)
            {
                rivals.push(other);
            }
        }
        let only_verb_matches = match tool_kind(call.tool) {
            ToolKind::Completes => self.only_verb_matches(chosen, text),
            // "Remind me to call Ann" does not name "Call Bob": "call" is a word of the new text.
            ToolKind::Rewords => {
                let count = |words: &[String], word: &String| {
                    words.iter().filter(|other| *other == word).count()
                };
                let spoken = analysis::tokens(&self.dialogue.message);
                let outside = mine
                    .iter()
                    .any(|&at| count(&spoken, &self.words[at]) > count(&new, &self.words[at]));
                !outside && self.only_verb_matches(chosen, None)
            }
            ToolKind::Reads | ToolKind::Creates | ToolKind::Deletes | ToolKind::Verbatim(_) => {
                false
            }
        };
        if rivals.is_empty() && !only_verb_matches {
            return None;
        }
        rivals.push(chosen);
        rivals.sort_unstable();
        Some(rivals)
    }

    /// Returns the entities whose labels a text quotes, in the order of the text.
    fn quoted_in(&self, text: &str, of_kind: &[usize]) -> Vec<usize> {
        let words = analysis::tokens(text);
        let mut found: Vec<(usize, usize)> = of_kind
            .iter()
            .filter_map(|&at| {
                find_phrase(&words, &analysis::tokens(&self.entities[at].label))
                    .map(|place| (place, at))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// Returns the number of an entity, if the message has it.
    pub(super) fn number_in_message(&self, entity: usize) -> Option<&String> {
        self.numbers
            .iter()
            .find(|number| **number == self.entities[entity].id)
    }
}
