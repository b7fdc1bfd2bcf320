//! Questions about what is remembered: "what is my sister's name?", "what do you know about Anna?"

use super::sentence::{Sentence, Word};
use crate::analysis;
use crate::language::lists;
/// A question about what is remembered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemoryQuestion {
    /// The text to search for, as it was asked. `None`: everything.
    pub(super) text: Option<String>,
    /// True if general knowledge cannot be meant.
    pub(super) certain: bool,
}

pub(super) fn parse(sentence: &Sentence<'_>) -> Option<MemoryQuestion> {
    let order = sentence.order();
    let searches = lists()
        .question
        .search_orders
        .iter()
        .any(|row| sentence.after(order, row).is_some() || sentence.after(0, row).is_some());
    // Many people leave the question mark out.
    let asks = sentence.is_question || analysis::is_question(sentence.text);
    let is_known = lists()
        .question
        .about_memory
        .iter()
        .any(|row| sentence.has_row(row))
        || searches && sentence.has(&lists().question.diaries);
    let asks_all = sentence.has(&lists().question.memory_verbs)
        && sentence.has_word("you")
        && sentence.words.iter().all(|word| {
            word.is_one_of(&lists().question.everything)
                || word.is_one_of(&lists().question.auxiliaries)
        });
    if !(asks || searches) || sentence.words.len() < 2 {
        return None;
    }
    if asks_all || sentence.has_row(&["who", "am", "i"]) || (is_known && nothing_else(sentence)) {
        return Some(MemoryQuestion {
            text: None,
            certain: true,
        });
    }
    let about_the_list = sentence.has(&lists().question.obligation)
        || sentence.has_row(&["have", "to"])
        || is_about_the_list(sentence);
    // The tools of the task list answer it.
    if about_the_list && !is_known || sentence.has(&lists().fact.task_list) {
        return None;
    }
    let begins = sentence.is_at(0, &lists().question.first_words) || searches;
    let own = sentence.has(&lists().question.possessives) || possessive(sentence);
    let certain = is_known || (begins && own);
    let of_the_person = sentence.has(&lists().question.speakers)
        && !sentence.has_word("you")
        && sentence.says_something();
    let named = begins && has_name(sentence);
    (certain || own && !sentence.has_word("you") || of_the_person || named).then(|| {
        MemoryQuestion {
            text: Some(sentence.text.trim().to_owned()),
            certain,
        }
    })
}

/// Returns true for a question about tasks. "Do" is a word of it only at the end or behind "to":
/// "what do I have to do?"
fn is_about_the_list(sentence: &Sentence<'_>) -> bool {
    let is_of_list = |(at, word): (usize, &Word)| match word.text.as_str() {
        "do" => at + 1 == sentence.words.len() || sentence.words[at.saturating_sub(1)].is("to"),
        _ => word.is_one_of(&lists().question.task_list),
    };
    sentence.words.iter().enumerate().any(is_of_list)
}

fn nothing_else(sentence: &Sentence<'_>) -> bool {
    sentence.words.iter().all(|word| {
        word.is_one_of(&lists().question.everything) || analysis::is_stop_word(&word.text)
    }) && !sentence.has(&lists().question.own_notes)
}

fn possessive(sentence: &Sentence<'_>) -> bool {
    sentence
        .words
        .iter()
        .any(|word| word.text.ends_with("'s") && !word.is_one_of(&lists().question.contractions))
}

/// Returns true if a name stands behind the first word.
fn has_name(sentence: &Sentence<'_>) -> bool {
    sentence.words.windows(2).any(|pair| {
        let begins_large = sentence.text[pair[1].start..].starts_with(char::is_uppercase);
        begins_large
            && !pair[0].is_one_of(&lists().question.before_places)
            && !pair[1].text.starts_with("i'")
            && !pair[1].is("i")
            && !follows_name(sentence, &pair[0])
    })
}

/// Returns true for the second word of a name, as in "the Mona Lisa", which is no name by itself.
fn follows_name(sentence: &Sentence<'_>, before: &Word) -> bool {
    before.start > 0 && sentence.text[before.start..].starts_with(char::is_uppercase)
}
