//! `POST /v1/chat/completions`.

use adjutant_core::fingerprint;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Span;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::answer::Piece;
use super::error::ErrorBody;
use super::message::Messages;
use super::request::CompletionRequest;
use super::stream::{self, failed};
use super::turn::{self, Asked, Passed, Sender};
use super::wire::{Completion, Delta, Envelope};
use super::wishes;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::User;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(completions))
}

/// Answers the last message, with those before it as the history.
///
/// The agent's tools run here; what they do is told as `reasoning_content`. Calls of the client's
/// `tools` end the answer with `tool_calls`, and the request with their results goes on from there.
/// What needs a yes asks for it, and the next message is the answer. The turn goes on to its end
/// also when the client goes away.
#[utoipa::path(post, path = "/v1/chat/completions", operation_id = "create_chat_completion", tag = "openai", request_body = CompletionRequest,
    params(("idempotency-key" = Option<String>, Header, description = "The same request twice is one turn.")),
    responses(
        (status = 200, description = "The answer; with `stream` as server-sent events, each a `chat.completion.chunk`.",
            content((Completion = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "The request cannot be understood.", body = ErrorBody),
        (status = 401, description = "Without a token.", body = ErrorBody),
        (status = 403, description = "Not from there.", body = ErrorBody),
        (status = 404, description = "There is no such model.", body = ErrorBody),
        (status = 413, description = "The request is too large.", body = ErrorBody),
        (status = 415, description = "The request is not JSON.", body = ErrorBody),
        (status = 429, description = "Too much at once, or more than there is to spend.", body = ErrorBody),
        (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
        (status = 502, description = "The model gave no usable answer.", body = ErrorBody),
        (status = 503, description = "The model or the store is not available.", body = ErrorBody),
        (status = 504, description = "The model did not answer in time.", body = ErrorBody),
    ))]
pub(super) async fn completions(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    let fingerprint = fingerprint(&body);
    let request = wishes::read::<CompletionRequest>(body)?;
    let stream = request.stream.unwrap_or_default();
    let options = request
        .stream_options
        .as_ref()
        .and_then(|options| options.include_usage);
    let wishes = request.wishes()?;
    let model = request.model.clone();
    let messages = Messages::of_chat(request.messages);
    let asked = Asked {
        model: request.model,
        messages,
        wishes,
        instructions: None,
        named: None,
    };
    let sender = Sender {
        user,
        request_id,
        trace,
        headers,
        fingerprint,
    };
    let begun = turn::begin(&app, sender, asked).await?;
    let envelope = Envelope {
        id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
        created: app.agent.now().as_second(),
        model,
        with_usage: stream && options.unwrap_or_default(),
        notices: begun.notices,
    };
    if stream {
        Ok(pieces(app, begun.passed, envelope).await)
    } else {
        whole(begun.passed, envelope).await
    }
}

/// The whole answer, once it is there.
async fn whole(
    mut passed: UnboundedReceiver<Passed>,
    envelope: Envelope,
) -> Result<Response, Problem> {
    let (mut content, mut reasoning) = (String::new(), String::new());
    while let Some(next) = passed.recv().await {
        match next {
            Passed::Piece(Piece::Content(text)) => content.push_str(&text),
            Passed::Piece(Piece::Reasoning(text) | Piece::Note(text)) => reasoning.push_str(&text),
            Passed::End(end, ran) => {
                return match *end {
                    Ok(response) => Ok(
                        Json(envelope.completion(content, reasoning, &response)).into_response()
                    ),
                    Err(problem) => Ok(failed(problem, ran)),
                };
            }
        }
    }
    Err(Problem::internal())
}

/// The answer in pieces.
async fn pieces(app: Shared, passed: UnboundedReceiver<Passed>, envelope: Envelope) -> Response {
    let rest = match stream::begun(passed).await {
        Ok(rest) => rest,
        Err(response) => return response,
    };
    let first = envelope.chunk(Delta {
        role: Some("assistant"),
        content: Some(String::new()),
        ..Delta::default()
    });
    // The answer is read outside of the request's span.
    let span = Span::current();
    let events = futures::stream::iter([event(&first)]).chain(rest.flat_map(move |passed| {
        futures::stream::iter(span.in_scope(|| encoded(&app, &envelope, passed)))
    }));
    stream::send(events)
}

/// What was passed on, as events of the stream.
fn encoded(app: &Shared, envelope: &Envelope, passed: Passed) -> Vec<Event> {
    let delta = match passed {
        Passed::Piece(Piece::Content(text)) => Delta {
            content: Some(text),
            ..Delta::default()
        },
        Passed::Piece(Piece::Reasoning(text) | Piece::Note(text)) => Delta {
            reasoning_content: Some(text),
            ..Delta::default()
        },
        Passed::End(end, _) => {
            let mut events = match *end {
                Ok(response) => {
                    let mut events: Vec<Event> =
                        envelope.call_chunks(&response).iter().map(event).collect();
                    events.push(event(&envelope.last_chunk(&response)));
                    events.extend(envelope.usage_chunk(&response).map(|chunk| event(&chunk)));
                    events
                }
                Err(mut problem) => {
                    if let Some(cause) = problem.take_cause() {
                        app.tell(cause);
                    }
                    vec![event(&ErrorBody::of(&problem))]
                }
            };
            events.push(Event::default().data("[DONE]"));
            return events;
        }
    };
    vec![event(&envelope.chunk(delta))]
}

fn event(data: &impl serde::Serialize) -> Event {
    stream::event(Event::default(), data)
}
