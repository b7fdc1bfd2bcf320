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

/// Parses a stored text, `what` being its name in the error.
pub(crate) fn parse<T>(text: &str, what: &str) -> Result<T, StoreError>
where
    T: std::str::FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    text.parse().map_err(|error| unreadable(what, error))
}
