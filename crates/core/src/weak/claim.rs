//! Claims in words to the person that something was done, or will be: without a call, neither is
//! true.

use super::english::{self, Likeness};
use super::guard::Guard;

/// Words for having kept something, whatever the tools are called.
const KEPT: &str = "\
    jotted kept logged memorised memorized noted recorded remembered saved stored written";
const BY_US: &str = "\
    already been have i i've i'm it just now successfully that";
/// Verbs of a promise. A weak model does nothing later.
const PROMISED: &str = "\
    add care change ensure forget handle jot keep log memorise memorize note record remember remind save schedule store update write";
/// Words between a promise and what is promised at most.
const PROMISE_WORDS: usize = 4;

impl Guard<'_> {
    /// Returns whether words to the person say that something was changed or will be: nothing is
    /// when there is no call.
    pub(super) fn claims_a_change(&self, words: &str) -> bool {
        english::clauses(words)
            .iter()
            .any(|clause| self.claims(clause) || self.promises(clause))
    }

    fn claims(&self, clause: &[String]) -> bool {
        clause.iter().enumerate().any(|(at, word)| {
            let past = word.ends_with("ed")
                && self
                    .verbs
                    .iter()
                    .any(|verb| english::likeness(word, verb) == Likeness::Same);
            let by_us = |table: &str| at == 0 || is_in(table, &clause[at - 1]);
            past && by_us("been have i i've now successfully") || is_in(KEPT, word) && by_us(BY_US)
        })
    }

    fn promises(&self, clause: &[String]) -> bool {
        let begins = clause
            .iter()
            .position(|word| matches!(word.as_str(), "i'll" | "we'll"))
            .or_else(|| {
                clause.windows(2).position(|pair| {
                    matches!(
                        (pair[0].as_str(), pair[1].as_str()),
                        ("i" | "we", "will" | "shall") | ("i'm", "going") | ("let", "me")
                    )
                })
            });
        let Some(begins) = begins else { return false };
        let promised = clause[begins + 1..].iter().take(PROMISE_WORDS);
        promised
            .clone()
            .any(|word| is_in(PROMISED, word) || self.verbs.contains(&word.as_str()))
            || clause
                .windows(2)
                .any(|pair| pair[0] == "make" && pair[1] == "sure")
    }
}

fn is_in(table: &str, word: &str) -> bool {
    table.split_whitespace().any(|other| other == word)
}
