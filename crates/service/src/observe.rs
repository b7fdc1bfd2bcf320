//! Observation of every request: its id and its trace, metrics, and a line in the log. Never what
//! was said.

use std::time::Duration;

use adjutant_core::TraceContext;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::{Instrument as _, error_span, field, info};

use crate::state::Shared;
use crate::user::Asker;
use crate::{request_id, trace};

/// Names the request, and has everything that is logged while it is answered say which one it is.
/// The span is at the level of errors, so that no filter takes it away from what happens in it.
pub(crate) async fn observe(
    State(app): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(Asker::default());
    let id = request_id::ensure(request.headers_mut());
    let trace = trace::of(request.headers());
    let trace_id = trace.as_ref().map(TraceContext::trace_id);
    if let Some(trace) = trace.filter(|_| app.trace_propagation) {
        request.extensions_mut().insert(trace);
    }
    let request_id = id.to_str().unwrap_or_default().to_owned();
    let span = error_span!("request", request_id, trace_id, user = field::Empty);
    // For what is done in a task of a library's.
    request.extensions_mut().insert(span.clone());
    let method = request.method().as_str().to_owned();
    // Addresses as they were asked for would be as many as there are things; those that are none of
    // ours are one.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("-", MatchedPath::as_str)
        .to_owned();
    let begun = Instant::now();
    let answered = async {
        let response = next.run(request).await;
        let (took, status) = (begun.elapsed(), response.status().as_u16());
        app.metrics.request(&known(&method), &route, status, took);
        info!(target: "adjutant_service::request", method, route, status, ms = millis(took), "answered");
        response
    };
    let mut response = answered.instrument(span).await;
    response.headers_mut().insert(request_id::HEADER, id);
    response
}

/// Methods that nobody knows are one, or a client could make as many figures as it can make up
/// words.
fn known(method: &str) -> String {
    let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if usual.contains(&method) {
        method.to_owned()
    } else {
        "OTHER".to_owned()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
