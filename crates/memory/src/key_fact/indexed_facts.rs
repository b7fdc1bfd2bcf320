//! The facts of one user of a database with indexes of their ids and words, so that a change reads
//! and compares only the facts that it may be about.

use std::collections::{BTreeMap, HashMap};

use adjutant_core::StoredFact;
use adjutant_core::port::FactsUpdate;
use jiff::Timestamp;

use super::fact::FactId;
use super::known_facts::{KnownFact, KnownFacts};
use crate::rank::{Index, Query, TermCounts};

/// Bytes that a fact needs beside its text, about.
const FACT_BYTES: usize = 512;

/// The facts of one user at one revision.
#[derive(Default)]
pub(crate) struct IndexedFacts {
    /// `None`: no facts were read yet.
    revision: Option<i64>,
    /// The facts; an index keeps its fact until that is removed.
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    by_number: HashMap<i64, usize>,
    by_id: HashMap<FactId, Vec<usize>>,
    /// The order of the facts: by time of creation, and the number of the row.
    order: BTreeMap<(Timestamp, i64), usize>,
    words: Index,
    /// Bytes of all texts.
    text_bytes: usize,
}

struct Slot {
    number: i64,
    fact: StoredFact,
    lower: String,
}

impl Slot {
    fn order_key(&self) -> (Timestamp, i64) {
        (self.fact.created_at, self.number)
    }
}

impl IndexedFacts {
    pub(crate) fn revision(&self) -> Option<i64> {
        self.revision
    }

    /// Returns the stored fact at an index.
    pub(crate) fn stored(&self, at: usize) -> Option<&StoredFact> {
        Some(&self.slot(at)?.fact)
    }

    /// Returns the number of facts in front of the one at an index.
    pub(crate) fn place(&self, at: usize) -> usize {
        let key = self.slot(at).map(Slot::order_key);
        key.map_or(self.order.len(), |key| self.order.range(..key).count())
    }

    /// Returns about the bytes of memory that the texts need, without the index of their words,
    /// which is a few times as large.
    pub(crate) fn bytes(&self) -> usize {
        self.text_bytes + FACT_BYTES * (1 + self.order.len())
    }

    /// Takes over the facts that were written since this revision. Returns false if others were
    /// removed meanwhile, so that all have to be read again.
    pub(crate) fn update(&mut self, update: FactsUpdate) -> bool {
        for (number, fact) in update.facts {
            if let Some(at) = self.by_number.get(&number) {
                self.remove(*at);
            }
            let at = self.free.pop().unwrap_or(self.slots.len());
            self.insert(at, number, fact);
        }
        self.revision = Some(update.revision);
        self.order.len() == update.count
    }

    /// Forgets what was read, so that everything is read again.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn insert(&mut self, at: usize, number: i64, fact: StoredFact) {
        self.words.insert(at, &fact.text);
        self.by_number.insert(number, at);
        let id = FactId::from_text(&fact.text);
        self.by_id.entry(id).or_default().push(at);
        self.text_bytes += fact.text.len();
        let slot = Slot {
            number,
            lower: fact.text.to_lowercase(),
            fact,
        };
        self.order.insert(slot.order_key(), at);
        match self.slots.get_mut(at) {
            Some(place) => *place = Some(slot),
            None => self.slots.push(Some(slot)),
        }
    }

    /// Removes the fact at an index.
    pub(crate) fn remove(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::take) else {
            return;
        };
        self.words.remove(at, &slot.fact.text);
        self.by_number.remove(&slot.number);
        self.order.remove(&slot.order_key());
        self.text_bytes = self.text_bytes.saturating_sub(slot.fact.text.len());
        let id = FactId::from_text(&slot.fact.text);
        if let Some(same) = self.by_id.get_mut(&id) {
            same.retain(|other| *other != at);
            if same.is_empty() {
                self.by_id.remove(&id);
            }
        }
        self.free.push(at);
    }

    fn slot(&self, at: usize) -> Option<&Slot> {
        self.slots.get(at)?.as_ref()
    }
}

impl KnownFacts for IndexedFacts {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn get(&self, at: usize) -> Option<KnownFact<'_>> {
        self.stored(at).map(|fact| KnownFact {
            content: &fact.text,
            important: fact.important,
        })
    }

    fn in_order(&self) -> Vec<usize> {
        self.order.values().copied().collect()
    }

    fn sort(&self, indexes: &mut [usize]) {
        indexes.sort_by_key(|at| self.slot(*at).map(Slot::order_key));
    }

    // Days follow each other as times do.
    fn sort_oldest_first(&self, indexes: &mut [usize]) {
        self.sort(indexes);
    }

    fn with_text(&self, text: &str) -> Option<usize> {
        let same_id = self.by_id.get(&FactId::from_text(text))?;
        let mut same_id = same_id.iter().copied();
        same_id.find(|at| self.stored(*at).is_some_and(|fact| fact.text == text))
    }

    fn with_id(&self, id: &str) -> Vec<usize> {
        let mut found = FactId::from_digits(id)
            .and_then(|id| self.by_id.get(&id).cloned())
            .unwrap_or_default();
        self.sort(&mut found);
        found
    }

    fn with_lower(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<usize> {
        let mut facts = self.in_order();
        facts.retain(|at| self.slot(*at).is_some_and(|slot| is_wanted(&slot.lower)));
        facts
    }

    fn count_terms(&self, query: &Query) -> Vec<(usize, TermCounts)> {
        let mut counts = query.count_in_index(&self.words);
        let facts = self.order.values().filter_map(|at| {
            let length = self.stored(*at)?.text.len() as f64;
            let counts = std::mem::take(counts.get_mut(*at)?);
            Some((*at, TermCounts { length, ..counts }))
        });
        facts.collect()
    }
}
