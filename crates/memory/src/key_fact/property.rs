//! Claims about properties of which a subject has only one value at a time, such as a home, a boss
//! or the colour of a car: of two such claims with other values one does not hold any more.

use std::collections::BTreeSet;
use std::ops::Range;

use super::cue::wrong_ranges;
use super::grammar::{self, Grammar};
use super::property_table::{Piece, Property, ValueKind};
use super::words::{Phrase, Word, Words, has_phrase_at};

/// Number of stems of a value. A longer one states more than the property, and the rest would be
/// lost with it.
const VALUE_STEMS_MAX: usize = 4;
/// Words of a name.
const NAME_WORDS_MAX: usize = 3;
/// Words between the parts of a pattern.
const GAP_MAX: usize = 3;

/// The statement that a property of a subject has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim<'a> {
    property: &'a str,
    pub(crate) is_exclusive: bool,
    /// The stems of the subject; empty for the user themselves.
    subject: BTreeSet<String>,
    value: BTreeSet<String>,
}

impl Claim<'_> {
    /// Returns true if both are about the same property of the same subject.
    pub(crate) fn has_topic_of(&self, other: &Self) -> bool {
        self.property == other.property && self.subject == other.subject
    }

    /// Returns true if neither value holds the other: "Berlin" and "Munich", but not "Berlin" and
    /// "Berlin Mitte".
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        !self.value.is_subset(&other.value) && !other.value.is_subset(&self.value)
    }
}

/// Returns the property and the subject that a text claims a value for, if it is such a claim.
pub(crate) fn topic(text: &str) -> Option<(&'static str, BTreeSet<String>)> {
    let words = Words::new(text);
    let claim = grammar::detect(words.iter())?.claim(&words)?;
    Some((claim.property, claim.subject))
}

/// A pattern that was found in a text.
#[derive(Debug, Clone, Default)]
struct Found {
    end: usize,
    number: Option<String>,
    value: Option<Range<usize>>,
    subject: Range<usize>,
}

