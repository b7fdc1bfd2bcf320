//! Replies that only take note of a fact: nothing is kept by that.

use super::sentence::{COMMA, Sentence, sentences};
use crate::analysis::contains_phrase;
use crate::claim_language::{ClaimLanguage, languages};
use crate::language::PhraseList;

/// Most words of a reply that only takes note.
const REPLY_WORDS_MAX: usize = 30;

/// Returns true if the message states a fact about the person who wrote it, and the reply only takes
/// note of it: "I see, you are Sarah". Without a call the fact is not kept.
///
/// # Examples
///
/// ```
/// use adjutant_weak::claims_understanding;
///
/// assert!(claims_understanding("My name is Sarah.", "I see, you are Sarah."));
/// assert!(!claims_understanding("My name is Sarah.", "I cannot keep that."));
/// assert!(!claims_understanding("Who are you?", "I see, you are curious."));
/// ```
#[must_use]
pub fn claims_understanding(message: &str, reply: &str) -> bool {
    states_a_fact(&sentences(message)) && takes_note(&sentences(reply))
}

fn states_a_fact(message: &[Sentence]) -> bool {
    let states = |language: &ClaimLanguage| {
        let lists = &language.lists;
        let is_fact = |sentence: &Sentence| {
            let asks =
                sentence.is_question() || sentence.words.iter().any(|word| lists.orders.has(word));
            !asks && clauses(sentence).any(|clause| begins(clause, &lists.facts, language))
        };
        message.iter().any(is_fact)
    };
    !message.iter().any(Sentence::is_question) && languages().iter().any(states)
}

fn takes_note(reply: &[Sentence]) -> bool {
    let words: usize = reply.iter().map(|sentence| sentence.words.len()).sum();
    let Some(first) = reply.first().filter(|_| words <= REPLY_WORDS_MAX) else {
        return false;
    };
    let takes = |language: &ClaimLanguage| {
        let lists = &language.lists;
        clauses(first).any(|clause| begins(clause, &lists.acknowledgements, language))
    };
    let says_so = |language: &ClaimLanguage| {
        let unkept = &language.lists.unkept;
        reply.iter().any(|sentence| {
            unkept
                .iter()
                .any(|phrase| contains_phrase(&sentence.words, phrase))
        })
    };
    !reply.iter().any(Sentence::is_question)
        && languages().iter().any(takes)
        && !languages().iter().any(says_so)
}

fn clauses(sentence: &Sentence) -> impl Iterator<Item = &[String]> {
    sentence.words.split(|word| word == COMMA)
}

/// Returns true if a clause begins with one of these, perhaps behind interjections.
fn begins(clause: &[String], phrases: &PhraseList, language: &ClaimLanguage) -> bool {
    let lists = &language.lists;
    (0..clause.len())
        .take_while(|&at| {
            clause[..at]
                .iter()
                .all(|word| lists.interjections.has(word) || lists.conjunctions.has(word))
        })
        .any(|at| {
            phrases
                .iter()
                .any(|phrase| clause[at..].starts_with(phrase))
        })
}
