//! Reconnection policy: growing pauses, and a limit of attempts.

use std::time::Duration;

/// The pauses between attempts to reconnect to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Pause before the first attempt; doubled before each further one.
    pub first: Duration,
    /// Bound at which the doubling of pauses stops.
    pub longest: Duration,
    /// Attempts in a row after which the server counts as failed, until a call asks for it again.
    pub attempts_max: u32,
    /// Time after which a connection counts as stable: the next loss starts with the first pause
    /// again.
    pub good_after: Duration,
}

impl Default for Backoff {
    /// Returns pauses of 0.25 s, 0.5 s, 1 s, 2 s and 4 s, then gives up; a connection is stable
    /// after 60 s.
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
    /// Returns the pause before an attempt, counted from 1.
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
