//! Which thing a call means, and whether the message bears it out.

use super::doubt::Doubt;
use super::english::{self, contains_in_row, place_in_row};
use super::guard::{Guard, Proposed};
use super::nature::{Nature, nature};
use super::things;

impl<'a> Guard<'a> {
    /// The thing a call means.
    pub(super) fn resolve(
        &self,
        call: &Proposed<'a>,
        all: &[Proposed<'a>],
        kind: &'a str,
        name: &str,
        text: Option<&str>,
    ) -> Result<usize, Doubt<'a>> {
        let of_kind: Vec<usize> = (0..self.things.len())
            .filter(|&at| self.things[at].kind == kind)
            .collect();
        let which = |candidates: Vec<usize>| match candidates[..] {
            [] => self.unnamed(kind),
            _ => Doubt::Which {
                kind,
                candidates: candidates.into_iter().map(|at| self.things[at]).collect(),
            },
        };
        let mut chosen: Vec<usize> = of_kind
            .iter()
            .copied()
            .filter(|&at| things::name(self.things[at]) == name)
            .collect();
        let message = &self.said.message;
        let by_id = |id: &String| {
            of_kind
                .iter()
                .copied()
                .find(|&at| self.things[at].id == *id)
        };

        // A number that is given as a name wins over words, and over the model.
        let named = english::named_numbers(message, &[kind]);
        let known: Vec<usize> = named.iter().filter_map(by_id).collect();
        if let (Some(id), true) = (named.first(), known.is_empty()) {
            return Err(Doubt::NoSuch {
                kind,
                id: id.clone(),
            });
        }
        if let Some(&at) = known.iter().find(|at| chosen.contains(at)) {
            return Ok(at);
        }
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
        if let Some(place) = self.place(kind) {
            let mentioned = self
                .said
                .before
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

        // Things with the same words: only the open one of them can be settled, otherwise they
        // cannot be told apart.
        if chosen.len() > 1 && nature(call.tool) == Nature::Settles {
            chosen.retain(|&at| !self.things[at].done);
        }
        let [chosen] = chosen[..] else {
            return Err(which(chosen));
        };

        // A number on its own counts as long as nothing else in the message could be what is
        // counted.
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
        if contains_in_row(
            &english::tokens(message),
            &english::tokens(&self.things[chosen].label),
        ) {
            return Ok(chosen);
        }
        // Nothing in the message speaks of it. "It" may be what was spoken of just before, or the
        // only one there is.
        if others.is_empty() {
            for earlier in [&self.said.before, &self.said.earlier]
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
                .filter(|&&at| !self.things[at].done)
                .all(|&at| at == chosen)
            {
                return Ok(chosen);
            }
        }
        Err(which(Vec::new()))
    }

    /// The question which thing is meant, where nothing that was said speaks for any of them.
    pub(super) fn unnamed(&self, kind: &'a str) -> Doubt<'a> {
        let open = self
            .things
            .iter()
            .copied()
            .filter(|thing| thing.kind == kind && !thing.done)
            .collect();
        Doubt::Unnamed { kind, open }
    }

    pub(super) fn place(&self, kind: &str) -> Option<Option<usize>> {
        english::place(&self.said.message, &[kind])
    }

    /// Words of the message that speak neither of the thing nor of its new words.
    pub(super) fn unexplained(&self, thing: usize, text: Option<&str>) -> Vec<&str> {
        let new = text.map(english::content).unwrap_or_default();
        let rest = self
            .words
            .iter()
            .enumerate()
            .filter(|(at, word)| !self.hits[thing].contains(at) && !new.contains(word));
        rest.map(|(_, word)| word.as_str()).collect()
    }

    /// Whether nothing but its first word speaks for a thing, and the message has words for
    /// something else: "bought the bread" does not speak of "Buy milk", though "bought" does.
    pub(super) fn verb_only(&self, thing: usize, text: Option<&str>) -> bool {
        let own = english::content(&self.things[thing].label);
        let is_verb = |at: &usize| {
            own.first()
                .is_some_and(|verb| english::has(std::slice::from_ref(verb), &self.words[*at]))
        };
        own.len() > 1
            && self.hits[thing].iter().all(is_verb)
            && !self.unexplained(thing, text).is_empty()
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
        let counts =
            |at: &&usize| !new.contains(&self.words[**at]) || english::has(&own, &self.words[**at]);
        let mine: Vec<usize> = self.hits[chosen].iter().filter(counts).copied().collect();
        let whole = own.iter().all(|word| english::has(&self.words, word));
        let mut rivals: Vec<usize> = Vec::new();
        for &other in of_kind
            .iter()
            .filter(|&&other| other != chosen && !self.things[other].done)
        {
            let theirs: Vec<usize> = self.hits[other].iter().filter(counts).copied().collect();
            let more = theirs.len() > mine.len();
            let others_own = english::content(&self.things[other].label);
            let whole_too = others_own
                .iter()
                .all(|word| english::has(&self.words, word));
            let named_too = all.iter().any(|call| {
                call.arguments
                    .values()
                    .any(|value| value.as_str() == Some(&things::name(self.things[other])))
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
            // "Remind me to call Ann" does not speak of "Call Bob": "call" is a word of the new
            // text.
            Nature::Rewords => {
                let count = |words: &[String], word: &String| {
                    words.iter().filter(|other| *other == word).count()
                };
                let spoken = english::tokens(&self.said.message);
                let outside = mine
                    .iter()
                    .any(|&at| count(&spoken, &self.words[at]) > count(&new, &self.words[at]));
                !outside && self.verb_only(chosen, None)
            }
            Nature::Looks | Nature::Makes | Nature::Destroys | Nature::Quotes(_) => false,
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
                place_in_row(&words, &english::tokens(&self.things[at].label))
                    .map(|place| (place, at))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// The number of a thing, if the message has it.
    pub(super) fn named(&self, thing: usize) -> Option<&String> {
        self.numbers
            .iter()
            .find(|number| **number == self.things[thing].id)
    }
}
