//! Panics in the log, in place of the lines that the standard library writes.

use std::panic::PanicHookInfo;

/// Logs a panic, with its place, in the span in which it happened.
pub(super) fn log(panic: &PanicHookInfo<'_>) {
    let (words, place) = (
        panic.payload_as_str(),
        panic.location().map(tracing::field::display),
    );
    tracing::error!(error = words, place, "a thread panicked");
}
