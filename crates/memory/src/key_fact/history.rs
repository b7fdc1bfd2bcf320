//! The provenance of a fact, and undo.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::{FactLine, FilePatch, MemoryChange, MemoryEffect, MemoryState};
use serde::Serialize;

use super::document::{FactsFile, Section, touch_modified, verify};
use super::fact::KeyFact;
use super::file_store::{ExpectedFacts, expected_facts};
use super::planned_change::fact_sides;
use crate::backend::Backend;
use crate::patch::revert;
use crate::text::splice;
use crate::vault::NotePath;
use crate::vault_memory::VaultMemory;
use crate::vault_task::undo_task_change;
use crate::{KeyFactStore, Memory, MemoryError};

/// Number of changes that undo looks back.
const UNDO_MAX: usize = 1_000;

/// The provenance of a fact: the conversations and commands that led to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactProvenance {
    /// The fact as it is stored.
    pub fact: KeyFact,
    /// The changes that led to its text, oldest first; empty for a fact written by hand, or if the
    /// ledger was lost.
    pub history: Vec<MemoryChange>,
}

/// A change that [`Memory::undo`] undid.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoneChange {
    /// The change as the ledger has it now.
    pub change: MemoryChange,
    /// The outcome as a message for the user.
    pub message: String,
}

impl KeyFactStore {
    /// Returns the provenance of a fact, through all its corrections.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`]; [`MemoryError::Ledger`].
    pub async fn provenance(&self, which: &str) -> Result<FactProvenance, MemoryError> {
        let fact = self.find(which).await?;
        let context = self.0.context();
        let mut found: BTreeMap<_, MemoryChange> = BTreeMap::new();
        let mut visited = BTreeSet::new();
        let mut texts = vec![fact.content.clone()];
        while let Some(text) = texts.pop() {
            // A fact may have been corrected back and forth.
            if !visited.insert(text.clone()) {
                continue;
            }
            for change in context.ledger.about(&context.scope, &text).await? {
                if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                    continue;
                }
                let Some((before, after)) = fact_sides(&change.effect) else {
                    continue;
                };
                // Only changes that led to this text: what it was changed into later is another
                // fact.
                if after.is_some_and(|after| after.text == text) {
                    texts.extend(before.map(|before| before.text.clone()));
                    found.insert((change.at, change.id), change);
                }
            }
        }
        Ok(FactProvenance {
            fact,
            history: found.into_values().collect(),
        })
    }
}

impl Memory {
    /// Undoes the newest change that was made through this memory: of a fact, a note or a task.
    ///
    /// # Errors
    /// [`MemoryError::NothingToUndo`]; [`MemoryError::ChangedSince`] if the same text was edited by
    /// hand since: nothing is touched then, and the next undo takes the change before.
    pub async fn undo(&self) -> Result<UndoneChange, MemoryError> {
        let context = self.context();
        for change in context.newest(UNDO_MAX).await? {
            if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                continue;
            }
            let message = match self.backend() {
                Backend::Vault(memory) => memory.undo(&change).await?,
                Backend::Database(database) => match database.undo(&change).await? {
                    true => undo_message(&change.effect),
                    false => None,
                },
            };
            let state = match message {
                Some(_) => MemoryState::Undone,
                None => MemoryState::Void,
            };
            let was_begun = change.state == MemoryState::Begun;
            let change = MemoryChange { state, ..change };
            // Recorded even if it could not be undone, so that the next undo goes on to the change
            // before.
            context.record(&change).await?;
            return match message {
                Some(message) => Ok(UndoneChange { change, message }),
                // It was recorded before a crash and, as the file shows, never carried out.
                None if was_begun => continue,
                None => Err(MemoryError::ChangedSince {
                    what: subject(&change.effect),
                }),
            };
        }
        Err(MemoryError::NothingToUndo)
    }
}

/// Returns the fact, note or task that a change is about, as it is shown to the user.
fn subject(effect: &MemoryEffect) -> String {
    match effect {
        MemoryEffect::Fact { before, after } => after
            .as_ref()
            .or(before.as_ref())
            .map(|line| format!("“{}”", line.text))
            .unwrap_or_default(),
        MemoryEffect::Note { path, .. } => path.clone(),
        MemoryEffect::Task { words, .. } => format!("the task “{words}”"),
    }
}

