//! The id of a request, in the header `X-Request-Id`. It is in the response, in problem documents,
//! in the service's log and in the decision log.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::extract::header_text;

/// Name of the header, in requests and responses.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Longest accepted id of a client, in characters.
const LENGTH_MAX: usize = 64;

/// Extractor for the request's id, as it is recorded in the decision log.
pub(crate) struct RequestId(pub(crate) Option<String>);

/// Ensures that a request has exactly one id, and returns it. A client's id is kept if it has 1 to
/// 64 letters, digits, dots, hyphens and underscores; anything else is replaced, because the id is
/// written into logs, where it must not forge fields and must be unambiguous.
pub(crate) fn ensure(headers: &mut HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(&HEADER).iter();
    let id = match (given.next(), given.next()) {
        // Two headers would be two ids of one request.
        (Some(id), None) if is_usable(id) => id.clone(),
        _ => new_id(),
    };
    headers.insert(HEADER, id.clone());
    id
}

fn is_usable(id: &HeaderValue) -> bool {
    let in_id = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LENGTH_MAX).contains(&id.len()) && id.as_bytes().iter().all(in_id)
}

fn new_id() -> HeaderValue {
    let id = Uuid::now_v7().to_string();
    // A UUID has only characters that are allowed in headers.
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
}

impl RequestId {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        Self(header_text(headers, HEADER).map(str::to_owned))
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ensured(given: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for id in given {
            headers.append(HEADER, HeaderValue::from_bytes(id.as_bytes()).unwrap());
        }
        let id = ensure(&mut headers);
        assert_eq!(headers.get_all(HEADER).iter().collect::<Vec<_>>(), [&id]);
        id.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_clients_id_is_kept_if_it_is_one() {
        let longest = "a".repeat(LENGTH_MAX);
        for id in [
            "mine",
            "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
            "A.b_c-9",
            &longest,
        ] {
            assert_eq!(ensured(&[id]), id);
        }
    }

    #[test]
    fn an_invalid_request_id_is_replaced() {
        let long = "a".repeat(LENGTH_MAX + 1);
        for id in [
            "",
            " ",
            "x user=admin request=fake",
            "a\tb",
            "a,b",
            "a\"b",
            "ä",
            "a/../b",
            &long,
        ] {
            assert_eq!(
                Uuid::parse_str(&ensured(&[id])).unwrap().get_version_num(),
                7,
                "{id}"
            );
        }
        assert!(
            Uuid::parse_str(&ensured(&["a", "b"])).is_ok()
                && Uuid::parse_str(&ensured(&[])).is_ok()
        );
    }
}
