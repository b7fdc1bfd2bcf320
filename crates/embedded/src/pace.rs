//! The chunks a prompt is read in, and the rate at which it is read.

use std::time::Duration;

/// Tokens of a chunk. Reading is cancelled, kept and reported between chunks, so that larger ones
/// make a person wait: on two cores 32 tokens take less than a second, and 64 are read faster by a
/// seventh.
///
/// One size, whatever the rate: sums of floating-point numbers depend on how many rows are computed
/// at once, and so would answers on what else the machine did.
pub(crate) const CHUNK_TOKENS: usize = 32;
/// Tokens that say something about the rate at least.
const MEASURED_TOKENS_MIN: usize = 8;
/// Weight of the newest measurement; what else runs on the machine comes and goes.
const NEWEST: f64 = 0.5;

/// Returns the number of tokens that are read next, of `wanted` behind `read`. Chunks end at
/// multiples of [`CHUNK_TOKENS`] from the beginning of the head, and behind it from its end: at the
/// same places wherever reading begins.
pub(crate) fn chunk_tokens(read: usize, head: usize, wanted: usize) -> usize {
    let (begin, end) = if read < head {
        (0, head)
    } else {
        (head, usize::MAX)
    };
    let whole = CHUNK_TOKENS - (read - begin) % CHUNK_TOKENS;
    whole.min(end - read).min(wanted)
}

/// The measured rate of reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    tokens_per_second: Option<f64>,
}

impl Pace {
    /// Takes that `tokens` were read in `elapsed`. A few tokens say little about many and are not
    /// counted.
    pub(crate) fn add(&mut self, tokens: usize, elapsed: Duration) {
        if tokens < MEASURED_TOKENS_MIN || elapsed.is_zero() {
            return;
        }
        let newest = tokens as f64 / elapsed.as_secs_f64();
        let rate = self
            .tokens_per_second
            .map_or(newest, |before| before + NEWEST * (newest - before));
        self.tokens_per_second = Some(rate);
    }

    /// Estimates the time to read `tokens`. `None`: nothing was measured yet.
    pub(crate) fn time_for(&self, tokens: usize) -> Option<Duration> {
        Duration::try_from_secs_f64(tokens as f64 / self.tokens_per_second?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `wanted` tokens behind `read`, and gives where the chunks end.
    fn ends(mut read: usize, head: usize, wanted: usize) -> Vec<usize> {
        let end = read + wanted;
        let mut ends = Vec::new();
        while read < end {
            read += chunk_tokens(read, head, end - read);
            ends.push(read);
        }
        ends
    }

    #[test]
    fn chunks_end_at_the_same_places_wherever_reading_begins() {
        assert_eq!(ends(0, 70, 130), [32, 64, 70, 102, 130]);
        assert_eq!(ends(32, 70, 98), [64, 70, 102, 130]);
        assert_eq!(ends(5, 70, 65), [32, 64, 70]);
        assert_eq!(ends(70, 70, 60), [102, 130]);
        assert_eq!(ends(0, 0, 33), [32, 33]);
        assert_eq!(ends(64, 64, 1), [65]);
    }

    #[test]
    fn the_time_that_is_left_follows_the_rate() {
        let mut pace = Pace::default();
        assert_eq!(pace.time_for(100), None);
        pace.add(16, Duration::from_millis(1600));
        assert_eq!(pace.time_for(100), Some(Duration::from_secs(10)));
        for _ in 0..40 {
            pace.add(32, Duration::from_secs(1));
        }
        assert_eq!(
            pace.time_for(64).map(|left| left.as_secs_f64().round()),
            Some(2.0)
        );
    }

    #[test]
    fn a_single_token_does_not_count() {
        let mut pace = Pace::default();
        pace.add(1, Duration::from_secs(1));
        pace.add(64, Duration::ZERO);
        assert_eq!(pace.time_for(1), None);
    }
}
