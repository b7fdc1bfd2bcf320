//! Lexical analysis of a message, as far as the guards need it: words, numbers, clauses.
//!
//! The words come from [`super::language`]. In a language without lists less is recognised, and a
//! guard that recognises nothing asks the user.

use adjutant_core::edit_distance;

use super::language::{WordList, lists};
/// Returns the words of a text in lower case, without possessives; apostrophes inside a word are
/// kept.
pub(super) fn tokens(text: &str) -> Vec<String> {
    text.to_lowercase()
        .replace('\u{2019}', "'")
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .map(|word| word.trim_matches('\''))
        .map(|word| word.strip_suffix("'s").unwrap_or(word))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the words that may name a particular entity, with the numbers that belong to them:
/// "chapter 4".
pub(super) fn content_words(text: &str) -> Vec<String> {
    let words = tokens(text);
    let names = |at: usize| {
        if is_number(&words[at]) {
            qualifies_previous(&words, at)
        } else {
            !is_stop_word(&words[at])
        }
    };
    (0..words.len())
        .filter(|&at| names(at))
        .map(|at| words[at].clone())
        .collect()
}

/// Returns true if a number belongs to the word before it.
fn qualifies_previous(words: &[String], at: usize) -> bool {
    at > 0
        && !is_stop_word(&words[at - 1])
        && !is_number(&words[at - 1])
        && !lists().message.number_marks.has(&words[at - 1])
}

/// Returns true if a word names no particular entity.
pub(super) fn is_stop_word(word: &str) -> bool {
    // Contractions name nothing: "don't", "it's".
    word.contains('\'') || lists().message.stop_words.has(word) || is_list_verb(word)
}

/// Returns true for stop words that are no verb of a list: articles, pronouns, auxiliaries.
pub(super) fn is_function_word(word: &str) -> bool {
    is_stop_word(word) && !is_list_verb(word)
}

/// Returns true if a word says what is done to an entry of a list.
pub(super) fn is_list_verb(word: &str) -> bool {
    lists().message.list_verbs.has(word)
}

/// Returns true if a word is written in digits.
pub(super) fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The similarity of two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// They have nothing in common that counts.
    Different,
    /// One of them may be a misspelling of the other.
    Typo,
    /// They are one word, perhaps in another form.
    Same,
}

/// Compares two words in lower case.
pub(super) fn likeness(a: &str, b: &str) -> Likeness {
    if a == b
        || one_ending(a, b)
        || lists()
            .message
            .irregular_forms
            .iter()
            .any(|forms| forms.iter().any(|form| form == a) && forms.iter().any(|form| form == b))
    {
        return Likeness::Same;
    }
    let shorter = a.chars().count().min(b.chars().count());
    let longer = a.chars().count().max(b.chars().count());
    // A short word is another word after one change: "car" and "cat".
    let allowed = match shorter {
        0..=4 => 0,
        5..=8 => 1,
        _ => 2,
    };
    // The lengths bound the distance from below, so most pairs need no table.
    if longer - shorter <= allowed && edit_distance(a, b) <= allowed {
        Likeness::Typo
    } else {
        Likeness::Different
    }
}

/// Returns true if a list has this word, in any form or misspelt.
pub(super) fn has_similar(words: &[String], word: &str) -> bool {
    words
        .iter()
        .any(|other| likeness(other, word) != Likeness::Different)
}

fn one_ending(a: &str, b: &str) -> bool {
    let common: usize = a
        .chars()
        .zip(b.chars())
        .take_while(|(x, y)| x == y)
        .map(|(x, _)| x.len_utf8())
        .sum();
    // Every cut down to three letters: "filed" and "files" share "file" as well as "fil".
    (3..=common).rev().any(|cut| {
        let (Some((stem, rest_a)), Some((_, rest_b))) =
            (a.split_at_checked(cut), b.split_at_checked(cut))
        else {
            return false;
        };
        let doubled = |rest: &str| {
            stem.chars()
                .last()
                .and_then(|last| rest.strip_prefix(last))
                .is_some_and(is_ending)
        };
        (is_ending(rest_a) || doubled(rest_a)) && (is_ending(rest_b) || doubled(rest_b))
    })
}

fn is_ending(rest: &str) -> bool {
    lists().message.endings.has(rest)
}

/// Returns the numbers that the text gives as a name: behind the kind of an entity, "number", "#"
/// and the like.
pub(super) fn named_numbers(text: &str, kinds: &[&str]) -> Vec<String> {
    // "#4" and "number 4" are the same.
    let spaced = text.replace('#', " number ");
    let words = tokens(&spaced);
    let mut found = Vec::new();
    let mut naming = false;
    for word in &words {
        let marks = lists().message.number_marks.has(word)
            || kinds
                .iter()
                .any(|kind| word == kind || word.strip_suffix('s') == Some(kind));
        if is_number(word) && naming {
            found.push(word.clone());
        } else if marks {
            naming = true;
        } else if !lists().message.between_numbers.has(word) {
            naming = false;
        }
    }
    found
}

