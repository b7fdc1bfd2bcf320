//! [`Transport`]: the only sockets to vendors, with TLS, time and size bounds, and the reading of
//! statuses. The content of requests and answers is the adapters' business.

use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adjutant_core::{ModelError, TimeBound, TraceContext};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Response};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tracing::debug;
use url::Url;

use crate::address::is_on_this_machine;
use crate::error::Vendor;
use crate::read_timeout::ReadTimeouts;
use crate::retry::Failure;
use crate::retry_after::{self, header_text};

/// The bound on opening a connection, name lookup and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one answer at most, streamed or not. A long answer has some hundred kilobytes; the
/// bound protects against a broken server.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// Bytes of an error body that are read.
const ERROR_BODY_MAX: usize = 64 * 1024;
/// Headers that hold a vendor's id of a request, which its support asks for.
const REQUEST_IDS: [&str; 4] = [
    "request-id",
    "x-request-id",
    "x-goog-request-id",
    "x-ms-request-id",
];
/// The magic number at the beginning of gzip data.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The header in which OpenAI and Anthropic say whether to retry; their own SDKs obey it.
const SHOULD_RETRY: &str = "x-should-retry";

/// Pooled connections to vendors. Built once and shared: a clone uses the same pool.
///
/// TLS trusts what the system trusts (`SSL_CERT_FILE` is honoured). The system's proxy settings
/// hold, but not for this machine: a proxy elsewhere cannot reach it, and Ollama's own clients do
/// not ask one either (Go's `ProxyFromEnvironment`). Redirects are not followed, so that a key
/// never reaches another host.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
    /// The client without a proxy, for servers on this machine.
    direct: Client,
    /// The reason why https cannot be used, if it cannot.
    no_tls: Option<Arc<str>>,
}

/// HTTP cannot be set up on this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The TLS library has no usable protocol version.
    #[error("cannot set up HTTP: {}", error_chain(.0))]
    Tls(#[from] rustls::Error),
    /// The HTTP client cannot be built, for example because of the system's proxy settings.
    #[error("cannot set up HTTP: {}", error_chain(.0))]
    Client(#[from] reqwest::Error),
}

/// The address of requests and their common headers, built once per model.
pub(crate) struct Target {
    url: Url,
    is_on_this_machine: bool,
    /// The content type and the adapter's headers, all of which are marked as sensitive, because
    /// the key is among them. An error if the key has characters that no header may have.
    headers: Result<HeaderMap, ModelError>,
    /// The values that must not be shown, even where a server repeats them.
    secrets: Vec<SecretString>,
}

impl Target {
    pub(crate) fn new(vendor: &Vendor, url: Url, headers: &[(HeaderName, SecretString)]) -> Self {
        let secrets = headers.iter().map(|(_, value)| value.clone()).collect();
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let headers = append_sensitive(vendor, &mut all, headers).map(|()| all);
        Self {
            is_on_this_machine: is_on_this_machine(&url),
            url,
            headers,
            secrets,
        }
    }
}

fn append_sensitive(
    vendor: &Vendor,
    all: &mut HeaderMap,
    headers: &[(HeaderName, SecretString)],
) -> Result<(), ModelError> {
    for (name, value) in headers {
        // The cause only says that the value is no header value.
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
            ModelError::Authentication {
                provider: vendor.model.provider.clone(),
                message: format!("the key has characters no key has. {}", vendor.key_advice),
            }
        })?;
        // Keeps the key out of debug output, and out of the header tables of HTTP/2.
        value.set_sensitive(true);
        all.append(name, value);
    }
    Ok(())
}

