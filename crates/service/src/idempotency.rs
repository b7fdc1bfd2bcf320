//! `Idempotency-Key`: what a client calls its request, so that sending it again does nothing twice.

use adjutant_core::InputId;
use axum::http::HeaderMap;

use crate::problem::Problem;

const HEADER: &str = "idempotency-key";
/// A client's own name for a request may be this long, in characters.
const CHARS_MAX: usize = 200;

/// Returns what the client calls its request. `None`: it gives it no name.
///
/// # Errors
/// A problem that says so, if the name is empty, too long or not ASCII.
pub(crate) fn request_name(headers: &HeaderMap) -> Result<Option<InputId>, Problem> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let name = value
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|name| name.len() <= CHARS_MAX && !name.contains('\t'));
    match name.and_then(|name| InputId::new(name).ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(Problem::invalid(format!(
            "Idempotency-Key holds 1 to {CHARS_MAX} ASCII characters"
        ))),
    }
}
