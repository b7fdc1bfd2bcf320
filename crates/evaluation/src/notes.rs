//! Figures of note search: the notes that are found for a question, by the function behind the tool
//! `search_notes`.

use adjutant_memory::{MemoryError, NoteFilter, VaultError};

use crate::share::Share;
use crate::vault_of_set::{NOTES, SetVault};

/// The figures of notes.
#[derive(Default)]
pub(crate) struct Figures {
    /// Evidence among the first five.
    pub(crate) at_5: Share,
    /// Evidence among the first ten.
    pub(crate) at_10: Share,
}

impl Figures {
    /// Searches with a question as it was typed. All notes of the evidence have to be found.
    pub(crate) async fn ask(
        &mut self,
        vault: &SetVault,
        question: &str,
        evidence: &[String],
    ) -> Result<(), String> {
        let filter = NoteFilter {
            folder: NOTES.to_owned(),
            limit: 10,
            ..NoteFilter::default()
        };
        let notes = vault.memory.notes().ok_or("there is no vault")?;
        let found = match notes.search(question, &filter).await {
            Ok(found) => found.notes,
            // A question without a word.
            Err(MemoryError::Vault(VaultError::Name { .. })) => Vec::new(),
            Err(error) => return Err(error.to_string()),
        };
        let names: Vec<&str> = found
            .iter()
            .filter_map(|hit| hit.path.strip_prefix(NOTES)?.strip_prefix('/'))
            .collect();
        for (first, share) in [(5, &mut self.at_5), (10, &mut self.at_10)] {
            let first: Vec<&&str> = names.iter().take(first).collect();
            share.count(evidence.iter().all(|note| first.contains(&&note.as_str())));
        }
        Ok(())
    }
}
