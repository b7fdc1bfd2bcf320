//! The facts of a vault, read from their file and changed in it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::{FactLine, MemoryEffect, MemorySource, MemoryState};
use jiff::Timestamp;

use super::cache::FileFingerprint;
use super::change::FactChange;
use super::corpus::FactCorpus;
use super::document::{FactsFile, Section, new_file, touch_modified, verify};
use super::fact::KeyFact;
use super::known_facts::KnownFacts;
use super::planned_change::{PlannedChange, answer_from_sides, fact_sides, recorded_answer};
use super::record::FactRecord;
use super::snapshot::CHANGES_READ;
use crate::MemoryError;
use crate::context::Cause;
use crate::vault::StoredText;
use crate::vault_memory::{PlannedWrite, VaultMemory, blocking};

/// The times at which facts were first recorded, and their sources, by their texts.
type Origins = HashMap<String, (Option<Timestamp>, Option<MemorySource>)>;

/// The importance and the text of each fact that a file has to hold after a change.
pub(super) type ExpectedFacts = Vec<(bool, String)>;

impl VaultMemory {
    /// Returns the facts in the order of the file; a missing file is an empty list. A file that was
    /// not changed since it was read last is not read again.
    pub(super) async fn facts(self: &Arc<Self>) -> Result<Arc<FactCorpus>, MemoryError> {
        let memory = self.clone();
        // Taken before the file is read: a later time would make a file look older than it is.
        let now = (memory.context.clock)().timestamp();
        blocking(move || {
            let located = memory.vault.locate(&memory.facts_path)?;
            let before = FileFingerprint::from_path(&located.real);
            let cached = before
                .as_ref()
                .and_then(|before| memory.fact_cache.get(before));
            if let Some(facts) = cached {
                return Ok(facts);
            }
            let stored = memory.vault.read_stored(&memory.facts_path)?;
            let text = stored.as_ref().map(StoredText::as_str).unwrap_or_default();
            let facts = Arc::new(FactCorpus::indexed(FactsFile::parse(text).into_facts()));
            if let Some(before) = before {
                let after = FileFingerprint::from_path(&located.real);
                memory.fact_cache.put(before, after.as_ref(), now, &facts);
            }
            Ok(facts)
        })
        .await
    }

    /// Returns the texts that were forgotten or replaced last, each once. None if the ledger does
    /// not answer: a turn goes on without them.
    pub(super) async fn withdrawn(&self, facts: &FactCorpus) -> Arc<[String]> {
        let newest = self.context.newest(1).await.unwrap_or_default();
        let Some(newest) = newest.first().map(|change| (change.id, change.state)) else {
            return Arc::default();
        };
        if let Some(texts) = facts.withdrawn_up_to(newest) {
            return texts;
        }
        let changes = self.context.newest(CHANGES_READ).await.unwrap_or_default();
        let mut seen = HashSet::new();
        let texts: Arc<[String]> = changes
            .iter()
            .filter(|change| change.state == MemoryState::Done)
            .filter_map(|change| fact_sides(&change.effect)?.0)
            .map(|line| line.text.clone())
            .filter(|text| seen.insert(text.clone()))
            .collect();
        facts.cache_withdrawn(newest, &texts);
        texts
    }

