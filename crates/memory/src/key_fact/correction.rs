//! The relation of a new text to a stored fact: does it correct or contradict the fact?
//!
//! A true fact that is lost is worse than one that stands beside its correction. A text replaces a
//! fact if it says so ("no, …", "not Monday but Tuesday"), or if both give one property of the same
//! subject another value; else both are kept.

use std::collections::BTreeSet;

use super::cue::{Cue, Kind};
use super::grammar::{self, Grammar, Sentence};
use super::keywords::{FactTokens, Overlap, shared_keywords};
use super::words::Words;
use crate::language::each_token;
use crate::rank::share;

/// Share of two predicates that has to be the same for a correction, if nothing else tells that
/// both are about one thing.
const SHARED_PART_MIN: f64 = 0.3;

/// Number of words that only introduce the next sentence, such as "No." or "Oh, sorry."
const INTRODUCTION_WORDS: usize = 2;

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
    /// True if it claims a value for a property, in any of the languages.
    has_claim: bool,
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
            cue: Cue::of(&message).with(Cue::of(&words)),
            has_claim: grammar::all()
                .iter()
                .any(|grammar| grammar.claim(&words).is_some()),
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
    relation(known, new) == wanted
}

/// Returns the relation of a new text to a stored fact of other words.
fn relation(known: &str, new: &NewText) -> Relation {
    let cue = &new.cue;
    // Decided before a stored fact is parsed: there are many of them, and they may be long.
    if cue.adds || (cue.kind == Kind::None && !new.has_claim) {
        return Relation::Compatible;
    }
    let known_words = Words::new(known);
    let is_similar = || new.overlap(known).is_match();
    let corrects_if = |is_correction: bool| match is_correction {
        true => Relation::Corrects,
        false => Relation::Compatible,
    };
    let Some(grammar) = grammar::detect(known_words.iter().chain(new.words.iter())) else {
        // Without a grammar for the language only the likeness of the keywords can be compared.
        return corrects_if(cue.kind >= Kind::End && is_similar());
    };
    let after = new.has_claim.then(|| grammar.claim(&new.words)).flatten();
    if let Some(after) = after
        && let Some(before) = grammar.claim(&known_words)
    {
        match (
            before.has_topic_of(&after),
            before.differs_from(&after),
            cue.kind,
        ) {
            // Two properties, such as an employer and an occupation.
            (false, true, _) => return Relation::Compatible,
            (true, true, Kind::None) if !after.is_exclusive => return Relation::Contradicts,
            (true, true, _) => return Relation::Corrects,
            // The same value, said with more or fewer words, or of a subject that is named otherwise.
            (_, false, _) => {}
        }
    }
    let (known_sentence, new_sentence) = (grammar.parse(&known_words), grammar.parse(&new.words));
    if !known_sentence.has_verb || !new_sentence.has_verb {
        return corrects_if(cue.kind >= Kind::End && is_similar());
    }
    // Likeness alone replaced true facts about other people: “Anna lives in Graz” is as like to
    // “Ben lives in Graz” as to its correction.
    if !have_same_subject(&known_sentence, &new_sentence) {
        return Relation::Compatible;
    }
    let (old, now) = (&known_sentence.predicate, &new_sentence.predicate);
    let is_mentioned = || mentions(grammar, &new.message, &known_sentence, &new_sentence);
    let is_explicit = || {
        shared_part(old, now) >= SHARED_PART_MIN
            || is_mentioned()
            || is_similar()
            || are_measures(&known_sentence, &new_sentence)
    };
    corrects_if(match cue.kind {
        Kind::None => false,
        // Without words that say so only the time or the amount of the same statement changes.
        Kind::Change => is_similar() && are_measures(&known_sentence, &new_sentence),
        Kind::End => is_similar(),
        Kind::Contrast => names_wrong_part(grammar, cue, old) && is_explicit(),
        Kind::Opening => is_explicit(),
    })
}

/// Returns true if the user's message names the part of a stored fact that the new text does not
/// have: "not in Munich".
pub(crate) fn names_replaced_part(known: &str, new: &NewText) -> bool {
    let known = Words::new(known);
    grammar::detect(known.iter().chain(new.words.iter())).is_some_and(|grammar| {
        let (known, now) = (grammar.parse(&known), grammar.parse(&new.words));
        mentions(grammar, &new.message, &known, &now)
            || names_wrong_part(grammar, &new.cue, &known.predicate)
    })
}

/// Returns true if the words that a text names as wrong are those of a predicate.
fn names_wrong_part(grammar: &Grammar, cue: &Cue, predicate: &[String]) -> bool {
    let stems = cue
        .wrong
        .iter()
        .filter_map(|word| grammar.content_stem(word));
    stems.into_iter().any(|stem| predicate.contains(&stem))
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

fn shared_part(known: &[String], new: &[String]) -> f64 {
    let shared = known.iter().filter(|stem| new.contains(stem)).count();
    share(shared as f64, known.len().max(new.len()) as f64)
}

/// Returns true if a message names the part of a fact that is wrong: "not Monday but Tuesday".
fn mentions(grammar: &Grammar, message: &Words, known: &Sentence, new: &Sentence) -> bool {
    let message = grammar.parse(message);
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
