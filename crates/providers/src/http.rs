//! The only sockets to vendors: bounds, statuses, TLS. What is said over them is the adapters' business.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{ModelError, TimeBound};
use bytes::Bytes;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::connection::is_on_this_machine;
use crate::error::Vendor;
use crate::patience::Patience;
use crate::retry::Failure;
use crate::wait;

/// How long opening a connection may take, name lookup and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one answer, streamed or not. A long answer has some hundred kilobytes; this is against a broken peer.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// Bytes of an error's body that are read.
const COMPLAINT_MAX: usize = 64 * 1024;
/// Headers that hold a vendor's name of a request, which it asks for when one asks it what went wrong.
const REQUEST_IDS: [&str; 4] = ["request-id", "x-request-id", "x-goog-request-id", "x-ms-request-id"];
/// The beginning of a body in gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The header in which OpenAI and Anthropic say whether to send a request again; their own SDKs obey it.
const SHOULD_RETRY: &str = "x-should-retry";

/// Connections to vendors. Built once and shared: a clone uses the same pool.
///
/// TLS trusts what the system trusts (`SSL_CERT_FILE` is honoured). The system's proxy settings hold, but not for this
/// machine: a proxy elsewhere cannot reach it, and Ollama's own clients do not ask one either (Go's
/// `ProxyFromEnvironment`). Redirects are not followed, so that a key never reaches another host.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
    /// The same without a proxy, for this machine.
    direct: Client,
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
    /// Headers besides the content type. All are treated as secret: the key is among them.
    pub(crate) headers: Vec<(HeaderName, SecretString)>,
    /// JSON, which is posted. `None`: something is only asked for.
    pub(crate) body: Option<Bytes>,
    /// Bounds on the server's silence.
    pub(crate) patience: Patience,
    /// Time that the caller has left, whatever comes.
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
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
                .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        };
        let client = builder().build().map_err(|error| failed(&error))?;
        let direct = builder().no_proxy().build().map_err(|error| failed(&error))?;
        Ok(Self { client, direct, no_tls })
    }

    /// The client beneath, for whoever speaks to another kind of server under the same rules.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads the answer, which comes as a whole.
    pub(crate) async fn send_json(&self, call: Call) -> Result<String, Failure> {
        let patience = Patience { first: call.patience.whole, ..call.patience };
        let mut stream = self.send_stream(Call { patience, ..call }).await?;
        let mut body = Vec::new();
        while let Some(bytes) = stream.next().await? {
            body.extend_from_slice(&bytes);
        }
        check_beginning(&stream.vendor, &body)?;
        // A byte that is no text costs a character, not the answer.
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Has something deleted; what is answered besides that it went well does not matter.
    #[cfg(feature = "ollama")]
    pub(crate) async fn delete(&self, call: Call) -> Result<(), ModelError> {
        let (vendor, clock) = (call.vendor.clone(), Clock::start(&call));
        let silence = (call.patience.first, TimeBound::Silence);
        clock.wait(&vendor, silence, self.open_with(Method::DELETE, call)).await??;
        Ok(())
    }

    /// Sends a request and returns the answer's bytes as they come.
    pub(crate) async fn send_stream(&self, call: Call) -> Result<ByteStream, Failure> {
        let (vendor, patience, clock) = (call.vendor.clone(), call.patience, Clock::start(&call));
        let response = clock.wait(&vendor, (patience.first, TimeBound::Silence), self.open(call)).await??;
        Ok(ByteStream { response, vendor, patience, begun: false, clock, received: 0 })
    }

    /// Sends a request; answers other than 2xx are errors.
    async fn open(&self, call: Call) -> Result<Response, Failure> {
        let method = if call.body.is_some() { Method::POST } else { Method::GET };
        self.open_with(method, call).await
    }

    async fn open_with(&self, method: Method, call: Call) -> Result<Response, Failure> {
        let vendor = call.vendor;
        if let (Some(reason), "https") = (&self.no_tls, call.url.scheme()) {
            let words = format!(
                "https needs CA certificates and this machine has none ({reason}); install ca-certificates or set SSL_CERT_FILE"
            );
            return Err(vendor.network(words).into());
        }
        let client = if is_on_this_machine(&call.url) { &self.direct } else { &self.client };
        let mut request = client.request(method, call.url);
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let secrets: Vec<SecretString> = call.headers.iter().map(|(_, value)| value.clone()).collect();
        for (name, value) in call.headers {
            let mut value =
                HeaderValue::from_str(value.expose_secret()).map_err(|_| ModelError::Authentication {
                    provider: vendor.model.provider.clone(),
                    message: format!("the key has characters no key has. {}", vendor.key_advice),
                })?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(|error| unreachable(&vendor, error))?;
        let status = response.status();
        let encoding = encoding(response.headers());
        if status.is_success() {
            return match encoding {
                Some(encoding) => Err(compressed(&vendor, &encoding).into()),
                None => Ok(response),
            };
        }
        let (wait, request) = (wait::asked(response.headers()), request_id(response.headers()));
        let again = should_retry(response.headers());
        // An error without a readable body is still that error.
        let body = match encoding {
            Some(_) => Vec::new(),
            None => read(&mut response, COMPLAINT_MAX).await,
        };
        let body = without(&String::from_utf8_lossy(&body), &secrets);
        let complaint = (vendor.complaint)(status.as_u16(), &body);
        Err(Failure { error: vendor.answered(status.as_u16(), wait, request.as_deref(), complaint), again })
    }
}

/// Takes secrets out of what a server says: some repeat the key that they refuse, and errors are shown and logged.
fn without(body: &str, secrets: &[SecretString]) -> String {
    /// What is shorter is no key, and may stand in any text.
    const SECRET_MIN: usize = 8;
    secrets.iter().fold(body.to_owned(), |body, secret| {
        let secret = secret.expose_secret();
        let bare = secret.rsplit(' ').next().unwrap_or(secret);
        if bare.len() < SECRET_MIN { body } else { body.replace(bare, "[key]") }
    })
}

/// The caller's time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// The moment it ends, and its length at the start.
    deadline: Option<(Instant, Duration)>,
}

