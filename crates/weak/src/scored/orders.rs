//! The orders of a message: which of its clauses ask for which kind of action, by their words.

use std::collections::BTreeMap;
use std::ops::Range;

use adjutant_core::{ActionKind, ActionScores};

use super::clauses::clauses;
use crate::lexicon::{Lexicon, is_content};
use crate::word_classifier::WordClassifier;
use crate::words::{find, is_number, words};

/// Evidence, as a difference of logarithms, by which a clause has to ask for another kind of action
/// than the one before it: "delete the milk, the bread and add tea".
const CHANGE: f32 = 2.0;
/// Evidence against leaving out a kind that the whole message asks for.
const LEFT_OUT: f32 = 6.0;
/// Most clauses that are told apart.
const CLAUSES_MAX: usize = 64;
/// Probability from which on a clause asks for an action.
const ASKED_FOR: f32 = 0.5;
/// Least probability that counts as evidence.
const FLOOR: f32 = 0.01;

/// The clauses of a message that each ask for one kind of action.
pub(super) struct Orders {
    /// Bytes of each clause, in order, with its kind.
    clauses: Vec<(Range<usize>, ActionKind)>,
}

impl Orders {
    /// Finds the likeliest kind for every clause, of those that the whole message asks for.
    pub(super) fn new(message: &str, wanted: &[ActionKind], lexicon: &Lexicon) -> Self {
        if let [only] = wanted {
            let clauses = vec![(0..message.len(), *only)];
            return Self { clauses };
        }
        let ranges = ranges(message, lexicon);
        let mut evidence: Vec<Vec<f32>> = ranges
            .iter()
            .map(|range| {
                let clause = &message[range.clone()];
                let scores = WordClassifier::built_in().scores(clause);
                let spoken = words(clause);
                // "The climbing is cancelled" completes nothing.
                let mut phrases = lexicon.no_longer.iter();
                let is_over = phrases.any(|phrase| find(&spoken, phrase).is_some());
                wanted
                    .iter()
                    .map(|kind| {
                        let more = if is_over && *kind == ActionKind::Delete {
                            CHANGE
                        } else {
                            0.0
                        };
                        scores.of(*kind).max(FLOOR).ln() + more
                    })
                    .collect()
            })
            .collect();
        // "The climbing is cancelled, get rid": what names nothing is about the clause before it.
        for at in (1..ranges.len()).rev() {
            let kind =
                (0..wanted.len()).max_by(|a, b| evidence[at][*a].total_cmp(&evidence[at][*b]));
            let is_of_entity =
                |kind: usize| matches!(wanted[kind], ActionKind::Complete | ActionKind::Delete);
            if kind.is_some_and(is_of_entity) && !names(&message[ranges[at].clone()], lexicon) {
                let more = evidence[at].clone();
                let before = evidence[at - 1].iter_mut();
                before.zip(more).for_each(|(before, more)| *before += more);
            }
        }
        let kinds = likeliest(&evidence, wanted.len());
        let clauses = ranges
            .into_iter()
            .zip(kinds)
            .map(|(range, kind)| (range, wanted[kind]))
            .collect();
        Self { clauses }
    }

    /// Returns the kind of the clause that has a byte of the message.
    pub(super) fn kind_at(&self, byte: usize) -> Option<ActionKind> {
        let clause = self.clauses.iter().find(|(range, _)| byte < range.end);
        clause.or(self.clauses.last()).map(|(_, kind)| *kind)
    }

    /// Returns the parts of the message that ask for a kind: neighbouring clauses are one part.
    pub(super) fn parts(&self, kind: ActionKind) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut joins = false;
        for (range, of) in &self.clauses {
            match (*of == kind, parts.last_mut()) {
                (true, Some(last)) if joins => last.end = range.end,
                (true, _) => parts.push(range.clone()),
                (false, _) => {}
            }
            joins = *of == kind;
        }
        parts
    }
}

