//! `/v1/responses`: the Responses API.

mod id; // ids of responses and items
mod items; // the input of a request
mod output; // items of a response, and their events
mod request; // the request
mod stored; // responses of earlier requests
mod wire; // the response object

use adjutant_core::port::Deleted;
use adjutant_core::{Message, Notice, PendingCall, UserId, fingerprint};
use adjutant_runtime::{Agent, RunContext};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::id::ResponseId;
use self::output::Output;
use self::request::ResponseRequest;
use self::stored::StoredResponse;
use self::wire::{ResponseEcho, ResponseObject};
use super::answer::AnswerPart;
use super::error::{ErrorBody, about, invalid};
use super::message::{Messages, Role};
use super::models::{self, ModelKind};
use super::options;
use super::stream;
use super::turn::{self, AnswerEvent, Previous, Sender, TurnRequest};
use crate::extract::PathParam;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::{SignedIn, User};

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(retrieve, delete))
        .routes(routes!(cancel))
}

/// A response while its turn runs.
struct ResponseInProgress {
    object: ResponseObject,
    output: Output,
    notices: Vec<Notice>,
    /// Sequence number of the next event.
    number: u64,
}

/// Answers the last message of the input, with the items before it as history.
///
/// The agent's tools are executed by the service; their activity is sent as items of the type
/// `reasoning`. A call of one of the client's `tools` ends the response with an item of the type
/// `function_call`, and the request with the result continues the turn. A call that needs a
/// confirmation is asked about, and the next message is the answer. The turn continues when the
/// client disconnects.
#[utoipa::path(post, path = "/v1/responses", operation_id = "create_response", tag = "openai", request_body = ResponseRequest,
    params(("idempotency-key" = Option<String>, Header, description = "Key that identifies the request: a repeated request is the same turn.")),
    responses(
        (status = 200, description = "The response; with `stream` as server-sent events, each named by its `type`.",
            content((ResponseObject = "application/json"), (String = "text/event-stream"))),
        (status = 404, description = "There is no such model.", body = ErrorBody),
        (status = 409, description = "Other results of a call were sent before.", body = ErrorBody),
    ))]
async fn create(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    // Of the body as it was sent: two requests may differ in members that are not parsed.
    let fingerprint = fingerprint(&body);
    let request = options::parse_body::<ResponseRequest>(body.clone())?;
    let mut options = request.options()?;
    let echo = request.echo(&body);
    let user = caller.user.clone();
    let agent = app.agent.for_user(&user);
    let previous = match &request.previous_response_id {
        Some(id) => Some(find_previous(&app, &user, id).await?),
        None => None,
    };
    let (mut messages, left_out) =
        items::parse(&agent, &user, request.input, previous.as_ref()).await?;
    options.notices.extend(left_out);
    // After the items, which decide if results for pending calls are among them.
    if let Some(previous) = &previous {
        messages.earlier = history(&agent, previous, &messages).await?;
    }
    let stream = request.stream.unwrap_or_default();
    let turn_request = TurnRequest {
        model: echo.model.clone(),
        messages,
        options,
        instructions: request.instructions,
        previous: previous.map(|previous| Previous {
            conversation: previous.key.conversation,
            waits: previous.waits(),
        }),
    };
    let sender = Sender {
        caller,
        request_id,
        trace,
        headers,
        fingerprint,
    };
    let started = turn::start(&app, sender, turn_request).await?;
    let id = ResponseId::new(started.conversation, started.input.as_ref());
    let progress = ResponseInProgress {
        object: ResponseObject::new(id.to_string(), app.agent.now().as_second(), echo),
        output: Output::new(id),
        notices: started.notices,
        number: 0,
    };
    Ok(if stream {
        streamed(app, started.events, progress).await
    } else {
        complete(started.events, progress).await
    })
}

/// Finds the response that a request continues.
async fn find_previous(app: &Shared, user: &UserId, id: &str) -> Result<StoredResponse, Problem> {
    const PARAM: &str = "previous_response_id";
    let (status, code) = (StatusCode::BAD_REQUEST, "previous_response_not_found");
    let stored = lookup(app, user, id).await?;
    let stored = stored.ok_or_else(|| not_found(PARAM, status, code, id))?;
    if stored.answer.is_none() {
        let detail = "this response is not complete yet: wait for its end";
        return Err(invalid(PARAM, detail));
    }
    Ok(stored)
}