impl VaultMemory {
    /// Undoes a change. Returns the message for the user; `None` if the file is not as the change
    /// left it.
    async fn undo(&self, change: &MemoryChange) -> Result<Option<String>, MemoryError> {
        match &change.effect {
            MemoryEffect::Fact { before, after } => {
                let patch = change.patch.as_ref();
                let done = self
                    .undo_fact(before.as_ref(), after.as_ref(), patch)
                    .await?;
                Ok(undo_message(&change.effect).filter(|_| done))
            }
            MemoryEffect::Note {
                path,
                inserted,
                created,
                ..
            } => self.undo_note(path, inserted, *created).await,
            MemoryEffect::Task { .. } => undo_task_change(self, change).await,
        }
    }

    async fn undo_fact(
        &self,
        before: Option<&FactLine>,
        after: Option<&FactLine>,
        patch: Option<&FilePatch>,
    ) -> Result<bool, MemoryError> {
        self.rewrite(&self.facts_path, false, |text| {
            let Some(text) = text else { return Ok(None) };
            // If nothing else changed the file since, it gets back its old bytes.
            if let Some(before) = patch.and_then(|patch| revert(text, patch)) {
                return Ok(Some(before));
            }
            let file = FactsFile::parse(text);
            let Some((new, mut expected)) = without_change(&file, before, after) else {
                return Ok(None);
            };
            let new = touch_modified(&new, &(self.context.clock)());
            verify(self.facts_path.as_str(), &new, &mut expected)?;
            Ok(Some(new))
        })
        .await
    }

    async fn undo_note(
        &self,
        path: &str,
        inserted: &str,
        created: bool,
    ) -> Result<Option<String>, MemoryError> {
        let path = NotePath::from_owner(path)?;
        // A note that was created is removed only if nothing was written into it since.
        let without = |text: &str| match created {
            true => (text == inserted).then(String::new),
            false => text
                // From the end: of two equal texts the newer one is undone.
                .rfind(inserted)
                .map(|at| splice(text, at..at + inserted.len(), "")),
        };
        let work = |text: Option<&str>| Ok(text.and_then(without));
        let done = self.rewrite(&path, created, work).await?;
        let message = match created {
            true => format!("Removed the note {path}."),
            false => format!("Undone: the last entry of {path} is removed."),
        };
        Ok(done.then_some(message))
    }
}

/// Returns the message for the user about an undone change of a fact.
fn undo_message(effect: &MemoryEffect) -> Option<String> {
    Some(match fact_sides(effect)? {
        (None, Some(after)) => format!("Undone: “{}” is forgotten.", after.text),
        (Some(before), Some(_)) => format!("Undone: it reads “{}” again.", before.text),
        (Some(before), None) => format!("Undone: “{}” is remembered again.", before.text),
        (None, None) => return None,
    })
}

/// Returns the file as it was before a change of a fact, with everything else as it is now, and the
/// facts that it has to hold then.
fn without_change(
    file: &FactsFile,
    before: Option<&FactLine>,
    after: Option<&FactLine>,
) -> Option<(String, ExpectedFacts)> {
    // The line that the change left must be unchanged, byte for byte: an edit of it by hand would
    // be lost.
    let now: Option<usize> = match after {
        Some(after) => Some(
            file.items()
                .iter()
                .position(|item| item.bytes == after.line)?,
        ),
        None => None,
    };
    let mut expected = expected_facts(file, now);
    let now = now.and_then(|at| file.items().get(at));
    let without = now.map(|item| file.remove(item));
    let Some(before) = before else {
        return without.map(|text| (text, expected));
    };
    if expected.iter().any(|(_, text)| *text == before.text) {
        return None;
    }
    let section = if before.important {
        Section::Important
    } else {
        Section::Recent
    };
    let text = match now.filter(|item| item.section == section) {
        Some(item) => file.replace_item(item, &before.line),
        None => {
            let rest = without.as_deref().map(FactsFile::parse);
            rest.as_ref()
                .unwrap_or(file)
                .insert(section, before.place, &before.line)
        }
    };
    // The line may carry the tag in a section that does not say so.
    let is_important = FactsFile::parse(&text)
        .facts()
        .iter()
        .any(|fact| fact.content == before.text && fact.important);
    expected.push((is_important, before.text.clone()));
    Some((text, expected))
}
