//! HTTP requests to an issuer: trusted addresses only, without redirects, bounded in time and size.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Time limit of a request to the issuer, including the response body.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest response body, in bytes.
const SIZE_MAX: usize = 1024 * 1024;

/// Parses an address; `None` unless it is https, or http on this machine.
pub(super) fn trusted_url(address: &str) -> Option<Url> {
    let parsed: Url = address.parse().ok()?;
    let host = parsed
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    // Over http anyone on the way could replace keys or read codes.
    (parsed.scheme() == "https" || (parsed.scheme() == "http" && here)).then_some(parsed)
}

/// Creates a client that follows no redirects, so that keys come only from the configured address.
pub(super) fn client() -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| error.to_string())?
        .with_no_client_auth();
    // reqwest does not set ALPN in a preconfigured TLS; without it HTTP/2 would never be used.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| error_chain(&error))
}

/// Sends a request, and returns the status and the body.
pub(super) async fn send(request: RequestBuilder) -> Result<(u16, String), String> {
    let answer = request.header("accept", "application/json").send();
    let mut answer = answer.await.map_err(|error| error_chain(&error))?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| error_chain(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > SIZE_MAX {
            return Err("its response is longer than 1 MiB".to_owned());
        }
    }
    let body = String::from_utf8(body).map_err(|error| error.to_string())?;
    Ok((answer.status().as_u16(), body))
}

/// Sends a request, and returns the body of a response with status 200.
pub(super) async fn fetch(request: RequestBuilder) -> Result<String, String> {
    match send(request).await? {
        (200, body) => Ok(body),
        (status, _) => Err(format!("it answered with status {status}")),
    }
}

/// Joins the messages of an error and its sources; reqwest's own message names only the outermost.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        message = format!("{message}: {inner}");
        source = inner.source();
    }
    message
}
