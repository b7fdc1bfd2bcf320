//! The number of threads that the engine should compute with.

use std::fs;
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

/// The most threads that make a model of this size faster.
const THREADS_MAX: usize = 8;

/// The number of measurements of the load, of which the median is used.
const SAMPLES: usize = 5;
const SAMPLE_EVERY: Duration = Duration::from_millis(2);

/// Returns the number of threads that is fastest at present, from 1 to 8; takes about 10 ms.
///
/// The engine's threads wait for each other in busy loops, so one of them that has to share its
/// core stops all: on two cores beside other work, one thread was measured to be two to three times
/// as fast as two. This counts the cores that the process may use, minus those that other processes
/// keep busy (Linux only).
///
/// The engine reads `CANDLE_NUM_THREADS` and `RAYON_NUM_THREADS` once, before the first request. A
/// program can set both to this value in `main`, unless they are set, before it starts any other
/// thread; a library cannot.
///
/// # Examples
/// ```
/// let threads = adjutant_embedded::suggested_threads();
/// assert!((1..=8).contains(&threads));
/// ```
pub fn suggested_threads() -> usize {
    let allowed = available_parallelism().map_or(1, usize::from);
    let ours = candle_core::utils::get_num_threads()
        .min(allowed)
        .clamp(1, THREADS_MAX);
    let mut idle: Vec<usize> = (0..SAMPLES)
        .filter_map(|_| {
            sleep(SAMPLE_EVERY);
            idle_processors(
                &fs::read_to_string("/proc/loadavg").ok()?,
                &fs::read_to_string("/proc/stat").ok()?,
            )
        })
        .collect();
    // The median, because a single sample may catch a short burst of work.
    idle.sort_unstable();
    // In a container `/proc` shows the whole machine, so the idle cores are the machine's too.
    idle.get(idle.len() / 2)
        .map_or(ours, |&idle| ours.min(idle.max(1)))
}

/// Counts the processors that only this process uses. `load` is `/proc/loadavg`, whose fourth word
/// begins with the number of running threads, including this one; `stat` is `/proc/stat`, with a
/// line per processor.
fn idle_processors(load: &str, stat: &str) -> Option<usize> {
    let running: usize = load
        .split_whitespace()
        .nth(3)?
        .split_once('/')?
        .0
        .parse()
        .ok()?;
    let numbered = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let processors = stat.lines().filter(numbered).count();
    Some(processors.saturating_sub(running.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_processors_are_left_to_others() {
        let stat = "cpu  1 2 3\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
        assert_eq!(
            idle_processors("0.10 0.20 0.30 1/345 6789\n", stat),
            Some(2)
        );
        assert_eq!(
            idle_processors("0.10 0.20 0.30 2/345 6789\n", stat),
            Some(1)
        );
        assert_eq!(
            idle_processors("0.10 0.20 0.30 9/345 6789\n", stat),
            Some(0)
        );
        assert_eq!(idle_processors("", stat), None);
    }

    #[test]
    fn there_is_always_one() {
        assert!((1..=THREADS_MAX).contains(&suggested_threads()));
    }
}
