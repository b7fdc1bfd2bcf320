//! The facts as they were read at once.

use std::sync::Arc;

use adjutant_core::Message;

use super::kept::Facts;
use super::prompt;

/// The number of changes that are looked through for what was withdrawn, and for the dates and
/// sources of a list.
pub(super) const CHANGES_READ: usize = 1_000;

/// The facts as they were read at once.
pub(crate) struct Snapshot {
    pub(crate) facts: Arc<Facts>,
    /// The words that were forgotten or replaced last; some may be known again.
    pub(crate) withdrawn: Arc<[String]>,
}

impl Snapshot {
    /// Returns what a model is told of facts whose words still stand in these messages and that
    /// were corrected or forgotten since.
    pub(crate) fn withdrawn_in(&self, said: &[Message]) -> Vec<String> {
        let said: Vec<String> = said.iter().map(Message::text).collect();
        let mut withdrawn = Vec::new();
        for before in self.withdrawn.iter() {
            let stands = said.iter().any(|text| text.contains(before));
            let holds = || self.facts.iter().any(|fact| fact.content == *before);
            let text = prompt::withdrawn(before);
            if stands && !withdrawn.contains(&text) && !holds() {
                withdrawn.push(text);
            }
        }
        withdrawn
    }
}
