//! Questions about what is known: "what is my sister's name?", "what do you know about Anna?"

use super::sentence::{Sentence, Word};
use crate::weak::english;

/// Words of questions about a list of things to do.
const LIST: &str = "\
    agenda checked completed do done dos due finished left list next open outstanding overdue pending plate \
    remaining task tasks ticked todo todos upcoming";
const OBLIGATION: &str = "must need ought should";
const ASKS_FIRST: &str = "\
    are did do does has have how how's is was were what what's when when's where where's which who who's \
    whom whose";
/// Possessives that are none.
const CONTRACTED: &str =
    "he's here's how's it's let's she's that's there's today's what's when's where's who's why's";
/// Behind one of these a name is a place or a thing of the world more often than one of the
/// person's people.
const BEFORE_PLACES: &str = "a an at by for from in of on the to with";
/// Beginnings that say it is about what was told.
const KNOWN: &[&str] = &[
    "know about",
    "remember about",
    "recall about",
    "do you remember",
    "do you recall",
    "can you remember",
    "did i tell",
    "did i say",
    "did i mention",
    "did i write",
    "did i note",
    "have i told",
    "have i said",
    "i told you",
    "i tell you",
    "i said about",
    "i say about",
    "my notes",
    "my note",
    "my diary",
    "my journal",
    "your memory",
    "my facts",
    "about me",
    "about myself",
    "my memory",
    "remind me what",
    "remind me who",
    "remind me when",
    "remind me where",
];
const ORDERS_A_SEARCH: &[&str] = &[
    "tell me what",
    "tell me who",
    "tell me when",
    "tell me where",
    "tell me which",
    "tell me about",
    "tell me everything",
    "tell me my",
    "show me what you know",
    "show what you know",
    "list what you know",
    "look up",
    "search for",
    "search my notes",
    "find the note",
    "find my note",
    "look in my notes",
    "show me my notes",
    "find the note",
    "find my note",
    "look in my notes",
    "show me my notes",
    "find my notes",
    "find in my notes",
    "remind me what",
    "remind me who",
    "remind me when",
    "remind me where",
    "remind me of my",
];
/// Words that ask for everything if nothing else is said.
const EVERYTHING: &str = "\
    about am anything everything fact facts i know known me memory myself remember remembered said tell told \
    what who you";

/// A question about what is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The words to look for, as it was asked. `None`: everything.
    pub(super) text: Option<String>,
    /// True if the world cannot be meant.
    pub(super) certain: bool,
}

pub(super) fn read(sentence: &Sentence<'_>) -> Option<Asked> {
    let order = sentence.order();
    let searches = ORDERS_A_SEARCH
        .iter()
        .any(|row| sentence.after(order, row).is_some() || sentence.after(0, row).is_some());
    let asks = sentence.is_question || english::asks_for_a_fact(sentence.text);
    let is_known = KNOWN.iter().any(|row| sentence.has_row(row))
        || searches && sentence.has("diary journal note notes");
    let asks_all = sentence.has("know remember told tell")
        && sentence.has("you")
        && sentence
            .words
            .iter()
            .all(|word| word.is_one_of(EVERYTHING) || word.is_one_of("do have does so far else"));
    if !(asks || searches) || sentence.words.len() < 2 {
        return None;
    }
    if asks_all || sentence.has_row("who am i") || (is_known && nothing_else(sentence)) {
        return Some(Asked {
            text: None,
            certain: true,
        });
    }
    let about_the_list =
        sentence.has(OBLIGATION) || sentence.has_row("have to") || is_about_the_list(sentence);
    if about_the_list && !is_known || sentence.has("task tasks list todo todos") {
        return None;
    }
    let begins = sentence
        .words
        .first()
        .is_some_and(|word| word.is_one_of(ASKS_FIRST))
        || searches;
    let own = sentence.has("my our mine") || possessive(sentence);
    let certain = is_known || (begins && own);
    let of_the_person =
        sentence.has("i i'm i've we we've") && !sentence.has("you") && sentence.says_something();
    let named = begins && has_name(sentence);
    (certain || own && !sentence.has("you") || of_the_person || named).then(|| Asked {
        text: Some(sentence.text.trim().to_owned()),
        certain,
    })
}

/// "Do" is a word of a list only as what is to be done: "what do I have to do?"
fn is_about_the_list(sentence: &Sentence<'_>) -> bool {
    let is_of_list = |(at, word): (usize, &Word)| match word.text.as_str() {
        "do" => at + 1 == sentence.words.len() || sentence.words[at.saturating_sub(1)].is("to"),
        _ => word.is_one_of(LIST),
    };
    sentence.words.iter().enumerate().any(is_of_list)
}

fn nothing_else(sentence: &Sentence<'_>) -> bool {
    sentence
        .words
        .iter()
        .all(|word| word.is_one_of(EVERYTHING) || english::is_plain(&word.text))
        && !sentence.has("my our notes note diary journal")
}

fn possessive(sentence: &Sentence<'_>) -> bool {
    sentence
        .words
        .iter()
        .any(|word| word.text.ends_with("'s") && !word.is_one_of(CONTRACTED))
}

/// Returns whether somebody is named behind the first word.
fn has_name(sentence: &Sentence<'_>) -> bool {
    sentence.words.windows(2).any(|pair| {
        let begins_large = sentence.text[pair[1].start..].starts_with(char::is_uppercase);
        begins_large
            && !pair[0].is_one_of(BEFORE_PLACES)
            && !pair[1].text.starts_with("i'")
            && !pair[1].is("i")
            && !follows_name(sentence, &pair[0])
    })
}

/// The second word of a name, as in "the Mona Lisa", is none of its own.
fn follows_name(sentence: &Sentence<'_>, before: &Word) -> bool {
    before.start > 0 && sentence.text[before.start..].starts_with(char::is_uppercase)
}
