//! The share of questions whose evidence was found.

/// Number of questions that were asked, and of those whose evidence was found.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Share {
    found: u32,
    pub(crate) asked: u32,
}

impl Share {
    pub(crate) fn count(&mut self, is_found: bool) {
        self.found += u32::from(is_found);
        self.asked += 1;
    }

    /// Returns the share, of 1. `None` if no question was asked.
    pub(crate) fn value(self) -> Option<f64> {
        (self.asked > 0).then(|| f64::from(self.found) / f64::from(self.asked))
    }
}
