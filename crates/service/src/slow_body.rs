//! Timeouts of request bodies: against clients that send slowly to occupy connections.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::admission::{Connection, ConnectionLimits};
use crate::problem::Problem;
use crate::state::Shared;

/// Middleware that answers 408 if a body does not arrive in time. The time starts when a handler
/// first reads the body.
pub(crate) async fn in_time(State(app): State<Shared>, request: Request, next: Next) -> Response {
    // Most requests have no body and need no timers.
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let late = Arc::new(AtomicBool::new(false));
    let limits = app.connection_limits;
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let request = request.map(|body| {
        Body::new(TimedBody {
            body,
            limits,
            connection,
            timers: None,
            late: late.clone(),
        })
    });
    let response = next.run(request).await;
    // The handler saw an error while reading, and its answer may say anything.
    if late.load(Ordering::Acquire) {
        Problem::too_slow().into_response()
    } else {
        response
    }
}

struct TimedBody {
    body: Body,
    limits: ConnectionLimits,
    /// The connection the body arrives on. It learns if a handler is waiting for the body.
    connection: Option<Arc<Connection>>,
    timers: Option<Timers>,
    late: Arc<AtomicBool>,
}

struct Timers {
    end: Instant,
    next: Pin<Box<Sleep>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body did not come in time")]
struct BodyTimeout;

impl TimedBody {
    /// Starts the timers at the first call.
    fn timers(&mut self) -> &mut Timers {
        let limits = self.limits;
        self.timers.get_or_insert_with(|| {
            let (now, end) = (Instant::now(), Instant::now() + limits.body_timeout);
            Timers {
                end,
                next: Box::pin(sleep_until(end.min(now + limits.body_silence))),
            }
        })
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let silence = self.limits.body_silence;
        self.timers();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Some(connection) = &self.connection {
            // A connection whose body has paused may be closed to make space for others.
            connection.set_waiting_for_body(polled.is_pending());
        }
        if let Poll::Ready(frame) = polled {
            let timers = self.timers();
            let next = timers.end.min(Instant::now() + silence);
            // A client that keeps sending single bytes does not extend the total time.
            if timers.end > Instant::now() || frame.is_none() {
                timers.next.as_mut().reset(next);
                return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
            }
        } else if self.timers().next.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        // The handler gets an error from the body; the middleware replaces the response that it
        // makes of it.
        self.late.store(true, Ordering::Release);
        Poll::Ready(Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