/// Adds the headers of W3C Trace Context.
fn insert_trace_context(headers: &mut HeaderMap, trace: &TraceContext) {
    let fields = [
        ("traceparent", Some(trace.traceparent())),
        ("tracestate", trace.tracestate().map(str::to_owned)),
    ];
    for (name, value) in fields {
        // A value that no header may have is left out: a trace is not worth a failed request.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}

/// One request to a vendor.
pub(crate) struct HttpRequest {
    pub(crate) vendor: Arc<Vendor>,
    pub(crate) target: Arc<Target>,
    /// Headers of this request only. They are marked as sensitive too.
    pub(crate) headers: Vec<(HeaderName, SecretString)>,
    /// The JSON body; `None` for a GET.
    pub(crate) body: Option<Bytes>,
    /// The bounds on the server's silence.
    pub(crate) timeouts: ReadTimeouts,
    /// The time that the caller has left for the whole answer.
    pub(crate) time_left: Option<Duration>,
    /// The trace that the request belongs to; it is sent as headers.
    pub(crate) trace: Option<TraceContext>,
}

impl Transport {
    /// Sets up connection pools; opens no connection. Without any CA certificate on the machine,
    /// plain http still works (a local server); https then fails with an error that says so.
    ///
    /// # Examples
    /// ```
    /// use adjutant_providers::{Connection, Transport};
    ///
    /// let transport = Transport::new()?;
    /// // Both share the pool.
    /// let (one, other) = (Connection::new(transport.clone()), Connection::new(transport));
    /// # Ok::<(), adjutant_providers::TransportError>(())
    /// ```
    ///
    /// # Errors
    /// [`TransportError`] if the system's proxy settings or TLS cannot be used at all.
    pub fn new() -> Result<Self, TransportError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = || {
            ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
        };
        let (mut tls, no_tls) = match config()?.with_platform_verifier() {
            Ok(builder) => (builder.with_no_client_auth(), None),
            Err(error) => {
                let trusts_nobody = config()?
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth();
                (trusts_nobody, Some(Arc::from(error_chain(&error))))
            }
        };
        // reqwest adds no ALPN to a preconfigured TLS; without it HTTP/2 is silently never used.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
                .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        };
        let client = builder().build()?;
        // A client has one proxy setting for all requests, so two clients are needed.
        let direct = builder().no_proxy().build()?;
        Ok(Self {
            client,
            direct,
            no_tls,
        })
    }

    /// Returns the HTTP client beneath, for requests to other servers under the same rules.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and returns the body of the answer, which is not streamed.
    pub(crate) async fn send_json(&self, request: HttpRequest) -> Result<String, Failure> {
        let timeouts = ReadTimeouts {
            // Nothing arrives before the work is done, so the first byte may take as long as all of
            // it.
            head: request.timeouts.whole,
            first: request.timeouts.whole,
            ..request.timeouts
        };
        let mut stream = self
            .send_stream(HttpRequest {
                timeouts,
                ..request
            })
            .await?;
        let mut body = Vec::new();
        while let Some(bytes) = stream.next().await? {
            body.extend_from_slice(&bytes);
        }
        check_beginning(&stream.vendor, &body)?;
        // A byte that is not UTF-8 costs a character, not the whole answer.
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a DELETE; the body of a successful answer is ignored.
    #[cfg(feature = "ollama")]
    pub(crate) async fn delete(&self, request: HttpRequest) -> Result<(), ModelError> {
        self.open(Method::DELETE, request).await?;
        Ok(())
    }

    /// Sends a request and returns the answer's bytes as they arrive.
    pub(crate) async fn send_stream(&self, request: HttpRequest) -> Result<ByteStream, Failure> {
        let method = if request.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let (vendor, timeouts) = (request.vendor.clone(), request.timeouts);
        let (response, timer) = self.open(method, request).await?;
        Ok(ByteStream {
            bytes: Box::pin(response.bytes_stream()),
            vendor,
            timeouts,
            begun: false,
            timer,
            received: 0,
        })
    }

    /// Sends a request within its bounds; statuses other than 2xx are errors.
    async fn open(
        &self,
        method: Method,
        request: HttpRequest,
    ) -> Result<(Response, RequestTimer), Failure> {
        let mut timer = RequestTimer::start(&request);
        let (vendor, bound) = (
            request.vendor.clone(),
            Bound::silence(request.timeouts.head),
        );
        // The bound covers connecting and waiting for the headers; the body has bounds of its own.
        let response = timer
            .bounded(&vendor, bound, self.execute(method, request))
            .await??;
        Ok((response, timer))
    }

    async fn execute(&self, method: Method, request: HttpRequest) -> Result<Response, Failure> {
        let HttpRequest { vendor, target, .. } = request;
        if let (Some(reason), "https") = (&self.no_tls, target.url.scheme()) {
            let message = format!(
                "https needs CA certificates and this machine has none ({reason}); install ca-certificates or set SSL_CERT_FILE"
            );
            return Err(vendor.network(message).into());
        }
        let client = if target.is_on_this_machine {
            &self.direct
        } else {
            &self.client
        };
        let mut headers = target.headers.clone()?;
        append_sensitive(&vendor, &mut headers, &request.headers)?;
        if let Some(trace) = &request.trace {
            insert_trace_context(&mut headers, trace);
        }
        if request.body.is_none() {
            // The common headers have it, and a GET has no body to describe.
            headers.remove(CONTENT_TYPE);
        }
        let mut http_request = Request::new(method, target.url.clone());
        *http_request.headers_mut() = headers;
        *http_request.body_mut() = request.body.map(Into::into);
        let mut response = client
            .execute(http_request)
            .await
            .map_err(|error| send_error(&vendor, error))?;
        let status = response.status();
        let encoding = encoding(response.headers());
        if status.is_success() {
            return match encoding {
                Some(encoding) => Err(compressed(&vendor, &encoding).into()),
                None => Ok(response),
            };
        }
        let (retry_after, request_id, retry) = (
            retry_after::from_headers(response.headers()),
            request_id(response.headers()),
            should_retry(response.headers()),
        );
        // An unreadable body does not change what the status says.
        let body = match encoding {
            Some(_) => Vec::new(),
            None => read_body(&mut response, ERROR_BODY_MAX).await,
        };
        let secrets = target
            .secrets
            .iter()
            .chain(request.headers.iter().map(|(_, value)| value));
        let body = redact(&String::from_utf8_lossy(&body), secrets);
        let body = (vendor.parse_error)(status.as_u16(), &body);
        let error = vendor.error(status.as_u16(), retry_after, request_id.as_deref(), body);
        debug!(
            model = %vendor.model,
            status = status.as_u16(),
            code = error.code(),
            request_id,
            "the provider answered with an error"
        );
        Err(Failure { error, retry })
    }
}

/// Replaces secrets in a server's message: some servers repeat the key that they refuse, and errors
/// are shown and logged.
fn redact<'a>(body: &str, secrets: impl Iterator<Item = &'a SecretString>) -> String {
    /// Shorter values are no keys, and may occur in any text.
    const SECRET_MIN: usize = 8;
    secrets.fold(body.to_owned(), |body, secret| {
        let secret = secret.expose_secret();
        // Without the scheme of `Bearer KEY`.
        let key = secret.rsplit(' ').next().unwrap_or(secret);
        if key.len() < SECRET_MIN {
            body
        } else {
            body.replace(key, "[key]")
        }
    })
}

