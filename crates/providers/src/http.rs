//! The only sockets to vendors: bounds, statuses, TLS. What is said over them is the adapters'
//! business.

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
use url::Url;

use crate::connection::is_on_this_machine;
use crate::error::Vendor;
use crate::patience::Patience;
use crate::retry::Failure;
use crate::wait;

/// How long opening a connection may take, name lookup and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one answer, streamed or not. A long answer has some hundred kilobytes; this is against
/// a broken peer.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// Bytes of an error's body that are read.
const COMPLAINT_MAX: usize = 64 * 1024;
/// Headers that hold a vendor's name of a request, which it asks for when one asks it what went
/// wrong.
const REQUEST_IDS: [&str; 4] = [
    "request-id",
    "x-request-id",
    "x-goog-request-id",
    "x-ms-request-id",
];
/// The beginning of a body in gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The header in which OpenAI and Anthropic say whether to send a request again; their own SDKs
/// obey it.
const SHOULD_RETRY: &str = "x-should-retry";

/// Connections to vendors. Built once and shared: a clone uses the same pool.
///
/// TLS trusts what the system trusts (`SSL_CERT_FILE` is honoured). The system's proxy settings
/// hold, but not for this machine: a proxy elsewhere cannot reach it, and Ollama's own clients do
/// not ask one either (Go's `ProxyFromEnvironment`). Redirects are not followed, so that a key
/// never reaches another host.
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

/// The address of requests and the headers of each of them, made once for all.
pub(crate) struct Target {
    url: Url,
    is_on_this_machine: bool,
    /// The content type and the headers given, all of which are treated as secret: the key is among
    /// them. An error if the key cannot be one.
    headers: Result<HeaderMap, ModelError>,
    /// The secret that must not be shown, wherever a server repeats it.
    secrets: Vec<SecretString>,
}

impl Target {
    pub(crate) fn new(vendor: &Vendor, url: Url, headers: &[(HeaderName, SecretString)]) -> Self {
        let secrets = headers.iter().map(|(_, value)| value.clone()).collect();
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let headers = add(vendor, &mut all, headers).map(|()| all);
        Self {
            is_on_this_machine: is_on_this_machine(&url),
            url,
            headers,
            secrets,
        }
    }
}

fn add(
    vendor: &Vendor,
    all: &mut HeaderMap,
    headers: &[(HeaderName, SecretString)],
) -> Result<(), ModelError> {
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
            ModelError::Authentication {
                provider: vendor.model.provider.clone(),
                message: format!("the key has characters no key has. {}", vendor.key_advice),
            }
        })?;
        value.set_sensitive(true);
        all.append(name, value);
    }
    Ok(())
}

