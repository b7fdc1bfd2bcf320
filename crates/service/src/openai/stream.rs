//! The way an answer is sent in pieces, or a failed turn as an error. The same for every route of
//! this API.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::answer::Piece;
use super::turn::Passed;
use crate::problem::Problem;

/// A stream whose turn has said nothing yet waits so long before it begins: a turn that fails at
/// once has a status that says so, and no proxy takes a slow one for a dead one.
const BEGINNING: Duration = Duration::from_secs(5);
/// Time after which a silent stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Clients of this API send some failed requests again by themselves, unless they are told not to.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A failed turn. Sent again, it would do again what its tools did.
pub(super) fn failed(problem: Problem, ran: bool) -> Response {
    let mut response = problem.into_response();
    if ran {
        response
            .headers_mut()
            .insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// Waits until the turn says something, and returns all that it passes on.
///
/// # Errors
/// The response that says so, if the turn fails before it said anything.
pub(super) async fn begun(
    mut passed: UnboundedReceiver<Passed>,
) -> Result<impl Stream<Item = Passed> + Send + 'static, Response> {
    let mut begun = Vec::new();
    let beginning = async {
        while let Some(next) = passed.recv().await {
            let goes_on = matches!(next, Passed::Piece(Piece::Note(_)));
            begun.push(next);
            if !goes_on {
                break;
            }
        }
    };
    // Nothing is lost if it takes longer: what came is in `begun`.
    let _ = tokio::time::timeout(BEGINNING, beginning).await;
    if let Some(Passed::End(end, ran)) =
        begun.pop_if(|last| matches!(last, Passed::End(end, _) if end.is_err()))
        && let Err(problem) = *end
    {
        return Err(failed(problem, ran));
    }
    Ok(futures::stream::iter(begun).chain(UnboundedReceiverStream::new(passed)))
}

/// Sends events as they come.
pub(super) fn send(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.map(Ok::<Event, Infallible>);
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// Returns an event with this data. Its name, if it has one, stands in front of that.
pub(super) fn event(named: Event, data: &impl serde::Serialize) -> Event {
    // Strings, numbers and lists of them: there is nothing in it that is no JSON.
    named.json_data(data).unwrap_or_default()
}
