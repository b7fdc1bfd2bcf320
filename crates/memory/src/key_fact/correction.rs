//! Which known fact new words correct.
//!
//! A true fact that is lost is worse than one that stands beside its correction: where the words do
//! not announce a correction, or are about somebody else, both are kept.

use super::grammar::{Announced, Sentence, announced, sentences};
use super::keywords::{Overlap, Words, found_in};
use crate::words::each_token;

/// The part of what two sentences say that has to be the same, if nothing else tells that they are
/// of one matter.
const SAME_PART: f64 = 0.3;

/// Words that only introduce what is said next, at most.
const INTRODUCTION_WORDS: usize = 2;

/// Words that a sentence of one matter says at most: a longer one tells more than where somebody
/// lives or works, and what else it tells would be lost.
const SAYS_MAX: usize = 4;

/// The relation of new words to a known fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    /// Both may be true.
    Beside,
    /// Both can hardly be true, and nothing says which is.
    Contradicts,
    /// The new words take the place of the known.
    Corrects,
}

/// Returns how a new fact stands to a known one. `said`: the person's words, which may announce a
/// correction.
pub(crate) fn relation(known: &str, new: &str, said: &str) -> Relation {
    // Other capitals, other punctuation.
    if same_words(known, new) {
        return Relation::Corrects;
    }
    let said = &said_of(new, said);
    let announced = announced(said).max(announced(new));
    let read = sentences(known, new).filter(|(known, new)| known.is_divided && new.is_divided);
    let Some((known_sentence, new_sentence)) = read else {
        let is_correction = announced > Announced::Nothing && is_nearly(known, new);
        return if is_correction {
            Relation::Corrects
        } else {
            Relation::Beside
        };
    };
    if !is_about_the_same(&known_sentence, &new_sentence) {
        return Relation::Beside;
    }
    let is_one_matter = is_one_matter(&known_sentence, &new_sentence);
    if announced == Announced::Nothing {
        let differs = known_sentence.says != new_sentence.says;
        let contradicts = is_one_matter
            && differs
            && !known_sentence.says.is_empty()
            && !new_sentence.says.is_empty();
        return if contradicts {
            Relation::Contradicts
        } else {
            Relation::Beside
        };
    }
    let matters_differ = known_sentence.matters != new_sentence.matters && !is_one_matter;
    let is_mentioned =
        || announced == Announced::Correction && mentions(said, &known_sentence, &new_sentence);
    let is_same = announced == Announced::Correction
        && part_in_common(&known_sentence.says, &new_sentence.says) >= SAME_PART;
    let is_near = !matters_differ
        && (is_one_matter
            || is_same
            || is_mentioned()
            || is_nearly(known, new)
            || are_measures(&known_sentence, &new_sentence));
    if is_near {
        Relation::Corrects
    } else {
        Relation::Beside
    }
}

/// Returns whether the person's words name what a known fact says, and the new one does not: "not
/// in Munich".
pub(crate) fn is_named(known: &str, new: &str, said: &str) -> bool {
    sentences(known, new).is_some_and(|(known, now)| mentions(&said_of(new, said), &known, &now))
}

/// Returns the sentences of what a person said that hold a word of a fact; all of it if none does.
/// A few words in front, such as "No.", belong to the sentence behind them.
fn said_of(fact: &str, said: &str) -> String {
    let words = Words::of(fact);
    let (mut sentences, mut begun) = (Vec::new(), String::new());
    for piece in said.split_inclusive(['.', '!', '?', ';', '\n']) {
        begun.push_str(piece);
        if begun.split_whitespace().count() > INTRODUCTION_WORDS {
            sentences.push(std::mem::take(&mut begun));
        }
    }
    sentences.push(begun);
    let is_of_fact = |sentence: &&String| found_in(&words, &Words::of(sentence)).is_some();
    let of_fact: Vec<&str> = sentences
        .iter()
        .filter(is_of_fact)
        .map(String::as_str)
        .collect();
    if of_fact.is_empty() {
        said.to_owned()
    } else {
        of_fact.join(" ")
    }
}

fn same_words(known: &str, new: &str) -> bool {
    let words = |text: &str| {
        let mut words: Vec<String> = Vec::new();
        each_token(text, |token| words.push(token.word.to_owned()));
        words
    };
    let known = words(known);
    !known.is_empty() && known == words(new)
}

/// Returns whether more than 70 % of the keywords are the same.
fn is_nearly(known: &str, new: &str) -> bool {
    Overlap::between(&Words::of(known), &Words::of(new)).is_match()
}

fn is_about_the_same(known: &Sentence, new: &Sentence) -> bool {
    let sorted = |sentence: &Sentence| {
        let mut about = sentence.about.clone();
        about.sort();
        about.dedup();
        about
    };
    sorted(known) == sorted(new)
}

/// Returns whether both are of a matter of which one has only one.
fn is_one_matter(known: &Sentence, new: &Sentence) -> bool {
    let are_short = known.says.len() <= SAYS_MAX && new.says.len() <= SAYS_MAX;
    are_short
        && known
            .matters
            .first()
            .is_some_and(|first| new.matters.first() == Some(first))
        && known
            .matters
            .iter()
            .all(|matter| new.matters.contains(matter))
}

fn part_in_common(known: &[String], new: &[String]) -> f64 {
    let shared = known.iter().filter(|stem| new.contains(stem)).count();
    let most = known.len().max(new.len());
    if most == 0 {
        0.0
    } else {
        shared as f64 / most as f64
    }
}

/// Returns whether the person names what is wrong: "not Monday but Tuesday".
fn mentions(said: &str, known: &Sentence, new: &Sentence) -> bool {
    let Some((said, _)) = sentences(said, said) else {
        return false;
    };
    let all = || said.about.iter().chain(&said.says);
    known
        .says
        .iter()
        .any(|stem| !new.says.contains(stem) && all().any(|word| word == stem))
}

/// Returns whether what differs is a number, a time or a day on both sides: then it is the same
/// thing at another time.
fn are_measures(known: &Sentence, new: &Sentence) -> bool {
    let only = |one: &Sentence, other: &Sentence| {
        let mut rest = one
            .says
            .iter()
            .filter(|stem| !other.says.contains(stem))
            .peekable();
        rest.peek().is_some() && rest.all(|stem| is_measure(stem))
    };
    only(known, new) && only(new, known)
}

fn is_measure(stem: &str) -> bool {
    const DAYS: &str = " monday tuesday wednesday thursday friday saturday sunday januari februari march april may june juli august \
        septemb octob novemb decemb noon midnight montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar marz mai \
        juni septemb oktob novemb dezemb lund mard mercred jeud vendred samed dimanch janvi fevri mar avril juin juillet aout septembr \
        octobr novembr decembr lun mart miercol juev viern sab doming ener febrer marz abril may juni juli agost septiembr octubr noviembr \
        diciembr luned marted mercoled gioved venerd sabat domen genna febbra aprile april maggi giugn lugli settembr ottobr dicembr \
        clock uhr heur hora ore pm am ";
    stem.chars().any(|char| char.is_ascii_digit()) || DAYS.contains(&format!(" {stem} "))
}