/// Finds a response by its id; `None` if it does not exist, or belongs to another user.
async fn lookup(app: &Shared, user: &UserId, id: &str) -> Result<Option<StoredResponse>, Problem> {
    match ResponseId::parse(id) {
        Some(id) => stored::find(&app.agent, user, id).await,
        None => Ok(None),
    }
}

fn not_found(param: &str, status: StatusCode, code: &'static str, id: &str) -> Problem {
    let detail = format!("there is no response {id}");
    about(param, Problem::new(status, code, "Not found", detail))
}

/// Returns the history up to a response, including the result of its confirmation or calls.
///
/// # Errors
/// A problem of `input`, if calls of the response are pending and the messages have no results.
async fn history(
    agent: &Agent,
    previous: &StoredResponse,
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
        // The calls have expired, and the turn has not been ended yet.
        agent.run_conversation(&previous.key).await?;
        known = context().await?;
    }
    let has_results = messages
        .list
        .iter()
        .any(|message| message.role == Role::Tool);
    let awaits_results = known.pending.iter().all(PendingCall::awaits_result);
    match known.pending.first() {
        Some(call) if awaits_results && !has_results => {
            let detail = format!(
                "the call {} has no result here: send a function_call_output for it",
                call.call_id
            );
            Err(invalid("input", detail))
        }
        _ => Ok(known.history),
    }
}

/// Waits for the complete response.
async fn complete(
    events: UnboundedReceiver<AnswerEvent>,
    mut progress: ResponseInProgress,
) -> Response {
    let add = |part| drop(progress.output.add(part));
    match stream::wait_for_end(events, add).await {
        Ok(response) => {
            progress.output.finish(&response);
            let items = progress.output.into_items();
            let object = progress
                .object
                .finished(items, &response, &progress.notices);
            Json(object).into_response()
        }
        Err(response) => response,
    }
}

/// Streams the response as events.
async fn streamed(
    app: Shared,
    events: UnboundedReceiver<AnswerEvent>,
    mut progress: ResponseInProgress,
) -> Response {
    // The two events with which OpenAI's service starts every stream.
    let first = ["response.created", "response.in_progress"];
    let first = first.map(|name| progress.object_event(name));
    stream::respond(events, first, move |event| progress.encode(&app, event)).await
}

impl ResponseInProgress {
    /// Converts an event of the answer to server-sent events.
    fn encode(&mut self, app: &Shared, event: AnswerEvent) -> Vec<Event> {
        match event {
            AnswerEvent::Part(piece) => {
                let events = self.output.add(piece);
                events
                    .into_iter()
                    .map(|event| self.number_event(event))
                    .collect()
            }
            AnswerEvent::End(end, _) => match *end {
                Ok(response) => {
                    let events = self.output.finish(&response);
                    let items = self.output.items().to_vec();
                    let object = self.object.clone();
                    self.object = object.finished(items, &response, &self.notices);
                    self.last_events(events)
                }
                Err(problem) => self.failure_events(app, problem),
            },
        }
    }

    /// Returns the events of a turn that failed after the stream has started: the error, which
    /// client libraries throw, and the incomplete response.
    fn failure_events(&mut self, app: &Shared, mut problem: Problem) -> Vec<Event> {
        // The middleware that logs causes has seen a successful response already.
        if let Some(cause) = problem.take_cause() {
            app.report(&cause);
        }
        let mut events = self.output.close("incomplete");
        events.push(ErrorBody::from_problem(&problem).event());
        let items = self.output.items().to_vec();
        self.object = self.object.clone().failed(items, &problem);
        self.last_events(events)
    }

    /// Numbers the last events of the items, and adds the one with the complete response.
    fn last_events(&mut self, items: Vec<Value>) -> Vec<Event> {
        let mut events: Vec<Event> = items
            .into_iter()
            .map(|event| self.number_event(event))
            .collect();
        events.push(self.object_event(self.object.last_event()));
        events
    }

    /// Returns an event with the response as far as it is complete.
    fn object_event(&mut self, name: &str) -> Event {
        let event = json!({"type": name, "response": self.object});
        self.number_event(event)
    }

    fn number_event(&mut self, mut event: Value) -> Event {
        // Counted over all events of the stream: clients order by it.
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        let name = event["type"].as_str().unwrap_or_default();
        stream::json_event(Event::default().event(name), &event)
    }
}