/// The timer of one request: the caller's deadline, and the bound on the current silence.
struct RequestTimer {
    /// The moment at which the caller's time ends, and its length at the start.
    deadline: Option<(Instant, Duration)>,
    /// The silence that is under way; `None` after something arrived.
    silence: Option<Silence>,
    /// One timer for all silences of a request. It may fire before the current silence is over, and
    /// is only then set anew: most answers arrive in more pieces than there are silences to
    /// time.
    timer: Option<Pin<Box<Sleep>>>,
}

/// A bound on a silence, and the error it ends in.
#[derive(Debug, Clone, Copy)]
struct Bound {
    length: Duration,
    kind: TimeBound,
}

impl Bound {
    fn silence(length: Duration) -> Self {
        Self {
            length,
            kind: TimeBound::Silence,
        }
    }
}

/// A silence that is under way.
#[derive(Debug, Clone, Copy)]
struct Silence {
    until: Instant,
    /// The bound that is reached at `until`.
    bound: Bound,
}

impl RequestTimer {
    fn start(request: &HttpRequest) -> Self {
        // A time that the clock cannot represent is no deadline.
        let deadline = |left| Some((Instant::now().checked_add(left)?, left));
        Self {
            deadline: request.time_left.and_then(deadline),
            silence: None,
            timer: None,
        }
    }

