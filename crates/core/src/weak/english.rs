//! Reading what a person wrote, as far as the guards need it: words, numbers, clauses.
//!
//! The tables are English. In another language less is recognised, and a guard that recognises
//! nothing asks.

use crate::registry::distance;

/// Words that name no particular thing: grammar, politeness, and what people say to any list.
const PLAIN: &str = "\
    a about actually after again all already also am an and another any anymore anything are as at awesome \
    be been both but by bye can cheers cool could did do does doing dont each else entry evening every \
    everything few finally fine first for forget from good great had haha has have having he hello her here \
    hers hey hi him his how i id if ill im in instead into is it item items its ive just kindly last least \
    lets like list lol longer lot lovely many may me might mind mine more morning much my need never new \
    next nice no not now number of off ok okay on one ones or other our out over perfect please pls ready \
    really rid right same second shall she should so some something sorry task tasks than thank thanks that \
    thats the their them then there these they thing things third this those to today todo todos too two up \
    us very want was we welcome well were what whats when where which who why will with would wow yay yes \
    yet you your";

/// What one does with an entry of a list, whatever is in it.
const LIST_VERBS: &str = "\
    add added adding cancel change changed check checked clear close closed complete completed completing \
    correct create cross crossed delete deleted deleting done drop edit erase finish finished finishing make \
    mark marked name note put remember remind remove removed removing rename renamed say scrap set show \
    strike tick ticked undo update updated";

/// Forms that no ending explains.
const IRREGULAR: &str = "\
    ate eat eaten, bought buy, bring brought, build built, choose chose chosen, dig dug, draw drawn drew, \
    drive drove driven, fed feed, find found, flew flown fly, gave give given, get got gotten, go gone went, \
    grew grow grown, hang hung, keep kept, laid lay, leave left, lend lent, made make, meet met, paid pay, \
    ran run, rang ring rung, saw see seen, sell sold, send sent, sew sewn, speak spoke spoken, sweep swept, \
    sing sang sung, swam swim swum, take taken took, taught teach, tell told, think thought, threw throw \
    thrown, write written wrote";

/// What may follow a common beginning of two forms of one word.
const ENDINGS: &[&str] = &[
    "", "s", "es", "d", "ed", "ing", "ings", "e", "en", "ten", "er", "ers", "y", "ies", "ied",
    "ion", "ation", "ations", "ment", "al", "or",
];

const NEGATIONS: &str = "\
    almost cannot cant couldnt didnt dont forgot hasnt havent isnt nearly never no not wasnt without wont";
const STILL_TO_COME: &str = "\
    about going gonna i'll ill later must need needs ought planning should start started starting tomorrow \
    want we'll will";
const QUESTION_WORDS: &str = "\
    how how's hows what what's whats when when's where where's which who who's whos why";
const QUESTION_VERBS: &str = "\
    am any anything are did do does has have is shall should was were";
const REWORDS: &str = "\
    actually adjust alter amend append becomes change correct correction edit extend fix instead \
    make meant modify move not postpone push rather read reads rename rephrase replace reschedule \
    reword rewrite say says set shift shorten should spell spelled spelling swap switch turn typo update \
    wrong";
const DESTROYS: &str = "\
    abandon anymore away bin cancel cancelled clear cut deleted discard ditch dont drop dump erase forget go \
    kill longer moot never no not obsolete off out purge remove rid scrap scratch skip strike throw toss \
    unnecessary wipe withdraw";
const ORDERS_AWAY: &str = "abandon delete discard ditch drop dump erase purge remove rid scrap";
const MAKES: &str = "\
    add another forget jot list new note put remember remind todo todos";
const ORDERS_A_MARK: &str = "\
    check cross mark set tick";
const LOOKS_BACK: &str = "\
    actually again both do done either first former instead it last latter mean meant neither no nope ok \
    okay one ones please same second sorry sure that them these they third this those undo yeah yep yes yup";
const ORDINALS: &[(&str, usize)] = &[
    ("first", 1),
    ("1st", 1),
    ("second", 2),
    ("2nd", 2),
    ("third", 3),
    ("3rd", 3),
    ("fourth", 4),
    ("4th", 4),
    ("fifth", 5),
    ("5th", 5),
    ("sixth", 6),
    ("6th", 6),
    ("seventh", 7),
    ("eighth", 8),
    ("ninth", 9),
    ("tenth", 10),
];
const NUMBER_MARKS: &str = "\
    entry id item no nr num number todo";

/// The words of a text: lower case, no possessive, apostrophes inside kept.
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

