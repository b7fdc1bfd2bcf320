//! The changes of the rows in their order, so that a standby can repeat them up to any of them.

use std::fmt;

use adjutant_runtime::InMemory;

type Change = Box<dyn Fn(&InMemory) + Send + Sync>;

/// The changes since the beginning of the run.
#[derive(Default)]
pub(super) struct Changes(Vec<Change>);

impl Changes {
    pub(super) fn push(&mut self, change: impl Fn(&InMemory) + Send + Sync + 'static) {
        self.0.push(Box::new(change));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the changes after the first ones.
    pub(super) fn truncate(&mut self, first: usize) {
        self.0.truncate(first);
    }

    /// Carries them out on empty rows.
    pub(super) fn repeat(&self, rows: &InMemory) {
        self.0.iter().for_each(|change| change(rows));
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changes").field(&self.0.len()).finish()
    }
}
