//! The facts of a database, read and changed together with their ledger.

use std::sync::Arc;

use adjutant_core::port::{FactsChange, FactsFound};
use adjutant_core::{FactLine, MemoryChange, MemoryEffect, MemoryState, StoredFact};
use jiff::Timestamp;

use super::change::FactChange;
use super::corpus::FactCorpus;
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
        let found = self.find().await?;
        let facts = FactCorpus::unindexed(self.records(&found.facts));
        Ok(Snapshot {
            facts: Arc::new(facts),
            withdrawn: found.withdrawn.into(),
        })
    }

    async fn find(&self) -> Result<FactsFound, MemoryError> {
        let found = self.store.facts(&self.context.scope.user).await;
        found.map_err(|source| MemoryError::Store { source })
    }

    fn records(&self, facts: &[StoredFact]) -> Vec<FactRecord> {
        let zone = (self.context.clock)().time_zone().clone();
        facts
            .iter()
            .map(|fact| FactRecord::from_stored(fact, &zone))
            .collect()
    }

    /// Carries out a change that is planned over the stored facts, and plans again if another
    /// process changed them in between. Changes of one user in this process follow each other.
    pub(super) async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&[FactRecord]) -> Result<PlannedChange, MemoryError> + Send + Sync + 'static,
    ) -> Result<FactChange, MemoryError> {
        let _turn = self.queues.enter(&self.context.scope.user).await?;
        let plan = Arc::new(plan);
        for _ in 0..ATTEMPTS_MAX {
            // Read before the ledger is asked for an earlier attempt: if that one commits in
            // between, the facts are not those that were read, and this change is refused.
            let stored = self.find().await?.facts;
            if let Some(change) = recorded_answer(self.context.prior_change(cause).await?.as_ref())
            {
                return Ok(change);
            }
            let now = (self.context.clock)();
            let new = |text, important| StoredFact {
                text,
                important,
                created_at: now.timestamp(),
                updated_at: now.timestamp(),
                source: cause.source.clone(),
            };
            let at_index = |at: usize| match stored.get(at) {
                Some(fact) => Ok((at, fact)),
                None => Err(MemoryError::BrokeOff(None)),
            };
            let records = self.records(&stored);
            let planning = plan.clone();
            let planned = self.queues.compute(move || (planning(&records), records));
            let (planned, records) = planned.await?;
            let (old, new) = match planned? {
                PlannedChange::Nothing { at } => {
                    let known = records.get(at).ok_or(MemoryError::BrokeOff(None))?;
                    let fact = known.to_fact();
                    return Ok(FactChange::Known { fact });
                }
                PlannedChange::Add { content, important } => (None, Some(new(content, important))),
                PlannedChange::Reword {
                    at,
                    content,
                    important,
                    renews_date,
                } => {
                    let (at, old) = at_index(at)?;
                    let mut new = new(content, important);
                    if !renews_date {
                        new.created_at = old.created_at;
                    }
                    (Some((at, old)), Some(new))
                }
                PlannedChange::Remove { at } => (Some(at_index(at)?), None),
            };
            // Rows have no lines: the index stands for the place in a file.
            let place = old.map_or(stored.len(), |(at, _)| at);
            let old = old.map(|(_, fact)| fact);
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
                known: &stored,
                removed: old.map(|fact| fact.text.as_str()),
                put: new.as_ref(),
                record: &record,
            };
            if self.change(change).await? {
                let zone = now.time_zone();
                let fact = |fact: &StoredFact| FactRecord::from_stored(fact, zone).to_fact();
                return FactChange::between(old.map(fact), new.as_ref().map(fact))
                    .ok_or(MemoryError::BrokeOff(None));
            }
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
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.find().await?.facts;
            let current = |line: &FactLine| {
                stored
                    .iter()
                    .find(|fact| fact.text == line.text && fact.important == line.important)
            };
            let now = after.map(current);
            // The fact was edited or forgotten since.
            if matches!(now, Some(None)) {
                return Ok(false);
            }
            let now = now.flatten();
            let mut others = stored.iter().filter(|fact| Some(*fact) != now);
            // Undone, there would be two facts with one text.
            if before.is_some_and(|before| others.any(|fact| fact.text == before.text)) {
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
                known: &stored,
                removed: now.map(|fact| fact.text.as_str()),
                put: put.as_ref(),
                record: &record,
            };
            if self.change(undoing).await? {
                return Ok(true);
            }
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
