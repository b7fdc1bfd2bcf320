//! `/v1/responses`: the agent in the words of OpenAI's Responses API.

mod id; // where in the journal an answer is
mod items; // the input of a request
mod kept; // answers that were given
mod output; // items of an answer, and the events that tell of them
mod request; // what a client may send beside its input
mod wire; // a response

use adjutant_core::port::{Deleted, StoreError};
use adjutant_core::{Message, Notice, PendingCall, UserId, fingerprint};
use adjutant_runtime::{Agent, RunContext};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Span;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::id::ResponseId;
use self::kept::Kept;
use self::output::Output;
use self::request::ResponseRequest;
use self::wire::{ResponseEcho, ResponseObject, ResponseStatus};
use super::answer::Piece;
use super::error::{ErrorBody, about, invalid};
use super::message::{Messages, Role};
use super::models::{self, Which};
use super::stream::{self, failed};
use super::turn::{self, Asked, Named, Passed, Sender};
use super::wishes;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::User;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(retrieve, delete))
        .routes(routes!(cancel))
}

/// An answer while it is made.
struct Answering {
    object: ResponseObject,
    output: Output,
    notices: Vec<Notice>,
    /// The number of the next event.
    number: u64,
}

/// Answers the input: the last message of it, with what stands before it as the history.
///
/// The agent's tools run here; what they do is told in items of the type `reasoning`. Calls of the
/// client's `tools` end the answer as items of the type `function_call`, and the request with their
/// results goes on from there. What needs a yes asks for it, and the next message is the answer.
/// The turn goes on to its end also when the client goes away.
#[utoipa::path(post, path = "/v1/responses", operation_id = "create_response", tag = "openai", request_body = ResponseRequest,
    params(("idempotency-key" = Option<String>, Header, description = "The same request twice is one turn.")),
    responses(
        (status = 200, description = "The answer; with `stream` as server-sent events, each with its `type` as its name.",
            content((ResponseObject = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "The request cannot be understood.", body = ErrorBody),
        (status = 401, description = "Without a token.", body = ErrorBody),
        (status = 403, description = "Not from there.", body = ErrorBody),
        (status = 404, description = "There is no such model.", body = ErrorBody),
        (status = 409, description = "Results of a call were brought before, and were others.", body = ErrorBody),
        (status = 413, description = "The request is too large.", body = ErrorBody),
        (status = 415, description = "The request is not JSON.", body = ErrorBody),
        (status = 429, description = "Too much at once, or more than there is to spend.", body = ErrorBody),
        (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
        (status = 502, description = "The model gave no usable answer.", body = ErrorBody),
        (status = 503, description = "The model or the store is not available.", body = ErrorBody),
        (status = 504, description = "The model did not answer in time.", body = ErrorBody),
    ))]
async fn create(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    let fingerprint = fingerprint(&body);
    let request = wishes::read::<ResponseRequest>(body.clone())?;
    let mut wishes = request.wishes()?;
    let echo = request.echo(&body);
    let agent = app.agent.for_user(&user);
    let previous = match &request.previous_response_id {
        Some(id) => Some(previous(&app, &user, id).await?),
        None => None,
    };
    let (mut messages, left_out) =
        items::read(&agent, &user, request.input, previous.as_ref()).await?;
    wishes.notices.extend(left_out);
    let named = previous.as_ref().map(|previous| Named {
        conversation: previous.key.conversation,
        waits: previous.waits(),
    });
    if let Some(previous) = &previous {
        messages.earlier = history(&agent, previous, &messages).await?;
    }
    let stream = request.stream.unwrap_or_default();
    let model = echo.model.clone();
    let asked = Asked {
        model,
        messages,
        wishes,
        instructions: request.instructions,
        named,
    };
    let begun = turn::begin(
        &app,
        Sender {
            user,
            request_id,
            trace,
            headers,
            fingerprint,
        },
        asked,
    )
    .await?;
    let id = ResponseId::new(begun.conversation, begun.input.as_ref());
    let answering = Answering {
        object: ResponseObject::begun(id.to_string(), app.agent.now().as_second(), echo),
        output: Output::new(id),
        notices: begun.notices,
        number: 0,
    };
    if stream {
        Ok(pieces(app, begun.passed, answering).await)
    } else {
        whole(begun.passed, answering).await
    }
}

/// Finds the answer that a request goes on from.
async fn previous(app: &Shared, user: &UserId, id: &str) -> Result<Kept, Problem> {
    const PARAM: &str = "previous_response_id";
    let unknown = || {
        let detail = format!("there is no response {id}");
        about(
            PARAM,
            Problem::new(
                StatusCode::BAD_REQUEST,
                "previous_response_not_found",
                "Not found",
                detail,
            ),
        )
    };
    let response = ResponseId::of_response(id).ok_or_else(unknown)?;
    let kept = kept::find(&app.agent, user, response)
        .await?
        .ok_or_else(unknown)?;
    match kept.answer {
        Some(_) => Ok(kept),
        None => Err(invalid(
            PARAM,
            "this response is not complete yet: wait for its end",
        )),
    }
}

/// Returns what was said up to an answer, with what became of the question or the calls that it
/// ended with.
///
/// # Errors
/// A problem of `input`, if the calls still wait and the messages have none of their results.
async fn history(
    agent: &Agent,
    previous: &Kept,
    messages: &Messages,
) -> Result<Vec<Message>, Problem> {
    let context = async || {
        agent
            .context(&previous.key)
            .await
            .map_err(|error| Problem::store(&error))
    };
    let mut known = context().await?;
    let waits = |call: &PendingCall| !call.has_expired(agent.now());
    if !known.pending.is_empty() && !known.pending.iter().any(waits) {
        // Its time ran out and nobody looked since.
        agent
            .advance(&previous.key)
            .await
            .map_err(|error| Problem::run(&error))?;
        known = context().await?;
    }
    let are_brought = messages
        .list
        .iter()
        .any(|message| message.role == Role::Tool);
    let awaits_results = known.pending.iter().all(PendingCall::awaits_result);
    match known.pending.first() {
        Some(call) if awaits_results && !are_brought => {
            let detail = format!(
                "the call {} has no result here: send a function_call_output for it",
                call.call_id
            );
            Err(invalid("input", detail))
        }
        _ => Ok(known.history),
    }
}

/// The whole answer, once it is there.
async fn whole(
    mut passed: UnboundedReceiver<Passed>,
    mut answering: Answering,
) -> Result<Response, Problem> {
    while let Some(next) = passed.recv().await {
        match next {
            Passed::Piece(piece) => drop(answering.output.piece(piece)),
            Passed::End(end, ran) => {
                return match *end {
                    Ok(response) => {
                        let Answering {
                            object,
                            mut output,
                            notices,
                            ..
                        } = answering;
                        output.end(&response, ResponseStatus::of(&response).of_words());
                        Ok(Json(object.ended(output.into_items(), &response, &notices))
                            .into_response())
                    }
                    Err(problem) => Ok(failed(problem, ran)),
                };
            }
        }
    }
    Err(Problem::internal())
}

/// The answer in pieces.
async fn pieces(
    app: Shared,
    passed: UnboundedReceiver<Passed>,
    mut answering: Answering,
) -> Response {
    let rest = match stream::begun(passed).await {
        Ok(rest) => rest,
        Err(response) => return response,
    };
    let first = [
        answering.of_whole("response.created"),
        answering.of_whole("response.in_progress"),
    ];
    // The answer is read outside of the request's span.
    let span = Span::current();
    let events = futures::stream::iter(first).chain(rest.flat_map(move |passed| {
        futures::stream::iter(span.in_scope(|| answering.passed(&app, passed)))
    }));
    stream::send(events)
}

impl Answering {
    /// Returns what was passed on as events of the stream.
    fn passed(&mut self, app: &Shared, passed: Passed) -> Vec<Event> {
        match passed {
            Passed::Piece(piece) => {
                let events = self.output.piece(piece);
                self.numbered(events)
            }
            Passed::End(end, _) => match *end {
                Ok(response) => {
                    let events = self
                        .output
                        .end(&response, ResponseStatus::of(&response).of_words());
                    let mut events = self.numbered(events);
                    let items = self.output.items().to_vec();
                    self.object = self.object.clone().ended(items, &response, &self.notices);
                    events.push(self.of_whole(self.object.last_event()));
                    events
                }
                Err(problem) => self.broken_off(app, problem),
            },
        }
    }

    /// Returns the end of a stream whose turn failed after it had begun: the error as clients throw
    /// it, and what there is of the answer.
    fn broken_off(&mut self, app: &Shared, mut problem: Problem) -> Vec<Event> {
        if let Some(cause) = problem.take_cause() {
            app.tell(cause);
        }
        let mut events = self.output.close("incomplete");
        events.push(ErrorBody::of(&problem).event());
        let mut events = self.numbered(events);
        self.object = self
            .object
            .clone()
            .failed(self.output.items().to_vec(), &problem);
        events.push(self.of_whole(self.object.last_event()));
        events
    }

    /// Returns an event with the whole answer as far as it is.
    fn of_whole(&mut self, name: &str) -> Event {
        let event = json!({"type": name, "response": self.object});
        self.numbered_one(event)
    }

    fn numbered(&mut self, events: Vec<Value>) -> Vec<Event> {
        events
            .into_iter()
            .map(|event| self.numbered_one(event))
            .collect()
    }

    fn numbered_one(&mut self, mut event: Value) -> Event {
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        let name = event["type"].as_str().unwrap_or_default();
        stream::event(Event::default().event(name), &event)
    }
}

/// An answer that was given before, as far as the journal has it: what was said and which calls
/// were asked for, without what went on before.
///
/// It has the form that clients of OpenAI's interface read. What the request said of itself, such
/// as its `metadata`, is not kept.
#[utoipa::path(get, path = "/v1/responses/{id}", operation_id = "get_response", tag = "openai",
    params(("id" = String, Path, description = "Its id.")),
    responses(
        (status = 200, description = "The answer.", body = ResponseObject),
        (status = 401, description = "Without a token.", body = ErrorBody),
        (status = 404, description = "There is no such response, or it is another user's.", body = ErrorBody),
        (status = 429, description = "Too much at once.", body = ErrorBody),
        (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
        (status = 503, description = "The store is not available.", body = ErrorBody),
    ))]
