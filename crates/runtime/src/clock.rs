//! The time.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock; by default the system's.
#[derive(Clone)]
pub(crate) struct Clock(pub(crate) Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(system_time))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Returns the time by the system's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else is handed"
)]
pub(crate) fn system_time() -> Timestamp {
    Timestamp::now()
}

/// Returns the milliseconds since a moment.
pub(crate) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
