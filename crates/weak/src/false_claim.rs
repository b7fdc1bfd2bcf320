//! Detection of false claims: text that says something was done, or promises it. Without a call
//! neither is true.
//!
//! A text is read sentence by sentence, with the word lists of every language. What is quoted, asked,
//! denied, offered on a condition, told of another time or said of a text in the answer itself is no
//! claim.

mod coverage; // languages that the lists cover
mod pattern; // the forms of a claim
mod sentence; // the sentences of a text
mod understanding; // facts that are taken note of and not kept

pub use understanding::claims_understanding;

use super::claim_language::languages;
use super::guard::Guard;
use pattern::{Place, Reader};
use sentence::{Sentence, has_code, sentences};

/// Returns true if a text to the user says that something was changed or will be: that it was done,
/// kept, set or sent. It may be in English, French, German, Portuguese or Spanish.
///
/// # Examples
///
/// ```
/// assert!(adjutant_weak::claims_a_change("I've added oat milk to your list."));
/// assert!(adjutant_weak::claims_a_change("I'll wake you at 7."));
/// assert!(adjutant_weak::claims_a_change("Ich habe Milch hinzugefügt."));
/// assert!(!adjutant_weak::claims_a_change("You have two tasks."));
/// assert!(!adjutant_weak::claims_a_change("If you tell me which, I'll delete it."));
/// ```
#[must_use]
pub fn claims_a_change(text: &str) -> bool {
    any_claim(text, &[])
}

impl Guard<'_> {
    /// Returns true if a text to the user says that something was changed or will be.
    pub(super) fn claims_a_change(&self, words: &str) -> bool {
        any_claim(words, &self.verbs)
    }

    /// Returns true if a reply may claim anything, because the lists do not cover its language. A
    /// question claims nothing in any.
    pub(super) fn is_beyond_lists(&self, reply: &str) -> bool {
        let asks = reply
            .trim_end()
            .ends_with(['?', '\u{61f}', '\u{ff1f}', '\u{37e}']);
        !asks && !coverage::is_covered(reply, &self.dialogue.message)
    }
}

/// `verbs`: more verbs of changes, in English.
fn any_claim(text: &str, verbs: &[&str]) -> bool {
    let sentences = sentences(text);
    let shows_code = has_code(text);
    let last = sentences.len().saturating_sub(1);
    sentences.iter().enumerate().any(|(index, sentence)| {
        languages().iter().any(|language| {
            let place = Place {
                index,
                is_last: index == last,
                follows_interjections: sentences[..index].iter().all(is_interjection),
                shows_code,
            };
            Reader::new(language, sentence, place, verbs).claims()
        })
    })
}

/// Returns true if a sentence is nothing but words such as "Sure, no problem".
fn is_interjection(sentence: &Sentence) -> bool {
    languages().iter().any(|language| {
        sentence
            .words
            .iter()
            .all(|word| word == sentence::COMMA || language.lists.interjections.has(word))
    })
}

#[cfg(test)]
mod tests;