    /// Awaits a future for as long as the server may be silent, and no longer than the caller
    /// waits.
    async fn bounded<T>(
        &mut self,
        vendor: &Vendor,
        bound: Bound,
        future: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => {
                self.end_silence();
                Poll::Ready(Ok(output))
            }
            Poll::Pending => self.poll_elapsed(vendor, bound, cx).map(Err),
        })
        .await
    }

    fn end_silence(&mut self) {
        self.silence = None;
    }

    /// Begins a silence, or continues it. Ready with the error once its bound is reached.
    fn poll_elapsed(
        &mut self,
        vendor: &Vendor,
        bound: Bound,
        cx: &mut Context<'_>,
    ) -> Poll<ModelError> {
        let deadline = self.deadline;
        let silence = *self
            .silence
            .get_or_insert_with(|| Silence::begin(deadline, bound));
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(silence.until)));
        // Set for a longer silence before; if it is set too early, it is set anew when it fires.
        if timer.deadline() > silence.until {
            timer.as_mut().reset(silence.until);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= silence.until {
                let Bound { length, kind } = silence.bound;
                debug!(model = %vendor.model, bound = ?kind, waited_s = length.as_secs_f64(), "the model call timed out");
                return Poll::Ready(vendor.timeout(length, kind));
            }
            timer.as_mut().reset(silence.until);
        }
    }
}

impl Silence {
    fn begin(deadline: Option<(Instant, Duration)>, bound: Bound) -> Self {
        /// Stands for a bound that the clock cannot represent.
        const FAR_OFF: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        let now = Instant::now();
        let until = now.checked_add(bound.length).unwrap_or(now + FAR_OFF);
        match deadline {
            Some((deadline, length)) if deadline < until => Self {
                until: deadline,
                bound: Bound {
                    length,
                    kind: TimeBound::Total,
                },
            },
            Some(_) | None => Self { until, bound },
        }
    }
}

/// The bytes of a streamed answer, read within the request's bounds.
pub(crate) struct ByteStream {
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    vendor: Arc<Vendor>,
    timeouts: ReadTimeouts,
    /// A piece of the answer arrived.
    begun: bool,
    timer: RequestTimer,
    received: usize,
}

impl ByteStream {
    /// Notes that a piece of the answer arrived. Bytes alone do not show that: some servers send
    /// headers, comments and empty events at once, long before the prompt is read.
    pub(crate) fn mark_begun(&mut self) {
        self.begun = true;
    }

