//! `POST /v1/chat/completions`: the Chat Completions API.

use adjutant_core::fingerprint;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::answer::AnswerPart;
use super::error::ErrorBody;
use super::message::Messages;
use super::options;
use super::request::CompletionRequest;
use super::stream;
use super::turn::{self, AnswerEvent, Sender, TurnRequest};
use super::wire::{Completion, Delta, Envelope};
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::SignedIn;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(completions))
}

/// Answers the last message, with the ones before it as history.
///
/// The agent's tools are executed by the service; their activity is sent as `reasoning_content`. A
/// call of one of the client's `tools` ends the answer with `tool_calls`, and the request with the
/// results continues the turn. A call that needs a confirmation is asked about, and the next
/// message is the answer. The turn continues when the client disconnects.
#[utoipa::path(post, path = "/v1/chat/completions", operation_id = "create_chat_completion", tag = "openai", request_body = CompletionRequest,
    params(("idempotency-key" = Option<String>, Header, description = "Key that identifies the request: a repeated request is the same turn.")),
    responses(
        (status = 200, description = "The answer; with `stream` as server-sent events, each a `chat.completion.chunk`.",
            content((Completion = "application/json"), (String = "text/event-stream"))),
        (status = 404, description = "There is no such model.", body = ErrorBody),
    ))]
pub(super) async fn completions(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    let fingerprint = fingerprint(&body);
    let request = options::parse_body::<CompletionRequest>(body)?;
    let stream = request.stream.unwrap_or_default();
    let stream_options = request
        .stream_options
        .as_ref()
        .and_then(|options| options.include_usage);
    let turn_request = TurnRequest {
        options: request.options()?,
        model: request.model.clone(),
        messages: Messages::from_chat(request.messages),
        instructions: None,
        previous: None,
    };
    let sender = Sender {
        caller,
        request_id,
        trace,
        headers,
        fingerprint,
    };
    let started = turn::start(&app, sender, turn_request).await?;
    let envelope = Envelope {
        id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
        created: app.agent.now().as_second(),
        model: request.model,
        with_usage: stream && stream_options.unwrap_or_default(),
        notices: started.notices,
    };
    Ok(if stream {
        streamed(app, started.events, envelope).await
    } else {
        complete(started.events, envelope).await
    })
}

/// Waits for the complete answer.
async fn complete(events: UnboundedReceiver<AnswerEvent>, envelope: Envelope) -> Response {
    let (mut content, mut reasoning) = (String::new(), String::new());
    let add = |part| match part {
        AnswerPart::Content(text) => content.push_str(&text),
        AnswerPart::Reasoning(text) | AnswerPart::Note(text) => reasoning.push_str(&text),
    };
    match stream::wait_for_end(events, add).await {
        Ok(response) => Json(envelope.completion(content, reasoning, &response)).into_response(),
        Err(response) => response,
    }
}

/// Streams the answer as chunks.
async fn streamed(
    app: Shared,
    events: UnboundedReceiver<AnswerEvent>,
    envelope: Envelope,
) -> Response {
    // The role comes once, with an empty text, as in OpenAI's API.
    let first = envelope.chunk(Delta {
        role: Some("assistant"),
        content: Some(String::new()),
        ..Delta::default()
    });
    let encode = move |event| encode(&app, &envelope, event);
    stream::respond(events, [event(&first)], encode).await
}

/// Converts an event of the answer to server-sent events.
fn encode(app: &Shared, envelope: &Envelope, events: AnswerEvent) -> Vec<Event> {
    let delta = match events {
        AnswerEvent::Part(AnswerPart::Content(text)) => Delta {
            content: Some(text),
            ..Delta::default()
        },
        AnswerEvent::Part(AnswerPart::Reasoning(text) | AnswerPart::Note(text)) => Delta {
            reasoning_content: Some(text),
            ..Delta::default()
        },
        AnswerEvent::End(end, _) => {
            let mut events = match *end {
                Ok(response) => {
                    let mut events: Vec<Event> =
                        envelope.call_chunks(&response).iter().map(event).collect();
                    events.push(event(&envelope.last_chunk(&response)));
                    events.extend(envelope.usage_chunk(&response).map(|chunk| event(&chunk)));
                    events
                }
                Err(mut problem) => {
                    // The middleware that logs causes has seen a successful response already.
                    if let Some(cause) = problem.take_cause() {
                        app.report(&cause);
                    }
                    vec![event(&ErrorBody::from_problem(&problem))]
                }
            };
            // Clients of this API read until this text, also after an error.
            events.push(Event::default().data("[DONE]"));
            return events;
        }
    };
    vec![event(&envelope.chunk(delta))]
}

fn event(data: &impl serde::Serialize) -> Event {
    stream::json_event(Event::default(), data)
}
