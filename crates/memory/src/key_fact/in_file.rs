//! The facts of a vault: read from their file, and changed in it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::{FactLine, MemoryEffect, MemorySource, MemoryState};
use jiff::Timestamp;

use super::change::FactChange;
use super::document::{FactsFile, Section, new_file, touch, verify};
use super::fact::KeyFact;
use super::kept::{Facts, Mark};
use super::known::Known;
use super::plan::{Plan, answered, replayed};
use super::snapshot::CHANGES_READ;
use crate::MemoryError;
use crate::memory::{Cause, Planned, Shared, blocking};
use crate::vault::Stored;

impl Shared {
    /// The facts, in the order of the file; a missing file is an empty list. A file that is the one
    /// that was read last is not read again.
    pub(super) async fn facts(self: &Arc<Self>) -> Result<Arc<Facts>, MemoryError> {
        let shared = self.clone();
        let now = (shared.common.clock)().timestamp();
        blocking(move || {
            let located = shared.vault.locate(&shared.facts)?;
            let before = Mark::of(&located.real);
            if let Some(facts) = before.as_ref().and_then(|mark| shared.kept.get(mark)) {
                return Ok(facts);
            }
            let stored = shared.vault.read_stored(&shared.facts)?;
            let text = stored.as_ref().map(Stored::text).unwrap_or_default();
            let facts = Arc::new(Facts::to_keep(FactsFile::parse(text).into_facts()));
            if let Some(before) = before {
                shared
                    .kept
                    .put(before, Mark::of(&located.real).as_ref(), now, &facts);
            }
            Ok(facts)
        })
        .await
    }

    /// The words that were forgotten or replaced last, each once, as far as the history knows.
    pub(super) async fn withdrawn(&self, facts: &Facts) -> Arc<[String]> {
        let common = &self.common;
        let newest = common
            .ledger
            .newest(&common.scope, 1)
            .await
            .unwrap_or_default();
        let Some(newest) = newest.first().map(|change| (change.id, change.state)) else {
            return Arc::default();
        };
        if let Some(known) = facts.withdrawn_up_to(newest) {
            return known;
        }
        let changes = common
            .ledger
            .newest(&common.scope, CHANGES_READ)
            .await
            .unwrap_or_default();
        let mut seen = HashSet::new();
        let done = changes
            .into_iter()
            .filter(|change| change.state == MemoryState::Done);
        let before = done.filter_map(|change| match change.effect {
            MemoryEffect::Fact { before, .. } => before,
            MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
        });
        let words: Vec<String> = before
            .map(|line| line.text)
            .filter(|text| seen.insert(text.clone()))
            .collect();
        let words: Arc<[String]> = words.into();
        facts.keep_withdrawn(newest, &words);
        words
    }