impl Grammar {
    /// Returns the claim of a text, if it is one plain statement about a property.
    pub(super) fn claim(&self, words: &Words) -> Option<Claim<'_>> {
        let words = self.plain_words(&words.0);
        self.claim_by_pattern(&words)
            .or_else(|| self.claim_by_noun(&words))
    }

    /// Returns the words without fillers and without what is named as wrong.
    fn plain_words(&self, words: &[Word]) -> Vec<Word> {
        let wrong = wrong_ranges(self, words);
        let mut plain: Vec<Word> = Vec::new();
        let (mut at, mut is_after_pause) = (0, false);
        while let Some(word) = words.get(at) {
            // A pause in front of what is left out is one in front of what follows.
            is_after_pause |= word.is_after_pause;
            if let Some(range) = wrong.iter().find(|range| range.whole.contains(&at)) {
                at = range.whole.end;
                continue;
            }
            let filler = self.filler_at(words, at);
            let is_negation = self.table.negations.contains(&word.text);
            // "moved", which announces a change, is a part of the statement, and so is a negation.
            let is_statement = filler == 1
                && match is_negation {
                    true => !has_pause_behind(words, at),
                    false => self.is_verb(&word.text) || self.is_content_of_property(&word.text),
                };
            if filler == 0 || is_statement {
                plain.push(Word {
                    is_after_pause,
                    ..word.clone()
                });
                is_after_pause = false;
            }
            at += filler.max(1);
        }
        plain
    }

    /// Returns true for a word by which a property is claimed, and that denies nothing.
    fn is_content_of_property(&self, word: &str) -> bool {
        let is_denial = |phrase: &Phrase| matches!(phrase.0.as_slice(), [denial] if denial == word);
        self.property_words.contains(word) && !self.table.denials.iter().any(is_denial)
    }

    fn claim_by_pattern(&self, words: &[Word]) -> Option<Claim<'_>> {
        let mut best: Option<(usize, usize, Claim<'_>)> = None;
        let can_begin = |at: &usize| {
            words
                .get(*at)
                .is_some_and(|word| self.can_begin_pattern(&word.text))
        };
        for begin in (0..words.len()).filter(can_begin) {
            for property in &self.table.properties {
                let of_value = property.patterns.iter().map(|pattern| (pattern, None));
                let of_state = property.states.iter().flat_map(|(state, patterns)| {
                    patterns.iter().map(move |pattern| (pattern, Some(state)))
                });
                for (pattern, state) in of_value.chain(of_state) {
                    let length = pattern.0.len();
                    let is_better = best
                        .as_ref()
                        .is_none_or(|(at, longest, _)| begin == *at && length > *longest);
                    if !is_better {
                        continue;
                    }
                    let claim = self
                        .find(&pattern.0, words, begin)
                        .and_then(|found| self.claim_at(property, state, words, begin, &found));
                    if let Some(claim) = claim {
                        best = Some((begin, length, claim));
                    }
                }
            }
        }
        best.map(|(_, _, claim)| claim)
    }

    /// Returns true if a pattern may begin with a word. Most words of a long text begin none.
    fn can_begin_pattern(&self, word: &str) -> bool {
        self.property_words.contains(word)
            || self.table.copulas.contains(word)
            || self.number(word).is_some()
    }

    fn claim_at<'a>(
        &'a self,
        property: &'a Property,
        state: Option<&String>,
        words: &[Word],
        begin: usize,
        found: &Found,
    ) -> Option<Claim<'a>> {
        let mut subject = self.subject(self.clause_before(words.get(..=begin)?))?;
        subject.extend(self.subject(words.get(found.subject.clone())?)?);
        let rest = until_pause(words.get(found.end..)?);
        let value = match (state, &found.number) {
            (Some(state), _) => BTreeSet::from([state.clone()]),
            // Of "5 years of experience" the years are no age.
            (None, Some(number)) if self.content(rest).is_empty() => {
                BTreeSet::from([number.clone()])
            }
            (None, Some(_)) => return None,
            (None, None) => {
                let value = found.value.clone().and_then(|value| words.get(value));
                self.value(property.value, value.unwrap_or(rest), words)?
            }
        };
        Some(Claim {
            property: &property.name,
            is_exclusive: property.exclusive,
            subject,
            value,
        })
    }

    /// Finds "my boss is Tom", and "the boss of Anna is Tom".
    fn claim_by_noun(&self, words: &[Word]) -> Option<Claim<'_>> {
        let is_verb = |word: &Word| self.is_verb(&word.text);
        let verb = words.iter().position(is_verb)?;
        if !self.table.copulas.contains(&words.get(verb)?.text) {
            return None;
        }
        let (owner, rest) = match verb {
            // "Eigentlich ist Annas Geburtstag am 4. Mai."
            0 => {
                let nouns = || {
                    self.table
                        .properties
                        .iter()
                        .flat_map(|property| &property.nouns)
                };
                let ends_noun = |end: &usize| {
                    nouns().any(|noun| {
                        let begin = end.checked_sub(noun.words.0.len());
                        begin.is_some_and(|begin| {
                            begin > 0 && has_phrase_at(words, begin, &noun.words.0)
                        })
                    })
                };
                let end = (2..=words.len().min(1 + GAP_MAX)).find(ends_noun)?;
                (words.get(1..end)?, words.get(end..)?)
            }
            _ => (words.get(..verb)?, words.get(verb + 1..)?),
        };
        if rest
            .first()
            .is_some_and(|word| self.table.negations.contains(&word.text))
        {
            return None;
        }
        let is_of = |at: usize| {
            owner
                .get(at)
                .is_some_and(|word| self.table.of.contains(&word.text))
        };
        let mut best: Option<(usize, Claim<'_>)> = None;
        for property in &self.table.properties {
            for noun in &property.nouns {
                let length = noun.words.0.len();
                let stands = |at: usize| {
                    let end = at + length;
                    has_phrase_at(owner, at, &noun.words.0)
                        && (noun.stands_anywhere || end == owner.len() || is_of(end))
                };
                let Some(at) = (0..owner.len()).find(|at| stands(*at)) else {
                    continue;
                };
                if best.as_ref().is_some_and(|(longest, _)| *longest >= length) {
                    continue;
                }
                let others = [owner.get(..at)?, owner.get(at + length..)?].concat();
                let (Some(subject), Some(value)) = (
                    self.subject(&others),
                    self.value(property.value, rest, words),
                ) else {
                    continue;
                };
                let claim = Claim {
                    property: &property.name,
                    is_exclusive: property.exclusive,
                    subject,
                    value,
                };
                best = Some((length, claim));
            }
        }
        best.map(|(_, claim)| claim)
    }

    /// Finds a pattern that begins at a place.
    fn find(&self, pattern: &[Piece], words: &[Word], at: usize) -> Option<Found> {
        let Some((first, rest)) = pattern.split_first() else {
            return Some(Found {
                end: at,
                ..Found::default()
            });
        };
        let text = words.get(at).map(|word| word.text.as_str());
        match first {
            Piece::Word(word) if text == Some(word) => self.find(rest, words, at + 1),
            Piece::Copula if self.table.copulas.contains(text?) => self.find(rest, words, at + 1),
            Piece::Word(_) | Piece::Copula => None,
            Piece::Number => {
                let number = self.number(text?)?;
                let found = self.find(rest, words, at + 1)?;
                Some(Found {
                    number: Some(number),
                    ..found
                })
            }
            Piece::Value => (1..=GAP_MAX).find_map(|length| {
                let found = self.find(rest, words, at + length)?;
                Some(Found {
                    value: Some(at..at + length),
                    ..found
                })
            }),
            Piece::Subject => (0..=GAP_MAX).find_map(|length| {
                let found = self.find(rest, words, at + length)?;
                Some(Found {
                    subject: at..at + length,
                    ..found
                })
            }),
        }
    }

    /// Returns the words in front of the last of some words, back to the pause behind another
    /// statement: "I changed jobs: I …".
    fn clause_before<'a>(&self, words: &'a [Word]) -> &'a [Word] {
        let before = words.split_last().map_or(words, |(_, before)| before);
        let pause = words.iter().rposition(|word| word.is_after_pause);
        let is_statement = |pause: &usize| {
            let mut words = before.iter().take(*pause);
            words
                .any(|word| self.is_verb(&word.text) || self.table.auxiliaries.contains(&word.text))
        };
        let begin = pause.filter(is_statement).unwrap_or(0);
        before.get(begin..).unwrap_or(before)
    }

    fn number(&self, word: &str) -> Option<String> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(word.to_owned());
        }
        let place = self.table.numbers.iter().position(|number| number == word);
        place.map(|number| number.to_string())
    }

    /// Returns the stems of the subject that words in front of a property are. `None` if they state
    /// something else: a wish, the past, the contrary.
    fn subject(&self, words: &[Word]) -> Option<BTreeSet<String>> {
        let table = &self.table;
        let is_other = |word: &Word| {
            let text = &word.text;
            table.past.contains(text)
                || table.negations.contains(text)
                || self.is_verb(text)
                    && !table.auxiliaries.contains(text)
                    && !table.copulas.contains(text)
        };
        (!words.iter().any(is_other)).then(|| self.content(words).into_iter().collect())
    }

    fn content(&self, words: &[Word]) -> Vec<String> {
        let is_auxiliary = |word: &&Word| !self.table.auxiliaries.contains(&word.text);
        let words = words.iter().filter(is_auxiliary);
        words
            .filter_map(|word| self.content_stem(&word.text))
            .collect()
    }

    /// Returns the value that words behind a property are. `None` if it is of another kind.
    fn value(&self, kind: ValueKind, rest: &[Word], all: &[Word]) -> Option<BTreeSet<String>> {
        let is_article = |word: &&Word| self.table.articles.contains(&word.text);
        let articles = rest.iter().take_while(is_article).count();
        let rest = rest.get(articles..)?;
        // A text typed without capitals has names too.
        let has_capitals = all.iter().any(|word| word.is_capital);
        let is_name = |word: &&Word| match has_capitals {
            true => word.is_capital,
            false => !self.language.is_stop(&word.text) && !self.is_verb(&word.text),
        };
        let stem = |word: &Word| self.language.stem(&word.text);
        let any = || {
            let stems = self.content(until_pause(rest));
            (1..=VALUE_STEMS_MAX)
                .contains(&stems.len())
                .then(|| stems.into_iter().collect::<BTreeSet<String>>())
        };
        let value = match kind {
            ValueKind::State => return None,
            ValueKind::Name => {
                let names = rest.iter().take_while(is_name).take(NAME_WORDS_MAX);
                names.map(stem).collect()
            }
            ValueKind::Number => {
                let number = rest.first().and_then(|word| self.number(&word.text))?;
                BTreeSet::from([number])
            }
            ValueKind::Digits => any().filter(|stems| {
                stems
                    .iter()
                    .any(|stem| stem.contains(|c: char| c.is_ascii_digit()))
            })?,
            ValueKind::Email => {
                let address = rest.iter().find(|word| word.text.contains('@'))?;
                BTreeSet::from([address.text.clone()])
            }
            ValueKind::Any => any()?,
        };
        (!value.is_empty()).then_some(value)
    }
}

/// Returns words up to the first pause.
fn until_pause(words: &[Word]) -> &[Word] {
    let pause = words.iter().position(|word| word.is_after_pause);
    pause.and_then(|pause| words.get(..pause)).unwrap_or(words)
}

/// Returns true if there is punctuation behind a word.
fn has_pause_behind(words: &[Word], at: usize) -> bool {
    words.get(at + 1).is_none_or(|word| word.is_after_pause)
}
