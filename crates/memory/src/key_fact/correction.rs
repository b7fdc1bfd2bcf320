//! The relation of a new text to a stored fact: does it correct or contradict the fact?
//!
//! A true fact that is lost is worse than one that stands beside its correction: where the text
//! does not announce a correction, or has another subject, both are kept.

use std::collections::BTreeSet;

use super::grammar::{Cue, Sentence, Words, parse_pair};
use super::keywords::{FactTokens, Overlap, shared_keywords};
use crate::language::each_token;
use crate::rank::share;

/// Share of two predicates that has to be the same for a correction, if nothing else tells that
/// both are about one attribute.
const SHARED_PART_MIN: f64 = 0.3;

/// Number of words that only introduce the next sentence, such as "No." or "Oh, sorry."
const INTRODUCTION_WORDS: usize = 2;

/// Number of stems in a predicate about a single attribute. A longer one states more than where a
/// person lives or works, and the rest would be lost with it.
const PREDICATE_MAX: usize = 4;

/// The relation of a new text to a stored fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    /// Both may be true.
    Compatible,
    /// Both can hardly be true, and the text does not tell which is.
    Contradicts,
    /// The text takes the place of the fact.
    Corrects,
}

/// A new text, read once for its comparisons with many stored facts.
pub(crate) struct NewText {
    words: Words,
    /// Its words as they are compared for equality: addresses and elisions are divided like all else.
    plain_words: Vec<String>,
    keywords: FactTokens,
    /// The sentences of the user's message that are about it.
    message: Words,
    cue: Cue,
}

impl NewText {
    /// Reads a new text. `message`: the user's message, which may announce a correction.
    pub(crate) fn new(content: &str, message: &str) -> Self {
        let words = Words::new(content);
        let keywords = FactTokens::new(content);
        // A message may correct one fact and state another: only the sentences about this one count.
        let message = Words::new(&relevant_sentences(&keywords, message));
        Self {
            // The text that a model makes of “no, actually …” often has no such words any more.
            cue: message.cue().max(words.cue()),
            plain_words: plain_words(content),
            words,
            keywords,
            message,
        }
    }

    /// Returns the overlap of its keywords with those of a stored fact.
    pub(crate) fn overlap(&self, known: &str) -> Overlap {
        Overlap::between(&self.keywords, &FactTokens::new(known))
    }
}

/// Returns true if a new text has a relation to a stored fact.
pub(crate) fn has_relation(known: &str, new: &NewText, wanted: Relation) -> bool {
    // Only case and punctuation differ.
    if !new.plain_words.is_empty() && plain_words(known) == new.plain_words {
        return wanted == Relation::Corrects;
    }
    // Without a cue nothing else is corrected, and with one nothing is contradicted: most new texts
    // are compared with no sentence.
    let is_announced = new.cue > Cue::None;
    let is_possible = match wanted {
        Relation::Corrects => is_announced,
        Relation::Contradicts => !is_announced,
        Relation::Compatible => true,
    };
    is_possible && relation(known, new) == wanted
}

/// Returns the relation of a new text to a stored fact of other words.
fn relation(known: &str, new: &NewText) -> Relation {
    let cue = new.cue;
    let corrects_if = |is_correction: bool| match is_correction {
        true => Relation::Corrects,
        false => Relation::Compatible,
    };
    let parsed = parse_pair(&Words::new(known), &new.words)
        .filter(|(known, new)| known.has_verb && new.has_verb);
    let is_similar = || new.overlap(known).is_match();
    let Some((known_sentence, new_sentence)) = parsed else {
        // Without a grammar for the language only the likeness of the keywords can be compared.
        return corrects_if(cue > Cue::None && is_similar());
    };
    // Likeness alone replaced true facts about other people: “Anna lives in Graz” is as like to
    // “Ben lives in Graz” as to its correction.
    if !have_same_subject(&known_sentence, &new_sentence) {
        return Relation::Compatible;
    }
    let (old, now) = (&known_sentence.predicate, &new_sentence.predicate);
    let is_one_attribute = are_one_attribute(&known_sentence, &new_sentence);
    if cue == Cue::None {
        let contradicts = is_one_attribute && old != now && !old.is_empty() && !now.is_empty();
        return match contradicts {
            true => Relation::Contradicts,
            false => Relation::Compatible,
        };
    }
    let attributes_differ =
        known_sentence.attributes != new_sentence.attributes && !is_one_attribute;
    let is_mentioned =
        || cue == Cue::Correction && mentions(&new.message, &known_sentence, &new_sentence);
    let shares_predicate = cue == Cue::Correction && shared_part(old, now) >= SHARED_PART_MIN;
    corrects_if(
        !attributes_differ
            && (is_one_attribute
                || shares_predicate
                || is_mentioned()
                || is_similar()
                || are_measures(&known_sentence, &new_sentence)),
    )
}

