//! What is told of every request: figures always, a line if somebody wants it. Never what was said.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use crate::events::ServiceEvent;
use crate::state::Shared;
use crate::user::Asker;

/// The longest name of a request that is told, in bytes; clients may choose it.
const REQUEST_ID_MAX: usize = 128;

pub(crate) async fn observe(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let asker = Asker::default();
    request.extensions_mut().insert(asker.clone());
    let method = request.method().as_str().to_owned();
    // Addresses as they were asked for would be as many as there are things; those that are none of ours are one.
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str).to_owned();
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    let request_id: String = id.unwrap_or_default().chars().take(REQUEST_ID_MAX).collect();
    let begun = Instant::now();
    let response = next.run(request).await;
    let (took, status) = (begun.elapsed(), response.status().as_u16());
    app.metrics.request(&known(&method), &route, status, took);
    if app.tell_requests {
        let user = asker.known().cloned();
        let ms = millis(took);
        app.events.tell(ServiceEvent::Answered { method, route, status, ms, user, request_id });
    }
    response
}

/// Methods that nobody knows are one, or a client could make as many figures as it can make up words.
fn known(method: &str) -> String {
    let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if usual.contains(&method) { method.to_owned() } else { "OTHER".to_owned() }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