/// The words that may name a particular thing, and the numbers that belong to them: "chapter 4".
pub(super) fn content(text: &str) -> Vec<String> {
    let words = tokens(text);
    let names = |at: usize| {
        if is_number(&words[at]) {
            counts(&words, at)
        } else {
            !is_plain(&words[at])
        }
    };
    (0..words.len())
        .filter(|&at| names(at))
        .map(|at| words[at].clone())
        .collect()
}

/// Whether a number belongs to the word before it.
fn counts(words: &[String], at: usize) -> bool {
    at > 0
        && !is_plain(&words[at - 1])
        && !is_number(&words[at - 1])
        && !is_in(NUMBER_MARKS, &words[at - 1])
}

/// Whether a word names no particular thing.
pub(super) fn is_plain(word: &str) -> bool {
    word.contains('\'') || is_in(PLAIN, word) || is_list_verb(word)
}

/// Whether it is one of the words that hold a sentence together.
pub(super) fn is_grammar(word: &str) -> bool {
    is_plain(word) && !is_list_verb(word)
}

/// Whether it says what is done to an entry of a list.
pub(super) fn is_list_verb(word: &str) -> bool {
    is_in(LIST_VERBS, word)
}

/// Whether it is written in digits.
pub(super) fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_in(table: &str, word: &str) -> bool {
    table.split_whitespace().any(|other| other == word)
}

/// How near two words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// Different words.
    Different,
    /// Perhaps one of them is mistyped.
    Typo,
    /// The same word, perhaps in another form.
    Same,
}

/// Compares two words in lower case.
pub(super) fn likeness(a: &str, b: &str) -> Likeness {
    if a == b
        || one_ending(a, b)
        || IRREGULAR
            .split(',')
            .any(|forms| is_in(forms, a) && is_in(forms, b))
    {
        return Likeness::Same;
    }
    let shorter = a.chars().count().min(b.chars().count());
    let longer = a.chars().count().max(b.chars().count());
    let allowed = match shorter {
        0..=4 => 0,
        5..=8 => 1,
        _ => 2,
    };
    // The lengths bound the distance from below: most pairs need no table.
    if longer - shorter <= allowed && distance(a, b) <= allowed {
        Likeness::Typo
    } else {
        Likeness::Different
    }
}

/// Whether a list of words has this word, in any form.
pub(super) fn has(words: &[String], word: &str) -> bool {
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
    ENDINGS.contains(&rest)
}

/// Numbers the text gives as a name: after the kind of thing, "number", "#" and the like.
pub(super) fn named_numbers(text: &str, kinds: &[&str]) -> Vec<String> {
    let spaced = text.replace('#', " number ");
    let words = tokens(&spaced);
    let mut found = Vec::new();
    let mut naming = false;
    for word in &words {
        let marks = is_in(NUMBER_MARKS, word)
            || kinds
                .iter()
                .any(|kind| word == kind || word.strip_suffix('s') == Some(kind));
        if is_number(word) && naming {
            found.push(word.clone());
        } else if marks {
            naming = true;
        } else if !matches!(word.as_str(), "and" | "or" | "is") {
            naming = false;
        }
    }
    found
}

/// The numbers that may be a thing's: those that do not belong to another word.
pub(super) fn numbers(text: &str) -> Vec<String> {
    let words = tokens(text);
    let own = |at: &usize| is_number(&words[*at]) && !counts(&words, *at);
    (0..words.len())
        .filter(own)
        .map(|at| words[at].clone())
        .collect()
}

/// The place in a list that the text names: "the second one", "last task". Counted from 1; `None`
/// in the pair: the last.
pub(super) fn place(text: &str, kinds: &[&str]) -> Option<Option<usize>> {
    let words = tokens(text);
    for (at, word) in words.iter().enumerate() {
        let ends = match words.get(at + 1) {
            None => at > 0,
            Some(next) => {
                matches!(next.as_str(), "one" | "item" | "entry" | "thing" | "todo")
                    || kinds.contains(&next.as_str())
            }
        };
        if !ends {
            continue;
        }
        if word == "last" {
            return Some(None);
        }
        if let Some((_, number)) = ORDINALS.iter().find(|(ordinal, _)| ordinal == word) {
            return Some(Some(*number));
        }
    }
    None
}