/// Returns the kinds of action that clauses of a message ask for by their words. One clause alone
/// says no more than the whole message.
pub(super) fn in_clauses(message: &str, lexicon: &Lexicon) -> Vec<ActionKind> {
    let ranges = ranges(message, lexicon);
    if ranges.len() < 2 {
        return Vec::new();
    }
    let scores: Vec<ActionScores> = ranges
        .into_iter()
        .map(|range| WordClassifier::built_in().scores(&message[range]))
        .collect();
    ActionKind::ALL
        .into_iter()
        .filter(|kind| scores.iter().any(|scores| scores.of(*kind) >= ASKED_FOR))
        .collect()
}

/// Returns true if a clause has a word or number that may name an entity.
fn names(clause: &str, lexicon: &Lexicon) -> bool {
    words(clause).iter().any(|word| {
        is_content(&word.folded, lexicon)
            || is_number(&word.folded)
            || lexicon.ordinals.number(&word.folded).is_some()
    })
}

/// Returns the bytes of every clause. Marks in front of its first word belong to it, and what
/// follows the last of many clauses.
fn ranges(message: &str, lexicon: &Lexicon) -> Vec<Range<usize>> {
    let words = words(message);
    let numbers = clauses(message, &words, lexicon);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut last = None;
    let mut end = 0;
    for (word, number) in words.iter().zip(numbers) {
        let between = &message[end..word.start];
        // "Rent: paid" is one order, on either side of the mark.
        let is_new = last != Some(number) && !(between.starts_with(':') && last.is_some());
        if is_new && ranges.len() < CLAUSES_MAX {
            let space = between.find(char::is_whitespace);
            let start = match ranges.last_mut() {
                Some(before) => {
                    before.end = space.map_or(word.start, |space| end + space);
                    before.end
                }
                None => 0,
            };
            ranges.push(start..message.len());
        }
        last = Some(number);
        end = word.end;
    }
    ranges
}

/// Returns the likeliest kind of every clause, by the Viterbi algorithm over the kind of a clause and
/// the kinds that were there before it.
fn likeliest(evidence: &[Vec<f32>], kinds: usize) -> Vec<usize> {
    // A state is the kind of a clause, and a bit for each kind up to there.
    type Path = (f32, Vec<usize>);
    let mut paths: BTreeMap<(usize, u16), Path> = BTreeMap::new();
    for (at, clause) in evidence.iter().enumerate() {
        let mut next: BTreeMap<(usize, u16), Path> = BTreeMap::new();
        let mut offer = |key: (usize, u16), score: f32, path: Vec<usize>| {
            let is_better = next.get(&key).is_none_or(|(best, _)| score > *best);
            if is_better {
                next.insert(key, (score, path));
            }
        };
        for (kind, own) in clause.iter().enumerate() {
            if at == 0 {
                offer((kind, 1 << kind), *own, vec![kind]);
            }
            for ((before, seen), (score, path)) in &paths {
                let change = if *before == kind { 0.0 } else { CHANGE };
                let path = path.iter().copied().chain([kind]).collect();
                offer((kind, seen | 1 << kind), score + own - change, path);
            }
        }
        paths = next;
    }
    paths
        .into_iter()
        .map(|((_, seen), (score, path))| {
            let left_out = kinds.saturating_sub(seen.count_ones() as usize);
            (score - LEFT_OUT * left_out as f32, path)
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, path)| path)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use adjutant_core::Language;

    use super::*;
    use crate::lexicon::lexicon;

    #[test]
    fn each_order_has_its_clauses() {
        use ActionKind::{Complete, Create, Delete};
        let part = |message: &'static str, wanted: &[ActionKind], kind| -> Vec<&str> {
            let orders = Orders::new(message, wanted, lexicon(Language::English));
            let parts = orders.parts(kind);
            parts
                .into_iter()
                .map(|range| message[range].trim())
                .collect()
        };
        let message = "delete the milk, the bread and add tea";
        assert_eq!(part(message, &[Delete, Create], Create), ["and add tea"]);
        let message = "mark 2 and 3 as done and delete 4";
        assert_eq!(part(message, &[Complete, Delete], Delete), ["and delete 4"]);
        let message = "remove the plumber, I paid the rent";
        assert_eq!(
            part(message, &[Complete, Delete], Complete),
            ["I paid the rent"]
        );
        assert_eq!(part("", &[Complete, Delete], Complete), Vec::<&str>::new());
    }
}
