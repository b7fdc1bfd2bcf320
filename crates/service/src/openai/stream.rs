//! Server-sent events and error responses of all routes of this API.

use std::convert::Infallible;
use std::time::Duration;

use adjutant_core::AgentResponse;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::Span;

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
fn error_response(problem: Problem, ran: bool) -> Response {
    let mut response = problem.into_response();
    if ran {
        response
            .headers_mut()
            .insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// Waits for the end of the turn. Passes each part of the answer to `add`.
///
/// # Errors
/// The error response, if the turn failed.
pub(super) async fn wait_for_end(
    mut events: UnboundedReceiver<AnswerEvent>,
    mut add: impl FnMut(AnswerPart),
) -> Result<AgentResponse, Response> {
    while let Some(event) = events.recv().await {
        match event {
            AnswerEvent::Part(part) => add(part),
            AnswerEvent::End(end, ran) => {
                return end.map_err(|problem| error_response(problem, ran));
            }
        }
    }
    // The task that sends the events has panicked.
    Err(Problem::internal().into_response())
}

/// Streams the answer: the `first` events, then those into which `encode` converts its parts. A
/// turn that fails before the first part is answered with an error status.
pub(super) async fn respond(
    events: UnboundedReceiver<AnswerEvent>,
    first: impl IntoIterator<Item = Event, IntoIter: Send + 'static>,
    mut encode: impl FnMut(AnswerEvent) -> Vec<Event> + Send + 'static,
) -> Response {
    let rest = match wait_for_first(events).await {
        Ok(rest) => rest,
        Err(response) => return response,
    };
    // The body is streamed after the handler has returned, outside of its span.
    let span = Span::current();
    let rest = rest.flat_map(move |event| futures::stream::iter(span.in_scope(|| encode(event))));
    let events = futures::stream::iter(first)
        .chain(rest)
        .map(Ok::<_, Infallible>);
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // nginx would buffer the response until it is complete.
    ([("x-accel-buffering", "no")], sse).into_response()
}

/// Waits for the first part of the answer, and returns the stream of all events.
///
/// # Errors
/// The error response, if the turn fails before its first part.
async fn wait_for_first(
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

/// Adds data as JSON to an event, which may have a name.
pub(super) fn json_event(event: Event, data: &impl serde::Serialize) -> Event {
    // Serialization fails only for maps whose keys are not strings, which these types do not have.
    event.json_data(data).unwrap_or_default()
}
