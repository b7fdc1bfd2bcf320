//! Facts that a person states about themselves, or says are to be kept or forgotten.

use super::sentence::{Sentence, Word, tidy};

/// The part of a sentence that is about facts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It orders to keep one. `None`: without saying which.
    Keep(Option<String>),
    /// It states one.
    State(String),
    /// It orders to forget one. `None`: without saying which.
    Forget(Option<String>),
}

const KEEPS: &[&str] = &[
    "remember",
    "don't forget",
    "dont forget",
    "do not forget",
    "never forget",
    "note",
    "note down",
    "take note",
    "make a note",
    "take a note",
    "write down",
    "jot down",
    "keep in mind",
    "bear in mind",
    "keep in memory",
    "save",
    "store",
    "memorize",
    "memorise",
    "for the record",
    "for future reference",
    "fyi",
    "just so you know",
    "so you know",
    "should know",
    "please know",
    "know",
];
/// Words that may stand between the order and the fact.
const BETWEEN: &str = "also as down fact following for me the this well";
/// Said behind a fact, these order to keep it.
const KEEPS_BEHIND: &[&str] = &[
    "remember that",
    "remember this",
    "remember it",
    "keep that in mind",
    "keep it in mind",
    "note that",
    "note it",
    "don't forget that",
    "don't forget it",
    "don't forget",
    "note that down",
    "write that down",
    "for the record",
    "just so you know",
    "please remember",
];
const FORGETS: &[&str] = &[
    "forget about",
    "forget that",
    "forget the fact that",
    "forget what i told you about",
    "forget what i said about",
    "forget what you know about",
    "forget everything about",
    "forget everything i told you about",
    "forget everything you know about",
    "forget",
    "delete the fact that",
    "delete the fact",
    "remove the fact that",
    "remove the fact",
    "delete from your memory",
    "delete what you know about",
    "delete everything you know about",
    "remove from your memory",
    "erase from your memory",
    "delete from memory",
    "unlearn",
    "don't remember",
    "do not remember",
];
/// Words that alone name no fact that is to be forgotten.
const NO_FACT: &str =
    "about all anything done everything i it know me said that the this those told what you";
const LIST: &str = "list task tasks todo todos";

/// Verbs that make a sentence of words.
const FINITE: &str = "\
    am are aren't belongs can can't cannot comes costs did didn't dislikes do does doesn't don't drinks drives \
    eats ends goes got had hadn't has hasn't hate hates have haven't he's i'm i've is isn't it's lies likes live lives love \
    loves means moved opens owes owns plays prefer prefers she's speaks starts studies they're use uses was wasn't we're \
    we've were weren't won't work works";
/// Words of something that still has to be done: a task and no fact.
const OBLIGES: &str = "gonna gotta i'll must ought should we'll will";
const OBLIGES_WITH_TO: &str = "got has have need needs want wants going like plan planning";
const NEGATES: &str = "never not";

const INTERJECTIONS: &str = "\
    actually ah also and anyway but btw correction diana fyi good great hello hey hi morning nah no nope oh ok okay \
    please so sorry thanks wait well yeah yes";
const INTRODUCTIONS: &[&str] = &[
    "by the way",
    "that's wrong",
    "that is wrong",
    "that's not right",
    "that's not true",
    "not quite",
    "as you know",
    "you know what",
    "just so you know",
    "for your information",
];
const ADVERBS: &str = "\
    absolutely actually always also can can't cannot currently do don't generally just mostly never normally not now often only quite \
    really rather sometimes still usually";
/// States of the moment, or after doing something.
const MOMENTARY: &str = "\
    afraid all alone angry at awake away back bad bored busy cold confused done drunk early excited fine finished free full \
    glad good great happy here home hot hungry ill impressed in interested late lost nearly nervous off ok okay on out over pretty ready sad \
    sick so sorry stressed stuck sure sweaty thirsty tired too up upset very wet well with worried";
/// Verbs of what stays true, as "I" has them.
const STATIVE: &str = "\
    adore became collect detest dislike drink eat enjoy follow grew hate like live love moved married own play prefer quit \
    retired smoke speak study support switched teach turned use wear work";
/// Verbs of what stays true, as somebody else has them.
const STATIVE_OF_OTHERS: &str = "\
    collects detests dislikes drinks drives eats enjoys hates likes lives loves moved owns plays prefers retired smokes speaks \
    studies supports teaches turned uses wears works";
const BE: &str = "are aren't is isn't was wasn't were weren't";
/// Objects of a verb that make it nothing to keep: "I like it".
const BARE_OBJECTS: &str = "it that these this those you your";
const PASSING_THINGS: &str = "\
    appointment call cold doubt fun headache hour hours idea look lot meeting minute minutes news nothing plan plans \
    problem question request something task time";
