//! Periods in days, up to now.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// Number of days to look back: 1 to 366.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
pub(super) struct Days(u32);

impl Days {
    pub(super) const DAY: Self = Self(1);
    pub(super) const WEEK: Self = Self(7);
    pub(super) const MONTH: Self = Self(30);
    const MAX: u32 = 366;

    /// Returns the time this many days before `now`.
    pub(super) fn before(self, now: Timestamp) -> Timestamp {
        now.checked_sub(SignedDuration::from_hours(24 * i64::from(self.0)))
            .unwrap_or(Timestamp::MIN)
    }
}

impl TryFrom<u32> for Days {
    type Error = String;
    fn try_from(days: u32) -> Result<Self, String> {
        match (1..=Self::MAX).contains(&days) {
            true => Ok(Self(days)),
            false => Err(format!("days is from 1 to {}, not {days}", Self::MAX)),
        }
    }
}
