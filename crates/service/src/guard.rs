//! Host and origin checks. They protect a service on a local network against DNS rebinding, and
//! against pages of other origins (cross-site request forgery).

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::extract::header_text;
use crate::origins::{Origin, is_allowed};
use crate::problem::Problem;
use crate::state::Shared;

/// Longest host name shown in an error, in characters.
const NAME_MAX: usize = 253;

/// Middleware that refuses requests to an unknown host, and those from pages of other origins.
pub(crate) async fn check(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let trusted = Trusted {
        hosts: &app.hosts,
        origins: &app.origins,
    };
    let checked = check_headers(
        trusted,
        request.method(),
        request.uri().path(),
        request.headers(),
    )
    .and_then(|page| same_host(request.uri(), request.headers()).map(|()| page));
    match checked {
        Ok(page) => {
            request.extensions_mut().insert(page);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Refuses a request whose target names another host than its header `Host`: a proxy in front of
/// the service may have checked the other one.
fn same_host(target: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(authority) = target.authority() else {
        return Ok(());
    };
    let host = headers.get(HOST).map_or(&b""[..], |host| host.as_bytes());
    if authority.as_str().as_bytes().eq_ignore_ascii_case(host) {
        return Ok(());
    }
    Err(Problem::malformed(
        "the request's target names another host than the header Host does",
    ))
}

/// The host names and origins that the service accepts.
#[derive(Clone, Copy)]
struct Trusted<'a> {
    hosts: &'a [String],
    origins: &'a [Origin],
}

/// The kind of page that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// A page of the service itself, or a program that is no browser.
    Own,
    /// A page of another origin. Its browser sends cookies by itself, so a cookie does not
    /// authenticate the user's intent.
    Other,
}

fn check_headers(
    trusted: Trusted<'_>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Page, Problem> {
    // A proxy in front may have checked either of them.
    if headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(Problem::malformed(
            "the request has more than one header Host",
        ));
    }
    let host = header_text(headers, HOST)
        .ok_or_else(|| Problem::forbidden("the request names no host"))?;
    if !has_valid_port(host) {
        return Err(Problem::malformed(
            "the header Host is not a name or an address with an optional port",
        ));
    }
    // The defence against DNS rebinding: the browser believes that the page is of the same origin.
    if !is_own_host(trusted.hosts, host) {
        return Err(unknown_host(name_of(host)));
    }
    // An `Origin` that is not text cannot be an accepted one; `null` never is.
    let origin = headers
        .contains_key(ORIGIN)
        .then(|| header_text(headers, ORIGIN).unwrap_or("null"));
    let other = origin.filter(|origin| !is_own_page(trusted.hosts, host, origin));
    let page = if other.is_some() {
        Page::Other
    } else {
        Page::Own
    };
    let shared = other.is_some_and(|origin| is_allowed(trusted.origins, origin, path));
    // The MCP specification demands that the origin of every request is checked, also of a GET.
    if (method.is_safe() && path != "/mcp") || shared {
        return Ok(page);
    }
    // Sent by browsers; older ones and other programs do not send it.
    let site = header_text(headers, "sec-fetch-site");
    let from_elsewhere = matches!(site, Some("cross-site" | "same-site"));
    match other {
        Some(origin) => Err(Problem::forbidden(format!(
            "pages of another origin may not ask here; if yours is one that may, have serve.origins name {}",
            shown(origin)
        ))),
        None if from_elsewhere && !method.is_safe() => {
            Err(Problem::forbidden("pages of another origin may not ask"))
        }
        None => Ok(page),
    }
}

fn unknown_host(name: &str) -> Problem {
    let name = shown(name);
    Problem::forbidden(format!(
        "the service does not answer to the host name {name}; if it is the service's, add it to serve.hosts: \
         adjutant serve --host {name}, or serve.hosts = [{name}] in the settings"
    ))
}

/// Quotes a client's text for an error message, bounded to the length of a host name.
fn shown(name: &str) -> String {
    let short = name.chars().take(NAME_MAX).collect::<String>();
    format!("{short:?}")
}

/// Returns true if the page was loaded from the requested host, or, behind a proxy that uses
/// another host name, from one of the service's names.
fn is_own_page(hosts: &[String], host: &str, origin: &str) -> bool {
    let Some((_, origin)) = origin.split_once("://") else {
        return false;
    };
    origin == host
        || hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name_of(origin)))
}

/// Returns true if nothing but a port follows the name or address of a host (RFC 9110, 7.2).
fn has_valid_port(host: &str) -> bool {
    let after = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("?", |(_, after)| after),
        None => host.find(':').and_then(|at| host.get(at..)).unwrap_or(""),
    };
    match after.strip_prefix(':') {
        // RFC 3986 allows a colon without a port.
        Some(port) => {
            port.is_empty()
                || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
        }
        None => after.is_empty(),
    }
}

/// Returns the host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Returns true if the service answers to this host. IP addresses are safe from DNS rebinding;
/// names have to be configured.
fn is_own_host(hosts: &[String], host: &str) -> bool {
    let name = name_of(host);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let trusted = Trusted {
            hosts: &["tasks.example".to_owned()],
            origins: &["http://localhost:5173".parse().unwrap()],
        };
        check_headers(trusted, &method, "/v1/chat", &headers).is_ok()
    }

    #[test]
    fn only_known_host_names_and_ip_addresses_are_accepted() {
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "localhost:",
            "TASKS.example",
            "10.0.0.7",
        ] {
            assert!(check(Method::POST, host, None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost:8080evil",
            "localhost:99999",
            "localhost:8080:80",
            "[::1]evil",
            "[::1",
            "",
        ] {
            assert!(!check(Method::POST, host, None), "{host}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:8080".parse().unwrap());
        let same = |target: &str| same_host(&target.parse().unwrap(), &headers).is_ok();
        assert!(
            same("/v1/me") && same("http://localhost:8080/v1/me") && same("http://LOCALHOST:8080/")
        );
        for other in [
            "http://evil.example/",
            "http://localhost/",
            "http://localhost:8080@evil.example/",
            "http://a@localhost:8080/",
        ] {
            assert!(!same(other), "{other}");
        }
        headers.append(HOST, "localhost:8080".parse().unwrap());
        assert!(
            check_headers(
                Trusted {
                    hosts: &[],
                    origins: &[]
                },
                &Method::GET,
                "/v1/me",
                &headers
            )
            .is_err()
        );
    }

    #[test]
    fn pages_of_other_origins_cannot_change_anything() {
        assert!(check(
            Method::POST,
            "localhost:8080",
            Some("http://localhost:8080")
        ));
        assert!(check(
            Method::POST,
            "localhost:8080",
            Some("http://localhost:5173")
        ));
        for origin in [
            "https://evil.example",
            "http://localhost:9090",
            "https://localhost:5173",
            "null",
        ] {
            assert!(
                !check(Method::POST, "localhost:8080", Some(origin)),
                "{origin}"
            );
        }
        assert!(check(
            Method::GET,
            "localhost:8080",
            Some("https://evil.example")
        ));
        // A proxy may use another host name than its users.
        assert!(check(
            Method::POST,
            "127.0.0.1:8080",
            Some("https://tasks.example")
        ));
        for origin in [
            "https://tasks.example.evil.example",
            "tasks.example",
            "https://evil.example:443",
        ] {
            assert!(
                !check(Method::POST, "127.0.0.1:8080", Some(origin)),
                "{origin}"
            );
        }
    }
}
