//! A fact as it is kept, in a file or in a database, and which of several is meant.

use adjutant_core::{MemorySource, StoredFact};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::correction::{Relation, is_named, relation};
use super::fact::{FactId, IMPORTANT, KeyFact, tags_of};
use super::keywords::{Overlap, Words};
use crate::MemoryError;

/// A fact as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its words, without date and `#important`.
    pub(crate) content: String,
    /// By its tag or by where it stands.
    pub(crate) important: bool,
    pub(crate) date: Option<Date>,
    /// The time and the source, which a line of a file cannot say.
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) source: Option<MemorySource>,
}

impl Known {
    /// A fact of a database, dated in the zone of whoever is told.
    pub(crate) fn of_stored(fact: &StoredFact, zone: &TimeZone) -> Self {
        Self {
            content: fact.text.clone(),
            important: fact.important,
            date: Some(fact.created_at.to_zoned(zone.clone()).date()),
            created_at: Some(fact.created_at),
            source: fact.source.clone(),
        }
    }

    pub(crate) fn fact(&self) -> KeyFact {
        let mut tags = tags_of(&self.content);
        if self.important {
            tags.insert(0, IMPORTANT.to_owned());
        }
        KeyFact {
            id: FactId::of(&self.content),
            content: self.content.clone(),
            tags,
            created: self.date,
            created_at: self.created_at,
            source: self.source.clone(),
        }
    }
}

/// The ages of facts. One without a date is of the day of those above it.
pub(crate) struct Ages {
    /// The day of each fact.
    pub(crate) days: Vec<Option<Date>>,
    /// The places of the facts, from oldest to newest.
    pub(crate) order: Vec<usize>,
}

impl Ages {
    pub(crate) fn of(facts: &[Known]) -> Self {
        let mut above: Option<Date> = None;
        let day = |fact: &Known| {
            above = fact.date.or(above);
            above
        };
        let days: Vec<Option<Date>> = facts.iter().map(day).collect();
        let mut order: Vec<usize> = (0..facts.len()).collect();
        // Of one day the first is the oldest.
        order.sort_by_key(|at| days.get(*at).copied().flatten());
        Self { days, order }
    }

    /// Returns what tells the older of two facts.
    pub(crate) fn age(&self, at: usize) -> (Option<Date>, usize) {
        (self.days.get(at).copied().flatten(), at)
    }
}

/// Returns the place of the known fact that stands to the words in such a way: of several the one
/// that the person's words name, else the one that shares most keywords with the new ones, the
/// newest of equals.
pub(crate) fn best_match(
    facts: &[Known],
    content: &str,
    said: &str,
    wanted: Relation,
) -> Option<usize> {
    let new = Words::of(content);
    let mut best: Option<(bool, Overlap, usize)> = None;
    for place in Ages::of(facts).order {
        let Some(fact) = facts.get(place) else {
            continue;
        };
        if relation(&fact.content, content, said) != wanted {
            continue;
        }
        let overlap = Overlap::between(&new, &Words::of(&fact.content));
        let is_named = is_named(&fact.content, content, said);
        let is_better = |(was_named, most, _): (bool, Overlap, usize)| {
            if was_named == is_named {
                !most.exceeds(overlap)
            } else {
                is_named
            }
        };
        if best.is_none_or(is_better) {
            best = Some((is_named, overlap, place));
        }
    }
    best.map(|(_, _, place)| place)
}

/// Returns the place of the fact that is meant, and the fact.
pub(crate) fn pick<'a>(facts: &'a [Known], which: &str) -> Result<(usize, &'a Known), MemoryError> {
    let contents: Vec<&str> = facts.iter().map(|fact| fact.content.as_str()).collect();
    let at = choose(&contents, which)?;
    let fact = facts.get(at).ok_or_else(|| MemoryError::NoSuchFact {
        which: which.to_owned(),
    })?;
    Ok((at, fact))
}

/// Returns the place of the fact that is meant.
pub(crate) fn choose(contents: &[&str], which: &str) -> Result<usize, MemoryError> {
    let which = which.trim();
    let nothing = || MemoryError::NoSuchFact {
        which: which.to_owned(),
    };
    if which.is_empty() {
        return Err(nothing());
    }
    let lower = which.to_lowercase();
    let words = Words::of(which);
    let tests: [&dyn Fn(&str) -> bool; 5] = [
        &|content| content == which,
        &|content| FactId::of(content).as_str() == lower,
        &|content| content.to_lowercase() == lower,
        &|content| content.to_lowercase().contains(&lower),
        &|content| Overlap::between(&words, &Words::of(content)).is_match(),
    ];
    for test in tests {
        let found: Vec<usize> = contents
            .iter()
            .enumerate()
            .filter(|(_, content)| test(content))
            .map(|(at, _)| at)
            .collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            // Two lines of the same words: either will do.
            [first, rest @ ..]
                if rest
                    .iter()
                    .all(|at| contents.get(*at) == contents.get(*first)) =>
            {
                return Ok(*first);
            }
            many => {
                let candidates = many
                    .iter()
                    .take(5)
                    .filter_map(|at| contents.get(*at))
                    .map(|content| (*content).to_owned())
                    .collect();
                return Err(MemoryError::Ambiguous {
                    which: which.to_owned(),
                    candidates,
                });
            }
        }
    }
    Err(nothing())
}
