//! The forms in which a sentence claims or promises a change.

use std::ops::Range;

use super::sentence::{COMMA, QUOTED, Sentence};
use crate::analysis::{Likeness, contains_phrase, likeness};
use crate::claim_language::{ClaimLanguage, ClaimLists};
use crate::language::{PhraseList, WordList};

/// Sentences at the beginning of a text, in which a weak form is a claim too.
const FIRST_SENTENCES: usize = 2;

/// The same for promises.
const FIRST_PROMISES: usize = 3;

/// Most words of a sentence that claims something of a thing it does not name as the person's.
const SHORT_SENTENCE_WORDS: usize = 5;

/// The same for the state of a thing.
const SHORT_STATE_WORDS: usize = 9;

/// Most words of a headline such as "Reminder set for 5 pm".
const HEADLINE_WORDS: usize = 14;

/// Most words in front of the participle of a headline.
const SUBJECT_WORDS: usize = 5;
const SUBJECT_WORDS_VERB_LAST: usize = 9;

/// Most words between a thing and its state: "your reminder for 5 pm is set".
const WORDS_BEHIND_THING: usize = 4;

/// The place of a sentence in its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) is_last: bool,
    /// True if everything before it is words such as "Sure, no problem".
    pub(super) follows_interjections: bool,
    /// True if the text has a block of code.
    pub(super) shows_code: bool,
}

