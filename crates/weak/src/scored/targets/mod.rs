//! The entities that a message means: by their words, numbers and positions, or as what was said
//! just before.

mod mention; // what was just spoken of
mod names; // words of labels
mod numbers; // numbers and positions

use adjutant_core::Reference;

use super::clauses::{clauses, corrected};
use crate::dialogue::Dialogue;
use crate::language::PhraseList;
use crate::lexicon::{Lexicon, is_content};
use crate::words::{self, Likeness, Word, find, is_number, likeness, words};

/// Most words of a message in which "all" means every entry: a story says it of anything.
const ALL_WORDS_MAX: usize = 12;
/// Most words beside a name in a message that says nothing of it: an article.
const BARE_WORDS_MAX: usize = 1;
/// The entities that a message means, as indexes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Targets {
    /// Those that it means beyond doubt, in its order.
    pub(super) named: Vec<usize>,
    /// For each of `named`, the words by which it is meant.
    by: Vec<Vec<usize>>,
    /// For each of `named`, the bytes of the message where these words begin.
    places: Vec<Vec<usize>>,
    /// Those of `named` that it only speaks of with a negation: "the rent is not paid".
    pub(super) negated: Vec<usize>,
    /// True if every clause of it has a negation.
    pub(super) only_negated: bool,
    /// Those between which it does not decide.
    pub(super) doubtful: Vec<usize>,
    /// True if words of it are in labels.
    pub(super) has_labels: bool,
    /// True if it has words of its own that name no entity.
    pub(super) names_others: bool,
    /// True if it has hardly a word beside a name: "the car".
    pub(super) is_bare: bool,
    /// Those that are done, if it means all entities or all that are done.
    pub(super) finished: Vec<usize>,
    /// Those of `named` that it means by their numbers.
    pub(super) numbered: Vec<usize>,
    /// True if it means all that are done, and no other.
    pub(super) only_finished: bool,
    /// Numbers that no entity has.
    pub(super) unknown: Option<String>,
    /// True if `named` is what was said just before, though the message has other things in it: "my
    /// sister finished her homework".
    pub(super) is_guessed: bool,
    /// The only one that the assistant's last message names.
    pub(super) mentioned: Option<usize>,
}

