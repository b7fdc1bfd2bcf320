//! Detection of false claims: text that says something was done, or promises it. Without a call
//! neither is true.

use super::analysis::{self, Likeness, contains_phrase, find_phrase};
use super::guard::Guard;
use super::language::{WordList, lists};

/// Most words between the opening of a promise and what it promises.
const PROMISE_WORDS: usize = 4;

impl Guard<'_> {
    /// Returns true if a text to the user says that something was changed or will be.
    pub(super) fn claims_a_change(&self, words: &str) -> bool {
        analysis::clauses(words)
            .iter()
            .any(|clause| self.claims(clause) || self.promises(clause))
    }

    fn claims(&self, clause: &[String]) -> bool {
        clause.iter().enumerate().any(|(at, word)| {
            let past = word.ends_with("ed")
                && self
                    .verbs
                    .iter()
                    .any(|verb| analysis::likeness(word, verb) == Likeness::Same);
            let by_us = |list: &WordList| at == 0 || list.has(&clause[at - 1]);
            past && by_us(&lists().claim.before_participle)
                || lists().claim.saved.has(word) && by_us(&lists().claim.before_saved)
        })
    }

    fn promises(&self, clause: &[String]) -> bool {
        let begins = lists()
            .claim
            .promise_openings
            .iter()
            .filter_map(|opening| find_phrase(clause, opening))
            .min();
        let Some(begins) = begins else { return false };
        let promised = clause[begins + 1..].iter().take(PROMISE_WORDS);
        promised
            .clone()
            .any(|word| lists().claim.promised.has(word) || self.verbs.contains(&word.as_str()))
            || lists()
                .claim
                .assurances
                .iter()
                .any(|assurance| contains_phrase(clause, assurance))
    }
}
