//! The cost of validating a value.

/// The cost of validating a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Evaluated keywords: each subschema, and each name or value that it lists.
    pub(super) checks: u64,
    /// Work for each byte of text, in sixteenths of a state of a regular expression.
    pub(super) reads: u64,
    /// Number of regular expressions that backtrack.
    pub(super) backtracks: u64,
}

impl Load {
    /// The cost of evaluating one keyword.
    pub(super) const ONE_CHECK: Self = Self {
        checks: 1,
        reads: 0,
        backtracks: 0,
    };

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            checks: self.checks.saturating_add(other.checks),
            reads: self.reads.saturating_add(other.reads),
            backtracks: self.backtracks.saturating_add(other.backtracks),
        }
    }
}
