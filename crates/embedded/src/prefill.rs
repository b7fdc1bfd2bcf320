//! Prefill: the chunks in which a prompt is computed, and the rate at which that happens.

use std::time::Duration;

/// Tokens of a chunk. Cancellation, reports and the disk cache act between chunks, so larger ones
/// make users wait: on two cores 32 tokens take less than a second, and 64 are computed only a
/// seventh faster.
///
/// The size does not depend on the rate: floating-point sums depend on how many rows are computed
/// at once, and answers must not depend on what else the machine does.
pub(crate) const CHUNK_TOKENS: usize = 32;
/// The fewest tokens that make a useful measurement of the rate.
const MEASURED_TOKENS_MIN: usize = 8;
/// Weight of the newest measurement: other load on the machine comes and goes.
const NEWEST: f64 = 0.5;

/// Returns the length of the next chunk, of `wanted` tokens after the first `done`. Chunks end at
/// multiples of [`CHUNK_TOKENS`] from the beginning of the head, and after the head from its end,
/// so the boundaries do not depend on where the computation starts.
pub(crate) fn chunk_len(done: usize, head: usize, wanted: usize) -> usize {
    let (begin, end) = if done < head {
        (0, head)
    } else {
        (head, usize::MAX)
    };
    // Chunks end at fixed places: sums of floats depend on the rows that are computed at once, and
    // an answer must not depend on where the computation was interrupted.
    let whole = CHUNK_TOKENS - (done - begin) % CHUNK_TOKENS;
    whole.min(end - done).min(wanted)
}

/// The measured rate of prefill.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrefillRate {
    tokens_per_second: Option<f64>,
}

impl PrefillRate {
    /// Records that `tokens` were computed in `elapsed`. Too few tokens are ignored, because their
    /// rate does not predict that of many.
    pub(crate) fn record(&mut self, tokens: usize, elapsed: Duration) {
        if tokens < MEASURED_TOKENS_MIN || elapsed.is_zero() {
            return;
        }
        let newest = tokens as f64 / elapsed.as_secs_f64();
        let rate = self
            .tokens_per_second
            .map_or(newest, |before| before + NEWEST * (newest - before));
        self.tokens_per_second = Some(rate);
    }

    /// Estimates the time to compute `tokens`; `None` before the first measurement.
    pub(crate) fn estimate(&self, tokens: usize) -> Option<Duration> {
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
            read += chunk_len(read, head, end - read);
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
        let mut rate = PrefillRate::default();
        assert_eq!(rate.estimate(100), None);
        rate.record(16, Duration::from_millis(1600));
        assert_eq!(rate.estimate(100), Some(Duration::from_secs(10)));
        for _ in 0..40 {
            rate.record(32, Duration::from_secs(1));
        }
        assert_eq!(
            rate.estimate(64).map(|left| left.as_secs_f64().round()),
            Some(2.0)
        );
    }

    #[test]
    fn a_single_token_does_not_count() {
        let mut rate = PrefillRate::default();
        rate.record(1, Duration::from_secs(1));
        rate.record(64, Duration::ZERO);
        assert_eq!(rate.estimate(1), None);
    }
}
