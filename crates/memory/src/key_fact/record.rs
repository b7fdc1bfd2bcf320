//! A fact as either backend stores it, and the order of facts in time.

use adjutant_core::{MemorySource, StoredFact};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::fact::{FactId, IMPORTANT, KeyFact, tags_in};

/// A stored fact, from a line of the file or a row of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FactRecord {
    /// Its text, without date and `#important`.
    pub(crate) content: String,
    /// True by its tag, or by the section in which it stands.
    pub(crate) important: bool,
    pub(crate) date: Option<Date>,
    /// The time and the source, which a line of a file cannot hold.
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) source: Option<MemorySource>,
}

impl FactRecord {
    /// Returns a fact of which neither date nor source is known.
    pub(crate) fn undated(content: String, important: bool) -> Self {
        Self {
            content,
            important,
            date: None,
            created_at: None,
            source: None,
        }
    }

    /// Returns a fact of a database, dated in the zone of its reader.
    pub(crate) fn from_stored(fact: &StoredFact, zone: &TimeZone) -> Self {
        Self {
            content: fact.text.clone(),
            important: fact.important,
            date: Some(fact.created_at.to_zoned(zone.clone()).date()),
            created_at: Some(fact.created_at),
            source: fact.source.clone(),
        }
    }

    pub(crate) fn to_fact(&self) -> KeyFact {
        let mut tags = tags_in(&self.content);
        if self.important {
            tags.insert(0, IMPORTANT.to_owned());
        }
        KeyFact {
            id: FactId::from_text(&self.content),
            content: self.content.clone(),
            tags,
            created: self.date,
            created_at: self.created_at,
            source: self.source.clone(),
        }
    }
}

/// The order of facts in time. A fact without a date has the date of the nearest one above it.
pub(crate) struct Chronology {
    /// The day of each fact.
    pub(crate) days: Vec<Option<Date>>,
    /// The indexes of the facts, from oldest to newest.
    pub(crate) oldest_first: Vec<usize>,
}

impl Chronology {
    pub(crate) fn new(facts: &[FactRecord]) -> Self {
        let mut above: Option<Date> = None;
        let day = |fact: &FactRecord| {
            above = fact.date.or(above);
            above
        };
        let days: Vec<Option<Date>> = facts.iter().map(day).collect();
        let mut oldest_first: Vec<usize> = (0..facts.len()).collect();
        // Facts are appended, and the sort is stable: of one day the first is the oldest.
        oldest_first.sort_by_key(|at| days.get(*at).copied().flatten());
        Self { days, oldest_first }
    }

    /// Returns a key that is smaller for the older of two facts.
    pub(crate) fn age_key(&self, at: usize) -> (Option<Date>, usize) {
        (self.days.get(at).copied().flatten(), at)
    }
}
