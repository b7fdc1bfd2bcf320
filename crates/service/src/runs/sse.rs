//! Server-sent events (`text/event-stream`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::CancellationToken;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use tokio_util::sync::DropGuard;

use crate::live::Run;

/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns true if the client accepts events.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';')
            .next()
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}

/// Streams a run from a position to its end. `reading` is cancelled when the client disconnects.
pub(crate) fn response(run: Arc<Run>, from: usize, reading: Option<CancellationToken>) -> Response {
    // Dropped with the stream, when the client disconnects.
    let guard: Option<DropGuard> = reading.map(CancellationToken::drop_guard);
    let frames = stream::unfold((run, from, guard), async |(run, at, guard)| {
        // Each client reads the log of the run at its own pace, so a slow one holds up no other.
        let frame = run.frame(at).await?;
        let event = axum::response::sse::Event::default()
            .id(&frame.id)
            .data(&*frame.data);
        Some((Ok::<_, Infallible>(event), (run, at + 1, guard)))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    // axum's default is `no-cache`, with which a cache may store what the user was answered.
    // nginx would buffer the response until it is complete.
    let headers = [
        (CACHE_CONTROL.as_str(), "no-store"),
        ("x-accel-buffering", "no"),
    ];
    (headers, Sse::new(frames).keep_alive(keep_alive)).into_response()
}