    /// Returns the next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        poll_fn(|cx| self.poll_next(cx, false)).await
    }

    /// Returns the next bytes, `None` at the end. `is_complete`: the answer lacks nothing, so that
    /// the wait for more is short.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        is_complete: bool,
    ) -> Poll<Result<Option<Bytes>, ModelError>> {
        let chunk = match self.bytes.as_mut().poll_next(cx) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => {
                let silence = match (is_complete, self.begun) {
                    (true, _) => self.timeouts.trailing,
                    (false, true) => self.timeouts.between,
                    (false, false) => self.timeouts.first,
                };
                // The vendor has accepted the request, so the answer may be charged by now, and a
                // retry would be charged again.
                let kind = if self.timeouts.retry_after_silence {
                    TimeBound::Pause
                } else {
                    TimeBound::Silence
                };
                let bound = Bound {
                    length: silence,
                    kind,
                };
                return self.timer.poll_elapsed(&self.vendor, bound, cx).map(Err);
            }
        };
        self.timer.end_silence();
        Poll::Ready(match chunk {
            Some(Ok(chunk)) => self.check(chunk).map(Some),
            Some(Err(error)) => Err(connection_error(&self.vendor, error, self.received)),
            None => Ok(None),
        })
    }

    /// Reads and drops the rest of an answer that is over, if need be in the background. A
    /// connection returns to the pool only after its answer was read to the end, and the end may
    /// arrive a moment after the end mark. If that takes too long, the connection is closed.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) {
        // Usually the end is there already, and needs no task.
        let mut rest = std::mem::replace(&mut self.bytes, Box::pin(stream::empty()));
        loop {
            match rest.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return,
                Poll::Pending => break,
            }
        }
        // Without a runtime nothing can be spawned; the connection is closed then.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let bound = self.timeouts.trailing;
        let to_the_end = async move { while let Some(Ok(_)) = rest.next().await {} };
        runtime.spawn(timeout(bound, to_the_end));
    }

    fn check(&mut self, chunk: Bytes) -> Result<Bytes, ModelError> {
        // Only the beginning of an answer shows that it is none.
        if self.received == 0 {
            check_beginning(&self.vendor, &chunk)?;
        }
        self.received += chunk.len();
        if self.received > ANSWER_MAX {
            let reason = format!("the answer is over {ANSWER_MAX} bytes");
            return Err(self.vendor.invalid(reason, ""));
        }
        Ok(chunk)
    }
}

/// Reads a body to its end, or up to `max` bytes. If it breaks off, the bytes so far are returned.
async fn read_body(response: &mut Response, max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        // Cut, not refused: the beginning of an error body is what explains it.
        let fits = max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(fits)]);
        if chunk.len() > fits {
            break;
        }
    }
    body
}

/// Rejects a web page or compressed data where JSON or events should be: a proxy answered, or a
/// network that wants a login.
fn check_beginning(vendor: &Vendor, bytes: &[u8]) -> Result<(), ModelError> {
    if bytes.trim_ascii_start().starts_with(b"<") {
        let reason = "it is a web page; check the base URL, and what is between here and there";
        return Err(vendor.invalid(reason, &String::from_utf8_lossy(bytes)));
    }
    if bytes.starts_with(GZIP) {
        return Err(compressed(vendor, "gzip"));
    }
    Ok(())
}

/// Returns the error for a body that a proxy compressed although the request did not allow it.
fn compressed(vendor: &Vendor, encoding: &str) -> ModelError {
    let reason = format!(
        "it is compressed ({encoding}), which was not asked for; check what is between here and there"
    );
    vendor.invalid(reason, "")
}

/// Returns the content encoding of a body, unless it is sent as it is.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let encoding = header_text(headers, CONTENT_ENCODING.as_str())?.to_lowercase();
    Some(encoding).filter(|encoding| !matches!(encoding.as_str(), "" | "identity"))
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let mut ids = REQUEST_IDS
        .iter()
        .filter(|name| headers.contains_key(**name));
    let id = header_text(headers, ids.next()?)?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    header_text(headers, SHOULD_RETRY)?.parse().ok()
}

fn send_error(vendor: &Vendor, error: reqwest::Error) -> ModelError {
    if error.is_timeout() {
        vendor.timeout(CONNECT_TIMEOUT, TimeBound::Connect)
    } else {
        connection_error(vendor, error, 0)
    }
}

/// Returns the error for a connection that could not be opened, or broke within an answer.
fn connection_error(vendor: &Vendor, error: reqwest::Error, received: usize) -> ModelError {
    // An address can hold a key.
    let error = error.without_url();
    let causes = error_chain(&error);
    let failure = match received {
        0 => vendor.network(causes),
        // The vendor was reached and had begun to answer, so this is no failure to connect.
        _ => vendor.truncated(format!("the connection broke: {causes}")),
    };
    failure.with_source(error)
}

/// Joins the messages of an error and its sources: the outermost message of an HTTP client hides
/// the cause.
fn error_chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat the message of their source.
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        cause = error.source();
    }
    message
}
