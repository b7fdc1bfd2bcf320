//! Server-sent events and error responses of all routes of this API.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::answer::AnswerPart;
use super::turn::AnswerEvent;
use crate::problem::Problem;

/// Time for which a stream waits for the first part of the answer before it starts. A turn that
/// fails at once is answered with an error status; a slow one starts before a proxy times out.
const FIRST_PART_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of comments in a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Header that keeps OpenAI's client libraries from repeating a failed request by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Returns the response of a failed turn. `ran`: a tool was executed, so repeating the request
/// would repeat its effects.
pub(super) fn error_response(problem: Problem, ran: bool) -> Response {
    let mut response = problem.into_response();
    if ran {
        response
            .headers_mut()
            .insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// Waits for the first part of the answer, and returns the stream of all events.
///
/// # Errors
/// The error response, if the turn fails before its first part.
pub(super) async fn wait_for_first(
    mut events: UnboundedReceiver<AnswerEvent>,
) -> Result<impl Stream<Item = AnswerEvent> + Send + 'static, Response> {
    let mut first = Vec::new();
    let receive = async {
        while let Some(event) = events.recv().await {
            // Notes, such as that of a retry, do not commit the turn to an answer.
            let goes_on = matches!(event, AnswerEvent::Part(AnswerPart::Note(_)));
            first.push(event);
            if !goes_on {
                break;
            }
        }
    };
    // Events received before a timeout are in `first`, so none is lost.
    let _ = tokio::time::timeout(FIRST_PART_TIMEOUT, receive).await;
    if let Some(AnswerEvent::End(end, ran)) =
        first.pop_if(|last| matches!(last, AnswerEvent::End(end, _) if end.is_err()))
        && let Err(problem) = *end
    {
        return Err(error_response(problem, ran));
    }
    Ok(futures::stream::iter(first).chain(UnboundedReceiverStream::new(events)))
}

/// Returns the response that streams these events.
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

/// Adds data as JSON to an event, which may have a name.
pub(super) fn json_event(event: Event, data: &impl serde::Serialize) -> Event {
    // Serialization fails only for maps whose keys are not strings, which these types do not have.
    event.json_data(data).unwrap_or_default()
}
