//! A vault with the facts and notes of a set.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::UserId;
use adjutant_memory::{Cause, FactChange, InMemoryLedger, Memory, MemoryOptions, Vault};
use jiff::Zoned;
use jiff::tz::TimeZone;
use tempfile::TempDir;

use crate::set::Set;

/// The folder of the set's notes.
pub(crate) const NOTES: &str = "notes";

/// A memory in a temporary folder, which is removed with this value.
pub(crate) struct SetVault {
    _folder: TempDir,
    pub(crate) memory: Memory,
    /// The ids of the set for the text of each fact.
    ids: BTreeMap<String, Vec<u64>>,
}

impl SetVault {
    /// Writes the notes, and remembers the facts one after the other, each on its day.
    pub(crate) async fn fill(set: &Set) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let notes = folder.path().join(NOTES);
        fs::create_dir_all(&notes).map_err(|error| error.to_string())?;
        for (name, text) in &set.notes {
            fs::write(notes.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let now = Arc::new(Mutex::new(Zoned::default()));
        let clock = now.clone();
        let clock = Arc::new(move || clock.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let vault = Vault::open(folder.path()).map_err(|error| error.to_string())?;
        let (options, ledger) = (MemoryOptions::default(), Arc::new(InMemoryLedger::new()));
        let memory = Memory::new(vault, UserId::local(), options, ledger, clock)
            .map_err(|error| error.to_string())?;
        let mut ids: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for fact in &set.facts {
            let day = fact.created.at(12, 0, 0, 0).to_zoned(TimeZone::UTC);
            *now.lock().unwrap_or_else(PoisonError::into_inner) =
                day.map_err(|error| error.to_string())?;
            let change = memory
                .facts()
                .add(&fact.words, false, &Cause::person())
                .await;
            let change = match change {
                Ok(change) => change,
                Err(error) => {
                    eprintln!("  fact {} is not remembered: {error}", fact.id);
                    continue;
                }
            };
            if let FactChange::Updated { fact, before } = &change {
                eprintln!("  replaced: {before}\n        by: {}", fact.content);
            }
            ids.entry(change.fact().content.clone())
                .or_default()
                .push(fact.id);
        }
        Ok(Self {
            _folder: folder,
            memory,
            ids,
        })
    }

    /// Returns the number of the set's facts that are still stored.
    pub(crate) async fn facts_kept(&self) -> Result<usize, String> {
        let facts = self
            .memory
            .facts()
            .list()
            .await
            .map_err(|error| error.to_string())?;
        Ok(facts.iter().map(|fact| self.ids(&fact.content).len()).sum())
    }

    /// Returns the ids of the set for the text of a fact.
    pub(crate) fn ids(&self, words: &str) -> &[u64] {
        self.ids.get(words).map_or(&[], Vec::as_slice)
    }
}
