//! The `Idempotency-Key` header, by which a repeated request is recognised.

use adjutant_core::InputId;
use axum::http::HeaderMap;

use crate::problem::Problem;

const HEADER: &str = "idempotency-key";
/// Longest accepted key, in characters.
const CHARS_MAX: usize = 200;

/// Returns the request's idempotency key, if it has one.
///
/// # Errors
/// A problem 422 if the key is empty, too long or not printable ASCII.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<InputId>, Problem> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    // `to_str` accepts tabs, which the documented pattern does not.
    let key = value
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|key| key.len() <= CHARS_MAX && !key.contains('\t'));
    match key.and_then(|key| InputId::new(key).ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(Problem::invalid(format!(
            "Idempotency-Key holds 1 to {CHARS_MAX} ASCII characters"
        ))),
    }
}
