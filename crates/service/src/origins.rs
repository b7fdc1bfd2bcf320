//! Origins beside the service's own whose pages may ask it, with a token: front ends that are
//! served elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_DISPOSITION, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// Time for which a browser need not ask again whether a page may ask. Chromium believes two hours
/// at most.
const MAX_AGE: Duration = Duration::from_secs(2 * 60 * 60);

/// Headers that pages of other origins may read, beside those that browsers show anyway.
const EXPOSED: [HeaderName; 13] = [
    ALLOW,
    CONTENT_DISPOSITION,
    LOCATION,
    RETRY_AFTER,
    WWW_AUTHENTICATE,
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
];

/// An origin as browsers write it: scheme, host and, unless it is the scheme's usual one, port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// Text that is no origin which may be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrigin {
    /// Any page of the web could ask.
    #[error(
        "{0:?} would let every page of the web ask: name the origins one by one, such as http://localhost:5173"
    )]
    Every(String),
    /// Sandboxed pages and files have the origin `null`, whoever wrote them.
    #[error(
        "\"null\" is the origin of every file and sandboxed page, whoever wrote it, so it cannot be allowed"
    )]
    Null,
    /// Not scheme, host and port.
    #[error("{0:?} is no origin: it is scheme, host and port, such as http://localhost:5173")]
    Other(String),
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let text = text.trim();
        let other = || InvalidOrigin::Other(text.to_owned());
        if text.contains('*') {
            return Err(InvalidOrigin::Every(text.to_owned()));
        }
        if text.eq_ignore_ascii_case("null") {
            return Err(InvalidOrigin::Null);
        }
        let url = reqwest::Url::parse(text).map_err(|_| other())?;
        let bare = url.username().is_empty()
            && url.password().is_none()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none();
        let host = url
            .host_str()
            .filter(|host| bare && !host.is_empty())
            .ok_or_else(other)?;
        // Pages of programs and of browsers' extensions have schemes of their own, which the URL
        // standard gives no origin.
        let origin = url.origin();
        Ok(Self(match (origin.is_tuple(), url.port()) {
            (true, _) => origin.ascii_serialization(),
            (false, Some(port)) => format!("{}://{host}:{port}", url.scheme()),
            (false, None) => format!("{}://{host}", url.scheme()),
        }))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether pages of this origin, as a browser names it, may ask for what is at this path.
pub(crate) fn is_allowed(origins: &[Origin], origin: &str, path: &str) -> bool {
    is_shared(path) && origins.iter().any(|known| known.0 == origin)
}

/// Returns the answers to browsers' questions whether a page may ask, and the headers that let it
/// read what it is answered. Cookies are never allowed: what opens the service for other origins is
/// a token alone.
pub(crate) fn layer(origins: &[Origin]) -> CorsLayer {
    let origins = origins.to_vec();
    let allowed = AllowOrigin::predicate(move |origin: &HeaderValue, request| {
        origin
            .to_str()
            .is_ok_and(|origin| is_allowed(&origins, origin, request.uri.path()))
    });
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        // Client libraries have headers of their own, which change nothing here.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE)
}

/// The interfaces for programs. What signs a browser in is for our own page alone.
fn is_shared(path: &str) -> bool {
    let session = path == "/v1/session" || path.starts_with("/v1/session/");
    (path.starts_with("/v1/") && !session) || path == "/mcp" || path == "/openapi.json"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for (given, origin) in [
            ("http://localhost:5173", "http://localhost:5173"),
            (" HTTP://LocalHost:5173/ ", "http://localhost:5173"),
            ("https://app.example:443", "https://app.example"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("tauri://localhost", "tauri://localhost"),
        ] {
            assert_eq!(given.parse::<Origin>().unwrap().to_string(), origin);
        }
    }

    #[test]
    fn what_would_open_it_to_everybody_is_no_origin() {
        for every in ["*", "https://*.example", "http://localhost:*"] {
            assert_eq!(
                every.parse::<Origin>(),
                Err(InvalidOrigin::Every(every.to_owned()))
            );
        }
        assert_eq!("NULL".parse::<Origin>(), Err(InvalidOrigin::Null));
        for other in [
            "",
            "localhost:5173",
            "localhost",
            "http://",
            "http://a@localhost",
            "http://localhost/app",
            "http://localhost?x",
            "http://localhost#x",
            "data:text/html,x",
            "file:///tmp/page.html",
        ] {
            assert_eq!(
                other.parse::<Origin>(),
                Err(InvalidOrigin::Other(other.to_owned()))
            );
        }
    }

    #[test]
    fn only_interfaces_for_programs_are_shared() {
        let origins = ["http://localhost:5173".parse().unwrap()];
        let allowed = |origin, path| is_allowed(&origins, origin, path);
        for path in [
            "/v1/chat",
            "/v1/threads/1/messages",
            "/mcp",
            "/openapi.json",
        ] {
            assert!(allowed("http://localhost:5173", path), "{path}");
            for other in [
                "http://localhost:5174",
                "https://localhost:5173",
                "http://localhost:5173.evil.example",
                "null",
            ] {
                assert!(!allowed(other, path), "{other} {path}");
            }
        }
        for path in ["/", "/v1/session", "/docs", "/metrics", "/mcp/x", "/v1"] {
            assert!(!allowed("http://localhost:5173", path), "{path}");
        }
    }
}
