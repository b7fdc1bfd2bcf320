//! The files of the web page, from the folder `web/`. The page uses the public routes only.
//!
//! There is no build step. A debug build reads the files at each request; a release build embeds
//! them. The page names its files by addresses with a hash of all of them, so that browsers keep
//! them until the next version, and names its modules, so that they are not found one by one.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::Embed;
use sha2::{Digest as _, Sha256};

use crate::extract::header_text;
use crate::problem::Problem;
use crate::state::Shared;

#[derive(Embed)]
#[folder = "web/"]
struct Files;

/// The beginning of a path that names a version: `v-HASH/app.js`.
const VERSION: &str = "v-";

/// The place of the list of modules in `index.html`.
const MODULES: &str = "<!-- modules -->";

/// Modules that the page loads when it needs them, or, as a script that is no module, itself.
const LOADED_LATER: [&str; 4] = [
    "theme-first.js",
    "vendor/highlight.min.js",
    "vendor/temml.min.js",
    "words/",
];

/// Browsers ask at each use, so that they never run an outdated page.
const ASKED_FOR: &str = "no-cache";
/// Browsers keep a file of this version for a year.
const KEPT: &str = "public, max-age=31536000, immutable";

/// The page with the addresses of one version of its files.
struct Index {
    /// `v-` and a hash over the names and contents of all files.
    version: String,
    html: String,
}

impl Index {
    /// Returns the page. A debug build makes it anew, because the files may have changed.
    fn now() -> Option<Arc<Self>> {
        Self::made(cfg!(debug_assertions))
    }

    /// Returns the page as it was last made, or makes it if `anew` is true or it never was.
    fn made(anew: bool) -> Option<Arc<Self>> {
        static LAST: Mutex<Option<Arc<Index>>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if anew || last.is_none() {
            *last = Some(Arc::new(Self::from_files()?));
        }
        last.clone()
    }

    fn from_files() -> Option<Self> {
        let mut names: Vec<_> = Files::iter().collect();
        names.sort_unstable();
        let mut hash = Sha256::new();
        for name in &names {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(Files::get(name)?.metadata.sha256_hash());
        }
        // As many bytes as keep two versions apart.
        let hash = URL_SAFE_NO_PAD.encode(hash.finalize().get(..12)?);
        let version = format!("{VERSION}{hash}");
        let is_module = |name: &str| {
            name.ends_with(".js") && !LOADED_LATER.iter().any(|later| name.starts_with(later))
        };
        let mut modules = String::new();
        for name in names.iter().filter(|name| is_module(name)) {
            let _ = writeln!(modules, "<link rel=\"modulepreload\" href=\"/web/{name}\">");
        }
        let file = Files::get("index.html")?;
        let html = std::str::from_utf8(&file.data).ok()?;
        let html = html
            .replace(MODULES, modules.trim_end())
            .replace("\"/web/", &format!("\"/web/{version}/"));
        Some(Self { version, html })
    }
}

/// Routes of the page, its files and the icon that browsers request by themselves. The router adds
/// the Content Security Policy.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/", get(async |headers: HeaderMap| page(&headers)))
        .route(
            "/favicon.ico",
            get(async |headers: HeaderMap| file("favicon.ico", &headers)),
        )
        .route(
            "/web/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)),
        )
}

/// Returns the page, or 304 if the browser has it.
fn page(headers: &HeaderMap) -> Response {
    let Some(index) = Index::now() else {
        return Problem::unknown("file").into_response();
    };
    let tag = tag_of(&Sha256::digest(&index.html));
    if is_known(headers, &tag) {
        return not_modified(&tag, ASKED_FOR);
    }
    let kind = content_type("text/html");
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, ASKED_FOR)];
    (head, [(CONTENT_TYPE, kind)], index.html.clone()).into_response()
}

/// Returns a file, or 304 if the browser has it. An address of this version is kept; under another
/// one, such as of a page that was loaded before the service was replaced, there is the file of
/// now, which is asked for again.
fn file(path: &str, headers: &HeaderMap) -> Response {
    let versioned = path
        .split_once('/')
        .filter(|(version, _)| version.starts_with(VERSION));
    let (version, path) = versioned.map_or((None, path), |(version, path)| (Some(version), path));
    let Some(found) = Files::get(path) else {
        return Problem::unknown("file").into_response();
    };
    let is_now = |version| Index::made(false).is_some_and(|index| index.version == version);
    let caching = if version.is_some_and(is_now) {
        KEPT
    } else {
        ASKED_FOR
    };
    let tag = tag_of(&found.metadata.sha256_hash());
    if is_known(headers, &tag) {
        return not_modified(&tag, caching);
    }
    let kind = content_type(found.metadata.mimetype());
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, caching)];
    (head, [(CONTENT_TYPE, kind)], found.data).into_response()
}

/// Returns a weak tag, because the compression layer may change the bytes.
fn tag_of(hash: &[u8]) -> String {
    format!("W/\"{}\"", URL_SAFE_NO_PAD.encode(hash))
}

/// Returns true if the browser has the content with this tag. It may send several tags, separated
/// by commas.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = header_text(headers, IF_NONE_MATCH).unwrap_or_default();
    known.split(',').any(|known| known.trim() == tag)
}

fn not_modified(tag: &str, caching: &'static str) -> Response {
    let head = [(ETAG, tag), (CACHE_CONTROL, caching)];
    (StatusCode::NOT_MODIFIED, head).into_response()
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
    fn the_page_names_every_module_and_keeps_them_until_they_change() {
        let index = Index::now().unwrap();
        let addresses: Vec<&str> = index
            .html
            .split('"')
            .filter(|part| part.starts_with("/web/"))
            .collect();
        let named = |name: &str| format!("/web/{}/{name}", index.version);
        for module in [
            "actions/session.js",
            "parts/chat.js",
            "app.js",
            "style/base.css",
        ] {
            assert!(addresses.contains(&named(module).as_str()), "{module}");
        }
        for later in ["words/en.js", "vendor/temml.min.js"] {
            assert!(!addresses.contains(&named(later).as_str()), "{later}");
        }
        for address in addresses {
            let response = get_with(&address["/web/".len()..], None);
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            assert_eq!(response.headers()[CACHE_CONTROL], KEPT, "{address}");
        }
        let other = get_with("v-other/app.js", None);
        assert_eq!(other.status(), StatusCode::OK);
        assert_eq!(other.headers()[CACHE_CONTROL], ASKED_FOR);

        let response = page(&HeaderMap::new());
        assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(response.headers()[CACHE_CONTROL], ASKED_FOR);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, response.headers()[ETAG].clone());
        assert_eq!(page(&headers).status(), StatusCode::NOT_MODIFIED);
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
            "v-",
            "v-/",
            "v-x/../Cargo.toml",
            "v-x/v-x/app.js",
        ] {
            assert_eq!(
                get_with(path, None).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }
}