impl Targets {
    /// Returns the bytes of the message where words begin that mean an entity.
    pub(super) fn places_of(&self, entity: usize) -> &[usize] {
        let at = self.named.iter().position(|named| *named == entity);
        at.and_then(|at| self.places.get(at))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the first of [`Self::places_of`].
    pub(super) fn place_of(&self, entity: usize) -> Option<usize> {
        self.places_of(entity).first().copied()
    }

    /// Returns entities that are meant without words of theirs.
    fn pointed_at(named: Vec<usize>) -> Self {
        Self {
            named,
            ..Self::default()
        }
    }
}

/// A reading of one message.
pub(super) struct Reader<'a> {
    lexicon: &'static Lexicon,
    /// The words of the message that count: those behind a correction.
    words: Vec<Word>,
    /// For each word, the number of its clause.
    clauses: Vec<usize>,
    message: &'a str,
    entities: &'a [&'a Reference],
    labels: Vec<Vec<String>>,
    /// For each word, the entities whose labels have it.
    hits: Vec<Vec<usize>>,
    /// The entities that the assistant's reply named, in its order.
    mentioned: Vec<usize>,
    /// Those of them that it numbered, by their numbers.
    numbered: Vec<(String, usize)>,
    /// The entities that the message before it named.
    earlier: Vec<usize>,
    answers: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        dialogue: &'a Dialogue,
        entities: &'a [&'a Reference],
        lexicon: &'static Lexicon,
    ) -> Self {
        let labels: Vec<Vec<String>> = entities
            .iter()
            .map(|entity| label_words(&entity.label, lexicon))
            .collect();
        let words = corrected(&dialogue.message, words(&dialogue.message), lexicon);
        let hits = words
            .iter()
            .enumerate()
            .map(|(at, word)| hit_by(&words, at, word, &labels, lexicon))
            .collect();
        let before = dialogue.assistant_before.as_deref().unwrap_or_default();
        let numbered = mentioned_in(before, entities);
        let mentioned = numbered.iter().map(|(entity, _)| *entity).collect();
        let numbered = numbered
            .into_iter()
            .filter_map(|(entity, number)| Some((number?, entity)))
            .collect();
        let earlier = dialogue
            .user_before
            .as_deref()
            .map(|text| {
                let words = words::words(text);
                let mut all: Vec<usize> = (0..words.len())
                    .flat_map(|at| hit_by(&words, at, &words[at], &labels, lexicon))
                    .collect();
                all.sort_unstable();
                all.dedup();
                all
            })
            .unwrap_or_default();
        Self {
            lexicon,
            clauses: clauses(&dialogue.message, &words, lexicon),
            words,
            message: &dialogue.message,
            entities,
            labels,
            hits,
            mentioned,
            numbered,
            earlier,
            answers: dialogue.answers(),
        }
    }

    /// Returns the entities that the message means.
    pub(super) fn targets(&self) -> Targets {
        let mut targets = self.read();
        let place = |at: &usize| self.words[*at].start;
        targets.places = (targets.by.iter())
            .map(|by| by.iter().map(place).collect())
            .collect();
        let names_none = targets.by.iter().all(Vec::is_empty);
        let is_all = !targets.named.is_empty() && names_none && self.means_all();
        targets.only_finished = self.means_finished() && (is_all || targets.named.is_empty());
        if is_all && self.mentioned.len() < 2 || targets.only_finished {
            targets.finished = (0..self.entities.len())
                .filter(|&entity| self.entities[entity].done)
                .collect();
        }
        targets.negated = (0..targets.by.len())
            .filter(|at| self.is_negated(&own_words(&targets.by, *at)))
            .map(|at| targets.named[at])
            .collect();
        targets.mentioned = match self.mentioned[..] {
            [only] => Some(only),
            _ => None,
        };
        targets.only_negated = (self.clauses.iter()).all(|clause| self.has_negation(*clause));
        targets.has_labels = self.hits.iter().any(|hit| !hit.is_empty());
        targets.names_others = self.names_others();
        let named = |at: usize| targets.by.iter().any(|by| by.contains(&at));
        let others = (0..self.words.len()).filter(|at| !named(*at)).count();
        let has_verb = targets
            .named
            .iter()
            .zip(&targets.by)
            .any(|(entity, by)| by.iter().any(|at| self.is_verb(*entity, *at)));
        targets.is_bare = others <= BARE_WORDS_MAX && !has_verb;
        targets
    }

    /// Returns true for a short message that means every entry.
    fn means_all(&self) -> bool {
        let excepts = self.lexicon.except.iter();
        self.words.len() <= ALL_WORDS_MAX
            && self.has(&self.lexicon.all)
            && excepts
                .filter_map(|phrase| find(&self.words, phrase))
                .next()
                .is_none()
    }

    /// Returns true for a short message that speaks of what is done, without a name or a number.
    fn means_finished(&self) -> bool {
        let named = (self.hits.iter()).any(|hit| !hit.is_empty());
        self.words.len() <= ALL_WORDS_MAX
            && (self.words.iter()).any(|word| self.lexicon.finished.has(&word.folded))
            && !(self.words.iter()).any(|word| is_number(&word.folded))
            && !named
    }

    /// Returns true if the message has words of its own that name no entity.
    fn names_others(&self) -> bool {
        (0..self.words.len())
            .any(|at| is_content(&self.words[at].folded, self.lexicon) && self.hits[at].is_empty())
    }

    fn read(&self) -> Targets {
        if let Some(targets) = self.all_but() {
            return targets;
        }
        let by_words = self.by_words();
        let in_digits = self.words.iter().any(|word| is_number(&word.folded));
        if self.has(&self.lexicon.both) && !in_digits {
            let both = match self.mentioned[..] {
                [_, _] if by_words.named.len() < 2 => Some(self.mentioned.clone()),
                _ => None,
            };
            if let Some(named) = both {
                return Targets::pointed_at(named);
            }
        }
        let alone = by_words.named.is_empty() && by_words.doubtful.is_empty();
        let numbers = self.by_number(alone && !self.names_others());
        if !numbers.named.is_empty() {
            return self.with_names(numbers, &by_words);
        }
        if numbers.unknown.is_some() {
            return numbers;
        }
        if by_words.named.is_empty() {
            let (named, by): (Vec<usize>, Vec<Vec<usize>>) = self
                .positions(0..self.words.len(), &by_words.doubtful)
                .into_iter()
                .map(|(entity, at)| (entity, vec![at]))
                .unzip();
            if !named.is_empty() {
                return Targets {
                    named,
                    by,
                    ..Targets::default()
                };
            }
        }
        if !by_words.named.is_empty() || !by_words.doubtful.is_empty() {
            return self.decided_by_mention(by_words);
        }
        self.by_mention()
    }

    /// Adds the entities that are named in clauses without a number: "the car is washed, delete 3".
    fn with_names(&self, mut numbers: Targets, names: &Targets) -> Targets {
        numbers.numbered.clone_from(&numbers.named);
        let clauses_of = |by: &[usize]| by.iter().map(|at| self.clauses[*at]).collect::<Vec<_>>();
        let taken = clauses_of(&numbers.by.concat());
        for (entity, by) in names.named.iter().zip(&names.by) {
            let is_apart = !clauses_of(by).iter().any(|clause| taken.contains(clause));
            if is_apart && !numbers.named.contains(entity) {
                numbers.named.push(*entity);
                numbers.by.push(by.clone());
            }
        }
        numbers
    }

    fn has(&self, phrases: &PhraseList) -> bool {
        phrases
            .iter()
            .any(|phrase| find(&self.words, phrase).is_some())
    }

    /// Reads "all", "everything except the rent".
    fn all_but(&self) -> Option<Targets> {
        if self.words.len() > ALL_WORDS_MAX {
            return None;
        }
        let all = self
            .lexicon
            .all
            .iter()
            .filter_map(|phrase| find(&self.words, phrase))
            .min()?;
        let except = self
            .lexicon
            .except
            .iter()
            .filter_map(|phrase| find(&self.words, phrase))
            .filter(|(at, _)| *at >= all.1 || *at < all.0)
            .min();
        let hit = |range: std::ops::Range<usize>| -> Vec<usize> {
            let mut hit: Vec<usize> = range.flat_map(|at| self.hits[at].iter().copied()).collect();
            hit.sort_unstable();
            hit.dedup();
            hit
        };
        let excluded = match except {
            Some((_, end)) => {
                let mut excluded = hit(end..self.words.len());
                excluded.extend(
                    self.positions(end..self.words.len(), &[])
                        .iter()
                        .map(|(entity, _)| *entity),
                );
                excluded.extend((end..self.words.len()).filter_map(|at| self.by_id(at)));
                // Nothing is known of the exception, so nothing is certain.
                if excluded.is_empty() {
                    return None;
                }
                excluded
            }
            None => Vec::new(),
        };
        if except.is_none() && !self.by_number(false).named.is_empty() {
            return None;
        }
        let scope = hit(0..except.map_or(self.words.len(), |(at, _)| at));
        if except.is_none() && !scope.is_empty() {
            // "All the invoices": those that share the word.
            let open = self.open(scope);
            return (open.len() > 1 && self.share_a_word(&open)).then(|| Targets::pointed_at(open));
        }
        // "They are all up on the hill" is about something else. A single word may be the order.
        let others = (0..self.words.len()).filter(|&at| {
            is_content(&self.words[at].folded, self.lexicon)
                && self.hits[at].is_empty()
                && !self.lexicon.finished.has(&self.words[at].folded)
        });
        let last = self.words.len().saturating_sub(1);
        if except.is_none() && others.into_iter().any(|at| at != 0 && at != last) {
            return None;
        }
        let base = if self.mentioned.len() > 1 {
            self.mentioned.clone()
        } else {
            (0..self.entities.len()).collect()
        };
        let named: Vec<usize> = self
            .open(base)
            .into_iter()
            .filter(|entity| !excluded.contains(entity))
            .collect();
        Some(Targets::pointed_at(named))
    }

    fn open(&self, entities: Vec<usize>) -> Vec<usize> {
        entities
            .into_iter()
            .filter(|&entity| !self.entities[entity].done)
            .collect()
    }

    /// Returns true if a word that is no verb stands for all of some entities.
    fn share_a_word(&self, entities: &[usize]) -> bool {
        self.hits.iter().enumerate().any(|(at, hit)| {
            entities
                .iter()
                .all(|entity| hit.contains(entity) && !self.is_verb(*entity, at))
        })
    }

    fn likeness(&self, a: &str, b: &str) -> Likeness {
        likeness(a, b, self.lexicon.language)
    }

    fn has_negation(&self, clause: usize) -> bool {
        let words = self.words.iter().zip(&self.clauses);
        let mut own = words.filter(|(_, of)| **of == clause);
        own.any(|(word, _)| {
            self.lexicon.negations.has(&word.folded) || word.folded.ends_with("n't")
        })
    }

    /// Returns true if every clause that has some of these words has a negation, and none says that
    /// something is not needed any more.
    fn is_negated(&self, by: &[usize]) -> bool {
        let clauses: Vec<usize> = by.iter().map(|&at| self.clauses[at]).collect();
        let negated = |clause: usize| {
            (0..self.words.len()).any(|at| {
                self.clauses[at] == clause && self.lexicon.pending.has(&self.words[at].folded)
            }) || self.has_negation(clause)
        };
        !clauses.is_empty()
            && clauses.into_iter().all(negated)
            && !self.has(&self.lexicon.no_longer)
    }
}

