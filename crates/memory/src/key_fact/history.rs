//! Why a fact is there, and the way back.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::{FactLine, FilePatch, MemoryChange, MemoryEffect, MemoryState};
use serde::Serialize;

use super::document::{FactsFile, Section, touch, verify};
use super::fact::KeyFact;
use super::in_file::expected_of;
use crate::memory::{Place, Shared, blocking};
use crate::patch::taken_back;
use crate::vault::{NotePath, Stored};
use crate::vault_task;
use crate::{KeyFactStore, Memory, MemoryError, VaultError};

/// How far back undo looks.
const UNDO_MAX: usize = 1_000;

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The fact.
    pub fact: KeyFact,
    /// The changes that led to its words, oldest first; empty for a fact written by hand, or if the
    /// history was lost.
    pub history: Vec<MemoryChange>,
}

/// What [`Memory::undo`] took back.
#[derive(Debug, Clone, PartialEq)]
pub struct Undone {
    /// The change.
    pub change: MemoryChange,
    /// What was done about it, in words for the person.
    pub words: String,
}

impl KeyFactStore {
    /// Why a fact is known: its history, through all its corrections.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`]; [`MemoryError::Ledger`].
    pub async fn why(&self, which: &str) -> Result<Why, MemoryError> {
        let fact = self.find(which).await?;
        let common = self.0.common();
        let mut found: BTreeMap<_, MemoryChange> = BTreeMap::new();
        let mut looked = BTreeSet::new();
        let mut texts = vec![fact.content.clone()];
        while let Some(text) = texts.pop() {
            if !looked.insert(text.clone()) {
                continue;
            }
            for change in common.ledger.about(&common.scope, &text).await? {
                if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                    continue;
                }
                let MemoryEffect::Fact { before, after } = &change.effect else {
                    continue;
                };
                // Only what led to these words; what they were changed into later is another fact.
                if after.as_ref().is_some_and(|after| after.text == text) {
                    texts.extend(before.as_ref().map(|before| before.text.clone()));
                    found.insert((change.at, change.id), change);
                }
            }
        }
        Ok(Why {
            fact,
            history: found.into_values().collect(),
        })
    }
}

impl Memory {
    /// Takes back the newest change that was made through this memory: a fact, a note or a task in
    /// the notes.
    ///
    /// # Errors
    /// [`MemoryError::NothingToUndo`]; [`MemoryError::ChangedSince`] if the owner has changed the
    /// same words by hand: nothing is touched then, and the next undo takes the change before.
    pub async fn undo(&self) -> Result<Undone, MemoryError> {
        let common = self.common();
        for change in common.ledger.newest(&common.scope, UNDO_MAX).await? {
            if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                continue;
            }
            let done = match self.place() {
                Place::Vault(shared) => shared.undo(&change).await?,
                Place::Database(database) => {
                    let words = undo_words(&change.effect);
                    if database.undo(&change).await? {
                        words
                    } else {
                        None
                    }
                }
            };
            let state = if done.is_some() {
                MemoryState::Undone
            } else {
                MemoryState::Void
            };
            let begun = change.state == MemoryState::Begun;
            let change = MemoryChange { state, ..change };
            common.ledger.put(&common.scope, &change).await?;
            return match done {
                Some(words) => Ok(Undone { change, words }),
                // It was written down and, as the file says, never carried out.
                None if begun => continue,
                None => Err(MemoryError::ChangedSince {
                    what: what(&change.effect),
                }),
            };
        }
        Err(MemoryError::NothingToUndo)
    }
}

