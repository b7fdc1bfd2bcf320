//! The facts of a database, read and changed together with their ledger. What a change costs does
//! not depend on their number: they are indexed once, and read again only as far as they changed.

use std::sync::Arc;

use adjutant_core::port::FactsChange;
use adjutant_core::{FactLine, MemoryChange, MemoryEffect, MemoryState, StoredFact};
use jiff::Timestamp;

use super::change::FactChange;
use super::corpus::FactCorpus;
use super::index_cache::CachedFacts;
use super::known_facts::KnownFacts;
use super::planned_change::{PlannedChange, fact_sides, recorded_answer};
use super::record::FactRecord;
use super::snapshot::Snapshot;
use crate::MemoryError;
use crate::backend::DatabaseFacts;
use crate::context::Cause;

/// Number of times that a change is planned again because other processes changed the facts in
/// between. Of those that try at the same moment one succeeds, so that many attempts in a row can
/// only fail under heavy load.
const ATTEMPTS_MAX: usize = 64;

impl DatabaseFacts {
    /// Reads the facts and those that were withdrawn, by one statement.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, MemoryError> {
        let found = self.store.facts(&self.context.scope.user).await;
        let found = found.map_err(|source| MemoryError::Store { source })?;
        let zone = (self.context.clock)().time_zone().clone();
        let stored = found.facts;
        let reading = move || {
            let facts = stored.iter();
            let facts = facts.map(|fact| FactRecord::from_stored(fact, &zone));
            FactCorpus::unindexed(facts.collect())
        };
        Ok(Snapshot {
            facts: Arc::new(self.queues.compute(reading).await?),
            withdrawn: found.withdrawn.into(),
        })
    }

    /// Returns the indexed facts as they are stored now, of which only those are read that were
    /// written since they were indexed. `refused`: the revision that a change was planned on and
    /// refused.
    async fn current(&self, refused: Option<i64>) -> Result<CachedFacts, MemoryError> {
        let user = &self.context.scope.user;
        let mut facts = self.indexes.take(user);
        let mut known = facts.revision();
        loop {
            let update = self.store.facts_since(user, known).await;
            let update = update.map_err(|source| MemoryError::Store { source })?;
            // What is indexed is not what is stored, although it has the same revision.
            let is_outdated = known.is_some() && refused == Some(update.revision);
            let updating = self.queues.compute(move || {
                let is_whole = facts.update(update);
                (facts, is_whole)
            });
            let (updated, is_whole) = updating.await?;
            facts = updated;
            // Of facts that were removed elsewhere only the number is known.
            if known.is_none() || is_whole && !is_outdated {
                return Ok(facts);
            }
            facts.clear();
            known = None;
        }
    }

    /// Searches for one fact. A change of the same user waits meanwhile.
    pub(super) async fn search_one(
        &self,
        search: impl Fn(&dyn KnownFacts) -> Result<Option<usize>, MemoryError> + Send + 'static,
    ) -> Result<Option<FactRecord>, MemoryError> {
        let _turn = self.queues.enter(&self.context.scope.user).await?;
        let facts = self.current(None).await?;
        let zone = (self.context.clock)().time_zone().clone();
        let searching = move || {
            let found = search(&*facts)?.and_then(|at| facts.stored(at));
            Ok(found.map(|fact| FactRecord::from_stored(fact, &zone)))
        };
        self.queues.compute(searching).await?
    }

    /// Carries out a change that is planned over the stored facts, and plans again if another
    /// process changed them in between. Changes of one user in this process follow each other.
    pub(super) async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&dyn KnownFacts) -> Result<PlannedChange, MemoryError> + Send + Sync + 'static,
    ) -> Result<FactChange, MemoryError> {
        let _turn = self.queues.enter(&self.context.scope.user).await?;
        let plan = Arc::new(plan);
        let mut refused = None;
        for _ in 0..ATTEMPTS_MAX {
            // Read before the ledger is asked for an earlier attempt: if that one commits in
            // between, the facts have another revision, and this change is refused.
            let facts = self.current(refused).await?;
            if let Some(change) = recorded_answer(self.context.prior_change(cause).await?.as_ref())
            {
                return Ok(change);
            }
            let now = (self.context.clock)();
            let zone = now.time_zone();
            let fact = |fact: &StoredFact| FactRecord::from_stored(fact, zone).to_fact();
            let new = |text, important| StoredFact {
                text,
                important,
                created_at: now.timestamp(),
                updated_at: now.timestamp(),
                source: cause.source.clone(),
            };
            let planning = plan.clone();
            let planned = self.queues.compute(move || (planning(&*facts), facts));
            let (planned, mut facts) = planned.await?;
            let at_index = |at: usize| facts.stored(at).ok_or(MemoryError::BrokeOff(None));
            let (at, old, new) = match planned? {
                PlannedChange::Nothing { at } => {
                    let fact = fact(at_index(at)?);
                    return Ok(FactChange::Known { fact });
                }
                PlannedChange::Add { content, important } => {
                    (None, None, Some(new(content, important)))
                }
                PlannedChange::Reword {
                    at,
                    content,
                    important,
                    renews_date,
                } => {
                    let old = at_index(at)?;
                    let mut new = new(content, important);
                    if !renews_date {
                        new.created_at = old.created_at;
                    }
                    (Some(at), Some(old), Some(new))
                }
                PlannedChange::Remove { at } => (Some(at), Some(at_index(at)?), None),
            };
            // Rows have no lines: the number of facts before this one stands for the place in a
            // file.
            let place = at.map_or(facts.len(), |at| facts.place(at));
            let effect = MemoryEffect::Fact {
                before: old.map(|fact| ledger_line(fact, place)),
                after: new.as_ref().map(|fact| ledger_line(fact, place)),
            };
            let record = MemoryChange {
                // Never only begun: the store commits the facts and this record together.
                state: MemoryState::Done,
                ..self.context.begin_change(cause, None, effect)
            };
            let change = FactsChange {
                revision: facts.revision().unwrap_or(0),
                removed: old.map(|fact| fact.text.as_str()),
                put: new.as_ref(),
                record: &record,
            };
            if self.change(change).await? {
                let answer = FactChange::between(old.map(fact), new.as_ref().map(fact));
                // A fact that is put is read with the next change, one that is gone is not.
                if let Some(at) = at {
                    facts.remove(at);
                }
                return answer.ok_or(MemoryError::BrokeOff(None));
            }
            refused = facts.revision();
        }
        Err(MemoryError::Busy)
    }

    /// Undoes a change of a fact, and records that in the ledger. Returns false if the facts are
    /// not as the change left them.
    pub(super) async fn undo(&self, change: &MemoryChange) -> Result<bool, MemoryError> {
        let Some((before, after)) = fact_sides(&change.effect) else {
            return Ok(false);
        };
        let _turn = self.queues.enter(&self.context.scope.user).await?;
        let mut refused = None;
        for _ in 0..ATTEMPTS_MAX {
            let mut facts = self.current(refused).await?;
            let with_text = |line: &FactLine| {
                let at = facts.with_text(&line.text)?;
                Some((at, facts.stored(at)?))
            };
            let current =
                |line| with_text(line).filter(|(_, fact)| fact.important == line.important);
            let now = after.map(current);
            // The fact was edited or forgotten since.
            if matches!(now, Some(None)) {
                return Ok(false);
            }
            let now = now.flatten();
            let at = now.map(|(at, _)| at);
            // Undone, there would be two facts with one text.
            let is_other = |(other, _)| Some(other) != at;
            if before.and_then(with_text).is_some_and(is_other) {
                return Ok(false);
            }
            let put = match before {
                Some(before) => Some(self.fact_before(before, change).await?),
                None => None,
            };
            let record = MemoryChange {
                state: MemoryState::Undone,
                ..change.clone()
            };
            let undoing = FactsChange {
                revision: facts.revision().unwrap_or(0),
                removed: now.map(|(_, fact)| fact.text.as_str()),
                put: put.as_ref(),
                record: &record,
            };
            if self.change(undoing).await? {
                if let Some(at) = at {
                    facts.remove(at);
                }
                return Ok(true);
            }
            refused = facts.revision();
        }
        Err(MemoryError::Busy)
    }

    /// Returns a fact as it was before a change. Its time and source are those of the change that
    /// made it.
    async fn fact_before(
        &self,
        before: &FactLine,
        change: &MemoryChange,
    ) -> Result<StoredFact, MemoryError> {
        let context = &self.context;
        let about = context.ledger.about(&context.scope, &before.text).await?;
        let made = about.into_iter().rev().find(|earlier| {
            let after = fact_sides(&earlier.effect).and_then(|(_, after)| after);
            // Ids are UUIDs of version 7, so they are ordered by time.
            earlier.id < change.id
                && earlier.state == MemoryState::Done
                && after.is_some_and(|after| after.text == before.text)
        });
        let (updated_at, source): (Timestamp, _) =
            made.map_or((change.at, None), |made| (made.at, made.source));
        Ok(StoredFact {
            text: before.text.clone(),
            important: before.important,
            created_at: before.created.unwrap_or(updated_at),
            updated_at,
            source,
        })
    }

    async fn change(&self, change: FactsChange<'_>) -> Result<bool, MemoryError> {
        let changed = self.store.change_facts(&self.context.scope, change).await;
        changed.map_err(|source| MemoryError::Store { source })
    }
}

/// Returns a fact as the ledger records it. A database has no lines: the line is the text.
fn ledger_line(fact: &StoredFact, place: usize) -> FactLine {
    FactLine {
        text: fact.text.clone(),
        line: fact.text.clone(),
        important: fact.important,
        place,
        created: Some(fact.created_at),
    }
}
