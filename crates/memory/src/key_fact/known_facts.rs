//! The facts that a change is planned over, as either backend finds them.

use super::fact::FactId;
use super::record::{Chronology, FactRecord};
use crate::rank::{Query, TermCounts};

/// A stored fact, as far as a change is planned by it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownFact<'a> {
    pub(crate) content: &'a str,
    pub(crate) important: bool,
}

/// The stored facts of one memory. An index names the same fact as long as they do not change.
pub(crate) trait KnownFacts {
    /// Returns the number of facts.
    fn len(&self) -> usize;

    /// Returns the fact at an index.
    fn get(&self, at: usize) -> Option<KnownFact<'_>>;

    /// Returns the indexes of all facts in their order: that of the file, or oldest first.
    fn in_order(&self) -> Vec<usize>;

    /// Sorts indexes by the order of the facts.
    fn sort(&self, indexes: &mut [usize]);

    /// Sorts indexes from the oldest fact to the newest.
    fn sort_oldest_first(&self, indexes: &mut [usize]);

    /// Returns the index of the first fact with a text.
    fn with_text(&self, text: &str) -> Option<usize>;

    /// Returns the indexes of the facts with an id, in their order.
    fn with_id(&self, id: &str) -> Vec<usize>;

    /// Returns the indexes of the facts for whose text in lower case `is_wanted` is true, in their
    /// order.
    fn with_lower(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<usize>;

    /// Counts the terms of a query in each fact, in their order. Lengths are in bytes: only their
    /// ratio counts.
    fn count_terms(&self, query: &Query) -> Vec<(usize, TermCounts)>;
}

/// The facts of a file, which is read for each change: its texts are searched.
impl KnownFacts for &[FactRecord] {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, at: usize) -> Option<KnownFact<'_>> {
        (**self).get(at).map(|fact| KnownFact {
            content: &fact.content,
            important: fact.important,
        })
    }

    fn in_order(&self) -> Vec<usize> {
        (0..(**self).len()).collect()
    }

    fn sort(&self, indexes: &mut [usize]) {
        indexes.sort_unstable();
    }

    fn sort_oldest_first(&self, indexes: &mut [usize]) {
        let chronology = Chronology::new(self);
        indexes.sort_by_key(|at| chronology.age_key(*at));
    }

    fn with_text(&self, text: &str) -> Option<usize> {
        self.iter().position(|fact| fact.content == text)
    }

    fn with_id(&self, id: &str) -> Vec<usize> {
        positions(self, |fact| FactId::from_text(&fact.content).as_str() == id)
    }

    fn with_lower(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<usize> {
        positions(self, |fact| is_wanted(&fact.content.to_lowercase()))
    }

    fn count_terms(&self, query: &Query) -> Vec<(usize, TermCounts)> {
        let facts = self.iter().enumerate();
        facts
            .map(|(at, fact)| {
                let counts = query.count_prefiltered(&fact.content);
                let length = fact.content.len() as f64;
                (at, TermCounts { length, ..counts })
            })
            .collect()
    }
}

fn positions(facts: &[FactRecord], is_wanted: impl Fn(&FactRecord) -> bool) -> Vec<usize> {
    let facts = facts.iter().enumerate();
    facts
        .filter(|(_, fact)| is_wanted(fact))
        .map(|(at, _)| at)
        .collect()
}