const SECRETS: &str = "passcode passphrase password passwords pin secret secrets";
const PRONOUNS: &str = "he he's here it it's its she she's that that's the there there's these they they're this those what what's";

pub(super) fn read(sentence: &Sentence<'_>) -> Option<Told> {
    if let Some(forgotten) = forgets(sentence) {
        return Some(Told::Forget(forgotten));
    }
    if let Some(kept) = keeps(sentence) {
        return Some(Told::Keep(kept));
    }
    let stated = !sentence.is_question && !obliges(sentence) && !sentence.has(SECRETS);
    let at = statement(sentence);
    (stated && states(sentence, at)).then(|| Told::State(tidy(sentence.from(at))))
}

fn forgets(sentence: &Sentence<'_>) -> Option<Option<String>> {
    let order = sentence.order();
    let at = longest(sentence, order, FORGETS)?;
    if sentence.has(LIST) {
        return None;
    }
    // "Don't remember" without an object is an answer; "forget it" takes an order back.
    let rest: Vec<&Word> = sentence.words[at..].iter().collect();
    if rest.iter().all(|word| word.is_one_of(NO_FACT)) {
        return sentence.has("all everything").then_some(None);
    }
    if rest[0].is("to") {
        return None;
    }
    let text = tidy(sentence.from(at).trim_end_matches('?'));
    let text = ["any more", "anymore", "again"]
        .iter()
        .find_map(|end| text.strip_suffix(end))
        .map_or(text.clone(), tidy);
    Some(Some(text))
}

/// Returns what a sentence orders to keep.
fn keeps(sentence: &Sentence<'_>) -> Option<Option<String>> {
    let order = sentence.order();
    if let Some(end) = longest(sentence, order, KEEPS) {
        return kept_behind(sentence, end);
    }
    // "My sister's name is Anna, remember that."
    let last = sentence.words.len();
    let behind = KEEPS_BEHIND.iter().filter_map(|row| {
        let start = last.checked_sub(row.split_whitespace().count())?;
        sentence.after(start, row).map(|_| start)
    });
    let start = behind.min().filter(|&start| start > 2)?;
    let mut end = start;
    while end > 0 && sentence.words[end - 1].is_one_of("and can could please so you") {
        end -= 1;
    }
    let at = statement(sentence);
    let stated = Sentence::of(sentence.between(at, end));
    (is_told(&stated) && !obliges(&stated)).then(|| Some(tidy(stated.text)))
}

fn kept_behind(sentence: &Sentence<'_>, mut at: usize) -> Option<Option<String>> {
    while sentence
        .words
        .get(at)
        .is_some_and(|word| word.is_one_of(BETWEEN))
        && !sentence.has_sign_before(at, &[':', ','])
    {
        // "Remember this" and "note the following" say nothing themselves, "remember the milk"
        // does.
        if sentence.words[at].is("the")
            && !sentence
                .words
                .get(at + 1)
                .is_some_and(|next| next.is_one_of(BETWEEN))
        {
            break;
        }
        at += 1;
    }
    let is_last = at + 1 == sentence.words.len();
    let linked = sentence.words.get(at).is_some_and(|word| word.is("that"));
    if linked && !is_last {
        let rest = Sentence::of(sentence.from(at + 1).trim_end_matches('?'));
        return (rest.words.len() > 1 && !obliges(&rest)).then(|| Some(tidy(rest.text)));
    }
    let rest = &sentence.words[at.min(sentence.words.len())..];
    let said = sentence.words[..at]
        .last()
        .map_or("", |word| word.text.as_str());
    if rest.is_empty() {
        // "Remember this": what was said before.
        return if said == "this" {
            Some(Some("this".to_owned()))
        } else {
            None
        };
    }
    if is_last && rest[0].is_one_of("that it this") {
        return (!sentence.has("forget know")).then(|| Some(rest[0].text.clone()));
    }
    if rest
        .iter()
        .all(|word| word.is_one_of("something anything one thing for me a"))
        && rest[0].is_one_of("something anything a")
    {
        return Some(None);
    }
    let rest = Sentence::of(sentence.from(at));
    let asks = rest.words[0].is_one_of("to how what when where which who why if whether");
    // "Can you remember my name?" asks, "can you remember that …?" and "can you remember my name is
    // …?" do not.
    (!asks && is_told(&rest) && !obliges(&rest))
        .then(|| Some(tidy(rest.text.trim_end_matches('?'))))
}