fn what(effect: &MemoryEffect) -> String {
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

impl Shared {
    /// Takes a change back. Words for the person, or nothing if the file no longer reads as the
    /// change left it.
    async fn undo(&self, change: &MemoryChange) -> Result<Option<String>, MemoryError> {
        match &change.effect {
            MemoryEffect::Fact { before, after } => {
                let words = undo_words(&change.effect);
                let done = self
                    .undo_fact(before.as_ref(), after.as_ref(), change.patch.as_ref())
                    .await?;
                Ok(words.filter(|_| done))
            }
            MemoryEffect::Note {
                path,
                inserted,
                created,
                ..
            } => self.undo_note(path, inserted, *created).await,
            MemoryEffect::Task { .. } => vault_task::take_back(self, change).await,
        }
    }

    async fn undo_fact(
        &self,
        before: Option<&FactLine>,
        after: Option<&FactLine>,
        patch: Option<&FilePatch>,
    ) -> Result<bool, MemoryError> {
        self.rewrite(&self.facts, |text| {
            // Nobody has been there since.
            if let Some(before) = patch.and_then(|patch| taken_back(text, patch)) {
                return Ok(Some(before));
            }
            let file = FactsFile::parse(text);
            let Some((new, mut expected)) = undone_text(&file, before, after) else {
                return Ok(None);
            };
            let new = touch(&new, &(self.common.clock)());
            verify(self.facts.as_str(), &new, &mut expected)?;
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
        let path = NotePath::of_owner(path)?;
        if created {
            let (vault, at, inserted) = (self.vault.clone(), path.clone(), inserted.to_owned());
            let lock = self.lock().await?;
            let removed = blocking(move || {
                let Some(stored) = vault.read_stored(&at)? else {
                    return Ok(false);
                };
                Ok(stored.text() == inserted && vault.remove(&lock, &at, &stored)?)
            })
            .await?;
            return Ok(removed.then(|| format!("Removed the note {path}.")));
        }
        let done = self
            .rewrite(&path, |text| {
                Ok(text.rfind(inserted).map(|at| {
                    let (before, rest) = text.split_at(at);
                    format!("{before}{}", rest.get(inserted.len()..).unwrap_or_default())
                }))
            })
            .await?;
        Ok(done.then(|| format!("Took the last entry out of {path} again.")))
    }

    /// Replaces the text of a file that exists by what `work` makes of it; `false` if it makes
    /// nothing.
    async fn rewrite(
        &self,
        path: &NotePath,
        work: impl Fn(&str) -> Result<Option<String>, VaultError>,
    ) -> Result<bool, MemoryError> {
        let mut lock = self.lock().await?;
        for _ in 0..8 {
            let Some(stored) = self.read(path).await? else {
                return Ok(false);
            };
            let Some(new) = work(Stored::text(&stored))? else {
                return Ok(false);
            };
            let (vault, at) = (self.vault.clone(), path.clone());
            let (held, done) = blocking(move || {
                let done = vault.replace(&lock, &at, Some(&stored), &new)?;
                Ok((lock, done))
            })
            .await?;
            if done {
                return Ok(true);
            }
            lock = held;
        }
        Err(VaultError::Busy {
            name: path.to_string(),
        }
        .into())
    }
}

/// Words for the person about a change of a fact that was taken back.
fn undo_words(effect: &MemoryEffect) -> Option<String> {
    let MemoryEffect::Fact { before, after } = effect else {
        return None;
    };
    let words = match (before, after) {
        (None, Some(after)) => format!("Forgot “{}” again.", after.text),
        (Some(before), Some(_)) => format!("It reads “{}” again.", before.text),
        (Some(before), None) => format!("Remembered “{}” again.", before.text),
        (None, None) => return None,
    };
    Some(words)
}

type Expected = Vec<(bool, String)>;

/// The file as it was before the change, with everything else as it is now.
fn undone_text(
    file: &FactsFile,
    before: Option<&FactLine>,
    after: Option<&FactLine>,
) -> Option<(String, Expected)> {
    // What the change left must still stand there, byte for byte: whatever was added to it by hand
    // would be lost.
    let now: Option<usize> = match after {
        Some(after) => Some(
            file.lines()
                .iter()
                .position(|line| line.bytes == after.line)?,
        ),
        None => None,
    };
    let mut expected = expected_of(file, now);
    let now = now.and_then(|at| file.lines().get(at));
    let without = now.map(|line| file.remove(line));
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
    let in_place = now.filter(|line| line.section == section);
    let text = match in_place {
        Some(line) => file.put_bytes(line, &before.line),
        None => {
            let rest = without.as_deref().map(FactsFile::parse);
            rest.as_ref()
                .unwrap_or(file)
                .insert(section, before.place, &before.line)
        }
    };
    let importance = FactsFile::parse(&text)
        .facts()
        .iter()
        .find(|fact| fact.content == before.text)
        .is_some_and(|fact| fact.important);
    expected.push((importance, before.text.clone()));
    Some((text, expected))
}