/// Returns true if the user's message names the part of a stored fact that the new text does not
/// have: "not in Munich".
pub(crate) fn names_replaced_part(known: &str, new: &NewText) -> bool {
    parse_pair(&Words::new(known), &new.words)
        .is_some_and(|(known, now)| mentions(&new.message, &known, &now))
}

/// Returns the sentences of a message that hold a keyword of a fact; all of the message if there
/// are none. A few words in front, such as "No.", belong to the sentence behind them.
fn relevant_sentences(fact: &FactTokens, message: &str) -> String {
    let (mut sentences, mut current) = (Vec::new(), String::new());
    for piece in message.split_inclusive(['.', '!', '?', ';', '\n']) {
        current.push_str(piece);
        if current.split_whitespace().count() > INTRODUCTION_WORDS {
            sentences.push(std::mem::take(&mut current));
        }
    }
    sentences.push(current);
    sentences.retain(|sentence| shared_keywords(fact, &FactTokens::new(sentence)) > 0);
    if sentences.is_empty() {
        message.to_owned()
    } else {
        sentences.join(" ")
    }
}

fn plain_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_token(text, |token| words.push(token.word.to_owned()));
    words
}

fn have_same_subject(known: &Sentence, new: &Sentence) -> bool {
    let stems = |sentence: &Sentence| sentence.subject.iter().cloned().collect::<BTreeSet<_>>();
    stems(known) == stems(new)
}

/// Returns true if both sentences are about one attribute of which a person has only one value.
fn are_one_attribute(known: &Sentence, new: &Sentence) -> bool {
    let are_short = known.predicate.len() <= PREDICATE_MAX && new.predicate.len() <= PREDICATE_MAX;
    let (old, now) = (&known.attributes, &new.attributes);
    are_short
        && !old.is_empty()
        && old.first() == now.first()
        && old.iter().all(|attribute| now.contains(attribute))
}

fn shared_part(known: &[String], new: &[String]) -> f64 {
    let shared = known.iter().filter(|stem| new.contains(stem)).count();
    share(shared as f64, known.len().max(new.len()) as f64)
}

/// Returns true if a message names the part of a fact that is wrong: "not Monday but Tuesday".
fn mentions(message: &Words, known: &Sentence, new: &Sentence) -> bool {
    let Some((message, _)) = parse_pair(message, message) else {
        return false;
    };
    let all = || message.subject.iter().chain(&message.predicate);
    known
        .predicate
        .iter()
        .any(|stem| !new.predicate.contains(stem) && all().any(|word| word == stem))
}

/// Returns true if all that differs are numbers, times or days, on both sides: then it is the same
/// event at another time.
fn are_measures(known: &Sentence, new: &Sentence) -> bool {
    let only = |one: &Sentence, other: &Sentence| {
        let mut rest = one
            .predicate
            .iter()
            .filter(|stem| !other.predicate.contains(stem))
            .peekable();
        rest.peek().is_some() && rest.all(|stem| is_measure(stem))
    };
    only(known, new) && only(new, known)
}

fn is_measure(stem: &str) -> bool {
    // Stems and not words, as the stemmers of the five languages make them.
    const DAYS: &str = " monday tuesday wednesday thursday friday saturday sunday januari februari march april may june juli august \
        septemb octob novemb decemb noon midnight montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar marz mai \
        juni septemb oktob novemb dezemb lund mard mercred jeud vendred samed dimanch janvi fevri mar avril juin juillet aout septembr \
        octobr novembr decembr lun mart miercol juev viern sab doming ener febrer marz abril may juni juli agost septiembr octubr noviembr \
        diciembr luned marted mercoled gioved venerd sabat domen genna febbra aprile april maggi giugn lugli settembr ottobr dicembr \
        clock uhr heur hora ore pm am ";
    stem.chars().any(|char| char.is_ascii_digit()) || DAYS.contains(&format!(" {stem} "))
}
