//! A share of questions.

/// Evidence that was found, of questions that were asked.
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

    /// `None`: nothing was asked.
    pub(crate) fn of_one(self) -> Option<f64> {
        (self.asked > 0).then(|| f64::from(self.found) / f64::from(self.asked))
    }
}