    /// Returns, for each text, when it was first written down and where it was learned, as far as
    /// the history knows.
    pub(super) async fn known(&self) -> HashMap<String, (Option<Timestamp>, Option<MemorySource>)> {
        let changes = self
            .common
            .ledger
            .newest(&self.common.scope, CHANGES_READ)
            .await
            .unwrap_or_default();
        let mut known = HashMap::new();
        for change in changes {
            if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                continue;
            }
            if let MemoryEffect::Fact {
                after: Some(after), ..
            } = change.effect
            {
                known
                    .entry(after.text)
                    .or_insert((after.created, change.source));
            }
        }
        known
    }

    /// Changes the file as planned over what stands in it.
    pub(super) async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&[Known]) -> Result<Plan, MemoryError>,
    ) -> Result<FactChange, MemoryError> {
        let earlier = self.common.earlier(cause).await?;
        if let Some(change) = answered(earlier.as_ref()) {
            return Ok(change);
        }
        let begun = earlier.filter(|change| change.state == MemoryState::Begun);
        // The plan of a call that was begun may find its own work: then the answer is the one it
        // would have given.
        let repeated = begun.as_ref().and_then(|change| match &change.effect {
            MemoryEffect::Fact { before, after } => Some((before.clone(), after.clone())),
            MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
        });
        let known = self.known().await;
        let now = (self.common.clock)();
        let created_of = |fact: &Known| {
            known
                .get(&fact.content)
                .and_then(|(created, _)| *created)
                .or_else(|| {
                    let midnight = fact.date?.to_zoned(now.time_zone().clone()).ok()?;
                    Some(midnight.timestamp())
                })
        };
        self.change(&self.facts, cause, begun.as_ref(), |text| {
            let fresh = new_file(&now);
            let text = text.unwrap_or(&fresh);
            let file = FactsFile::parse(text);
            if let Some((before, after)) = &repeated
                && is_done(&file, before.as_ref(), after.as_ref())
                && let Some(change) = replayed(before.as_ref(), after.as_ref())
            {
                return Ok(Planned::Nothing(change));
            }
            let fact = |at: usize| file.facts().get(at).ok_or(MemoryError::BrokeOff);
            let line = |at: usize| file.lines().get(at).ok_or(MemoryError::BrokeOff);
            let mut is_of_today = false;
            let (new, mut expected, old, content) = match plan(file.facts())? {
                Plan::Nothing { at } => {
                    return Ok(Planned::Nothing(FactChange::Known {
                        fact: fact(at)?.fact(),
                    }));
                }
                Plan::Add { content, important } => {
                    let mut expected = expected_of(&file, None);
                    expected.push((important, content.clone()));
                    (
                        file.add(&content, important, now.date()),
                        expected,
                        None,
                        Some(content),
                    )
                }
                Plan::Reword {
                    at,
                    content,
                    important,
                    is_of_today: of_today,
                } => {
                    is_of_today = of_today;
                    let mut expected = expected_of(&file, Some(at));
                    expected.push((important, content.clone()));
                    let (old, zone) = (fact(at)?, now.time_zone().clone());
                    let created = old
                        .date
                        .or(created_of(old).map(|at| at.to_zoned(zone).date()));
                    let created = created.filter(|_| !of_today).unwrap_or(now.date());
                    (
                        file.reword(at, &content, important, created),
                        expected,
                        Some(at),
                        Some(content),
                    )
                }
                Plan::Remove { at } => (
                    file.remove(line(at)?),
                    expected_of(&file, Some(at)),
                    Some(at),
                    None,
                ),
            };
            verify(self.facts.as_str(), &new, &mut expected)?;
            let text = touch(&new, &now);
            let written = FactsFile::parse(&text);
            let place = content.and_then(|content| {
                written
                    .facts()
                    .iter()
                    .position(|fact| fact.content == content)
            });
            let old = old.map(fact).transpose()?.zip(old.map(line).transpose()?);
            let before = old.map(|(fact, line)| FactLine {
                text: fact.content.clone(),
                line: line.bytes.clone(),
                important: line.section == Section::Important,
                place: line.place,
                created: created_of(fact),
            });
            let created = match &before {
                Some(before) if !is_of_today => before.created,
                Some(_) | None => Some(now.timestamp()),
            };
            let new = place.and_then(|at| written.facts().get(at).zip(written.lines().get(at)));
            let after = new.map(|(fact, line)| FactLine {
                text: fact.content.clone(),
                line: line.bytes.clone(),
                important: line.section == Section::Important,
                place: line.place,
                created,
            });
            let full = |fact: &Known| KeyFact {
                created: fact
                    .date
                    .or_else(|| created.map(|at| at.to_zoned(now.time_zone().clone()).date())),
                created_at: created,
                source: cause.source.clone(),
                ..fact.fact()
            };
            let answer = match (old, new) {
                (None, Some((fact, _))) => FactChange::Added { fact: full(fact) },
                (Some((old, _)), Some((fact, _))) => FactChange::Updated {
                    fact: full(fact),
                    before: old.content.clone(),
                },
                (Some((old, _)), None) => FactChange::Forgotten { fact: old.fact() },
                (None, None) => return Err(MemoryError::BrokeOff),
            };
            let effect = Box::new(MemoryEffect::Fact { before, after });
            Ok(Planned::Write {
                text,
                effect,
                answer,
            })
        })
        .await
    }
}

/// Returns whether the file reads as the change would have left it.
fn is_done(file: &FactsFile, before: Option<&FactLine>, after: Option<&FactLine>) -> bool {
    let stands = |line: &FactLine| file.lines().iter().any(|known| known.bytes == line.line);
    after.is_none_or(stands) && before.is_none_or(|before| !stands(before))
}

/// Returns, for each fact, whether it is important, and its words: what must be in the file after a
/// change. `but`: without the one at this place.
pub(crate) fn expected_of(file: &FactsFile, but: Option<usize>) -> Vec<(bool, String)> {
    let others = file
        .facts()
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != but);
    others
        .map(|(_, fact)| (fact.important, fact.content.clone()))
        .collect()
}
