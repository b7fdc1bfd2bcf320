//! CORS: origins besides the service's own whose pages may call it, with a token. For front ends
//! that are served elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_DISPOSITION, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// Time for which a browser may cache a preflight response. Chromium caches for two hours at most.
const MAX_AGE: Duration = Duration::from_secs(2 * 60 * 60);

/// Response headers that pages of other origins may read, besides those that browsers always show.
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

/// An origin as browsers write it: scheme, host and, unless it is the scheme's default, port.
///
/// # Examples
///
/// ```
/// use adjutant_service::Origin;
///
/// let origin: Origin = "HTTP://LocalHost:5173/".parse()?;
/// assert_eq!(origin.to_string(), "http://localhost:5173");
/// assert!("*".parse::<Origin>().is_err());
/// # Ok::<(), adjutant_service::InvalidOrigin>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// An error for a text that is not an origin, or one that must not be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrigin {
    /// A wildcard, with which any page of the web could call the service.
    #[error(
        "{0:?} would let every page of the web ask: name the origins one by one, such as http://localhost:5173"
    )]
    Every(String),
    /// The origin `null`, which all files and sandboxed pages have, also those of an attacker.
    #[error(
        "\"null\" is the origin of every file and sandboxed page, also of an attacker, so it cannot be allowed"
    )]
    Null,
    /// Not a scheme, host and port.
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
        // The message has the expected form, which helps more than the place of the error.
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
        // Desktop applications and browser extensions use their own schemes, for which the URL
        // standard defines no origin.
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

/// Returns true if pages of this origin may send requests to this path.
pub(crate) fn is_allowed(origins: &[Origin], origin: &str, path: &str) -> bool {
    is_shared(path) && origins.iter().any(|known| known.0 == origin)
}

/// Builds the layer that answers preflight requests and adds CORS headers. Credentials are not
/// allowed: pages of other origins authenticate with a token, never with the session cookie.
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
        // Client libraries send headers of their own, which the service ignores.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE)
}

/// Returns true for the APIs for programs. The session routes are for the service's own page only.
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
    fn wildcards_and_null_are_not_origins() {
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