/// Returns an earlier response from the journal: its text and the client's calls, without the
/// activity before them.
///
/// The format is that of OpenAI's API. Fields that only repeat the request, such as `metadata`, are
/// not stored.
#[utoipa::path(get, path = "/v1/responses/{id}", operation_id = "get_response", tag = "openai",
    params(("id" = String, Path, description = "Id of the response.")),
    responses(
        (status = 200, description = "The response.", body = ResponseObject),
        (status = 404, description = "There is no such response, or it belongs to another user.", body = ErrorBody),
    ))]
async fn retrieve(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
) -> Result<Json<ResponseObject>, Problem> {
    let stored = find(&app, &user, &id).await?;
    Ok(Json(to_object(&app, &stored)))
}

/// Builds the response object of an earlier response.
fn to_object(app: &Shared, stored: &StoredResponse) -> ResponseObject {
    let agent = app.agent.for_user(&stored.key.user);
    let kind = if stored.words_only {
        ModelKind::Plain
    } else {
        ModelKind::Agent
    };
    let echo = ResponseEcho::unknown(models::name(&agent, kind));
    let object = ResponseObject::new(stored.id.to_string(), stored.created.as_second(), echo);
    let Some(answer) = &stored.answer else {
        return object;
    };
    let mut output = Output::new(stored.id);
    if !stored.text.is_empty() {
        output.add(AnswerPart::Content(stored.text.clone()));
    }
    output.finish(answer);
    match Problem::for_turn(answer, app.agent.now()) {
        Some(problem) => object.failed(Vec::new(), &problem),
        None => object.finished(output.into_items(), answer, &[]),
    }
}

async fn find(app: &Shared, user: &UserId, id: &str) -> Result<StoredResponse, Problem> {
    let stored = lookup(app, user, id).await?;
    stored.ok_or_else(|| not_found("response_id", StatusCode::NOT_FOUND, "unknown", id))
}

/// Confirmation of a deletion.
#[derive(Debug, Serialize, ToSchema)]
struct DeletedResponse {
    /// Id of the response.
    id: String,
    /// Always `response`.
    object: &'static str,
    /// Always `true`.
    deleted: bool,
}

/// Deletes a response with its turn: all responses of that turn, and its log entries.
///
/// Responses that continued it have copies of its messages, and stay.
#[utoipa::path(delete, path = "/v1/responses/{id}", operation_id = "delete_response", tag = "openai",
    params(("id" = String, Path, description = "Id of the response.")),
    responses(
        (status = 200, description = "The response was deleted.", body = DeletedResponse),
        (status = 404, description = "There is no such response, or it belongs to another user.", body = ErrorBody),
        (status = 409, description = "Its turn runs; nothing was deleted.", body = ErrorBody),
    ))]
async fn delete(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
) -> Result<Json<DeletedResponse>, Problem> {
    let stored = find(&app, &user, &id).await?;
    match app.agent.conversations().delete(&stored.key).await? {
        Deleted::Yes => Ok(Json(DeletedResponse {
            id,
            object: "response",
            deleted: true,
        })),
        Deleted::NoSuchConversation => Err(Problem::unknown("response")),
        Deleted::Running => Err(Problem::new(
            StatusCode::CONFLICT,
            "running",
            "The response is in progress",
            "its turn runs: cancel it or wait for its end, then delete it; nothing was deleted",
        )),
    }
}

/// Cancels the turn of a response that is in progress, or that waits for a confirmation or results.
///
/// Effects of executed tools remain. The format is that of OpenAI's API.
#[utoipa::path(post, path = "/v1/responses/{id}/cancel", operation_id = "cancel_response", tag = "openai",
    params(("id" = String, Path, description = "Id of the response.")),
    responses(
        (status = 200, description = "The cancelled response.", body = ResponseObject),
        (status = 400, description = "The response is complete, and nothing in it is pending.", body = ErrorBody),
        (status = 404, description = "There is no such response, or it belongs to another user.", body = ErrorBody),
    ))]
async fn cancel(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
) -> Result<Json<ResponseObject>, Problem> {
    let stored = find(&app, &user, &id).await?;
    if stored.answer.is_some() && !stored.waits() {
        return Err(invalid(
            "response_id",
            "this response is complete: there is nothing to cancel",
        ));
    }
    let mut context = RunContext {
        conversation: stored.key.conversation,
        ..RunContext::new(user.clone())
    };
    let stopped = app.agent.cancel(&mut context).await?;
    // What was read before is the response in progress; this is its end.
    let stored = StoredResponse {
        text: stopped.content.clone(),
        answer: Some(Box::new(stopped)),
        ..stored
    };
    Ok(Json(to_object(&app, &stored)))
}
