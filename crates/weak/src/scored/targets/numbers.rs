//! Entities by their numbers and positions: "1, 3 and 5", "the last two".

use std::ops::Range;

use super::{Reader, Targets};
use crate::lexicon::is_content;
use crate::words::{self, is_infinitive, is_number};

/// Words in front of a number that is a time or a place, and not an entry.
const BEFORE_TIMES: [&str; 32] = [
    "ab", "after", "as", "at", "ate", "avant", "before", "bis", "by", "desde", "dia", "for",
    "from", "gegen", "hasta", "in", "las", "nach", "par", "pour", "pro", "seit", "since", "till",
    "um", "until", "vers", "von", "vor", "x", "zu", "zum",
];

/// Words between the number of an entry and its new text.
const BEFORE_NEW_TEXT: [&str; 17] = [
    "a", "als", "as", "debe", "deve", "devient", "doit", "en", "heisst", "in", "into", "para",
    "por", "pra", "soll", "to", "zu",
];

/// Words that stand in front of a number that names an entry.
const NUMBER_MARKS: [&str; 9] = [
    "n", "nr", "num", "number", "numbers", "numero", "numeros", "nummer", "nummern",
];

impl Reader<'_> {
    /// Returns the entity that has the number of a word: in the list that the assistant showed
    /// last, if it numbered one, else in all.
    pub(super) fn by_id(&self, at: usize) -> Option<usize> {
        let digits = self.digits(at)?;
        let word = &digits;
        if self.numbered.is_empty() {
            return self.entities.iter().position(|entity| entity.id == *word);
        }
        let listed = self.numbered.iter().find(|(number, _)| number == word);
        listed.map(|(_, entity)| *entity)
    }

    /// Returns the entity of those just mentioned whose label has a number that ends like a word.
    fn by_label_number(&self, at: usize) -> Option<usize> {
        let word = &self.words[at].folded;
        let mut fitting = self.mentioned.iter().filter(|entity| {
            self.labels[**entity]
                .iter()
                .any(|other| is_number(other) && other.ends_with(word.as_str()))
        });
        match (fitting.next(), fitting.next()) {
            (Some(only), None) if is_number(word) => Some(*only),
            _ => None,
        }
    }

    /// Returns true if a number ends a range: "1 to 3", "1-3".
    fn is_range(&self, at: usize) -> bool {
        const RANGES: [&str; 9] = [
            "to", "through", "thru", "bis", "a", "al", "au", "ate", "hasta",
        ];
        let number_before = |at: usize| {
            at.checked_sub(1)
                .is_some_and(|at| is_number(&self.words[at].folded))
        };
        let between = at
            .checked_sub(1)
            .map(|before| self.message[self.words[before].end..self.words[at].start].trim());
        number_before(at) && matches!(between, Some("-" | "\u{2013}"))
            || at > 1
                && number_before(at - 1)
                && RANGES.contains(&self.words[at - 1].folded.as_str())
    }

    /// Returns true for a word such as "number" or "task", also with a typing error.
    fn marks_number(&self, at: usize) -> bool {
        let word = self.words[at].folded.as_str();
        NUMBER_MARKS.contains(&word)
            || self.lexicon.entry_nouns.has(word)
            || !self.lexicon.stop_words.has(word)
                && self.hits[at].is_empty()
                && (self.lexicon.entry_nouns.iter().chain(NUMBER_MARKS))
                    .any(|noun| noun.chars().count() > 3 && words::is_misspelt(word, noun))
    }

    /// Returns true for a number that stands where an entry would: "rename 3 to …", "la 4", but not
    /// "the 3 invoices", "chapter 3" and "at 3".
    fn stands_for_entry(&self, at: usize) -> bool {
        let gap = |from: usize| {
            let (word, next) = (self.words.get(from)?, self.words.get(from + 1)?);
            Some(self.message[word.end..next.start].trim())
        };
        let is_content = |at: usize| is_content(&self.words[at].folded, self.lexicon);
        let counts_next = gap(at) == Some("") && is_content(at + 1) && !self.is_marker(at + 1);
        let before = at.checked_sub(1);
        // "7:15", but not "done: 1".
        let is_minute = before.is_some_and(|before| {
            let touches = self.words[before].end + 1 == self.words[at].start;
            touches && gap(before) == Some(":") && is_number(&self.words[before].folded)
        });
        let is_time = is_minute || gap(at).is_some_and(|gap| gap.starts_with(':'));
        let behind_other = before.is_some_and(|before| {
            gap(before) == Some("")
                && before > 0
                && (is_content(before)
                    || BEFORE_TIMES.contains(&self.words[before].folded.as_str()))
        });
        let in_digits = is_number(&self.words[at].folded);
        // "It is chapter 6, not 4", where a label has chapter 4.
        let is_of_label = self.labels.iter().enumerate().any(|(entity, label)| {
            label.contains(&self.words[at].folded)
                && self.hits.iter().any(|hit| hit.contains(&entity))
        });
        // "Paid 4 for the bread": the name says more than the number, unless a new text has it.
        let is_named = (0..self.words.len()).any(|other| {
            let is_name = |entity: &usize| !self.is_verb(*entity, other);
            self.clauses[other] == self.clauses[at] && self.hits[other].iter().any(is_name)
        });
        let next = self.words.get(at + 1).map(|word| word.folded.as_str());
        let is_renamed = next.is_some_and(|next| BEFORE_NEW_TEXT.contains(&next));
        in_digits
            && !behind_other
            && !counts_next
            && !is_time
            && !is_of_label
            && (!is_named || is_renamed)
    }

    fn is_marker(&self, at: usize) -> bool {
        let into = self.lexicon.into.iter();
        into.filter_map(|phrase| words::stands_exactly_at(&self.words, at, phrase))
            .next()
            .is_some()
            || is_infinitive(&self.words[at].folded, self.lexicon.language)
    }

    /// Returns the number that a word stands for. "One" is an article in most languages.
    fn digits(&self, at: usize) -> Option<String> {
        let word = &self.words[at].folded;
        if is_number(word) {
            return Some(word.clone());
        }
        let number = self.lexicon.cardinals.number(word)?;
        // "One, two and five" are numbers.
        let is_number = |at: usize| {
            self.words.get(at).is_some_and(|word| {
                is_number(&word.folded) || self.lexicon.cardinals.number(&word.folded).is_some()
            })
        };
        let joined = |at: usize| {
            (self.words.get(at)).is_some_and(|word| self.lexicon.connectors.has(&word.folded))
        };
        let counts_on = is_number(at + 1) || joined(at + 1) && is_number(at + 2);
        (number > 1 || counts_on).then(|| number.to_string())
    }

    /// Reads numbers of entries. `alone`: nothing else names an entity.
    pub(super) fn by_number(&self, alone: bool) -> Targets {
        let marked = |at: usize| {
            let in_front = self.message[..self.words[at].start].trim_end();
            in_front.ends_with('#') || at > 0 && self.marks_number(at - 1)
        };
        let mut targets = Targets::default();
        let mut unknown = None;
        let mut row = false;
        let listed = |at: usize| self.by_id(at).or_else(|| self.by_label_number(at));
        for at in 0..self.words.len() {
            // "The last two" counts entries.
            let counts = [at.checked_sub(1), Some(at + 1)]
                .into_iter()
                .flatten()
                .any(|next| {
                    self.words.get(next).is_some_and(|word| {
                        self.lexicon.last.has(&word.folded)
                            || self.lexicon.ordinals.number(&word.folded).is_some()
                    })
                });
            let Some(digits) = self.digits(at).filter(|_| !counts) else {
                row = row
                    && (self.lexicon.connectors.has(&self.words[at].folded)
                        || self.words.get(at + 1).is_some() && self.is_range(at + 1));
                continue;
            };
            let is_marked = marked(at) || row;
            let is_meant = is_marked || self.stands_for_entry(at);
            // A number of a label belongs to the word before it: "year 9".
            if !is_meant && !self.hits[at].is_empty() {
                continue;
            }
            match listed(at) {
                Some(entity) if is_meant || alone => {
                    // "1 to 3".
                    if let Some(&begin) = targets.named.last()
                        && self.is_range(at)
                        && begin < entity
                    {
                        for between in begin + 1..entity {
                            targets.named.push(between);
                            targets.by.push(vec![at]);
                        }
                    }
                    if !targets.named.contains(&entity) {
                        targets.named.push(entity);
                        targets.by.push(vec![at]);
                    }
                    row = true;
                }
                // "Paid 50 for the plumber" means no task 50.
                None if is_marked || is_meant && alone => unknown = Some(digits),
                Some(_) | None => {}
            }
        }
        Targets {
            unknown: unknown.filter(|_| targets.named.is_empty()),
            ..targets
        }
    }

    /// Reads positions: "the first and the third", "the last two", in what was listed before or in
    /// a row of doubtful entities. Returns each with its word.
    pub(super) fn positions(&self, range: Range<usize>, doubtful: &[usize]) -> Vec<(usize, usize)> {
        let row: Vec<usize> = if self.mentioned.len() > 1 {
            self.mentioned.clone()
        } else if doubtful.len() > 1 {
            doubtful.to_vec()
        } else {
            (0..self.entities.len()).collect()
        };
        let mut found: Vec<(usize, usize)> = Vec::new();
        for at in range {
            let mut add = |entity: Option<&usize>| {
                if let Some(entity) = entity
                    && !found.iter().any(|(known, _)| known == entity)
                {
                    found.push((*entity, at));
                }
            };
            let word = &self.words[at].folded;
            let cardinal = |at: usize| {
                let word = &self.words.get(at)?.folded;
                self.lexicon
                    .cardinals
                    .number(word)
                    .or_else(|| word.parse().ok().filter(|number| *number < 10))
            };
            if self.lexicon.last.has(word) {
                // "The last two", "les deux dernières".
                match cardinal(at + 1).or_else(|| at.checked_sub(1).and_then(cardinal)) {
                    Some(count) if count > 1 && count <= row.len() => {
                        row[row.len() - count..]
                            .iter()
                            .for_each(|entity| add(Some(entity)));
                    }
                    _ if self.ends_reference(at) => add(row.last()),
                    _ => {}
                }
            } else if self.lexicon.penultimate.has(word) && self.ends_reference(at) {
                add(row.len().checked_sub(2).and_then(|at| row.get(at)));
            } else if let Some(number) = self.lexicon.ordinals.number(word) {
                match cardinal(at + 1).or_else(|| at.checked_sub(1).and_then(cardinal)) {
                    Some(count) if number == 1 && count > 1 && count <= row.len() => {
                        row[..count].iter().for_each(|entity| add(Some(entity)));
                    }
                    _ if self.ends_reference(at) => add(row.get(number - 1)),
                    _ => {}
                }
            } else if at > 0
                && self.lexicon.entry_nouns.has(&self.words[at - 1].folded)
                && let Some(number) = self.lexicon.cardinals.number(word)
            {
                // "Item two".
                let id = number.to_string();
                let entity = self.entities.iter().position(|entity| entity.id == id);
                add(entity.as_ref());
            }
        }
        found
    }

    /// Returns true if nothing is counted by the ordinal number at a word but entries: "a second
    /// helping".
    fn ends_reference(&self, at: usize) -> bool {
        let Some(next) = self.words.get(at + 1) else {
            return true;
        };
        let between = &self.message[self.words[at].end..next.start];
        between.trim().chars().any(|c| c != '-')
            || self.lexicon.connectors.has(&next.folded)
            || self.lexicon.entry_nouns.has(&next.folded)
            || (self.lexicon.stop_words.has(&next.folded) && next.folded != "feira")
    }
}
