//! The port for Restate's calls: HTTP/2, bounded in everything that whoever connects could have
//! grow.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adjutant_core::CancellationToken;
use http_body_util::{Either, Empty};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use restate_sdk::endpoint::{Endpoint, HandleOptions, ProtocolMode, ResponseBody};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::{WorkerError, WorkerEvent};
use crate::identity::{self, PublicKey, Refused};

/// Connections at once. Restate keeps about one for each of its partitions; whoever comes beyond is
/// closed at once rather than made to wait, so that a balancer or Restate tries elsewhere.
const CONNECTIONS_MAX: u32 = 256;
/// Calls at once over one connection. A turn that runs is one.
const STREAMS_MAX: u32 = 1024;
/// Bytes of the longest request. A call has no input and its replay holds one step: a few
/// kilobytes.
const REQUEST_MAX: usize = 8 * 1024 * 1024;
/// Bytes that all requests of one connection hold together.
const REQUESTS_MAX: usize = 16 * 1024 * 1024;
/// Bytes that a piece counts for beside its own: what holds it, and the buffer that it keeps from
/// being freed.
const PIECE_COST: usize = 256;
/// Bytes under way that nobody has read yet, of one request and of a connection; frames and headers
/// are held whole.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
const FRAME_MAX: u32 = 16 * 1024;
const HEADERS_MAX: u32 = 16 * 1024;
/// Whoever is asked after so much silence and does not answer in time is gone.
const PING_AFTER: Duration = Duration::from_secs(20);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// The age of a connection at its end, and up to a fifth more: a balancer that spreads connections,
/// not calls, then spreads anew.
const AGE: Duration = Duration::from_secs(5 * 60);

/// How long what runs may take to end when the worker is stopped. What does not is in the journal.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before connections are taken again after the system had none.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two words about calls that are turned away.
const REFUSED_SAID_EVERY: Duration = Duration::from_secs(60);

/// The header that says which process answered: two addresses may lead to the same.
pub(crate) const WORKER: HeaderName = HeaderName::from_static("x-adjutant-worker");

/// Told what happens.
pub(crate) type Report = Arc<dyn Fn(&WorkerEvent) + Send + Sync>;

/// Answers calls.
pub(crate) struct Port {
    called: Arc<Called>,
    /// At which a connection takes no new calls; those that run end on it.
    age: Duration,
    connections: Arc<Semaphore>,
}

/// The worker to which all connections lead.
struct Called {
    endpoint: Endpoint,
    /// The value of [`WORKER`].
    worker: HeaderValue,
    /// Whose calls are taken; none: anybody's.
    keys: Vec<PublicKey>,
    report: Report,
    /// The time at which it was last said that a call was turned away.
    refused_said: Mutex<Option<Instant>>,
}

impl Port {
    pub(crate) fn new(
        endpoint: Endpoint,
        worker: HeaderValue,
        keys: Vec<PublicKey>,
        report: Report,
    ) -> Self {
        let called = Called {
            endpoint,
            worker,
            keys,
            report,
            refused_said: Mutex::default(),
        };
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        Self {
            called: Arc::new(called),
            age: AGE,
            connections,
        }
    }

    /// Takes connections until `stop` fires; then lets what runs end, for half a minute at most.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let report = &self.called.report;
        let mut is_full = false;
        for number in 0_u32.. {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    report(&WorkerEvent::Failed(WorkerError::Accept(error.to_string())));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
                // Said once, until there is room again.
                if !std::mem::replace(&mut is_full, true) {
                    let words = format!(
                        "{CONNECTIONS_MAX} connections are open, and no more are taken until one ends"
                    );
                    report(&WorkerEvent::Failed(WorkerError::Accept(words)));
                }
                continue;
            };
            is_full = false;
            let called = Arc::clone(&self.called);
            let connection = connection(stream, called, spread(self.age, number), stop.clone());
            tokio::spawn(async move {
                connection.await;
                drop(permit);
            });
        }
        drop(listener);
        let all_ended = self.connections.acquire_many(CONNECTIONS_MAX);
        let _ = tokio::time::timeout(PATIENCE, all_ended).await;
    }
}

/// Returns the age and up to a fifth more: connections that were made together do not end together.
fn spread(age: Duration, number: u32) -> Duration {
    // Knuth's multiplicative hash: neighbours in number are far apart.
    let hash = number
        .wrapping_add(std::process::id())
        .wrapping_mul(0x9E37_79B9);
    age + age.mul_f64(f64::from(hash) / f64::from(u32::MAX) / 5.0)
}

/// Answers the calls of one connection. One that breaks is Restate's to make again.
async fn connection(
    stream: TcpStream,
    called: Arc<Called>,
    age: Duration,
    stop: CancellationToken,
) {
    // Small frames answer one another here: held back until the last was acknowledged, each costs
    // 40 ms. Where it cannot be set, it is only slower.
    let _ = stream.set_nodelay(true);
    let held = Arc::new(AtomicUsize::new(0));
    let is_used = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        is_used.store(true, Ordering::Relaxed);
        std::future::ready(Ok::<_, Infallible>(called.answer(request, &held)))
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_frame_size(FRAME_MAX)
        .max_header_list_size(HEADERS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_ANSWERED_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
        () = tokio::time::sleep(age) => {}
    }
    // Somebody who connected and never said a word would be waited for.
    if is_used.load(Ordering::Relaxed) {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

impl Called {
    /// Answers a call. One that is turned away is not read.
    fn answer(
        &self,
        request: Request<Incoming>,
        held: &Arc<AtomicUsize>,
    ) -> Response<Either<ResponseBody, Empty<Bytes>>> {
        let mut response =
            match identity::check(&self.keys, request.uri().path(), request.headers()) {
                Ok(()) => {
                    let request = request.map(|body| Bounded {
                        body,
                        taken: 0,
                        held: Arc::clone(held),
                        is_over: false,
                    });
                    let options = HandleOptions {
                        protocol_mode: ProtocolMode::BidiStream,
                    };
                    self.endpoint
                        .handle_with_options(request, options)
                        .map(Either::Left)
                }
                Err(refused) => {
                    self.tell(refused);
                    let mut response = Response::new(Either::Right(Empty::new()));
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    response
                }
            };
        response.headers_mut().insert(WORKER, self.worker.clone());
        response
    }

    /// Says that a call was turned away. Whoever makes such calls decides neither when nor how
    /// often that is said.
    fn tell(&self, refused: Refused) {
        let mut said = self
            .refused_said
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|said| said.elapsed() >= REFUSED_SAID_EVERY) {
            *said = Some(Instant::now());
            (self.report)(&WorkerEvent::Failed(WorkerError::Refused(
                refused.to_string(),
            )));
        }
    }
}

/// The body of a request, which fails when more comes than may be held: whoever reads it keeps a
/// message until it is whole, however long it claims to be.
struct Bounded {
    body: Incoming,
    /// By this request.
    taken: usize,
    /// By all requests of the connection.
    held: Arc<AtomicUsize>,
    is_over: bool,
}

/// More came than may be held.
#[derive(Debug, thiserror::Error)]
#[error("the request is longer than this worker takes")]
struct TooLong;

impl Body for Bounded {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
        };
        let cost = frame.data_ref().map_or(0, |data| data.len() + PIECE_COST);
        self.taken += cost;
        let held = self.held.fetch_add(cost, Ordering::Relaxed) + cost;
        if self.taken > REQUEST_MAX || held > REQUESTS_MAX {
            self.is_over = true;
            return Poll::Ready(Some(Err(TooLong.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.held.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
