//! The model hub: one ranged download.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::CancellationToken;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tracing::debug;

use super::error::{FetchError, PullError};
use super::part_file::PartFile;
use super::progress::{Report, Step};
use crate::catalogue::KnownModel;

/// The silence after which the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(60);

/// The time between two progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn fetch(
    model: &KnownModel,
    hub: &str,
    connect_timeout: Duration,
    part: &mut PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<(), FetchError> {
    if part.is_whole() {
        return Ok(());
    }
    report.send(part.len(), Step::Connecting);
    let download = download(model, hub, connect_timeout, part, report);
    match cancel.run_until_cancelled(download).await {
        Some(outcome) => outcome,
        None => Err(PullError::Cancelled.into()),
    }
}

async fn download(
    model: &KnownModel,
    hub: &str,
    connect_timeout: Duration,
    part: &mut PartFile,
    report: &mut Report<'_>,
) -> Result<(), FetchError> {
    let client = client(connect_timeout).map_err(FetchError::unreachable)?;
    let url = format!("{hub}/{}", model.hub_path);
    let mut request = client.get(&url);
    if part.len() > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.len()));
    }
    let mut response = request
        .send()
        .await
        .map_err(|error| FetchError::unreachable(error_chain(&error)))?;
    check_response(&response, model, part)?;
    let mut reported = Instant::now();
    report.send(part.len(), Step::Downloading);
    while let Some(bytes) = response
        .chunk()
        .await
        .map_err(|error| FetchError::unreachable(error_chain(&error)))?
    {
        part.append(&bytes)?;
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report.send(part.len(), Step::Downloading);
        }
    }
    report.send(part.len(), Step::Downloading);
    match part.is_whole() {
        true => Ok(()),
        false => Err(FetchError::unreachable(format!(
            "the connection ended after {} bytes",
            part.len()
        ))),
    }
}

/// Checks that the hub is about to send exactly what is missing, and prepares the file for it.
fn check_response(
    response: &Response,
    model: &KnownModel,
    part: &mut PartFile,
) -> Result<(), FetchError> {
    let total = match response.status() {
        StatusCode::OK => {
            // The hub ignored the range and sends the whole file.
            part.restart()?;
            response.content_length()
        }
        StatusCode::PARTIAL_CONTENT => {
            let range = response
                .headers()
                .get(CONTENT_RANGE)
                .and_then(|range| range.to_str().ok());
            // A range that cannot be parsed begins at 0, which is never the one asked for.
            let (start, total) = range.and_then(parse_range).unwrap_or_default();
            if start != part.len() {
                return Err(FetchError::not_there(format!(
                    "it sent another range than the one asked for: {range:?}"
                )));
            }
            Some(total)
        }
        status => return Err(FetchError::not_there(format!("it answered {status}"))),
    };
    match total {
        // Found before the download, not by the digest after a gigabyte.
        Some(total) if total != model.bytes => Err(FetchError::not_there(format!(
            "its file has {total} bytes, the model has {}",
            model.bytes
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Parses the start and the total of `bytes 10-99/100`.
fn parse_range(range: &str) -> Option<(u64, u64)> {
    let (span, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    Some((span.split_once('-')?.0.parse().ok()?, total.parse().ok()?))
}

/// Returns a client that uses ring and the system's certificates. Without certificates it can only
/// use plain HTTP, for a mirror in the local network.
fn client(connect_timeout: Duration) -> Result<Client, String> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
    };
    let trusted = builder()
        .map_err(|error| error.to_string())?
        .with_platform_verifier();
    let mut tls = match trusted {
        Ok(config) => config.with_no_client_auth(),
        // Without certificates a hub over plain http, such as a mirror, still works.
        Err(error) => {
            debug!(%error, "this machine has no CA certificates");
            builder()
                .map_err(|error| error.to_string())?
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    };
    // reqwest adds no ALPN to a preconfigured TLS; without it HTTP/2 is silently never used.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect_timeout)
        .read_timeout(SILENCE)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| error_chain(&error))
}

/// Joins the messages of an error and its sources, because reqwest's own message omits them.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}
