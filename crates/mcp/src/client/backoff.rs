//! How a lost connection is made again: with growing pauses, and not for ever.

use std::time::Duration;

/// The pauses between attempts to get a lost server back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Before the first attempt; doubled before each further one.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
    /// After so many attempts in a row it is given up, until a call asks for the server again.
    pub attempts_max: u32,
    /// A connection that held this long counts as a good one: the next loss starts with the first
    /// pause.
    pub good_after: Duration,
}

impl Default for Backoff {
    /// 0.25 s, 0.5 s, 1 s, 2 s, 4 s, then given up; a connection is good after 60 s.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            longest: Duration::from_secs(10),
            attempts_max: 5,
            good_after: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The pause before attempt number `attempt`, counted from 1.
    pub(super) fn pause(&self, attempt: u32) -> Duration {
        self.first
            .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)))
            .min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let pauses: Vec<u128> = [1, 2, 3, 7, u32::MAX]
            .map(|attempt| backoff.pause(attempt).as_millis())
            .into();
        assert_eq!(pauses, [250, 500, 1_000, 10_000, 10_000]);
    }
}
