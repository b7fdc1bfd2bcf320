//! Entries of a diary: "note for today: …", "write in my diary that …", "log that …".

use crate::language::lists;

use super::sentence::{Sentence, tidy};

/// Most words between an order to write and the name of the diary.
const BEFORE_NAME_MAX: usize = 6;

/// Extracts the text of an entry. `None`: the message asks for no entry. `Some(None)`: it asks for
/// one, and does not say which text.
pub(super) fn parse(message: &str) -> Option<Option<String>> {
    let message = Sentence::new(message);
    let order = message.order();
    let first = message.words.get(order)?;
    if message.is_question && order == 0 {
        return None;
    }
    let orders = first.is_one_of(&lists().entry.write_verbs);
    if let Some((from, to)) = diary(&message) {
        let begins = from <= order + 1
            && (message.has_sign_before(to, &[':', ',', '-', '\u{2013}'])
                || to == message.words.len());
        if !orders && !begins {
            return None;
        }
        let rest = behind(&message, to);
        if !rest.is_empty() && (begins || from - order <= BEFORE_NAME_MAX) {
            return Some(Some(rest));
        }
        return Some(in_front(&message, order + 1, from));
    }
    if first.is("log") && !message.is_at(order + 1, &lists().entry.no_object) {
        let rest = behind(&message, order + 1);
        return Some(Some(rest).filter(|rest| !rest.is_empty()));
    }
    let note = message.longest(order + 1, &lists().entry.notes)?;
    let next = message.words.get(note)?;
    let is_entry = next.is_one_of(&lists().entry.topic_prepositions)
        || first.is("write") && !next.is_one_of(&lists().entry.not_an_entry);
    if !orders || !is_entry {
        return None;
    }
    Some(Some(behind(&message, note)).filter(|text| !text.is_empty()))
}

/// Returns the place of the diary's name.
fn diary(message: &Sentence<'_>) -> Option<(usize, usize)> {
    (0..message.words.len()).find_map(|at| Some((at, message.longest(at, &lists().entry.diaries)?)))
}

/// Returns the text behind the order, without the words that lead to it.
fn behind(message: &Sentence<'_>, mut at: usize) -> String {
    while !message.has_sign_before(at, &[':', ',']) && message.is_at(at, &lists().entry.before_text)
    {
        at += 1;
    }
    if message.words.get(at).is_some_and(|word| word.is("that")) && message.words.len() > at + 1 {
        at += 1;
    }
    tidy(message.from(at).trim_end_matches('?'))
}

/// Returns the text between an order and the name of the diary: "put … into my diary".
fn in_front(message: &Sentence<'_>, mut at: usize, name: usize) -> Option<String> {
    let end = (at..name)
        .rev()
        .find(|&at| message.words[at].is_one_of(&lists().entry.prepositions))?;
    while at < end && message.words[at].is("down") {
        at += 1;
    }
    if message.words[at].is("that") && at + 1 < end {
        at += 1;
    }
    Some(tidy(message.between(at, end))).filter(|text| !text.is_empty())
}
