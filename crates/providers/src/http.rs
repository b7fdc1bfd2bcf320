//! The only sockets to vendors: bounds, statuses, TLS. What is said over them is the adapters' business.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::ModelError;
use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::error::Vendor;

/// How long opening a connection may take, name lookup and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one answer, streamed or not. A long answer has some hundred kilobytes; this is against a broken peer.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// Bytes of an error's body that are read.
const COMPLAINT_MAX: usize = 64 * 1024;

/// Connections to vendors. Built once and shared: a clone uses the same pool.
///
/// TLS trusts what the system trusts (`SSL_CERT_FILE` is honoured), as do the system's proxy settings. Redirects are not
/// followed, so that a key never reaches another host.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
    /// Why https cannot be used, if it cannot.
    no_tls: Option<Arc<str>>,
}

/// No transport could be built.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP: {0}")]
pub struct TransportError(String);

/// One request to a vendor.
pub(crate) struct Call {
    pub(crate) vendor: Arc<Vendor>,
    pub(crate) url: Url,
    /// The header that holds the key, and the key.
    pub(crate) key: (HeaderName, SecretString),
    /// JSON.
    pub(crate) body: Bytes,
    /// How long the whole answer may take, or a stream may stay silent.
    pub(crate) timeout: Duration,
    /// How long the caller can still wait.
    pub(crate) time_left: Option<Duration>,
}

impl Transport {
    /// Sets up connections; opens none. Without any CA certificate on the machine, plain http still works (a local
    /// server); https then fails, saying so.
    ///
    /// # Errors
    /// [`TransportError`] if the system's proxy settings or TLS cannot be used at all.
    pub fn new() -> Result<Self, TransportError> {
        let failed = |error: &dyn Error| TransportError(causes(error));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            || ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let trusted = config().map_err(|error| failed(&error))?.with_platform_verifier();
        let (mut tls, no_tls) = match trusted {
            Ok(builder) => (builder.with_no_client_auth(), None),
            Err(error) => {
                let builder = config().map_err(|error| failed(&error))?;
                let nothing = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
                (nothing, Some(Arc::from(causes(&error))))
            }
        };
        // A preconfigured TLS gets no ALPN from the client; without it HTTP/2 is silently never used.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::none())
            .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self { client, no_tls })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send_json(&self, call: Call) -> Result<String, ModelError> {
        let vendor = call.vendor.clone();
        let bound = call.bound();
        let answer = async {
            let mut response = self.open(call).await?;
            let body = read(&mut response, ANSWER_MAX).await.map_err(|error| broken(&vendor, error))?;
            match body {
                Some(body) => Ok(String::from_utf8_lossy(&body).into_owned()),
                None => Err(vendor.unreadable(format!("the answer is over {ANSWER_MAX} bytes"), "")),
            }
        };
        timeout(bound, answer).await.unwrap_or_else(|_| Err(vendor.timeout(bound)))
    }

    /// Sends a request and returns the answer's bytes as they come.
    pub(crate) async fn send_stream(&self, call: Call) -> Result<ByteStream, ModelError> {
        let vendor = call.vendor.clone();
        let (bound, idle) = (call.bound(), call.timeout);
        let deadline = call.time_left.map(|left| (Instant::now() + left, left));
        let response =
            timeout(bound, self.open(call)).await.unwrap_or_else(|_| Err(vendor.timeout(bound)))?;
        Ok(ByteStream { response, vendor, idle, deadline, received: 0 })
    }

    /// Sends a request; answers other than 2xx are errors.
    async fn open(&self, call: Call) -> Result<Response, ModelError> {
        let vendor = call.vendor;
        if let (Some(reason), "https") = (&self.no_tls, call.url.scheme()) {
            return Err(vendor.network(format!(
                "https needs CA certificates and this machine has none ({reason}); install ca-certificates or set SSL_CERT_FILE"
            )));
        }
        let (name, key) = call.key;
        let mut key = HeaderValue::from_str(key.expose_secret()).map_err(|_| ModelError::Authentication {
            provider: vendor.model.provider.clone(),
            message: format!("the key has characters no key has. {}", vendor.key_advice),
        })?;
        key.set_sensitive(true);
        let request = self
            .client
            .post(call.url)
            .header(name, key)
            .header(CONTENT_TYPE, "application/json")
            .body(call.body);
        let mut response = request.send().await.map_err(|error| unreachable(&vendor, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        // An error without a readable body is still that error.
        let body = read(&mut response, COMPLAINT_MAX).await.ok().flatten().unwrap_or_default();
        let complaint = (vendor.complaint)(status.as_u16(), &String::from_utf8_lossy(&body));
        Err(vendor.refused(status.as_u16(), retry_after, complaint))
    }
}

impl Call {
    fn bound(&self) -> Duration {
        self.time_left.map_or(self.timeout, |left| left.min(self.timeout))
    }
}

/// The bytes of a streamed answer.
pub(crate) struct ByteStream {
    response: Response,
    vendor: Arc<Vendor>,
    /// How long it may stay silent.
    idle: Duration,
    /// When the caller stops waiting, and how long that was at the start.
    deadline: Option<(Instant, Duration)>,
    received: usize,
}

impl ByteStream {
    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (bound, reached) = match self.deadline {
            Some((at, whole)) => {
                let left = at.saturating_duration_since(Instant::now());
                if left < self.idle { (left, whole) } else { (self.idle, self.idle) }
            }
            None => (self.idle, self.idle),
        };
        let chunk = timeout(bound, self.response.chunk()).await.map_err(|_| self.vendor.timeout(reached))?;
        let chunk = chunk.map_err(|error| {
            if self.received == 0 {
                broken(&self.vendor, error)
            } else {
                self.vendor.truncated(format!("the connection broke: {}", causes(&error.without_url())))
            }
        })?;
        self.received += chunk.as_ref().map_or(0, Bytes::len);
        if self.received > ANSWER_MAX {
            return Err(self.vendor.unreadable(format!("the answer is over {ANSWER_MAX} bytes"), ""));
        }
        Ok(chunk)
    }
}

/// Reads a body; `None` if it is longer than `max`.
async fn read(response: &mut Response, max: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn unreachable(vendor: &Vendor, error: reqwest::Error) -> ModelError {
    if error.is_timeout() { vendor.timeout(CONNECT_TIMEOUT) } else { broken(vendor, error) }
}

fn broken(vendor: &Vendor, error: reqwest::Error) -> ModelError {
    vendor.network(causes(&error.without_url()))
}

/// An error and what is behind it: the outermost words of an HTTP client hide the cause.
fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}

/// The wait a `Retry-After` header asks for: seconds, or a date. A date is compared with the server's own clock, which it
/// sends along; ours may be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (at, now) = (http_date(value)?, http_date(headers.get(DATE)?.to_str().ok()?)?);
    Some(at.duration_since(now).try_into().unwrap_or(Duration::ZERO))
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_wait(retry_after_header: &str, expected: Option<Duration>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(retry_after_header).unwrap());
        headers.insert(DATE, HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"));
        assert_eq!(retry_after(&headers), expected, "{retry_after_header}");
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        check_wait("7", Some(Duration::from_secs(7)));
        check_wait("0.5", Some(Duration::from_millis(500)));
        check_wait("Wed, 21 Oct 2026 07:28:30 GMT", Some(Duration::from_secs(30)));
        check_wait("Wed, 21 Oct 2026 07:27:00 GMT", Some(Duration::ZERO));
        check_wait("-3", None);
        check_wait("soon", None);
    }
}