async fn retrieve(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ResponseObject>, Problem> {
    let Path(id) = id?;
    let kept = find(&app, &user, &id).await?;
    Ok(Json(shown(&app, &kept)))
}

/// Returns an answer as the journal has it.
fn shown(app: &Shared, kept: &Kept) -> ResponseObject {
    let agent = app.agent.for_user(&kept.key.user);
    let which = if kept.words_only {
        Which::Plain
    } else {
        Which::Agent
    };
    let echo = ResponseEcho::unknown(models::name(&agent, which));
    let object = ResponseObject::begun(kept.id.to_string(), kept.created.as_second(), echo);
    let Some(answer) = &kept.answer else {
        return object;
    };
    let mut output = Output::new(kept.id);
    if !kept.said.is_empty() {
        output.piece(Piece::Content(kept.said.clone()));
    }
    output.end(answer, ResponseStatus::of(answer).of_words());
    match Problem::of_turn(answer, app.agent.now()) {
        Some(problem) => object.failed(Vec::new(), &problem),
        None => object.ended(output.into_items(), answer, &[]),
    }
}

async fn find(app: &Shared, user: &UserId, id: &str) -> Result<Kept, Problem> {
    let unknown = || {
        let detail = format!("there is no response {id}");
        about(
            "response_id",
            Problem::new(StatusCode::NOT_FOUND, "unknown", "Not found", detail),
        )
    };
    let response = ResponseId::of_response(id).ok_or_else(unknown)?;
    kept::find(&app.agent, user, response)
        .await?
        .ok_or_else(unknown)
}

/// An answer that is gone.
#[derive(Debug, Serialize, ToSchema)]
struct DeletedResponse {
    id: String,
    object: &'static str,
    deleted: bool,
}

/// Deletes an answer with its turn: all answers of that turn, and what was logged of it.
///
/// Answers that went on from it have what was said in them, and stay.
#[utoipa::path(delete, path = "/v1/responses/{id}", operation_id = "delete_response", tag = "openai",
    params(("id" = String, Path, description = "Its id.")),
    responses(
        (status = 200, description = "It is gone.", body = DeletedResponse),
        (status = 401, description = "Without a token.", body = ErrorBody),
        (status = 404, description = "There is no such response, or it is another user's.", body = ErrorBody),
        (status = 409, description = "Its turn runs; nothing was deleted.", body = ErrorBody),
        (status = 429, description = "Too much at once.", body = ErrorBody),
        (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
        (status = 503, description = "The store is not available.", body = ErrorBody),
    ))]
