//! The files of the web page, from the folder `web/`. The page uses the public routes only.
//!
//! There is no build step. A debug build reads the files at each request; a release build embeds
//! them.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::Embed;

use crate::extract::header_text;
use crate::problem::Problem;
use crate::state::Shared;

#[derive(Embed)]
#[folder = "web/"]
struct Files;

/// Routes of the page, its files and the icon that browsers request by themselves. The router adds
/// the Content Security Policy.
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

/// Returns a file, or 304 if the browser has it. Browsers ask at each use, so that they never run
/// an outdated page.
fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(found) = Files::get(path) else {
        return Problem::unknown("file").into_response();
    };
    // A weak tag, because the compression layer may change the bytes.
    let tag = format!(
        "W/\"{}\"",
        URL_SAFE_NO_PAD.encode(found.metadata.sha256_hash())
    );
    // Browsers may send several tags, separated by commas.
    let known = header_text(headers, IF_NONE_MATCH).unwrap_or_default();
    let cache = [(ETAG, tag.as_str()), (CACHE_CONTROL, "no-cache")];
    if known.split(',').any(|known| known.trim() == tag) {
        return (StatusCode::NOT_MODIFIED, cache).into_response();
    }
    let kind = content_type(found.metadata.mimetype());
    (cache, [(CONTENT_TYPE, kind)], found.data).into_response()
}

/// Adds the character set to the type of a text.
fn content_type(kind: &str) -> String {
    if kind.starts_with("text/") {
        format!("{kind}; charset=utf-8")
    } else {
        kind.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
    fn an_unchanged_file_is_304() {
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