/// Returns whether there is a verb that makes a sentence.
fn is_told(sentence: &Sentence<'_>) -> bool {
    let is_said = |word: &Word| {
        word.text
            .strip_suffix("'s")
            .is_some_and(|noun| matches!(noun, "name" | "birthday" | "address"))
    };
    sentence.words.len() > 2
        && sentence
            .words
            .iter()
            .skip(1)
            .any(|word| word.is_one_of(FINITE) || is_said(word))
        || sentence.words.len() > 2
            && sentence.words[0].is_one_of("i'm i've he's she's we're they're it's we've")
}

/// Returns whether it says what is still to be done, and not what is never done.
fn obliges(sentence: &Sentence<'_>) -> bool {
    let next_is = |at: usize, table: &str| {
        sentence
            .words
            .get(at + 1)
            .is_some_and(|word| word.is_one_of(table))
    };
    let negated = |at: usize| {
        next_is(at, NEGATES)
            || at
                .checked_sub(1)
                .is_some_and(|at| sentence.words[at].is_one_of("don't doesn't not never"))
    };
    sentence.words.iter().enumerate().any(|(at, word)| {
        let with_to = word.is_one_of(OBLIGES_WITH_TO) && next_is(at, "to");
        // "I like to swim" is no plan, "I would like to" is one.
        let likes = word.is("like")
            && !at
                .checked_sub(1)
                .is_some_and(|at| sentence.words[at].is_one_of("i'd would"));
        let needs = word.is("need")
            && at
                .checked_sub(1)
                .is_some_and(|at| sentence.words[at].is_one_of("i we"));
        ((word.is_one_of(OBLIGES) || with_to && !likes || needs) && !negated(at))
            || sentence.words[at].is("remind")
    })
}

/// The place where a statement begins, behind what only introduces it.
fn statement(sentence: &Sentence<'_>) -> usize {
    let mut at = 0;
    loop {
        if let Some(end) = longest(sentence, at, INTRODUCTIONS) {
            at = end;
        } else if sentence
            .words
            .get(at)
            .is_some_and(|word| word.is_one_of(INTERJECTIONS))
        {
            at += 1;
        } else {
            return at;
        }
    }
}

/// Returns whether a sentence from a place on states what stays true about a person.
fn states(sentence: &Sentence<'_>, at: usize) -> bool {
    let Some(first) = sentence.words.get(at) else {
        return false;
    };
    let rest = &sentence.words[at..];
    match first.text.as_str() {
        _ if rest.len() < 3 && !(first.is_one_of("i'm") && rest.len() == 2) => false,
        "i" | "we" | "i'm" | "im" | "i've" | "we're" | "we've" => of_oneself(rest),
        "my" | "our" => of_own(&rest[1..]),
        "call" => rest[1].is("me") && rest.len() < 6 && !is_later(rest),
        "people" | "everyone" | "everybody" | "friends" => rest[1].is("call") && rest[2].is("me"),
        "you" => {
            rest.windows(2)
                .any(|pair| pair[0].is("call") && pair[1].is("me"))
                && !is_later(rest)
        }
        _ if first.is_one_of(PRONOUNS) => of_mine(rest),
        _ => of_others(sentence, rest),
    }
}

fn is_later(words: &[Word]) -> bool {
    words
        .iter()
        .any(|word| word.is_one_of("again at back if in later on soon tomorrow tonight when"))
}

/// "I …", from the subject on.
fn of_oneself(words: &[Word]) -> bool {
    let first = &words[0];
    let behind = words[1..]
        .iter()
        .position(|word| !word.is_one_of(ADVERBS))
        .map_or(words.len(), |at| at + 1);
    let Some(verb) = words.get(behind) else {
        return false;
    };
    let next = words.get(behind + 1);
    if first.is_one_of("i'm im we're") {
        return is_lasting(verb);
    }
    // "I no longer live in Bonn."
    if verb.is("no") && next.is_some_and(|next| next.is("longer")) {
        let rest: Vec<Word> = words[..1]
            .iter()
            .chain(&words[behind + 2..])
            .cloned()
            .collect();
        return of_oneself(&rest);
    }
    if first.is_one_of("i've we've") && words.iter().any(|word| word.is("since")) {
        return true;
    }
    if first.is_one_of("i've we've") {
        return has_lasting(&words[behind..], verb.is("got"));
    }
    match verb.text.as_str() {
        "am" | "are" => words[behind + 1..]
            .iter()
            .find(|word| !word.is_one_of(ADVERBS))
            .is_some_and(is_lasting),
        "was" | "were" => next.is_some_and(|next| next.is_one_of("born raised named called a an")),
        "have" | "had" => has_lasting(&words[behind + 1..], true),
        "come" | "came" => next.is_some_and(|next| next.is("from")),
        "go" => next.is_some_and(|next| next.is("by")),
        "drive" | "take" | "play" | "read" => {
            next.is_some_and(|next| next.is_one_of("a an my the only")) && verb.is("drive")
        }
        _ => verb.is_one_of(STATIVE) && next.is_some_and(|next| !next.is_one_of(BARE_OBJECTS)),
    }
}