async fn delete(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<DeletedResponse>, Problem> {
    let Path(id) = id?;
    let kept = find(&app, &user, &id).await?;
    let failed = |error: StoreError| Problem::store(&error);
    match app
        .agent
        .conversations()
        .delete(&kept.key)
        .await
        .map_err(failed)?
    {
        Deleted::Yes => Ok(Json(DeletedResponse {
            id,
            object: "response",
            deleted: true,
        })),
        Deleted::NoSuchConversation => Err(Problem::unknown("response")),
        Deleted::Running => Err(Problem::new(
            StatusCode::CONFLICT,
            "running",
            "The response is being made",
            "its turn runs: cancel it or wait for its end, then delete it; nothing was deleted",
        )),
    }
}

/// Stops the turn of an answer that is not complete yet, or whose question or calls wait.
///
/// Effects of tools that ran stay. It has the form that clients of OpenAI's interface read.
#[utoipa::path(post, path = "/v1/responses/{id}/cancel", operation_id = "cancel_response", tag = "openai",
    params(("id" = String, Path, description = "Its id.")),
    responses(
        (status = 200, description = "The answer as it was stopped.", body = ResponseObject),
        (status = 400, description = "It is complete, and nothing of it waits.", body = ErrorBody),
        (status = 401, description = "Without a token.", body = ErrorBody),
        (status = 404, description = "There is no such response, or it is another user's.", body = ErrorBody),
        (status = 429, description = "Too much at once.", body = ErrorBody),
        (status = 500, description = "Something went wrong on our side.", body = ErrorBody),
        (status = 503, description = "The store is not available.", body = ErrorBody),
    ))]
async fn cancel(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ResponseObject>, Problem> {
    let Path(id) = id?;
    let kept = find(&app, &user, &id).await?;
    if kept.answer.is_some() && !kept.waits() {
        return Err(invalid(
            "response_id",
            "this response is complete: there is nothing to cancel",
        ));
    }
    let mut context = RunContext {
        conversation: kept.key.conversation,
        ..RunContext::new(user.clone())
    };
    let stopped = app
        .agent
        .cancel(&mut context)
        .await
        .map_err(|error| Problem::run(&error))?;
    let answer = Some(Box::new(stopped));
    let said = answer
        .as_ref()
        .map(|answer| answer.content.clone())
        .unwrap_or_default();
    Ok(Json(shown(
        &app,
        &Kept {
            answer,
            said,
            ..kept
        },
    )))
}
