//! Facts that users state about themselves, or ask to remember or to forget.

use crate::language::{WordList, lists};

use super::sentence::{Sentence, Word, tidy};

/// The part of a sentence that is about facts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FactAct {
    /// An order to remember a fact. `None`: the sentence does not say which.
    Keep(Option<String>),
    /// A statement of a fact.
    State(String),
    /// An order to forget a fact. `None`: the sentence does not say which.
    Forget(Option<String>),
}
pub(super) fn parse(sentence: &Sentence<'_>) -> Option<FactAct> {
    if let Some(forgotten) = forget_order(sentence) {
        return Some(FactAct::Forget(forgotten));
    }
    if let Some(kept) = remember_order(sentence) {
        return Some(FactAct::Keep(kept));
    }
    let stated =
        !sentence.is_question && !obliges(sentence) && !sentence.has(&lists().fact.secrets);
    let at = statement_start(sentence);
    (stated && states(sentence, at)).then(|| FactAct::State(tidy(sentence.from(at))))
}

fn forget_order(sentence: &Sentence<'_>) -> Option<Option<String>> {
    let order = sentence.order();
    let at = sentence.longest(order, &lists().fact.forget)?;
    // An order that names the task list is about a task, which other tools delete.
    if sentence.has(&lists().fact.task_list) {
        return None;
    }
    // "Don't remember" without an object is an answer; "forget it" takes an order back.
    let rest: Vec<&Word> = sentence.words[at..].iter().collect();
    if rest
        .iter()
        .all(|word| word.is_one_of(&lists().fact.names_no_fact))
    {
        return sentence.has(&lists().fact.everything).then_some(None);
    }
    if rest[0].is("to") {
        return None;
    }
    let text = tidy(sentence.from(at).trim_end_matches('?'));
    let text = lists()
        .fact
        .forget_endings
        .iter()
        .find_map(|end| text.strip_suffix(end.join(" ").as_str()))
        .map_or(text.clone(), tidy);
    Some(Some(text))
}

/// Returns the fact that a sentence orders to remember. `Some(None)`: it does not say which.
fn remember_order(sentence: &Sentence<'_>) -> Option<Option<String>> {
    let order = sentence.order();
    if let Some(end) = sentence.longest(order, &lists().fact.remember) {
        return fact_behind_order(sentence, end);
    }
    // "My sister's name is Anna, remember that."
    let last = sentence.words.len();
    let behind = lists().fact.remember_behind.iter().filter_map(|row| {
        let start = last.checked_sub(row.len())?;
        sentence.after(start, row).map(|_| start)
    });
    let start = behind.min().filter(|&start| start > 2)?;
    let mut end = start;
    while end > 0 && sentence.words[end - 1].is_one_of(&lists().fact.before_remember) {
        end -= 1;
    }
    let at = statement_start(sentence);
    let stated = Sentence::new(sentence.between(at, end));
    (is_clause(&stated) && !obliges(&stated)).then(|| Some(tidy(stated.text)))
}

fn fact_behind_order(sentence: &Sentence<'_>, mut at: usize) -> Option<Option<String>> {
    while sentence.is_at(at, &lists().fact.before_fact)
        && !sentence.has_sign_before(at, &[':', ','])
    {
        // "Remember this" and "note the following" name no fact themselves, "remember the milk"
        // does.
        if sentence.words[at].is("the") && !sentence.is_at(at + 1, &lists().fact.before_fact) {
            break;
        }
        at += 1;
    }
    let is_last = at + 1 == sentence.words.len();
    let linked = sentence.words.get(at).is_some_and(|word| word.is("that"));
    if linked && !is_last {
        let rest = Sentence::new(sentence.from(at + 1).trim_end_matches('?'));
        return (rest.words.len() > 1 && !obliges(&rest)).then(|| Some(tidy(rest.text)));
    }
    let rest = &sentence.words[at.min(sentence.words.len())..];
    if rest.is_empty() {
        // "Remember this": the message before.
        let last = sentence.words.last().filter(|last| last.is("this"))?;
        return Some(Some(last.text.clone()));
    }
    if is_last && rest[0].is_one_of(&lists().speech.points_back) {
        return (!sentence.has(&lists().fact.no_order)).then(|| Some(rest[0].text.clone()));
    }
    if rest
        .iter()
        .all(|word| word.is_one_of(&lists().fact.placeholders))
        && rest[0].is_one_of(&lists().fact.placeholder_first)
    {
        return Some(None);
    }
    let rest = Sentence::new(sentence.from(at));
    let asks = rest.words[0].is_one_of(&lists().fact.asks);
    // "Can you remember my name?" asks, "can you remember that …?" and "can you remember my name is
    // …?" do not.
    (!asks && is_clause(&rest) && !obliges(&rest))
        .then(|| Some(tidy(rest.text.trim_end_matches('?'))))
}

