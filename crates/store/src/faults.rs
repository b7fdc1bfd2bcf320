//! Faults of the system's clock, for crash tests. Without the feature `faults` there are none.

use jiff::Timestamp;

/// Returns the time that a clock shows which has stepped by the number of seconds in the file that
/// the variable `ADJUTANT_CLOCK_STEP` names. Without it, or without the feature `faults`, the clock
/// is right.
#[cfg(feature = "faults")]
#[expect(
    clippy::disallowed_methods,
    reason = "only crash tests read this variable, and only they compile this"
)]
pub(crate) fn stepped(now: Timestamp) -> Timestamp {
    let file = std::env::var_os("ADJUTANT_CLOCK_STEP");
    let seconds = file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    let step = jiff::SignedDuration::from_secs(seconds.unwrap_or_default());
    now.checked_add(step).unwrap_or(now)
}

#[cfg(not(feature = "faults"))]
pub(crate) fn stepped(now: Timestamp) -> Timestamp {
    now
}
