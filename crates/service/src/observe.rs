//! Outermost middleware: gives every request an id and a span, and records metrics and a log line.
//! Bodies are never logged.

use std::time::Duration;

use adjutant_core::TraceContext;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::{Instrument as _, error_span, field, info};

use crate::state::Shared;
use crate::user::RequestCaller;
use crate::{request_id, trace};

/// Middleware that answers a request in a span with its id, trace and user. The span has the level
/// ERROR, so that no log filter removes the id from the lines within it.
pub(crate) async fn observe(
    State(app): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(RequestCaller::default());
    let id = request_id::ensure(request.headers_mut());
    // Before the handler, so that a refused request has a trace in the log too.
    let trace = trace::from_headers(request.headers());
    let trace_id = trace.as_ref().map(TraceContext::trace_id);
    if let Some(trace) = trace.filter(|_| app.trace_propagation) {
        request.extensions_mut().insert(trace);
    }
    let request_id = id.to_str().unwrap_or_default().to_owned();
    let span = error_span!("request", request_id, trace_id, user = field::Empty);
    // For work in tasks that a library spawns, which do not inherit the current span.
    request.extensions_mut().insert(span.clone());
    let method = request.method().as_str().to_owned();
    // The route's pattern instead of the path: a label must have few values. Unknown paths are one
    // value.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("-", MatchedPath::as_str)
        .to_owned();
    let started = Instant::now();
    let answer = async {
        let response = next.run(request).await;
        let (took, status) = (started.elapsed(), response.status().as_u16());
        app.metrics
            .record_request(&method_label(&method), &route, status, took);
        info!(target: "adjutant_service::request", method, route, status, ms = millis(took), "answered");
        response
    };
    let mut response = answer.instrument(span).await;
    response.headers_mut().insert(request_id::HEADER, id);
    response
}

/// Returns the method as a metric label. Unknown methods are one label, since a client could invent
/// any number of them.
fn method_label(method: &str) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if known.contains(&method) {
        method.to_owned()
    } else {
        "OTHER".to_owned()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