/// Returns true if there is a finite verb, which makes a sentence of words.
fn is_clause(sentence: &Sentence<'_>) -> bool {
    let is_verb = |word: &Word| word.is_one_of(&lists().fact.finite_verbs) || has_is(word);
    sentence.words.len() > 2
        && (sentence.words.iter().skip(1).any(is_verb)
            || sentence.is_at(0, &lists().fact.contracted_subjects))
}

/// Returns true for an attribute with a contracted "is", as in "my name's Anna".
fn has_is(word: &Word) -> bool {
    let noun = word.text.strip_suffix("'s");
    noun.is_some_and(|noun| lists().fact.attributes.has(noun))
}

/// Returns true if a sentence says what still has to be done, and not what is never done.
fn obliges(sentence: &Sentence<'_>) -> bool {
    let is_before =
        |at: usize, list: &WordList| at.checked_sub(1).is_some_and(|at| sentence.is_at(at, list));
    let negated = |at: usize| {
        sentence.is_at(at + 1, &lists().fact.negation_behind_verb)
            || is_before(at, &lists().fact.negation_before_verb)
    };
    sentence.words.iter().enumerate().any(|(at, word)| {
        let with_to = word.is_one_of(&lists().fact.obligation_before_to)
            && sentence.words.get(at + 1).is_some_and(|next| next.is("to"));
        // "I like to swim" is no plan, "I would like to" is one.
        let likes = word.is("like") && !is_before(at, &lists().fact.conditional);
        let needs = word.is("need") && is_before(at, &lists().message.speakers);
        ((word.is_one_of(&lists().fact.obligation) || with_to && !likes || needs) && !negated(at))
            || sentence.words[at].is("remind")
    })
}

/// Returns the place where a statement begins, behind its introduction.
fn statement_start(sentence: &Sentence<'_>) -> usize {
    let mut at = 0;
    loop {
        if let Some(end) = sentence.longest(at, &lists().fact.introductions) {
            at = end;
        } else if sentence.is_at(at, &lists().fact.interjections) {
            at += 1;
        } else {
            return at;
        }
    }
}

/// Returns true if a sentence from a place on states what stays true about a person.
fn states(sentence: &Sentence<'_>, at: usize) -> bool {
    let Some(first) = sentence.words.get(at) else {
        return false;
    };
    let rest = &sentence.words[at..];
    match first.text.as_str() {
        _ if rest.len() < 3 && !(first.is("i'm") && rest.len() == 2) => false,
        "i" | "we" | "i'm" | "im" | "i've" | "we're" | "we've" => states_of_speaker(rest),
        "my" | "our" => states_of_own(&rest[1..]),
        "call" => rest[1].is("me") && rest.len() < 6 && !is_later(rest),
        "people" | "everyone" | "everybody" | "friends" => rest[1].is("call") && rest[2].is("me"),
        "you" => {
            rest.windows(2)
                .any(|pair| pair[0].is("call") && pair[1].is("me"))
                && !is_later(rest)
        }
        _ if first.is_one_of(&lists().fact.pronouns) => states_of_possessive(rest),
        _ => states_of_others(sentence, rest),
    }
}

fn is_later(words: &[Word]) -> bool {
    words.iter().any(|word| word.is_one_of(&lists().fact.later))
}

