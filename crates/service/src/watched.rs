//! Answers that go on for long: they end once whoever asked may not ask any more.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;

use crate::auth::{Caller, Shown};
use crate::state::Shared;
use crate::user::Asker;

/// Ends a stream of events once the token that began it is refused. A turn that runs behind it goes
/// on, as when a client leaves.
pub(crate) async fn while_allowed(
    State(app): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let asker = request.extensions().get::<Asker>().cloned();
    let response = next.run(request).await;
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    match asker.and_then(|asker| asker.caller().cloned()) {
        Some(caller) if caller.token.is_some() || caller.until.is_some() => response.map(|body| {
            Body::from_stream(body.into_data_stream().take_until(refused(app, caller)))
        }),
        _ => response,
    }
}

/// Waits until a caller is refused.
async fn refused(app: Shared, mut caller: Caller) {
    loop {
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
                caller.token = Some(Shown { record, ..*shown })
            }
            Ok(_) => return,
            // While the store does not answer, nobody is known to have been refused.
            Err(_) => continue,
        }
        app.note_use(&caller);
    }
}
