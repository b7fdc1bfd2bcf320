//! The facts of a database: read, and changed together with their history.

use std::sync::Arc;

use adjutant_core::port::FactsChange;
use adjutant_core::{FactLine, MemoryChange, MemoryEffect, MemorySource, MemoryState, StoredFact};
use jiff::Timestamp;

use super::change::FactChange;
use super::kept::Facts;
use super::known::Known;
use super::plan::{Plan, answered};
use super::snapshot::Snapshot;
use crate::MemoryError;
use crate::memory::{Cause, InDatabase};

/// The number of times that a change is planned again because others changed the facts in between:
/// of those who try at once, one gets on.
const ATTEMPTS_MAX: usize = 64;

impl InDatabase {
    /// The facts and those that were withdrawn, by one statement.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, MemoryError> {
        let found = self
            .facts
            .facts(&self.common.scope.user)
            .await
            .map_err(MemoryError::of_store)?;
        let facts = Arc::new(Facts::once(self.known(&found.facts)));
        Ok(Snapshot {
            facts,
            withdrawn: found.withdrawn.into(),
        })
    }

    async fn stored(&self) -> Result<Vec<StoredFact>, MemoryError> {
        let found = self.facts.facts(&self.common.scope.user).await;
        Ok(found.map_err(MemoryError::of_store)?.facts)
    }

    fn known(&self, facts: &[StoredFact]) -> Vec<Known> {
        let zone = (self.common.clock)().time_zone().clone();
        facts
            .iter()
            .map(|fact| Known::of_stored(fact, &zone))
            .collect()
    }

    /// Changes the facts as planned over those there are, and plans again if others changed them in
    /// between.
    pub(super) async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&[Known]) -> Result<Plan, MemoryError>,
    ) -> Result<FactChange, MemoryError> {
        for _ in 0..ATTEMPTS_MAX {
            // Before the look for an earlier call: one that comes in between makes this change
            // impossible.
            let stored = self.stored().await?;
            if let Some(change) = answered(self.common.earlier(cause).await?.as_ref()) {
                return Ok(change);
            }
            let now = (self.common.clock)();
            let known = self.known(&stored);
            let (old, new) = match plan(&known)? {
                Plan::Nothing { at } => {
                    let known = known.get(at).ok_or(MemoryError::BrokeOff)?;
                    return Ok(FactChange::Known { fact: known.fact() });
                }
                Plan::Add { content, important } => (
                    None,
                    Some(fresh(content, important, now.timestamp(), cause)),
                ),
                Plan::Reword {
                    at,
                    content,
                    important,
                    is_of_today,
                } => {
                    let old = stored.get(at).ok_or(MemoryError::BrokeOff)?;
                    let mut new = fresh(content, important, now.timestamp(), cause);
                    if !is_of_today {
                        new.created_at = old.created_at;
                    }
                    (Some((at, old)), Some(new))
                }
                Plan::Remove { at } => (
                    Some((at, stored.get(at).ok_or(MemoryError::BrokeOff)?)),
                    None,
                ),
            };
            let place = old.map_or(stored.len(), |(at, _)| at);
            let effect = MemoryEffect::Fact {
                before: old.map(|(_, fact)| line_of(fact, place)),
                after: new.as_ref().map(|fact| line_of(fact, place)),
            };
            let record = MemoryChange {
                state: MemoryState::Done,
                ..self.common.new_change(cause, effect)
            };
            let change = FactsChange {
                known: &stored,
                removed: old.map(|(_, fact)| fact.text.as_str()),
                put: new.as_ref(),
                record: &record,
            };
            if self.change(change).await? {
                let told = |fact: &StoredFact| Known::of_stored(fact, now.time_zone()).fact();
                return match (old, &new) {
                    (None, Some(new)) => Ok(FactChange::Added { fact: told(new) }),
                    (Some((_, old)), Some(new)) => Ok(FactChange::Updated {
                        fact: told(new),
                        before: old.text.clone(),
                    }),
                    (Some((_, old)), None) => Ok(FactChange::Forgotten { fact: told(old) }),
                    (None, None) => Err(MemoryError::BrokeOff),
                };
            }
        }
        Err(MemoryError::Busy)
    }

    /// Takes a change of a fact back, and says so in the history. `false`: the facts are not as the
    /// change left them.
    pub(super) async fn undo(&self, change: &MemoryChange) -> Result<bool, MemoryError> {
        let MemoryEffect::Fact { before, after } = &change.effect else {
            return Ok(false);
        };
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.stored().await?;
            let now_reads = |line: &FactLine| {
                stored
                    .iter()
                    .find(|fact| fact.text == line.text && fact.important == line.important)
            };
            let now = after.as_ref().map(now_reads);
            if matches!(now, Some(None)) {
                return Ok(false);
            }
            let now = now.flatten();
            let others = || stored.iter().filter(|fact| Some(*fact) != now);
            if before
                .as_ref()
                .is_some_and(|before| others().any(|fact| fact.text == before.text))
            {
                return Ok(false);
            }
            let put = match before {
                Some(before) => Some(self.as_it_was(before, change).await?),
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

    /// A fact as it was before a change: since when, and where from, says the change that made it.
    async fn as_it_was(
        &self,
        before: &FactLine,
        change: &MemoryChange,
    ) -> Result<StoredFact, MemoryError> {
        let about = self
            .common
            .ledger
            .about(&self.common.scope, &before.text)
            .await?;
        let made = about.into_iter().rev().find(|known| {
            let after = match &known.effect {
                MemoryEffect::Fact { after, .. } => after.as_ref(),
                MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
            };
            known.id < change.id
                && known.state == MemoryState::Done
                && after.is_some_and(|after| after.text == before.text)
        });
        let (updated_at, source): (Timestamp, Option<MemorySource>) =
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
        self.facts
            .change_facts(&self.common.scope, change)
            .await
            .map_err(MemoryError::of_store)
    }
}

/// A fact of this moment.
fn fresh(text: String, important: bool, at: Timestamp, cause: &Cause) -> StoredFact {
    StoredFact {
        text,
        important,
        created_at: at,
        updated_at: at,
        source: cause.source.clone(),
    }
}

fn line_of(fact: &StoredFact, place: usize) -> FactLine {
    FactLine {
        text: fact.text.clone(),
        line: fact.text.clone(),
        important: fact.important,
        place,
        created: Some(fact.created_at),
    }
}