/// Returns true for "I …" with a lasting statement; `words` begin with the subject.
fn states_of_speaker(words: &[Word]) -> bool {
    let first = &words[0];
    let behind = words[1..]
        .iter()
        .position(|word| !word.is_one_of(&lists().fact.adverbs))
        .map_or(words.len(), |at| at + 1);
    let Some(verb) = words.get(behind) else {
        return false;
    };
    let next = words.get(behind + 1);
    if first.is_one_of(&lists().fact.i_am) {
        return is_lasting(verb);
    }
    // "I no longer live in Bonn."
    if verb.is("no") && next.is_some_and(|next| next.is("longer")) {
        let rest: Vec<Word> = words[..1]
            .iter()
            .chain(&words[behind + 2..])
            .cloned()
            .collect();
        return states_of_speaker(&rest);
    }
    if first.is_one_of(&lists().fact.i_have) && words.iter().any(|word| word.is("since")) {
        return true;
    }
    if first.is_one_of(&lists().fact.i_have) {
        return has_lasting(&words[behind..], verb.is("got"));
    }
    match verb.text.as_str() {
        "am" | "are" => words[behind + 1..]
            .iter()
            .find(|word| !word.is_one_of(&lists().fact.adverbs))
            .is_some_and(is_lasting),
        "was" | "were" => next.is_some_and(|next| next.is_one_of(&lists().fact.behind_was)),
        "have" | "had" => has_lasting(&words[behind + 1..], true),
        "come" | "came" => next.is_some_and(|next| next.is("from")),
        "go" => next.is_some_and(|next| next.is("by")),
        "drive" | "take" | "play" | "read" => {
            next.is_some_and(|next| next.is_one_of(&lists().fact.behind_drive)) && verb.is("drive")
        }
        _ => {
            verb.is_one_of(&lists().fact.stative_verbs)
                && next.is_some_and(|next| !next.is_one_of(&lists().fact.bare_objects))
        }
    }
}

/// Returns true if a word behind "I am" says what one stays.
fn is_lasting(word: &Word) -> bool {
    let participle = word.text.ends_with("ing")
        || word.text.ends_with("ed") && !word.is_one_of(&lists().fact.lasting_participles);
    !participle
        && !word.is_one_of(&lists().fact.momentary)
        && !word.is_one_of(&lists().fact.intentions)
}

/// Returns true if the words behind "I have" say what one keeps.
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
        || first.is_one_of(&lists().fact.have_participles);
    owns && !participle
        && !words
            .iter()
            .any(|word| word.is_one_of(&lists().fact.passing_objects))
}

/// Returns true for "my …" with a lasting statement; `words` begin behind "my".
fn states_of_own(words: &[Word]) -> bool {
    let verb = words.iter().take(8).position(|word| {
        word.is_one_of(&lists().fact.be)
            || word.is_one_of(&lists().fact.stative_verbs_third_person)
            || word.is_one_of(&lists().fact.own_verbs)
            || has_is(word)
    });
    let Some(verb) = verb else { return false };
    let behind = words[verb + 1..]
        .iter()
        .find(|word| !word.is_one_of(&lists().fact.adverbs));
    let Some(behind) = behind else { return false };
    if words[verb].is("has") {
        return has_lasting(&words[verb + 1..], true);
    }
    if words[verb].is_one_of(&lists().fact.be) {
        let called = behind.is_one_of(&lists().fact.naming_participles);
        return (is_lasting(behind) || called || behind.is_one_of(&lists().fact.behind_own_is))
            && !behind.is_one_of(&lists().fact.passing_states);
    }
    true
}

/// Returns true for "the code of my bike is …".
fn states_of_possessive(words: &[Word]) -> bool {
    let be = words
        .iter()
        .position(|word| word.is_one_of(&lists().fact.be));
    let mine = words
        .iter()
        .position(|word| word.is_one_of(&lists().fact.possessives));
    matches!((be, mine), (Some(be), Some(mine)) if mine < be && words[mine - 1].is_one_of(&lists().fact.before_possessives) && be + 1 < words.len())
        && words[0].is("the")
}

/// Returns true for "Anna is my sister", "Tom's birthday is …", "Anna lives in …".
fn states_of_others(sentence: &Sentence<'_>, words: &[Word]) -> bool {
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
            .position(|word| word.is_one_of(&lists().fact.be));
        let behind = be.and_then(|be| words.get(be + 1));
        return be.is_some_and(|be| be > owner + 1)
            && behind.is_some_and(|behind| {
                is_lasting(behind) || behind.is_one_of(&lists().fact.behind_name_is)
            });
    }
    if let Some(be) = words
        .iter()
        .take(4)
        .position(|word| word.is_one_of(&lists().fact.simple_be))
        && words[be + 1..]
            .first()
            .is_some_and(|word| word.is_one_of(&lists().fact.possessives))
    {
        return be > 0;
    }
    let Some(verb) = (names > 0).then(|| words.get(names)).flatten() else {
        return false;
    };
    let next = words.get(names + 1);
    verb.is_one_of(&lists().fact.stative_verbs_third_person)
        && next.is_some_and(|next| !next.is_one_of(&lists().fact.bare_objects))
        || verb.is("is") && next.is_some_and(|next| next.is_one_of(&lists().fact.behind_is))
        || verb.is("was") && next.is_some_and(|next| next.is("born"))
}