/// Adds the headers of W3C Trace Context.
fn hand_on(headers: &mut HeaderMap, trace: &TraceContext) {
    let fields = [
        ("traceparent", Some(trace.traceparent())),
        ("tracestate", trace.tracestate().map(str::to_owned)),
    ];
    for (name, value) in fields {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}

/// One request to a vendor.
pub(crate) struct Call {
    pub(crate) vendor: Arc<Vendor>,
    pub(crate) target: Arc<Target>,
    /// Headers that only this request needs. They are treated as secret too.
    pub(crate) headers: Vec<(HeaderName, SecretString)>,
    /// JSON, which is posted. `None`: something is only asked for.
    pub(crate) body: Option<Bytes>,
    /// Bounds on the server's silence.
    pub(crate) patience: Patience,
    /// Time that the caller has left, whatever comes.
    pub(crate) time_left: Option<Duration>,
    /// The trace that the request belongs to. It goes along as headers.
    pub(crate) trace: Option<TraceContext>,
}

impl Transport {
    /// Sets up connections; opens none. Without any CA certificate on the machine, plain http still
    /// works (a local server); https then fails, saying so.
    ///
    /// # Errors
    /// [`TransportError`] if the system's proxy settings or TLS cannot be used at all.
    pub fn new() -> Result<Self, TransportError> {
        let failed = |error: &dyn Error| TransportError(causes(error));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = || {
            ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
        };
        let trusted = config()
            .map_err(|error| failed(&error))?
            .with_platform_verifier();
        let (mut tls, no_tls) = match trusted {
            Ok(builder) => (builder.with_no_client_auth(), None),
            Err(error) => {
                let builder = config().map_err(|error| failed(&error))?;
                let nothing = builder
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth();
                (nothing, Some(Arc::from(causes(&error))))
            }
        };
        // A preconfigured TLS gets no ALPN from the client; without it HTTP/2 is silently never
        // used.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
                .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        };
        let client = builder().build().map_err(|error| failed(&error))?;
        let direct = builder()
            .no_proxy()
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self {
            client,
            direct,
            no_tls,
        })
    }

    /// The client beneath, for whoever speaks to another kind of server under the same rules.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads the answer, which comes as a whole.
    pub(crate) async fn send_json(&self, call: Call) -> Result<String, Failure> {
        let patience = Patience {
            first: call.patience.whole,
            ..call.patience
        };
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
        let (vendor, mut clock) = (call.vendor.clone(), Clock::start(&call));
        let silence = (call.patience.first, TimeBound::Silence);
        clock
            .wait(&vendor, silence, self.open_with(Method::DELETE, call))
            .await??;
        Ok(())
    }

    /// Sends a request and returns the answer's bytes as they come.
    pub(crate) async fn send_stream(&self, call: Call) -> Result<ByteStream, Failure> {
        let (vendor, patience, mut clock) =
            (call.vendor.clone(), call.patience, Clock::start(&call));
        let response = clock
            .wait(
                &vendor,
                (patience.first, TimeBound::Silence),
                self.open(call),
            )
            .await??;
        let bytes = Box::pin(response.bytes_stream());
        Ok(ByteStream {
            bytes,
            vendor,
            patience,
            begun: false,
            clock,
            received: 0,
        })
    }

    /// Sends a request; answers other than 2xx are errors.
    async fn open(&self, call: Call) -> Result<Response, Failure> {
        let method = if call.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        self.open_with(method, call).await
    }

    async fn open_with(&self, method: Method, call: Call) -> Result<Response, Failure> {
        let Call { vendor, target, .. } = call;
        if let (Some(reason), "https") = (&self.no_tls, target.url.scheme()) {
            let words = format!(
                "https needs CA certificates and this machine has none ({reason}); install ca-certificates or set SSL_CERT_FILE"
            );
            return Err(vendor.network(words).into());
        }
        let client = if target.is_on_this_machine {
            &self.direct
        } else {
            &self.client
        };
        let mut headers = target.headers.clone()?;
        add(&vendor, &mut headers, &call.headers)?;
        if let Some(trace) = &call.trace {
            hand_on(&mut headers, trace);
        }
        if call.body.is_none() {
            headers.remove(CONTENT_TYPE);
        }
        let mut request = Request::new(method, target.url.clone());
        *request.headers_mut() = headers;
        *request.body_mut() = call.body.map(Into::into);
        let mut response = client
            .execute(request)
            .await
            .map_err(|error| unreachable(&vendor, error))?;
        let status = response.status();
        let encoding = encoding(response.headers());
        if status.is_success() {
            return match encoding {
                Some(encoding) => Err(compressed(&vendor, &encoding).into()),
                None => Ok(response),
            };
        }
        let (wait, request) = (
            wait::asked(response.headers()),
            request_id(response.headers()),
        );
        let again = should_retry(response.headers());
        // An error without a readable body is still that error.
        let body = match encoding {
            Some(_) => Vec::new(),
            None => read(&mut response, COMPLAINT_MAX).await,
        };
        let secrets = target
            .secrets
            .iter()
            .chain(call.headers.iter().map(|(_, value)| value));
        let body = without(&String::from_utf8_lossy(&body), secrets);
        let complaint = (vendor.complaint)(status.as_u16(), &body);
        Err(Failure {
            error: vendor.answered(status.as_u16(), wait, request.as_deref(), complaint),
            again,
        })
    }
}

/// Takes secrets out of what a server says: some repeat the key that they refuse, and errors are
/// shown and logged.
fn without<'a>(body: &str, secrets: impl Iterator<Item = &'a SecretString>) -> String {
    /// What is shorter is no key, and may stand in any text.
    const SECRET_MIN: usize = 8;
    secrets.fold(body.to_owned(), |body, secret| {
        let secret = secret.expose_secret();
        let bare = secret.rsplit(' ').next().unwrap_or(secret);
        if bare.len() < SECRET_MIN {
            body
        } else {
            body.replace(bare, "[key]")
        }
    })
}

/// The caller's time, and the wait for what comes next.
struct Clock {
    /// The moment the caller's time ends, and its length at the start.
    deadline: Option<(Instant, Duration)>,
    /// The wait that is under way; `None`: something came.
    wait: Option<Wait>,
    /// One timer for all waits of a request. It may ring before a wait is over, and is only then
    /// set anew: most answers come in more pieces than there are silences.
    timer: Option<Pin<Box<Sleep>>>,
}

/// A wait and its bound.
#[derive(Debug, Clone, Copy)]
struct Wait {
    until: Instant,
    /// Returns the length of a wait that was too long, and the bound it reached.
    waited: Duration,
    reached: TimeBound,
}

impl Clock {
    fn start(call: &Call) -> Self {
        // A time too far off to be told is no deadline.
        let deadline = |left| Some((Instant::now().checked_add(left)?, left));
        Self {
            deadline: call.time_left.and_then(deadline),
            wait: None,
            timer: None,
        }
    }