/// The parts of a text that stand for themselves, each as words.
pub(super) fn clauses(text: &str) -> Vec<Vec<String>> {
    text.split([',', ';', '.', '!', '?', ':', '\n'])
        .flat_map(|part| {
            let words = tokens(part);
            words
                .split(|word| matches!(word.as_str(), "but" | "and" | "then" | "though"))
                .map(<[String]>::to_vec)
                .collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

/// Whether a clause says that something is not done, or not yet.
pub(super) fn denies(clause: &[String]) -> bool {
    if clause
        .iter()
        .any(|word| word.ends_with("n't") || is_in(NEGATIONS, word))
    {
        return true;
    }
    let orders = clause.iter().any(|word| is_in(ORDERS_A_MARK, word));
    let has_to = clause
        .windows(2)
        .any(|pair| matches!(pair[0].as_str(), "have" | "has" | "got") && pair[1] == "to");
    !orders && (has_to || clause.iter().any(|word| is_in(STILL_TO_COME, word)))
}

/// Whether a clause forbids: "don't remove ...". `verb` is the word forbidden.
pub(super) fn forbids(clause: &[String]) -> Option<&str> {
    clause.iter().enumerate().find_map(|(at, word)| {
        let stop = matches!(word.as_str(), "don't" | "dont" | "never")
            || (word == "not" && at > 0 && clause[at - 1] == "do");
        if stop && !(at > 0 && matches!(clause[at - 1].as_str(), "i" | "we")) {
            clause.get(at + 1).map(String::as_str)
        } else {
            None
        }
    })
}

/// Whether the text asks how things are instead of asking to change them.
pub(super) fn asks_for_a_fact(text: &str) -> bool {
    let words = tokens(text);
    let Some(first) = words.first() else {
        return false;
    };
    let begins = |with: &str| is_in(with, first);
    begins(QUESTION_WORDS) || (text.trim_end().ends_with('?') && begins(QUESTION_VERBS))
}

/// Whether the text asks what the listener is or does, and names nothing: "What can you do?"
pub(super) fn asks_about_the_listener(text: &str) -> bool {
    const ASKS: &[&str] = &[
        "what can you do",
        "what do you do",
        "what are you",
        "who are you",
    ];
    let words = tokens(text).join(" ");
    ASKS.iter()
        .any(|ask| format!(" {words} ").contains(&format!(" {ask} ")))
        && content(text).is_empty()
}

/// Whether the text has a word for saying something in other words.
pub(super) fn rewords(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|word| word.ends_with("n't") || is_in(REWORDS, word))
}

/// Whether the text has a word for making something go.
pub(super) fn destroys(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|word| word.ends_with("n't") || is_in(DESTROYS, word))
}

/// Whether a text says beyond doubt that something is to go.
pub(super) fn orders_away(text: &str) -> bool {
    let words = tokens(text);
    words.iter().any(|word| is_in(ORDERS_AWAY, word))
        || words.windows(2).any(|pair| {
            matches!(pair[0].as_str(), "can" | "may" | "must" | "should") && pair[1] == "go"
        })
}

/// Whether a word says that something is to be put on a list.
pub(super) fn makes(word: &str) -> bool {
    is_in(MAKES, word)
}

/// Whether a word adds nothing to a name.
pub(super) fn is_article(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "my" | "our" | "some" | "please")
}

/// Whether these tables have anything to say about the text.
pub(super) fn is_english(text: &str) -> bool {
    tokens(text).iter().any(|word| is_plain(word))
}

/// Whether the text can only be understood with what was said before it.
pub(super) fn looks_back(text: &str) -> bool {
    tokens(text).iter().any(|word| is_in(LOOKS_BACK, word))
}

/// The words of a message, or of a part of it, from its verb on, if it is an order.
pub(super) fn order(message: &[String]) -> &[String] {
    const BEFORE_THE_VERB: &[&str] = &[
        "please", "plz", "yo", "hiya", "pls", "can", "could", "would", "you", "hey", "hi", "hello",
        "ok", "okay", "now", "just", "kindly", "i'd", "i", "want", "like", "to", "let's", "lets",
        "and", "also", "then", "actually", "oh", "yes", "no",
    ];
    let start = message
        .iter()
        .position(|word| !BEFORE_THE_VERB.contains(&word.as_str()));
    &message[start.unwrap_or(message.len())..]
}

/// Returns where a row of words stands in others.
pub(super) fn place_in_row(words: &[String], row: &[String]) -> Option<usize> {
    if row.is_empty() {
        None
    } else {
        words.windows(row.len()).position(|window| window == row)
    }
}

/// Returns whether a row of words stands in others.
pub(super) fn contains_in_row(words: &[String], row: &[String]) -> bool {
    place_in_row(words, row).is_some()
}
