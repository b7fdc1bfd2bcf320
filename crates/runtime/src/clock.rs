//! The clock: the system's, or one that a test provides.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

/// A source of the current time. Default: the system's clock.
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

/// Returns the current time by the system's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else is handed"
)]
pub(crate) fn system_time() -> Timestamp {
    Timestamp::now()
}

/// Returns the milliseconds that have passed since an instant.
pub(crate) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
