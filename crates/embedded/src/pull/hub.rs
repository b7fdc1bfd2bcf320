//! The model hub: one ranged download.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::CancellationToken;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use super::part::PartFile;
use super::{PullError, Report, Step, Stop};
use crate::catalogue::KnownModel;

/// Silence after which the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(60);

/// Time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn fetch(
    model: &KnownModel,
    hub: &str,
    connect_timeout: Duration,
    part: &mut PartFile,
    report: &mut Report<'_>,
    cancel: &CancellationToken,
) -> Result<(), Stop> {
    if part.is_whole() {
        return Ok(());
    }
    report.tell(part.len(), Step::Connecting);
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
) -> Result<(), Stop> {
    let client = client(connect_timeout).map_err(Stop::unreachable)?;
    let url = format!("{hub}/{}", model.hub_path);
    let mut request = client.get(&url);
    if part.len() > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.len()));
    }
    let mut response = request
        .send()
        .await
        .map_err(|error| Stop::unreachable(chain(&error)))?;
    place(&response, model, part)?;
    let mut reported = Instant::now();
    report.tell(part.len(), Step::Downloading);
    while let Some(bytes) = response
        .chunk()
        .await
        .map_err(|error| Stop::unreachable(chain(&error)))?
    {
        part.append(&bytes)?;
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report.tell(part.len(), Step::Downloading);
        }
    }
    report.tell(part.len(), Step::Downloading);
    match part.is_whole() {
        true => Ok(()),
        false => Err(Stop::unreachable(format!(
            "the connection ended after {} bytes",
            part.len()
        ))),
    }
}

/// Compares what the hub is about to send with what is missing, and makes the file ready for it.
fn place(response: &Response, model: &KnownModel, part: &mut PartFile) -> Result<(), Stop> {
    let total = match response.status() {
        StatusCode::OK => {
            // It ignored the range: everything comes again.
            part.restart()?;
            response.content_length()
        }
        StatusCode::PARTIAL_CONTENT => {
            let range = response
                .headers()
                .get(CONTENT_RANGE)
                .and_then(|range| range.to_str().ok());
            let (start, total) = range.and_then(parse_range).unwrap_or_default();
            if start != part.len() {
                return Err(Stop::not_there(format!(
                    "it sent another range than the one asked for: {range:?}"
                )));
            }
            Some(total)
        }
        status => return Err(Stop::not_there(format!("it answered {status}"))),
    };
    match total {
        Some(total) if total != model.bytes => Err(Stop::not_there(format!(
            "its file has {total} bytes, the model has {}",
            model.bytes
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Start and total of `bytes 10-99/100`.
fn parse_range(range: &str) -> Option<(u64, u64)> {
    let (span, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    Some((span.split_once('-')?.0.parse().ok()?, total.parse().ok()?))
}

/// A client with ring and the system's certificates. Without any certificate it can still speak
/// plain HTTP.
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
        Err(_) => builder()
            .map_err(|error| error.to_string())?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    };
    // reqwest sets none on a configuration that is not its own, and HTTP/2 would silently never be
    // used.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect_timeout)
        .read_timeout(SILENCE)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| chain(&error))
}

/// An error with its causes, which reqwest's own words leave out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}
