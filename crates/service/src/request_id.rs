//! The name of a request: what its answer, its problem and the decision log call it by.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The header that holds it. What a client sends is kept; otherwise one is made.
pub(crate) const HEADER: &str = "x-request-id";

/// A longer one of a client's is not written down, in bytes.
const WRITTEN_MAX: usize = 200;

/// The name of this request, as it is written into the decision log.
pub(crate) struct RequestId(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = parts.headers.get(HEADER).and_then(|id| id.to_str().ok()).map(str::trim);
        Ok(Self(id.filter(|id| (1..=WRITTEN_MAX).contains(&id.len())).map(str::to_owned)))
    }
}