impl Clock {
    fn start(call: &Call) -> Self {
        // A time too far off to be told is no deadline.
        let deadline = |left| Some((Instant::now().checked_add(left)?, left));
        Self { deadline: call.time_left.and_then(deadline) }
    }

    /// Waits for something to come, at most for as long as the server may be silent, and no longer than the caller does.
    /// `silence` is its length and what it is called.
    async fn wait<T>(
        self,
        vendor: &Vendor,
        (silence, kind): (Duration, TimeBound),
        coming: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        let left = self.deadline.map(|(at, whole)| (at.saturating_duration_since(Instant::now()), whole));
        let (bound, waited, reached) = match left {
            Some((left, whole)) if left < silence => (left, whole, TimeBound::Total),
            Some(_) | None => (silence, silence, kind),
        };
        timeout(bound, coming).await.map_err(|_| vendor.timeout(waited, reached))
    }
}

/// The bytes of a streamed answer.
pub(crate) struct ByteStream {
    response: Response,
    vendor: Arc<Vendor>,
    patience: Patience,
    /// Set once the first piece of the answer is there.
    begun: bool,
    clock: Clock,
    received: usize,
}

impl ByteStream {
    /// Notes that something of the answer is there. Headers, comments and empty events come at once from some servers,
    /// long before the prompt is read; they are no part of the answer.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        self.within(if self.begun { self.patience.between } else { self.patience.first }).await
    }

    /// The next bytes behind an answer that lacks nothing; `None` at the end.
    pub(crate) async fn rest(&mut self) -> Result<Option<Bytes>, ModelError> {
        self.within(self.patience.behind).await
    }

    async fn within(&mut self, silence: Duration) -> Result<Option<Bytes>, ModelError> {
        // The status of a vendor is there: whatever is paid for an answer may be paid by now.
        let kind = if self.patience.asks_again { TimeBound::Pause } else { TimeBound::Silence };
        let silence = (silence, kind);
        let chunk = self.clock.wait(&self.vendor, silence, self.response.chunk()).await?;
        let chunk = chunk.map_err(|error| broken(&self.vendor, error, self.received))?;
        if let Some(chunk) = &chunk {
            if self.received == 0 {
                check_beginning(&self.vendor, chunk)?;
            }
            self.received += chunk.len();
            if self.received > ANSWER_MAX {
                return Err(too_long(&self.vendor));
            }
        }
        Ok(chunk)
    }
}

/// Reads a body to its end, or to `max` bytes. What there is of one that breaks off is kept.
async fn read(response: &mut Response, max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let fits = max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(fits)]);
        if chunk.len() > fits {
            break;
        }
    }
    body
}

/// A page where JSON or events should be: somebody in between answers, such as a network that wants a login.
fn check_beginning(vendor: &Vendor, bytes: &[u8]) -> Result<(), ModelError> {
    if bytes.trim_ascii_start().starts_with(b"<") {
        let reason = "it is a web page; check the base URL, and what is between here and there";
        return Err(vendor.unreadable(reason, &String::from_utf8_lossy(bytes)));
    }
    if bytes.starts_with(GZIP) {
        return Err(compressed(vendor, "gzip"));
    }
    Ok(())
}

/// An answer was asked for as it is; somebody in between compressed it all the same.
fn compressed(vendor: &Vendor, encoding: &str) -> ModelError {
    let reason = format!(
        "it is compressed ({encoding}), which was not asked for; check what is between here and there"
    );
    vendor.unreadable(reason, "")
}

/// The encoding of a body that cannot be read as it is.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim().to_lowercase();
    Some(encoding).filter(|encoding| !matches!(encoding.as_str(), "" | "identity"))
}

fn too_long(vendor: &Vendor) -> ModelError {
    vendor.unreadable(format!("the answer is over {ANSWER_MAX} bytes"), "")
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_IDS.iter().find_map(|name| headers.get(*name))?.to_str().ok()?;
    Some(id.to_owned()).filter(|id| !id.trim().is_empty())
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get(SHOULD_RETRY)?.to_str().ok()?.trim().parse().ok()
}

fn unreachable(vendor: &Vendor, error: reqwest::Error) -> ModelError {
    if error.is_timeout() {
        vendor.timeout(CONNECT_TIMEOUT, TimeBound::Connect)
    } else {
        broken(vendor, error, 0)
    }
}

/// Nothing came, or the answer stopped in the middle.
fn broken(vendor: &Vendor, error: reqwest::Error, received: usize) -> ModelError {
    let causes = causes(&error.without_url());
    match received {
        0 => vendor.network(causes),
        _ => vendor.truncated(format!("the connection broke: {causes}")),
    }
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
