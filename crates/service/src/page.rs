//! The web page: its files, as they are in `web/`. What it shows and does goes through the public
//! routes.
//!
//! There is no build step. A debug build reads the files from the folder at each request; a release
//! build holds them.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::Embed;

use crate::problem::Problem;
use crate::state::Shared;

#[derive(Embed)]
#[folder = "web/"]
struct Files;

/// The page, its files, and the icon that browsers ask for by themselves. What may be loaded is
/// said by the router, for all addresses alike.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/",
            get(async |headers: HeaderMap| file("index.html", &headers)),
        )
        .route(
            "/favicon.ico",
            get(async |headers: HeaderMap| file("favicon.ico", &headers)),
        )
        .route(
            "/web/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)),
        )
}

/// A file, or that the browser has it already: it asks each time, so that nobody runs yesterday's
/// page.
fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(found) = Files::get(path) else {
        return Problem::unknown("file").into_response();
    };
    // Weak: on its way it may be compressed.
    let tag = format!(
        "W/\"{}\"",
        URL_SAFE_NO_PAD.encode(found.metadata.sha256_hash())
    );
    let Ok(etag) = HeaderValue::from_str(&tag) else {
        return Problem::internal().into_response();
    };
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .unwrap_or_default();
    let cache = [
        (ETAG, etag),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    if known.split(',').any(|known| known.trim() == tag) {
        return (StatusCode::NOT_MODIFIED, cache).into_response();
    }
    let kind = HeaderValue::from_str(&content_type(found.metadata.mimetype()));
    let Ok(kind) = kind else {
        return Problem::internal().into_response();
    };
    (cache, [(CONTENT_TYPE, kind)], found.data).into_response()
}

/// Texts are UTF-8, all of them.
fn content_type(kind: &str) -> String {
    if kind.starts_with("text/") {
        format!("{kind}; charset=utf-8")
    } else {
        kind.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get_with(path: &str, known: Option<&HeaderValue>) -> Response {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            headers.insert(IF_NONE_MATCH, known.clone());
        }
        file(path, &headers)
    }

    #[test]
    fn files_have_their_type_and_are_asked_for_again() {
        for (path, kind) in [
            ("index.html", "text/html; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("style/base.css", "text/css; charset=utf-8"),
            ("favicon.svg", "image/svg+xml"),
            ("favicon.ico", "image/x-icon"),
            ("icons/192.png", "image/png"),
            ("manifest.webmanifest", "application/manifest+json"),
        ] {
            let response = get_with(path, None);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], kind, "{path}");
            assert_eq!(response.headers()[CACHE_CONTROL], "no-cache", "{path}");
        }
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let tag = get_with("app.js", None).headers()[ETAG].clone();
        assert_eq!(
            get_with("app.js", Some(&tag)).status(),
            StatusCode::NOT_MODIFIED
        );
        let both = HeaderValue::from_str(&format!("W/\"old\", {}", tag.to_str().unwrap())).unwrap();
        assert_eq!(
            get_with("app.js", Some(&both)).status(),
            StatusCode::NOT_MODIFIED
        );
        let old = HeaderValue::from_static("W/\"old\"");
        assert_eq!(get_with("app.js", Some(&old)).status(), StatusCode::OK);
    }

    #[test]
    fn there_is_nothing_outside_the_folder() {
        for path in [
            "../Cargo.toml",
            "/etc/passwd",
            "style/../../Cargo.toml",
            "",
            "style",
            "nothing.js",
        ] {
            assert_eq!(
                get_with(path, None).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }
}
