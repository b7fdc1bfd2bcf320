//! The time.

use jiff::Timestamp;
use tokio::time::Instant;

/// Returns the time by the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
pub(crate) fn system_time() -> Timestamp {
    Timestamp::now()
}

/// Returns the milliseconds since a moment.
pub(crate) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
