//! The notes that are found for a question: by the function behind the tool `search_notes`.

use adjutant_memory::{Filter, MemoryError, VaultError};

use crate::home::{Home, NOTES};
use crate::share::Share;

/// The figures of notes.
#[derive(Default)]
pub(crate) struct Figures {
    /// Among the first five.
    pub(crate) at_5: Share,
    /// Among the first ten.
    pub(crate) at_10: Share,
}

impl Figures {
    /// Searches with a question as it was typed. All notes of the evidence are to be found.
    pub(crate) async fn ask(
        &mut self,
        home: &Home,
        question: &str,
        evidence: &[String],
    ) -> Result<(), String> {
        let filter = Filter {
            folder: NOTES.to_owned(),
            limit: 10,
            ..Filter::default()
        };
        let notes = home.memory.notes().ok_or("there is no vault")?;
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
