//! Random numbers: everything that a seed decides.

use std::ops::Range;
use std::time::Duration;

/// The random numbers of one run, all derived from its seed.
#[derive(Debug)]
pub(crate) struct Chance(fastrand::Rng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns true in this many of 1,000 cases.
    pub(crate) fn happens(&mut self, of_1000: u32) -> bool {
        self.0.u32(0..1000) < of_1000
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(0..end.max(1))
    }

    /// Returns a time within a range of milliseconds.
    pub(crate) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    /// Returns a number within a range.
    pub(crate) fn number(&mut self, range: Range<i64>) -> i64 {
        self.0.i64(range)
    }

    /// Returns the latency of a message: mostly negligible, sometimes long.
    pub(crate) fn trip(&mut self, slow_of_1000: u32) -> Duration {
        match self.happens(slow_of_1000) {
            true => self.ms(100..8_000),
            false => self.ms(0..12),
        }
    }
}
