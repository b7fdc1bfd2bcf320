//! The facts of one memory as they were read together: a corpus that queries are scored against.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use adjutant_core::MemoryState;
use uuid::Uuid;

use super::record::{Chronology, FactRecord};
use crate::rank::{Index, Query, TermCounts};

/// Facts in the order of the file, or oldest first, and what is computed from them on demand.
pub(crate) struct FactCorpus {
    facts: Vec<FactRecord>,
    /// The inverted index, made by the first query. `None`: the facts serve one query, for which
    /// reading the texts is cheaper than indexing them.
    index: Option<OnceLock<Index>>,
    chronology: OnceLock<Chronology>,
    // Many changes are read for these texts, so they are kept until the ledger has a newer one.
    withdrawn: Mutex<Option<Withdrawn>>,
}

/// The newest change of the ledger, and the texts that were withdrawn up to it.
type Withdrawn = ((Uuid, MemoryState), Arc<[String]>);

impl FactCorpus {
    /// Returns facts that serve many queries, with an index.
    pub(crate) fn indexed(facts: Vec<FactRecord>) -> Self {
        Self {
            index: Some(OnceLock::new()),
            ..Self::unindexed(facts)
        }
    }

    /// Returns facts that serve one turn and are read again for the next.
    pub(crate) fn unindexed(facts: Vec<FactRecord>) -> Self {
        Self {
            facts,
            index: None,
            chronology: OnceLock::new(),
            withdrawn: Mutex::default(),
        }
    }

    pub(crate) fn chronology(&self) -> &Chronology {
        self.chronology.get_or_init(|| Chronology::new(&self.facts))
    }

    /// Returns the facts from newest to oldest, each with its index.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (usize, &FactRecord)> {
        self.chronology()
            .oldest_first
            .iter()
            .rev()
            .filter_map(|at| Some((*at, self.facts.get(*at)?)))
    }

    /// Counts the terms of a query in each fact.
    pub(crate) fn count_terms(&self, query: &Query) -> Vec<TermCounts> {
        let contents = || self.facts.iter().map(|fact| fact.content.as_str());
        match &self.index {
            Some(index) => query.count_in_index(index.get_or_init(|| Index::new(contents()))),
            None => contents().map(|content| query.count(content)).collect(),
        }
    }

    /// Returns the texts that were withdrawn up to a change, if they were computed before.
    pub(crate) fn withdrawn_up_to(&self, newest: (Uuid, MemoryState)) -> Option<Arc<[String]>> {
        let withdrawn = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        withdrawn
            .as_ref()
            .filter(|(up_to, _)| *up_to == newest)
            .map(|(_, texts)| texts.clone())
    }

    /// Caches the texts that were withdrawn up to a change.
    pub(crate) fn cache_withdrawn(&self, newest: (Uuid, MemoryState), texts: &Arc<[String]>) {
        *self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((newest, texts.clone()));
    }
}

impl Deref for FactCorpus {
    type Target = [FactRecord];

    fn deref(&self) -> &[FactRecord] {
        &self.facts
    }
}