/// Returns the words of an entity that no other one shares, or all if it has none of its own.
fn own_words(by: &[Vec<usize>], entity: usize) -> Vec<usize> {
    let is_shared =
        |at: &usize| (by.iter().enumerate()).any(|(other, by)| other != entity && by.contains(at));
    let own: Vec<usize> = by[entity]
        .iter()
        .copied()
        .filter(|at| !is_shared(at))
        .collect();
    if own.is_empty() {
        by[entity].clone()
    } else {
        own
    }
}

/// Returns the words by which a label is recognised.
fn label_words(label: &str, lexicon: &Lexicon) -> Vec<String> {
    let all: Vec<String> = words(label).into_iter().map(|word| word.folded).collect();
    let content: Vec<String> = all
        .iter()
        .filter(|word| is_number(word) || is_content(word, lexicon))
        .cloned()
        .collect();
    if content.is_empty() { all } else { content }
}

/// Returns the entities whose labels have a word. A misspelt word counts only where no label has
/// the word as it is.
fn hit_by(
    words: &[Word],
    at: usize,
    word: &Word,
    labels: &[Vec<String>],
    lexicon: &Lexicon,
) -> Vec<usize> {
    // A number in words stands for its digits.
    let in_digits = lexicon
        .cardinals
        .number(&word.folded)
        .map(|number| number.to_string());
    let number = is_number(&word.folded) || in_digits.is_some();
    if !number && !is_content(&word.folded, lexicon) {
        return Vec::new();
    }
    let spoken = in_digits.as_deref().unwrap_or(&word.folded);
    let best: Vec<Likeness> = labels
        .iter()
        .map(|label| {
            label
                .iter()
                .map(|other| likeness(spoken, other, lexicon.language))
                .max()
                .unwrap_or(Likeness::Different)
        })
        .collect();
    let top = best.iter().copied().max().unwrap_or(Likeness::Different);
    if top == Likeness::Different {
        return Vec::new();
    }
    let hit: Vec<usize> = (0..labels.len())
        .filter(|&label| best[label] == top)
        .collect();
    if !number {
        return hit;
    }
    // A short number of a label counts with the word before it: "year 9".
    let with_word = |label: &&usize| {
        spoken.len() > 2
            || at > 0
                && labels[**label].iter().any(|other| {
                    likeness(&words[at - 1].folded, other, lexicon.language) != Likeness::Different
                })
    };
    hit.iter().filter(with_word).copied().collect()
}

