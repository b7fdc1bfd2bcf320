//! The HTTP/2 server for Restate's calls, with limits on everything that a client could make grow.

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

/// Concurrent connections. Restate keeps about one for each of its partitions. Further ones are
/// closed at once rather than queued, so that a balancer or Restate tries another worker.
const CONNECTIONS_MAX: u32 = 256;
/// Concurrent calls over one connection. A running turn is one.
const STREAMS_MAX: u32 = 1024;
/// Size limit of a request in bytes. A call has no input and its replay holds one step: a few
/// kilobytes.
const REQUEST_MAX: usize = 8 * 1024 * 1024;
/// Size limit of all requests of one connection together, in bytes.
const REQUESTS_MAX: usize = 16 * 1024 * 1024;
/// Overhead in bytes counted for each frame: its bookkeeping, and the buffer that it keeps alive.
const PIECE_COST: usize = 256;
/// Flow-control windows of a request and of a connection, and limits of frames and headers, in
/// bytes.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
const FRAME_MAX: u32 = 16 * 1024;
const HEADERS_MAX: u32 = 16 * 1024;
/// A connection is pinged after this silence, and closed if the ping is not answered in time.
const PING_AFTER: Duration = Duration::from_secs(20);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Age at which a connection is closed gracefully, plus up to a fifth: a balancer that distributes
/// connections, not calls, can then distribute them anew.
const AGE: Duration = Duration::from_secs(5 * 60);

/// Time that running calls may take to end after the worker is stopped. Those that do not end are
/// recovered from the journal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after the operating system failed to accept a connection.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum time between two reports of refused calls.
const REFUSED_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The header that identifies the process that answered: two addresses may lead to the same.
pub(crate) const WORKER: HeaderName = HeaderName::from_static("x-adjutant-worker");

/// A callback for events of the worker.
pub(crate) type Report = Arc<dyn Fn(&WorkerEvent) + Send + Sync>;

/// The server that accepts connections and answers calls.
pub(crate) struct CallServer {
    called: Arc<Shared>,
    /// Age at which a connection accepts no new calls; running ones end on it.
    age: Duration,
    connections: Arc<Semaphore>,
}

/// The state that all connections share.
struct Shared {
    endpoint: Endpoint,
    /// The value of [`WORKER`].
    worker: HeaderValue,
    /// The public keys whose calls are accepted; empty: unsigned calls are accepted.
    keys: Vec<PublicKey>,
    report: Report,
    /// Time of the last report of a refused call.
    refused_reported: Mutex<Option<Instant>>,
}

impl CallServer {
    pub(crate) fn new(
        endpoint: Endpoint,
        worker: HeaderValue,
        keys: Vec<PublicKey>,
        report: Report,
    ) -> Self {
        let called = Shared {
            endpoint,
            worker,
            keys,
            report,
            refused_reported: Mutex::default(),
        };
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        Self {
            called: Arc::new(called),
            age: AGE,
            connections,
        }
    }

    /// Accepts connections until `stop` fires, then waits up to 30 seconds for running calls.
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
                // Reported once, until a connection ends.
                if !std::mem::replace(&mut is_full, true) {
                    let message = format!(
                        "{CONNECTIONS_MAX} connections are open, and no more are taken until one ends"
                    );
                    report(&WorkerEvent::Failed(WorkerError::Accept(message)));
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
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all_ended).await;
    }
}

/// Returns the age plus up to a fifth, so that connections that were made together do not end
/// together.
fn spread(age: Duration, number: u32) -> Duration {
    // Knuth's multiplicative hash: neighbours in number are far apart.
    let hash = number
        .wrapping_add(std::process::id())
        .wrapping_mul(0x9E37_79B9);
    age + age.mul_f64(f64::from(hash) / f64::from(u32::MAX) / 5.0)
}

/// Answers the calls of one connection. Restate reconnects if it breaks.
async fn connection(
    stream: TcpStream,
    called: Arc<Shared>,
    age: Duration,
    stop: CancellationToken,
) {
    // The protocol exchanges small frames: with Nagle's algorithm each would wait up to 40 ms for
    // the acknowledgement of the last. If it cannot be switched off, calls are only slower.
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
    // A client that never sent a request would be waited for in a graceful shutdown.
    if is_used.load(Ordering::Relaxed) {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

impl Shared {
    /// Answers a call. The body of a refused one is not read.
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
                    self.report_refused(refused);
                    let mut response = Response::new(Either::Right(Empty::new()));
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    response
                }
            };
        response.headers_mut().insert(WORKER, self.worker.clone());
        response
    }

    /// Reports a refused call, at a limited rate: a client must not be able to flood the log.
    fn report_refused(&self, refused: Refused) {
        let mut last_report = self
            .refused_reported
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last_report.is_none_or(|last| last.elapsed() >= REFUSED_REPORT_INTERVAL) {
            *last_report = Some(Instant::now());
            (self.report)(&WorkerEvent::Failed(WorkerError::Refused(
                refused.to_string(),
            )));
        }
    }
}

/// A request body that fails when it exceeds the limits: the SDK buffers a message until it is
/// complete, however long it claims to be.
struct Bounded {
    body: Incoming,
    /// Bytes that this request holds.
    taken: usize,
    /// Bytes that all requests of the connection hold.
    held: Arc<AtomicUsize>,
    is_over: bool,
}

/// The error of a request body that exceeds the limits.
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