    /// Returns the origin of each fact that the ledger knows. Empty if the ledger does not answer.
    pub(super) async fn origins(&self) -> Origins {
        let changes = self.context.newest(CHANGES_READ).await.unwrap_or_default();
        let mut origins = HashMap::new();
        for change in changes {
            if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                continue;
            }
            // Changes come newest first, so the newest origin of a text wins.
            if let MemoryEffect::Fact {
                after: Some(after), ..
            } = change.effect
            {
                origins
                    .entry(after.text)
                    .or_insert((after.created, change.source));
            }
        }
        origins
    }

    /// Carries out a change that is planned over the facts of the file.
    pub(super) async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&dyn KnownFacts) -> Result<PlannedChange, MemoryError>,
    ) -> Result<FactChange, MemoryError> {
        let prior = self.context.prior_change(cause).await?;
        if let Some(change) = recorded_answer(prior.as_ref()) {
            return Ok(change);
        }
        let unfinished = prior.filter(|change| change.state == MemoryState::Begun);
        let repeated = unfinished
            .as_ref()
            .and_then(|change| fact_sides(&change.effect));
        let origins = self.origins().await;
        let now = (self.context.clock)();
        let zone = now.time_zone();
        let created_at = |fact: &FactRecord| {
            let origin = origins.get(&fact.content).and_then(|(created, _)| *created);
            let midnight = || fact.date?.to_zoned(zone.clone()).ok();
            origin.or_else(|| Some(midnight()?.timestamp()))
        };
        self.change(&self.facts_path, cause, unfinished.as_ref(), |text| {
            let empty = new_file(&now);
            let text = text.unwrap_or(&empty);
            let file = FactsFile::parse(text);
            // An attempt before a crash may have written the file. Planned again, the change would
            // find its own work and answer that the fact is known; the answer is the one that the
            // attempt would have given.
            if let Some((before, after)) = repeated
                && is_carried_out(&file, before, after)
                && let Some(change) = answer_from_sides(before, after)
            {
                return Ok(PlannedWrite::Nothing(change));
            }
            let at_index = |at: usize| match file.facts().get(at).zip(file.items().get(at)) {
                Some(found) => Ok(found),
                None => Err(MemoryError::BrokeOff(None)),
            };
            let mut expected = expected_facts(&file, None);
            let (new, old, content, keeps_date) = match plan(&file.facts())? {
                PlannedChange::Nothing { at } => {
                    let fact = at_index(at)?.0.to_fact();
                    return Ok(PlannedWrite::Nothing(FactChange::Known { fact }));
                }
                PlannedChange::Add { content, important } => {
                    expected.push((important, content.clone()));
                    let new = file.add(&content, important, now.date());
                    (new, None, Some(content), false)
                }
                PlannedChange::Reword {
                    at,
                    content,
                    important,
                    renews_date,
                } => {
                    let old = at_index(at)?;
                    expected = expected_facts(&file, Some(at));
                    expected.push((important, content.clone()));
                    let recorded = || created_at(old.0).map(|at| at.to_zoned(zone.clone()).date());
                    let created = old.0.date.or_else(recorded).filter(|_| !renews_date);
                    let created = created.unwrap_or(now.date());
                    let new = file.reword(at, &content, important, created);
                    (new, Some(old), Some(content), !renews_date)
                }
                PlannedChange::Remove { at } => {
                    let old = at_index(at)?;
                    expected = expected_facts(&file, Some(at));
                    (file.remove(old.1), Some(old), None, true)
                }
            };
            // Before anything is recorded: a change that Markdown would swallow is refused.
            verify(self.facts_path.as_str(), &new, &mut expected)?;
            let text = touch_modified(&new, &now);
            let written = FactsFile::parse(&text);
            let ledger_line =
                |fact: &FactRecord, item: &super::document::FactItem, created| FactLine {
                    text: fact.content.clone(),
                    line: item.bytes.clone(),
                    important: item.section == Section::Important,
                    place: item.index,
                    created,
                };
            let before = old.map(|(fact, item)| ledger_line(fact, item, created_at(fact)));
            // Other words for the same statement keep its date, a new statement gets that of today.
            let created = match &before {
                Some(before) if keeps_date => before.created,
                Some(_) | None => Some(now.timestamp()),
            };
            let new = content.and_then(|content| {
                let mut facts = written.facts().iter().zip(written.items());
                facts.find(|(fact, _)| fact.content == content)
            });
            let after = new.map(|(fact, item)| ledger_line(fact, item, created));
            let new = new.map(|(fact, _)| KeyFact {
                created: fact
                    .date
                    .or_else(|| created.map(|at| at.to_zoned(zone.clone()).date())),
                created_at: created,
                source: cause.source.clone(),
                ..fact.to_fact()
            });
            let answer = FactChange::between(old.map(|(fact, _)| fact.to_fact()), new)
                .ok_or(MemoryError::BrokeOff(None))?;
            let effect = Box::new(MemoryEffect::Fact { before, after });
            Ok(PlannedWrite::Write {
                text,
                effect,
                answer,
            })
        })
        .await
    }
}

/// Returns true if the file is as a change would have left it.
fn is_carried_out(file: &FactsFile, before: Option<&FactLine>, after: Option<&FactLine>) -> bool {
    let is_there = |line: &FactLine| file.items().iter().any(|item| item.bytes == line.line);
    after.is_none_or(is_there) && before.is_none_or(|before| !is_there(before))
}

/// Returns the facts of a file as they have to be in it after a change, without the one at the
/// index `except`, which is changed.
pub(super) fn expected_facts(file: &FactsFile, except: Option<usize>) -> ExpectedFacts {
    let facts = file.facts().iter().enumerate();
    facts
        .filter(|(at, _)| Some(*at) != except)
        .map(|(_, fact)| (fact.important, fact.content.clone()))
        .collect()
}
