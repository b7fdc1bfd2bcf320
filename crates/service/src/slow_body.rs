//! A request's body that comes slowly, and what is answered to one that comes too slowly.

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

use crate::door::{ConnectionLimits, Guest};
use crate::problem::Problem;
use crate::state::Shared;

/// Refuses what does not come in time. The time begins when somebody wants to read it.
pub(crate) async fn in_time(State(app): State<Shared>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let late = Arc::new(AtomicBool::new(false));
    let bounds = app.connections;
    let guest = request.extensions().get::<Arc<Guest>>().cloned();
    let request = request.map(|body| {
        Body::new(Slow {
            body,
            bounds,
            guest,
            times: None,
            late: late.clone(),
        })
    });
    let response = next.run(request).await;
    if late.load(Ordering::Acquire) {
        Problem::too_slow().into_response()
    } else {
        response
    }
}

struct Slow {
    body: Body,
    bounds: ConnectionLimits,
    /// Whose it is.
    guest: Option<Arc<Guest>>,
    times: Option<Times>,
    late: Arc<AtomicBool>,
}

struct Times {
    end: Instant,
    next: Pin<Box<Sleep>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body did not come in time")]
struct Late;

impl Slow {
    /// Returns when it has to go on, and when to be there.
    fn times(&mut self) -> &mut Times {
        let bounds = self.bounds;
        self.times.get_or_insert_with(|| {
            let (now, end) = (Instant::now(), Instant::now() + bounds.body_timeout);
            Times {
                end,
                next: Box::pin(sleep_until(end.min(now + bounds.body_silence))),
            }
        })
    }
}

impl HttpBody for Slow {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let silence = self.bounds.body_silence;
        self.times();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Some(guest) = &self.guest {
            guest.waits_for_body(polled.is_pending());
        }
        if let Poll::Ready(frame) = polled {
            let times = self.times();
            let next = times.end.min(Instant::now() + silence);
            // Bytes that come all the time make it no longer.
            if times.end > Instant::now() || frame.is_none() {
                times.next.as_mut().reset(next);
                return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
            }
        } else if self.times().next.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.late.store(true, Ordering::Release);
        Poll::Ready(Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
