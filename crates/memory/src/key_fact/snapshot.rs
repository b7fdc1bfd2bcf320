//! The facts and the texts that were withdrawn, of one moment.

use std::sync::Arc;

use adjutant_core::Message;

use super::corpus::FactCorpus;
use super::prompt;

/// Number of changes of the ledger that are searched for withdrawn texts, and for the dates and
/// sources of a list.
pub(super) const CHANGES_READ: usize = 1_000;

/// The facts and the texts that were withdrawn, read together.
pub(crate) struct Snapshot {
    pub(crate) facts: Arc<FactCorpus>,
    /// The texts that were forgotten or replaced last; some may be stored again.
    pub(crate) withdrawn: Arc<[String]>,
}

impl Snapshot {
    /// Returns a line for each fact that stands in these messages and was corrected or forgotten
    /// since.
    pub(crate) fn withdrawn_in(&self, history: &[Message]) -> Vec<String> {
        let history: Vec<String> = history.iter().map(Message::text).collect();
        let mut withdrawn = Vec::new();
        for before in self.withdrawn.iter() {
            let is_in_history = history.iter().any(|text| text.contains(before));
            let is_stored = || self.facts.iter().any(|fact| fact.content == *before);
            let line = prompt::withdrawn_line(before);
            if is_in_history && !withdrawn.contains(&line) && !is_stored() {
                withdrawn.push(line);
            }
        }
        withdrawn
    }
}
