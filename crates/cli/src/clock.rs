//! The clock of this machine: the only place of the program that reads it, apart from the log.

use jiff::{Timestamp, Zoned};

use crate::terminal::display::rough;

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "libraries get their times from here"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the current time in the local time zone.
#[expect(
    clippy::disallowed_methods,
    reason = "libraries get their times from here"
)]
pub(crate) fn zoned() -> Zoned {
    Zoned::now()
}

/// Formats a time relative to `now`: `3 min ago`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", rough(now.as_second() - at.as_second()))
}
