//! An entry of a diary: "note for today: …", "write in my diary that …", "log that …".

use super::sentence::{Sentence, tidy};

/// Names of what an entry is written into, the longer name first.
const DIARIES: &[&str] = &[
    "note for today",
    "today's note",
    "todays note",
    "daily note",
    "daily notes",
    "daily log",
    "diary entry",
    "journal entry",
    "log entry",
    "diary",
    "journal",
    "logbook",
];
const WRITES: &str = "add enter jot keep log make note put record save write";
const NOTES: &[&str] = &["a note", "a quick note", "a short note", "me a note"];
/// Words between the name of the diary and the words.
const BETWEEN: &str = "about down entry for in into my new of on please saying to today which";
const LEADS_IN: &str = "in into on to";
/// Words that an order to write has before the name at most.
const BEFORE_NAME_MAX: usize = 6;

/// The words of an entry. `None`: the message wants none; none inside: it wants one, and does not
/// say of what.
pub(super) fn read(message: &str) -> Option<Option<String>> {
    let message = Sentence::of(message);
    let order = message.order();
    let first = message.words.get(order)?;
    if message.is_question && order == 0 {
        return None;
    }
    let orders = first.is_one_of(WRITES);
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
    if first.is("log")
        && !message
            .words
            .get(order + 1)
            .is_some_and(|word| word.is_one_of("in into me off on out"))
    {
        let rest = behind(&message, order + 1);
        return Some(Some(rest).filter(|rest| !rest.is_empty()));
    }
    let note = NOTES
        .iter()
        .find_map(|note| message.after(order + 1, note))?;
    let next = message.words.get(note)?;
    let is_entry = next.is_one_of("about of on") || first.is("write") && !next.is_one_of("that to");
    if !orders || !is_entry {
        return None;
    }
    Some(Some(behind(&message, note)).filter(|text| !text.is_empty()))
}

/// The place of the diary's name.
fn diary(message: &Sentence<'_>) -> Option<(usize, usize)> {
    (0..message.words.len()).find_map(|at| {
        DIARIES
            .iter()
            .find_map(|name| Some((at, message.after(at, name)?)))
    })
}

/// The words behind the order, without what leads to them.
fn behind(message: &Sentence<'_>, mut at: usize) -> String {
    while !message.has_sign_before(at, &[':', ','])
        && message
            .words
            .get(at)
            .is_some_and(|word| word.is_one_of(BETWEEN))
    {
        at += 1;
    }
    if message.words.get(at).is_some_and(|word| word.is("that")) && message.words.len() > at + 1 {
        at += 1;
    }
    tidy(message.from(at).trim_end_matches('?'))
}

/// The words between an order and the name of the diary: "put … into my diary".
fn in_front(message: &Sentence<'_>, mut at: usize, name: usize) -> Option<String> {
    let end = (at..name)
        .rev()
        .find(|&at| message.words[at].is_one_of(LEADS_IN))?;
    while at < end && message.words[at].is_one_of("down") {
        at += 1;
    }
    if message.words[at].is("that") && at + 1 < end {
        at += 1;
    }
    Some(tidy(message.between(at, end))).filter(|text| !text.is_empty())
}