/// Returns the numbers that may be an entity's: those that do not belong to another word.
pub(super) fn numbers(text: &str) -> Vec<String> {
    let words = tokens(text);
    let own = |at: &usize| is_number(&words[*at]) && !qualifies_previous(&words, *at);
    (0..words.len())
        .filter(own)
        .map(|at| words[at].clone())
        .collect()
}

/// Returns the position in a list that the text names: "the second one", "last task". It counts
/// from 1; the inner `None` is the last one.
pub(super) fn ordinal_position(text: &str, kinds: &[&str]) -> Option<Option<usize>> {
    let words = tokens(text);
    for (at, word) in words.iter().enumerate() {
        // "Second" before another word counts something else: "a second helping".
        let ends = match words.get(at + 1) {
            None => at > 0,
            Some(next) => {
                lists().message.behind_ordinal.has(next) || kinds.contains(&next.as_str())
            }
        };
        if !ends {
            continue;
        }
        if word == "last" {
            return Some(None);
        }
        if let Some(number) = lists().message.ordinals.position(word) {
            return Some(Some(number));
        }
    }
    None
}

/// Splits a text into its clauses, each as words.
pub(super) fn clauses(text: &str) -> Vec<Vec<String>> {
    text.split([',', ';', '.', '!', '?', ':', '\n'])
        .flat_map(|part| {
            let words = tokens(part);
            words
                .split(|word| lists().message.conjunctions.has(word))
                .map(<[String]>::to_vec)
                .collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

/// Returns true if a clause says that something is not done, or not yet.
pub(super) fn is_negated(clause: &[String]) -> bool {
    if clause
        .iter()
        .any(|word| word.ends_with("n't") || lists().message.negations.has(word))
    {
        return true;
    }
    let orders = clause
        .iter()
        .any(|word| lists().message.mark_verbs.has(word));
    // "I have to buy milk" says that it is not done.
    let has_to = clause
        .windows(2)
        .any(|pair| lists().message.have.has(&pair[0]) && pair[1] == "to");
    !orders && (has_to || clause.iter().any(|word| lists().message.future.has(word)))
}

/// Returns the verb that a clause forbids: "remove" in "don't remove ...".
pub(super) fn prohibited_verb(clause: &[String]) -> Option<&str> {
    clause.iter().enumerate().find_map(|(at, word)| {
        let stop = lists().message.prohibitions.has(word)
            || (word == "not" && at > 0 && clause[at - 1] == "do");
        if stop && !(at > 0 && lists().message.speakers.has(&clause[at - 1])) {
            clause.get(at + 1).map(String::as_str)
        } else {
            None
        }
    })
}

/// Returns true if the text asks for information instead of a change.
pub(super) fn is_question(text: &str) -> bool {
    let words = tokens(text);
    let Some(first) = words.first() else {
        return false;
    };
    let begins = |list: &WordList| list.has(first);
    begins(&lists().message.question_words)
        || (text.trim_end().ends_with('?') && begins(&lists().message.question_verbs))
}

/// Returns true if the text asks about the assistant and names nothing: "What can you do?"
pub(super) fn asks_about_assistant(text: &str) -> bool {
    let words = tokens(text);
    lists()
        .message
        .about_the_assistant
        .iter()
        .any(|question| contains_phrase(&words, question))
        && content_words(text).is_empty()
}

/// Returns true if the text has a word that asks for another wording.
pub(super) fn mentions_rewording(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|word| word.ends_with("n't") || lists().message.reword.has(word))
}

/// Returns true if the text has a word that may ask for a deletion.
pub(super) fn mentions_deletion(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|word| word.ends_with("n't") || lists().message.destroy.has(word))
}

/// Returns true if a text asks for a deletion beyond doubt.
pub(super) fn orders_deletion(text: &str) -> bool {
    let words = tokens(text);
    words
        .iter()
        .any(|word| lists().message.delete_verbs.has(word))
        || words
            .windows(2)
            .any(|pair| lists().message.modals.has(&pair[0]) && pair[1] == "go")
}

/// Returns true if a word asks for a new entry on a list.
pub(super) fn is_create_word(word: &str) -> bool {
    lists().message.create.has(word)
}

/// Returns true if a word adds nothing to a name.
pub(super) fn is_article(word: &str) -> bool {
    lists().message.articles.has(word)
}

/// Returns true if the word lists know any word of the text.
pub(super) fn is_recognised(text: &str) -> bool {
    tokens(text).iter().any(|word| is_stop_word(word))
}

/// Returns true if the text can be understood only with the message before it.
pub(super) fn has_anaphora(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|word| lists().message.anaphora.has(word))
}

/// Returns the words of a message, or of a clause, from its verb on, if it is an order.
pub(super) fn imperative(message: &[String]) -> &[String] {
    let start = message
        .iter()
        .position(|word| !lists().message.before_order.has(word));
    &message[start.unwrap_or(message.len())..]
}

/// Returns the place of a phrase among words.
pub(super) fn find_phrase(words: &[String], row: &[String]) -> Option<usize> {
    if row.is_empty() {
        None
    } else {
        words.windows(row.len()).position(|window| window == row)
    }
}

/// Returns true if a phrase stands among words.
pub(super) fn contains_phrase(words: &[String], row: &[String]) -> bool {
    find_phrase(words, row).is_some()
}