/// Reads one sentence with the lists of one language.
pub(super) struct Reader<'a> {
    lists: &'a ClaimLists,
    verb_last: bool,
    words: &'a [String],
    end: Option<char>,
    is_item: bool,
    place: Place,
    verbs: &'a [&'a str],
    has_thing: bool,
    is_of_person: bool,
    addresses_person: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        language: &'a ClaimLanguage,
        sentence: &'a Sentence,
        place: Place,
        verbs: &'a [&'a str],
    ) -> Self {
        let lists = &language.lists;
        // The last part of a question is what it asks.
        let said = match sentence.is_question() {
            true => sentence
                .words
                .iter()
                .rposition(|word| word == COMMA)
                .unwrap_or(0),
            false => sentence.words.len(),
        };
        let words = &sentence.words[..said];
        let has = |list: &WordList| words.iter().any(|word| list.has(word));
        Self {
            lists,
            verb_last: language.verb_last,
            words,
            end: sentence.end,
            is_item: sentence.is_item,
            place,
            verbs,
            has_thing: has(&lists.things),
            is_of_person: has(&lists.own),
            addresses_person: has(&lists.you) || has(&lists.own),
        }
    }

    pub(super) fn claims(&self) -> bool {
        self.is_exclaimed()
            || self.is_assured()
            || self.is_promised()
            || self.is_promised_in_one_word()
            || self.is_promised_in_present()
            || self.is_done_by_us()
            || self.is_done()
            || self.is_in_state()
            || self.is_headline()
            || self.is_being_done()
    }

    /// "Done!"
    fn is_exclaimed(&self) -> bool {
        let may_be = self.place.follows_interjections
            && self.place.index < FIRST_SENTENCES
            && self.end != Some(':')
            && !self.is_item;
        may_be
            && self.clauses().any(|clause| {
                let start = self.behind_interjections(&clause, false);
                let exclaims =
                    |words: &[String]| self.lists.exclamations.iter().any(|phrase| phrase == words);
                exclaims(&self.words[clause.clone()]) || exclaims(&self.words[start..clause.end])
            })
    }

    /// "Consider it done."
    fn is_assured(&self) -> bool {
        self.has_phrase(&self.lists.assurances) && !self.is_conditional() && !self.is_about_work()
    }

    /// "I'll wake you at 7."
    fn is_promised(&self) -> bool {
        let may_be =
            self.place.index < FIRST_PROMISES || self.place.is_last || self.addresses_person;
        may_be
            && !self.is_conditional()
            && !self.is_about_work()
            && self.openings(&self.lists.promise_openings).any(|opening| {
                !self.is_denied_before(opening.start) && self.promises_behind(opening.end)
            })
            || self
                .openings(&self.lists.just_openings)
                .any(|opening| self.infinitive_at(opening.end) && !self.is_about_work())
    }

    /// Returns true if the verb behind the opening of a promise changes something.
    fn promises_behind(&self, start: usize) -> bool {
        if !self.verb_last {
            return self.infinitive_at(start);
        }
        let end = self.words[start..]
            .iter()
            .position(|word| word == COMMA || self.lists.conjunctions.has(word))
            .map_or(self.words.len(), |comma| start + comma);
        let promised = &self.words[start..end];
        promised
            .last()
            .is_some_and(|verb| has_ending(verb, &self.lists.infinitive_endings))
            && !promised
                .iter()
                .any(|word| self.lists.talk.has(word) || self.lists.negations.has(word))
    }

    /// Returns true if a verb of change is there, behind adverbs and pronouns.
    fn infinitive_at(&self, start: usize) -> bool {
        let at = self.behind_fillers(start);
        self.words.get(at).is_some_and(|verb| {
            verb != COMMA
                && verb != QUOTED
                && !self.lists.talk.has(verb)
                && !self.lists.negations.has(verb)
                && has_ending(verb, &self.lists.infinitive_endings)
        })
    }

    /// "Lo añadiré."
    fn is_promised_in_one_word(&self) -> bool {
        !self.is_conditional()
            && !self.is_about_work()
            && self
                .words
                .iter()
                .enumerate()
                .any(|(at, word)| self.lists.promised.has(stem(word)) && !self.is_denied_before(at))
    }

    /// "Je note."
    fn is_promised_in_present(&self) -> bool {
        let promises = |word: Option<&String>| {
            word.is_some_and(|word| self.lists.promised_by_subject.has(word))
        };
        let is_idiom = self
            .words
            .last()
            .is_some_and(|last| self.lists.talk.has(last));
        let is_denied = is_idiom || self.is_denied_before(self.words.len());
        if self.is_conditional() || self.is_about_work() || self.verb_last && is_denied {
            return false;
        }
        (0..self.words.len())
            .filter(|&at| self.lists.promise_subjects.has(&self.words[at]))
            .any(|at| match self.verb_last {
                true => {
                    promises(self.words.get(at + 1)) || at > 0 && promises(self.words.get(at - 1))
                }
                false => promises(self.words.get(self.behind_fillers(at + 1))),
            })
    }

    /// "I've added milk."
    fn is_done_by_us(&self) -> bool {
        if self.is_of_another_time() || self.is_about_work() {
            return false;
        }
        let simple = self.place.index < FIRST_SENTENCES || self.addresses_person;
        let perfect = self.openings(&self.lists.done_openings);
        let past = self.openings(&self.lists.past_openings).filter(|_| simple);
        perfect.chain(past).any(|opening| {
            !self.is_subordinate(opening.start)
                && !self.is_denied_before(opening.start)
                && self.participle_behind(opening.end).is_some()
        }) || self.words.iter().enumerate().any(|(at, word)| {
            simple
                && self.lists.did.has(stem(word))
                && !self.is_subordinate(at)
                && !self.is_denied_before(at)
        })
    }

    /// "Milk has been added."
    fn is_done(&self) -> bool {
        if self.is_of_another_time() || self.is_about_work() || self.is_item {
            return false;
        }
        let is_short = self.words.len() <= SHORT_SENTENCE_WORDS && self.is_first();
        // "Milk has been added." is about the list; what has been changed may be a law.
        let ends_with = |opening: &Range<usize>| {
            self.participle_behind(opening.end).is_some_and(|at| {
                is_short
                    && !self.lists.also_present.has(&self.words[at])
                    && self.behind_fillers(at + 1) == self.words.len()
            })
        };
        let perfect = self
            .openings(&self.lists.perfect_passives)
            .filter(|opening| {
                // A reason is told of what others did: "the meeting was moved because ...".
                let gives_reason = self.words.iter().any(|word| self.lists.reasons.has(word));
                let is_ours =
                    self.is_of_person || self.is_first() && self.has_thing && !gives_reason;
                is_ours && self.participle_behind(opening.end).is_some() || ends_with(opening)
            })
            .map(|opening| opening.start);
        let short = self
            .openings(&self.lists.it_is)
            .filter(|opening| ends_with(opening))
            .map(|opening| opening.start);
        let past = self
            .openings(&self.lists.past_passives)
            .filter(|opening| self.is_of_person && self.participle_behind(opening.end).is_some())
            .map(|opening| opening.start);
        perfect
            .chain(past)
            .chain(short)
            .any(|at| !self.is_subordinate(at) && !self.is_denied_before(at))
    }

    /// "Your stopwatch is running."
    fn is_in_state(&self) -> bool {
        if self.is_of_another_time() || self.is_item || self.is_about_work() {
            return false;
        }
        (0..self.words.len()).any(|thing| {
            let is_named = self.lists.things.has(&self.words[thing])
                && (self.is_of_person || thing <= 2 && self.words.len() <= SHORT_STATE_WORDS);
            let nearby = self.words.len().min(thing + 1 + WORDS_BEHIND_THING);
            is_named
                && !self.is_subordinate(thing)
                && !self.is_denied_before(thing)
                && (thing + 1..nearby)
                    .filter(|&at| self.lists.states.has(&self.words[at]))
                    .any(|at| self.runs_behind(at + 1))
        })
    }

    fn runs_behind(&self, start: usize) -> bool {
        let runs = |word: &String| self.lists.running.has(word);
        if self.verb_last {
            let behind = &self.words[start..];
            let denied = behind.iter().any(|word| self.lists.negations.has(word));
            return behind.iter().any(runs) && !denied;
        }
        self.words.get(self.behind_fillers(start)).is_some_and(runs)
    }

    /// "Reminder set for 5 pm.", "Added milk."
    fn is_headline(&self) -> bool {
        let may_be = self.is_first()
            && !self.is_item
            && self.end != Some('?')
            && self.words.len() <= HEADLINE_WORDS
            && !self.is_of_another_time()
            && !self.is_about_work();
        if !may_be {
            return false;
        }
        let whole = 0..self.words.len();
        let start = self.behind_interjections(&whole, true);
        let most = match self.verb_last {
            true => SUBJECT_WORDS_VERB_LAST,
            false => SUBJECT_WORDS,
        };
        let far = self.words.len().min(start + most + 1);
        let is_verb = |word: &String| {
            word == COMMA
                || self.lists.copulas.has(word)
                || self.lists.negations.has(word)
                || self.lists.subordinators.has(word)
                || self.lists.you.has(word) && !self.lists.own.has(word)
        };
        let Some(at) = (start..far).find(|&at| self.is_participle(&self.words[at])) else {
            return false;
        };
        let is_unclear = self.lists.also_present.has(&self.words[at]);
        // "Completed tasks are shown below" tells what is done with them.
        let has_verb = self.words[at..]
            .iter()
            .take_while(|word| *word != COMMA)
            .any(|word| self.lists.copulas.has(word));
        if has_verb || self.words[start..at].iter().any(is_verb) {
            return false;
        }
        if at == start {
            let names_quotation = self.words.get(at + 1).is_some_and(|word| word == QUOTED);
            return !is_unclear
                && self.end != Some(':')
                && (self.has_thing
                    || self.is_of_person
                    || names_quotation
                    || self.words.len() - at <= 3);
        }
        // "Reminder 2 set", and not "the next message opens a closed one".
        let thing = self.words[start..at]
            .iter()
            .rposition(|word| self.lists.things.has(word));
        let names_thing = thing.is_some_and(|thing| {
            self.verb_last
                || self.words[start + thing + 1..at]
                    .iter()
                    .all(|word| word == QUOTED || word.bytes().all(|byte| byte.is_ascii_digit()))
        });
        names_thing
            || !is_unclear
                && self.end != Some(':')
                && (self.is_of_person || at + 1 == self.words.len())
    }

    /// "Adding milk to your list."
    fn is_being_done(&self) -> bool {
        let start = self.behind_interjections(&(0..self.words.len()), true);
        self.is_first()
            && !self.is_item
            && !matches!(self.end, Some(':' | '?'))
            && self
                .words
                .get(start)
                .is_some_and(|word| self.lists.doing.has(word))
            && (self.has_thing || self.is_of_person)
            && !self.is_about_work()
            && !self
                .words
                .iter()
                .any(|word| self.lists.copulas.has(word) || self.lists.subordinators.has(word))
    }

    /// Returns the place of the participle behind an auxiliary.
    fn participle_behind(&self, start: usize) -> Option<usize> {
        if self.verb_last {
            let behind = start..self.words.len();
            return behind
                .take_while(|&at| {
                    !self.lists.negations.has(&self.words[at])
                        && !self.lists.subordinators.has(&self.words[at])
                })
                .find(|&at| self.is_participle(&self.words[at]));
        }
        let at = self.behind_fillers(start);
        // "I've already" and "added": the first of them is a filler, and may be a participle.
        (start..=at).find(|&at| {
            self.words
                .get(at)
                .is_some_and(|word| self.is_participle(word))
        })
    }

    fn is_participle(&self, word: &str) -> bool {
        self.lists.done.has(word)
            || word.ends_with("ed")
                && self
                    .verbs
                    .iter()
                    .any(|verb| likeness(word, verb) == Likeness::Same)
    }

    fn behind_fillers(&self, start: usize) -> usize {
        (start..self.words.len())
            .find(|&at| !self.lists.fillers.has(&self.words[at]) && self.words[at] != QUOTED)
            .unwrap_or(self.words.len())
    }

    /// Returns where a part of the sentence begins behind "Sure" and the like. `past_commas`: more
    /// than one part may be skipped.
    fn behind_interjections(&self, part: &Range<usize>, past_commas: bool) -> usize {
        part.clone()
            .find(|&at| {
                let word = &self.words[at];
                !(self.lists.interjections.has(word) && !self.lists.done.has(word)
                    || self.lists.fillers.has(word)
                        && word != QUOTED
                        && !self.lists.articles.has(word)
                        && !self.lists.own.has(word)
                    || past_commas && word == COMMA)
            })
            .unwrap_or(part.end)
    }

    fn openings(&self, phrases: &'a PhraseList) -> impl Iterator<Item = Range<usize>> {
        phrases.iter().flat_map(move |phrase| {
            (0..self.words.len())
                .filter(move |&at| self.words[at..].starts_with(phrase))
                .map(move |at| at..at + phrase.len())
        })
    }

    fn clauses(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        (0..=self.words.len()).filter_map(move |at| {
            let ends = self.words.get(at).is_none_or(|word| word == COMMA);
            ends.then(|| std::mem::replace(&mut start, at + 1)..at)
        })
    }

    fn has_phrase(&self, phrases: &PhraseList) -> bool {
        phrases
            .iter()
            .any(|phrase| contains_phrase(self.words, phrase))
    }

    fn is_first(&self) -> bool {
        self.place.index < FIRST_SENTENCES
    }

    fn clause_start(&self, at: usize) -> usize {
        self.words[..at]
            .iter()
            .rposition(|word| word == COMMA || self.lists.conjunctions.has(word))
            .map_or(0, |before| before + 1)
    }

    /// Returns true if something in the same clause denies what follows.
    fn is_denied_before(&self, at: usize) -> bool {
        self.words[self.clause_start(at)..at]
            .iter()
            .any(|word| self.lists.negations.has(word))
    }

    /// Returns true if the clause depends on another one: "once I've added it".
    fn is_subordinate(&self, at: usize) -> bool {
        self.words[self.clause_start(at)..at]
            .iter()
            .any(|word| self.lists.subordinators.has(word))
    }

    /// Returns true if the sentence waits for an answer of the person.
    fn is_conditional(&self) -> bool {
        self.has_phrase(&self.lists.conditions)
    }

    fn is_of_another_time(&self) -> bool {
        let is_year = |word: &String| word.len() == 4 && word.bytes().all(|c| c.is_ascii_digit());
        self.words
            .iter()
            .any(|word| self.lists.not_now.has(word) || is_year(word))
    }

    /// Returns true if the sentence may be about a text in the answer itself.
    fn is_about_work(&self) -> bool {
        let names_work = self.words.iter().any(|word| self.lists.work.has(word));
        (names_work || self.place.shows_code) && !self.has_thing
    }
}

/// Returns the word without a pronoun behind a hyphen.
fn stem(word: &str) -> &str {
    word.split_once('-').map_or(word, |(stem, _)| stem)
}

/// Returns true if a word has one of these endings, or if there are none.
fn has_ending(word: &str, endings: &WordList) -> bool {
    endings.is_empty() || endings.any(|ending| word.ends_with(ending))
}
