//! Event streams end when the access of their caller is revoked or expires.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;

use crate::auth::{Caller, Presented};
use crate::extract::header_text;
use crate::state::Shared;
use crate::user::RequestCaller;

/// Middleware that ends an event stream once the caller's token is no longer valid. The turn behind
/// it goes on, as when a client disconnects.
pub(crate) async fn end_when_revoked(
    State(app): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let identified = request.extensions().get::<RequestCaller>().cloned();
    let response = next.run(request).await;
    let kind = header_text(response.headers(), CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    match identified.and_then(|identified| identified.caller().cloned()) {
        Some(caller) if caller.token.is_some() || caller.until.is_some() => response.map(|body| {
            Body::from_stream(body.into_data_stream().take_until(revoked(app, caller)))
        }),
        _ => response,
    }
}

/// Completes when the caller's token or session is revoked or has expired.
async fn revoked(app: Shared, mut caller: Caller) {
    loop {
        // Polled, because another replica may revoke the token.
        tokio::time::sleep(app.access.recheck).await;
        let now = app.agent.now();
        if caller.until.is_some_and(|until| until <= now) {
            return;
        }
        let (Some(shown), Some(tokens)) = (&caller.token, app.auth.tokens()) else {
            continue;
        };
        match tokens.find_token(&shown.digest).await {
            Ok(Some(record)) if record.refused(now).is_none() => {
                caller.token = Some(Presented { record, ..*shown })
            }
            Ok(_) => return,
            // A store that does not answer is no reason to cut streams.
            Err(_) => continue,
        }
        app.note_use(&caller);
    }
}