/// Returns whether a word behind "I am" says what one stays.
fn is_lasting(word: &Word) -> bool {
    let participle = word.text.ends_with("ing")
        || word.text.ends_with("ed")
            && !word.is_one_of("retired married divorced engaged gifted widowed");
    !participle && !word.is_one_of(MOMENTARY) && !word.is_one_of("going gonna")
}

/// Returns whether the words behind "I have" say what one keeps.
fn has_lasting(words: &[Word], owns: bool) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let first = if first.is("got") {
        words.get(1).unwrap_or(first)
    } else {
        first
    };
    let participle = first.text.ends_with("ed")
        || first.text.ends_with("en")
        || first.is_one_of("been bought done gone had made sent paid put read got to just already");
    owns && !participle && !words.iter().any(|word| word.is_one_of(PASSING_THINGS))
}

/// "My …", behind that word.
fn of_own(words: &[Word]) -> bool {
    let is_said = |word: &Word| {
        word.text
            .strip_suffix("'s")
            .is_some_and(|noun| matches!(noun, "name" | "birthday" | "address"))
    };
    let verb = words.iter().take(8).position(|word| {
        word.is_one_of(BE)
            || word.is_one_of(STATIVE_OF_OTHERS)
            || word.is_one_of("died has goes starts ends comes costs")
            || is_said(word)
    });
    let Some(verb) = verb else { return false };
    let behind = words[verb + 1..]
        .iter()
        .find(|word| !word.is_one_of(ADVERBS));
    let Some(behind) = behind else { return false };
    if words[verb].is("has") {
        return has_lasting(&words[verb + 1..], true);
    }
    if words[verb].is_one_of(BE) {
        let called = behind.is_one_of("called named spelled pronounced");
        return (is_lasting(behind) || called || behind.is_one_of("in on at with"))
            && !behind.is_one_of("broken gone written sent paid fixed empty dead down");
    }
    true
}

/// "The code of my bike is …".
fn of_mine(words: &[Word]) -> bool {
    let be = words.iter().position(|word| word.is_one_of(BE));
    let mine = words.iter().position(|word| word.is_one_of("my our"));
    matches!((be, mine), (Some(be), Some(mine)) if mine < be && words[mine - 1].is_one_of("of to for in") && be + 1 < words.len())
        && words[0].is("the")
}

/// "Anna is my sister", "Tom's birthday is …", "Anna lives in …".
fn of_others(sentence: &Sentence<'_>, words: &[Word]) -> bool {
    let is_name = |word: &Word| sentence.text[word.start..].starts_with(char::is_uppercase);
    let names = words
        .iter()
        .take_while(|word| is_name(word) && !word.text.ends_with("'s"))
        .count();
    let owner = words
        .iter()
        .take(3)
        .position(|word| word.text.ends_with("'s"));
    if let Some(owner) = owner {
        let be = words
            .iter()
            .take(owner + 6)
            .position(|word| word.is_one_of(BE));
        let behind = be.and_then(|be| words.get(be + 1));
        return be.is_some_and(|be| be > owner + 1)
            && behind.is_some_and(|behind| is_lasting(behind) || behind.is_one_of("on in at"));
    }
    if let Some(be) = words
        .iter()
        .take(4)
        .position(|word| word.is_one_of("is are was"))
        && words[be + 1..]
            .first()
            .is_some_and(|word| word.is_one_of("my our"))
    {
        return be > 0;
    }
    let Some(verb) = (names > 0).then(|| words.get(names)).flatten() else {
        return false;
    };
    let next = words.get(names + 1);
    verb.is_one_of(STATIVE_OF_OTHERS) && next.is_some_and(|next| !next.is_one_of(BARE_OBJECTS))
        || verb.is("is")
            && next.is_some_and(|next| {
                next.is_one_of("a an allergic born called from married named vegan vegetarian")
            })
        || verb.is("was") && next.is_some_and(|next| next.is("born"))
}

/// The place behind the longest of some rows of words that stand at a place.
fn longest(sentence: &Sentence<'_>, at: usize, rows: &[&str]) -> Option<usize> {
    rows.iter().filter_map(|row| sentence.after(at, row)).max()
}
