//! Asking an issuer over HTTP: only at addresses that can be trusted, without following it
//! elsewhere, and bounded in time and size.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Time limit of a request to the issuer, its answer included.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const SIZE_MAX: usize = 1024 * 1024;

/// Returns the address, if it is https, or http on this machine.
pub(super) fn trusted(address: &str) -> Option<Url> {
    let parsed: Url = address.parse().ok()?;
    let host = parsed
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (parsed.scheme() == "https" || (parsed.scheme() == "http" && here)).then_some(parsed)
}

/// Returns a client without redirects: what is asked for is where the operator said, or nowhere.
pub(super) fn client() -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| error.to_string())?
        .with_no_client_auth();
    // A preconfigured TLS gets no ALPN from the client; without it HTTP/2 is silently never used.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .timeout(PATIENCE)
        .build()
        .map_err(|error| causes(&error))
}

/// Sends a request and reads the status and the whole answer as text.
pub(super) async fn ask(request: RequestBuilder) -> Result<(u16, String), String> {
    let answer = request.header("accept", "application/json").send();
    let mut answer = answer.await.map_err(|error| causes(&error))?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| causes(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > SIZE_MAX {
            return Err("its answer is longer than 1 MiB".to_owned());
        }
    }
    let body = String::from_utf8(body).map_err(|error| error.to_string())?;
    Ok((answer.status().as_u16(), body))
}

/// Sends a request whose answer has to be 200.
pub(super) async fn read(request: RequestBuilder) -> Result<String, String> {
    match ask(request).await? {
        (200, body) => Ok(body),
        (status, _) => Err(format!("it answered with status {status}")),
    }
}

/// An error and what is behind it: this library's own words name only the outermost.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}
