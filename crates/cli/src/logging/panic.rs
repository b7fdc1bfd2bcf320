//! Logs panics instead of the standard library's message.

use std::panic::PanicHookInfo;

/// Logs a panic with its location, in the span in which it happened.
pub(super) fn log(panic: &PanicHookInfo<'_>) {
    let (words, place) = (
        panic.payload_as_str(),
        panic.location().map(tracing::field::display),
    );
    tracing::error!(error = words, place, "a thread panicked");
}
