//! The rate at which prompts are read, and the size of the chunks that follows from it.

use std::time::Duration;

/// Tokens of a chunk at least: fewer are read hardly faster.
pub(crate) const CHUNK_TOKENS_MIN: usize = 8;
/// Tokens of a chunk at most: more are not read faster per token.
const CHUNK_TOKENS_MAX: usize = 128;
/// Tokens of the first chunk, before anything was measured.
const CHUNK_TOKENS_FIRST: usize = 16;
/// Intended time of a chunk, seconds: reading is cancelled, and progress shown, between chunks.
const CHUNK_SECONDS: f64 = 1.0;
/// Weight of the newest measurement; what else runs on the machine comes and goes.
const NEWEST: f64 = 0.5;

/// The measured rate of reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    tokens_per_second: Option<f64>,
}

impl Pace {
    /// Takes that `tokens` were read in `elapsed`. A few tokens say little about many and are not counted.
    pub(crate) fn add(&mut self, tokens: usize, elapsed: Duration) {
        if tokens < CHUNK_TOKENS_MIN || elapsed.is_zero() {
            return;
        }
        let newest = tokens as f64 / elapsed.as_secs_f64();
        let rate = self.tokens_per_second.map_or(newest, |before| before + NEWEST * (newest - before));
        self.tokens_per_second = Some(rate);
    }

    /// Tokens that take about a second.
    pub(crate) fn chunk_tokens(&self) -> usize {
        self.tokens_per_second.map_or(CHUNK_TOKENS_FIRST, |rate| {
            ((rate * CHUNK_SECONDS) as usize).clamp(CHUNK_TOKENS_MIN, CHUNK_TOKENS_MAX)
        })
    }

    /// Estimates the time to read `tokens`. `None`: nothing was measured yet.
    pub(crate) fn time_for(&self, tokens: usize) -> Option<Duration> {
        Duration::try_from_secs_f64(tokens as f64 / self.tokens_per_second?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_the_rate_within_their_bounds() {
        let mut pace = Pace::default();
        assert_eq!((pace.chunk_tokens(), pace.time_for(100)), (CHUNK_TOKENS_FIRST, None));
        pace.add(16, Duration::from_millis(1600));
        assert_eq!((pace.chunk_tokens(), pace.time_for(100)), (10, Some(Duration::from_secs(10))));
        pace.add(10, Duration::from_secs(10));
        assert_eq!(pace.chunk_tokens(), CHUNK_TOKENS_MIN);
        for _ in 0..20 {
            pace.add(128, Duration::from_millis(100));
        }
        assert_eq!(pace.chunk_tokens(), CHUNK_TOKENS_MAX);
    }

    #[test]
    fn a_single_token_does_not_count() {
        let mut pace = Pace::default();
        pace.add(1, Duration::from_secs(1));
        pace.add(64, Duration::ZERO);
        assert_eq!(pace.chunk_tokens(), CHUNK_TOKENS_FIRST);
    }
}
