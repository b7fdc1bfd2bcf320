//! The error for stored values that cannot be decoded.

use adjutant_core::port::StoreError;

/// Returns the error for a stored value that cannot be decoded. A `reason` that is an error becomes
/// its source.
pub(crate) fn unreadable(
    what: &str,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    let reason = reason.into();
    StoreError::unreadable(format!("{what}: {reason}; it is left as it is")).with_source(reason)
}