/// Returns the entities whose labels a text has, in the order of the text, with the numbers in
/// front of them.
fn mentioned_in(text: &str, entities: &[&Reference]) -> Vec<(usize, Option<String>)> {
    let text = words(text);
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    for (at, entity) in entities.iter().enumerate() {
        let label: Vec<String> = words(&entity.label)
            .into_iter()
            .map(|word| word.folded)
            .collect();
        let place = text
            .windows(label.len().max(1))
            .position(|window| window.iter().map(|word| &word.folded).eq(&label));
        if let Some(place) = place {
            found.push((place, label.len(), at));
        }
    }
    // "Buy a bike lock" has the words of "Buy a bike".
    let inside = |(place, length, at): &(usize, usize, usize)| {
        found.iter().any(|(other, theirs, id)| {
            id != at && other <= place && place + length <= other + theirs && theirs > length
        })
    };
    let mut kept: Vec<(usize, usize)> = found
        .iter()
        .filter(|one| !inside(one))
        .map(|(place, _, at)| (*place, *at))
        .collect();
    kept.sort_unstable();
    let number = |place: usize| {
        let before = text.get(place.checked_sub(1)?)?;
        is_number(&before.folded).then(|| before.folded.clone())
    };
    kept.into_iter()
        .map(|(place, at)| (at, number(place)))
        .collect()
}