    /// Waits for something to come, at most for as long as the server may be silent, and no longer
    /// than the caller does. `silence` is its length and what it is called.
    async fn wait<T>(
        &mut self,
        vendor: &Vendor,
        silence: (Duration, TimeBound),
        coming: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        let mut coming = pin!(coming);
        poll_fn(|cx| match coming.as_mut().poll(cx) {
            Poll::Ready(come) => {
                self.come();
                Poll::Ready(Ok(come))
            }
            Poll::Pending => self.poll_over(vendor, silence, cx).map(Err),
        })
        .await
    }

    /// Ends a wait.
    fn come(&mut self) {
        self.wait = None;
    }

    /// Begins a wait, or goes on with it. Ready if it was too long.
    fn poll_over(
        &mut self,
        vendor: &Vendor,
        silence: (Duration, TimeBound),
        cx: &mut Context<'_>,
    ) -> Poll<ModelError> {
        let wait = match self.wait {
            Some(wait) => wait,
            None => *self.wait.insert(Wait::begin(self.deadline, silence)),
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(wait.until)));
        if timer.deadline() > wait.until {
            timer.as_mut().reset(wait.until);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= wait.until {
                return Poll::Ready(vendor.timeout(wait.waited, wait.reached));
            }
            timer.as_mut().reset(wait.until);
        }
    }
}

impl Wait {
    fn begin(
        deadline: Option<(Instant, Duration)>,
        (silence, kind): (Duration, TimeBound),
    ) -> Self {
        /// A bound that no clock can tell is as good as this one.
        const FAR_OFF: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        let now = Instant::now();
        let until = now.checked_add(silence).unwrap_or(now + FAR_OFF);
        match deadline {
            Some((deadline, whole)) if deadline < until => Self {
                until: deadline,
                waited: whole,
                reached: TimeBound::Total,
            },
            Some(_) | None => Self {
                until,
                waited: silence,
                reached: kind,
            },
        }
    }
}

/// The bytes of a streamed answer.
pub(crate) struct ByteStream {
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    vendor: Arc<Vendor>,
    patience: Patience,
    /// Set once the first piece of the answer is there.
    begun: bool,
    clock: Clock,
    received: usize,
}

impl ByteStream {
    /// Notes that something of the answer is there. Headers, comments and empty events come at once
    /// from some servers, long before the prompt is read; they are no part of the answer.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        poll_fn(|cx| self.poll_next(cx, false)).await
    }

    /// The next bytes, `None` at the end. `is_complete`: the answer lacks nothing, so that more is
    /// not waited for as long.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        is_complete: bool,
    ) -> Poll<Result<Option<Bytes>, ModelError>> {
        let chunk = match self.bytes.as_mut().poll_next(cx) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => {
                let silence = match (is_complete, self.begun) {
                    (true, _) => self.patience.behind,
                    (false, true) => self.patience.between,
                    (false, false) => self.patience.first,
                };
                // The status of a vendor is there: whatever is paid for an answer may be paid by
                // now.
                let kind = if self.patience.asks_again {
                    TimeBound::Pause
                } else {
                    TimeBound::Silence
                };
                return self
                    .clock
                    .poll_over(&self.vendor, (silence, kind), cx)
                    .map(Err);
            }
        };
        self.clock.come();
        Poll::Ready(match chunk {
            Some(Ok(chunk)) => self.take(chunk).map(Some),
            Some(Err(error)) => Err(broken(&self.vendor, error, self.received)),
            None => Ok(None),
        })
    }

    /// Takes what is left of an answer of which nothing more is wanted, also behind the caller's
    /// back: a connection is only used again once its answer was read to the end, and the end may
    /// come a moment after the mark of it. Whatever takes longer than the wait behind an answer is
    /// given up, and the connection with it.
    pub(crate) fn settle(&mut self, cx: &mut Context<'_>) {
        let mut rest = std::mem::replace(&mut self.bytes, Box::pin(stream::empty()));
        loop {
            match rest.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return,
                Poll::Pending => break,
            }
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let patience = self.patience.behind;
        let to_the_end = async move { while let Some(Ok(_)) = rest.next().await {} };
        runtime.spawn(timeout(patience, to_the_end));
    }

    fn take(&mut self, chunk: Bytes) -> Result<Bytes, ModelError> {
        if self.received == 0 {
            check_beginning(&self.vendor, &chunk)?;
        }
        self.received += chunk.len();
        if self.received > ANSWER_MAX {
            return Err(too_long(&self.vendor));
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

/// A page where JSON or events should be: somebody in between answers, such as a network that wants
/// a login.
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
    let encoding = headers
        .get(CONTENT_ENCODING)?
        .to_str()
        .ok()?
        .trim()
        .to_lowercase();
    Some(encoding).filter(|encoding| !matches!(encoding.as_str(), "" | "identity"))
}

fn too_long(vendor: &Vendor) -> ModelError {
    vendor.unreadable(format!("the answer is over {ANSWER_MAX} bytes"), "")
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_IDS
        .iter()
        .find_map(|name| headers.get(*name))?
        .to_str()
        .ok()?;
    Some(id.to_owned()).filter(|id| !id.trim().is_empty())
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers
        .get(SHOULD_RETRY)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
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
