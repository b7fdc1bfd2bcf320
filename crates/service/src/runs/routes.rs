//! Routes to start, follow and cancel runs.

use std::borrow::Cow;
use std::sync::Arc;

use adjutant_core::port::{StoreError, Turns};
use adjutant_core::{
    ClientSide, ConversationKey, Input, InputBody, InputId, PendingCall, Recorded, TurnId, UserId,
    conversation,
};
use adjutant_runtime::{RunContext, RunError};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::drive::{ClientPosition, NewRun, drive};
use super::replay::{self, ClientHistory, ClientNames, RemoteRun, ReplayTarget};
use super::request::{self, Refused};
use super::sse;
use crate::agui::{AgentInfo, Encoder, RunAgentInput};
use crate::chat::{ChatResponse, FailedTurn, respond};
use crate::extract::{JsonBody, QueryParams, header_text};
use crate::live::Run;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::thread_id::{THREAD_ID_MAX, parse_thread_id};
use crate::trace::Trace;
use crate::user::{SignedIn, User};

const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(start))
        .routes(routes!(events))
        .routes(routes!(cancel))
}

/// Runs the agent (AG-UI 1.0).
///
/// With `Accept: text/event-stream` the response is the run's events, each with an id; otherwise
/// one JSON object as that of `/v1/chat`. The run continues when the client disconnects. A repeated
/// `runId` in the same conversation is the same run.
#[utoipa::path(post, path = "/v1/runs", operation_id = "run_agent", tag = "chat", request_body = RunAgentInput, responses(
    (status = 200, description = "The run's events, or the turn's response.", content(
        (ChatResponse = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "The answered call is not pending (any more)."),
    (status = 409, description = "A pending call has to be answered first."),
    (status = 422, description = "The request is invalid, or its `runId` was used in this conversation for another request."),
    (status = 502, description = "The model did not give a usable answer.", body = FailedTurn,
        content_type = "application/problem+json"),
    (status = 504, description = "The model did not answer in time.", body = FailedTurn,
        content_type = "application/problem+json"),
))]
pub(crate) async fn start(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    JsonBody(input): JsonBody<RunAgentInput>,
) -> Result<Response, Problem> {
    let key = app
        .agent
        .key_for(caller.user.clone(), parse_thread_id(&input.thread_id)?);
    let id = parse_run_id(&input.run_id)?;
    let client = input
        .client()
        .map_err(|error| Problem::invalid(error.to_string()))?;
    let streams = sse::is_accepted(&headers);
    let answers = input.resume.len();
    let fingerprints = input.fingerprints();
    let run = match app.runs.find_by_name(&key, id.as_str()) {
        Some(run) if run.fingerprints.request != fingerprints.request => {
            return Err(StoreError::Reused.into());
        }
        Some(run) if !streams || run.fingerprints == fingerprints => run,
        // The client's history has changed since, so it would receive some messages twice.
        Some(_) => {
            let target = ReplayTarget::Input(id, None);
            return Ok(replay_input(&app, key, target, input, None));
        }
        None => {
            let last = app.agent.journal().load_turns(&key, None, 1).await?;
            let events = events_for(&app, &key, &input, last.as_ref()).await?;
            if app.agent.journal().find_input(&key, &id).await?.is_some() {
                let context = RunContext {
                    conversation: key.conversation,
                    ..caller.run_context()
                };
                return run_again(&app, context, id, input, client, &events, streams).await;
            }
            let position =
                ClientPosition::compare(&app.agent.for_user(&key.user), &input, last.as_ref());
            let request = match request::parse(&input, client, &events, app.agent.now()) {
                Ok(request) => request,
                Err(Refused::Invalid(problem)) => return Err(problem),
                Err(Refused::Pending(problem)) if streams => {
                    return Ok(refused_run(&app, key, &input, &problem));
                }
                Err(Refused::Pending(problem)) => return Err(problem),
            };
            if request.body.is_none() && !streams {
                return Err(Problem::unknown("pending call with this id"));
            }
            let running = app.begin_turn(&key.user)?;
            let name = id.as_str().to_owned();
            // A request with the same name may have come in between; then this one follows its run.
            let (run, is_new) = app.runs.start(key, name, fingerprints.clone());
            if run.fingerprints.request != fingerprints.request {
                return Err(StoreError::Reused.into());
            }
            let has_input = request.body.is_some();
            if is_new {
                let new_run = NewRun {
                    id,
                    caller,
                    input: input.clone(),
                    request,
                    position,
                    request_id,
                    trace,
                    running,
                };
                app.turns.spawn(drive(app.clone(), run.clone(), new_run));
            }
            // A client that receives the first event can rely on the last one, also if this process
            // crashes, so the input must be in the journal before.
            if has_input && let Some(error) = run.accepted().await {
                // Nothing was recorded, so a repeated request has to start the run anew.
                app.runs.remove(&run);
                return Err(Problem::run(error));
            }
            run
        }
    };
    if streams {
        return Ok(sse::response(run, 0, None));
    }
    let response = match run.result().await {
        Some(Ok(response)) => response.clone(),
        Some(Err(error)) => return Err(Problem::run(error)),
        None => return Err(Problem::internal()),
    };
    Ok(respond(&app, response, answers, Some(input.thread_id))?.into_response())
}

/// Returns the events needed to interpret a request: those of the last turn, or all if the request
/// answers an earlier call.
async fn events_for<'a>(
    app: &Shared,
    key: &ConversationKey,
    input: &RunAgentInput,
    last: Option<&'a Turns>,
) -> Result<Cow<'a, [Recorded]>, StoreError> {
    match last {
        None => Ok(Cow::default()),
        Some(last) if last.after > 0 && request::answers_earlier_turn(input, &last.events) => {
            Ok(Cow::Owned(app.agent.journal().load(key).await?.events))
        }
        Some(last) => Ok(Cow::Borrowed(&last.events)),
    }
}

/// Handles a repeated run that is not in this process's memory.
async fn run_again(
    app: &Shared,
    context: RunContext,
    id: InputId,
    input: RunAgentInput,
    client: Option<Box<ClientSide>>,
    events: &[Recorded],
    streams: bool,
) -> Result<Response, Problem> {
    let key = app.agent.key(&context);
    // The first request counts: what it answered may not be pending any more.
    let request = request::parse(&input, client, events, app.agent.now()).ok();
    let fingerprints = input.fingerprints();
    if streams {
        // The input is in the journal already, so this only compares the fingerprints.
        let body = InputBody::Answers {
            answers: Vec::new(),
        };
        let repeated = Input {
            fingerprint: Some(fingerprints.request),
            ..Input::new(id.clone(), app.agent.now(), body)
        };
        app.agent.journal().submit(&key, &repeated).await?;
        let remote = RemoteRun {
            after: None,
            client: Some(fingerprints.client),
        };
        let answered = request.and_then(|request| request.turn);
        let target = ReplayTarget::Input(id, answered);
        return Ok(replay_input(app, key, target, input, Some(remote)));
    }
    let body = request.and_then(|request| request.body);
    let body = body.unwrap_or(InputBody::Answers {
        answers: Vec::new(),
    });
    let mut context = RunContext {
        fingerprint: Some(fingerprints.request),
        ..context
    };
    let (agent, running) = (app.agent.clone(), app.begin_turn(&context.user)?);
    let turn = app.turns.spawn(async move {
        let response = agent.run_input(&mut context, Some(id), body).await;
        drop(running);
        response
    });
    let response = turn.await??;
    Ok(respond(app, response, input.resume.len(), Some(input.thread_id))?.into_response())
}

/// Replays a run to the client that sent this request.
fn replay_input(
    app: &Shared,
    key: ConversationKey,
    target: ReplayTarget,
    mut input: RunAgentInput,
    remote: Option<RemoteRun>,
) -> Response {
    let client = ClientHistory::take(&mut input);
    let names = ClientNames {
        thread_id: input.thread_id,
        run_id: input.run_id,
    };
    replay::response(app, key, target, names, client, remote)
}

/// Returns a run that fails before it starts, for clients that read events.
fn refused_run(
    app: &Shared,
    key: ConversationKey,
    input: &RunAgentInput,
    problem: &Problem,
) -> Response {
    let agent = app.agent.for_user(&key.user);
    let info = AgentInfo::new(&agent);
    let encoder = Encoder::new(input.thread_id.clone(), input.run_id.clone(), info, []);
    let run = Run::new(key, input.run_id.clone());
    run.publish([encoder.run_error(problem)]);
    sse::response(Arc::new(run), 0, None)
}

/// Parses a client's name for a run.
fn parse_run_id(name: &str) -> Result<InputId, Problem> {
    at_most("runId", name, THREAD_ID_MAX)?;
    InputId::new(name.trim()).map_err(|_| Problem::invalid("runId is empty"))
}

/// The conversation of a run that is not in this process's memory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunQuery {
    /// The conversation. Needed if the run is named by the client's `runId`, and was executed by
    /// another process or more than ten minutes ago.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
}

impl RunQuery {
    /// Returns the `thread_id`, if it is valid.
    fn parse(self) -> Result<Option<String>, Problem> {
        self.thread_id.as_deref().map(parse_thread_id).transpose()?;
        Ok(self.thread_id)
    }
}

/// Streams the events of a run, from the one after `Last-Event-ID` or from the first.
///
/// A run that is no longer in memory is read from the journal: the messages of its turn, the tasks,
/// the decision and the end; so is one that ended with a question which was answered since, so that
/// it is not asked again. The response is empty (204) if the client has the last event.
#[utoipa::path(get, path = "/v1/runs/{run_id}/events", operation_id = "follow_run", tag = "chat", params(
    ("run_id" = String, Path, description = "Id of the decision, or the client's `runId`."),
    ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event that the client has."),
    RunQuery,
), responses(
    (status = 200, description = "The run's events.", content_type = "text/event-stream", body = String),
    (status = 204, description = "There are no further events."),
    (status = 404, description = "There is no such run."),
))]
pub(crate) async fn events(
    State(app): State<Shared>,
    User(user): User,
    Path(run_id): Path<String>,
    QueryParams(query): QueryParams<RunQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let thread_id = query.parse()?;
    // A waiting turn may have been continued by another process since, so it is not found by its
    // turn id here.
    let live = app
        .runs
        .find(&user, &run_id)
        .filter(|run| run.name == run_id || !run.is_waiting());
    let answered = match &live {
        Some(run) => answered_turn(&app, run).await?,
        None => None,
    };
    if let (Some(run), None) = (&live, answered) {
        let last = header_text(&headers, LAST_EVENT_ID);
        let from = last.map_or(0, |id| run.position_after(id));
        return Ok(if run.is_complete_at(from) {
            StatusCode::NO_CONTENT.into_response()
        } else {
            sse::response(run.clone(), from, None)
        });
    }
    let (key, target) = match live.zip(answered) {
        Some((run, turn)) => (run.key.clone(), ReplayTarget::Turn(turn)),
        None => find(&app, &user, &run_id, thread_id.as_deref()).await?,
    };
    let thread_id = thread_id.unwrap_or_else(|| key.conversation.to_string());
    let after = headers
        .get(LAST_EVENT_ID)
        .map(|id| id.to_str().unwrap_or_default().to_owned());
    let client = ClientHistory::unknown(after.is_some());
    let remote = Some(RemoteRun {
        after,
        client: None,
    });
    let names = ClientNames { thread_id, run_id };
    Ok(replay::response(&app, key, target, names, client, remote))
}

/// Returns the turn of a run that ended with a question, if the question was answered since: its
/// events would ask again.
async fn answered_turn(app: &Shared, run: &Run) -> Result<Option<TurnId>, StoreError> {
    if !run.is_waiting() {
        return Ok(None);
    }
    let Some(last) = app.agent.journal().load_turns(&run.key, None, 1).await? else {
        return Ok(None);
    };
    let pending = conversation::pending(&last.events);
    let waits = |asked: &PendingCall| pending.iter().any(|call| call.digest == asked.digest);
    Ok(run.turn().filter(|_| !run.asked().iter().all(waits)))
}

/// Result of cancelling a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Cancelled {
    /// The run id of the request.
    run_id: String,
    /// The run's state.
    status: CancelStatus,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CancelStatus {
    /// The run is stopping.
    Stopping,
    /// The run had ended before.
    Ended,
}

/// Cancels a run.
///
/// Finished tool calls are not undone, and pending calls are not executed. Cancelling a run that
/// has ended is not an error.
#[utoipa::path(post, path = "/v1/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "chat", params(
    ("run_id" = String, Path, description = "Id of the decision, or the client's `runId`."),
    RunQuery,
), responses(
    (status = 202, description = "The run is stopping, or had ended before.", body = Cancelled),
    (status = 404, description = "There is no such run."),
))]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Path(run_id): Path<String>,
    QueryParams(query): QueryParams<RunQuery>,
) -> Result<(StatusCode, Json<Cancelled>), Problem> {
    let thread_id = query.parse()?;
    let answer = |status| {
        let run_id = run_id.clone();
        (StatusCode::ACCEPTED, Json(Cancelled { run_id, status }))
    };
    let live = app.runs.find(&user, &run_id);
    if let Some(run) = live.as_ref().filter(|run| !run.has_ended()) {
        run.cancelled.cancel();
        return Ok(answer(CancelStatus::Stopping));
    }
    let (key, turn) = match live.and_then(|run| Some((run.key.clone(), run.turn()?))) {
        Some((key, turn)) => (key, Some(turn)),
        None => match find(&app, &user, &run_id, thread_id.as_deref()).await? {
            (key, ReplayTarget::Turn(turn)) => (key, Some(turn)),
            (key, ReplayTarget::Input(id, _)) => {
                let turn = replay::turn_for_input(&app, &key, &id).await?;
                (key, turn)
            }
        },
    };
    let last = app.agent.journal().load_turns(&key, None, 1).await?;
    let last = last.map(|last| last.events).unwrap_or_default();
    // The turn has ended, or the conversation is at a later one.
    if turn.is_none() || conversation::open_turn(&last) != turn {
        return Ok(answer(CancelStatus::Ended));
    }
    if conversation::pending(&last).is_empty() {
        // The worker that runs it, here or in another process, receives the cancellation as an
        // input.
        let id = InputId::from(Uuid::now_v7());
        let input = Input {
            request_id,
            ..Input::new(id, app.agent.now(), InputBody::Cancel)
        };
        app.agent.journal().submit(&key, &input).await?;
        return Ok(answer(CancelStatus::Stopping));
    }
    // No worker runs a waiting turn, so it is cancelled here.
    let mut context = RunContext {
        conversation: key.conversation,
        request_id,
        ..RunContext::new(key.user)
    };
    let agent = app.agent.clone();
    let stopped = app
        .turns
        .spawn(async move { agent.cancel(&mut context).await });
    match stopped.await? {
        // It ended in the meantime, so there is nothing to cancel.
        Ok(_) | Err(RunError::CannotContinue(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(answer(CancelStatus::Stopping))
}

/// Finds a run that is not in this process's memory, by its turn id or by the client's name.
async fn find(
    app: &Shared,
    user: &UserId,
    run_id: &str,
    thread_id: Option<&str>,
) -> Result<(ConversationKey, ReplayTarget), Problem> {
    if let Ok(turn) = run_id.parse::<TurnId>() {
        let decision = app.agent.logs().decision(user, turn).await?;
        if let Some(decision) = decision.filter(|decision| decision.agent == *app.agent.name()) {
            return Ok((decision.key(), ReplayTarget::Turn(turn)));
        }
    }
    if let Some(thread_id) = thread_id {
        let key = app.agent.key_for(user.clone(), parse_thread_id(thread_id)?);
        let id = parse_run_id(run_id)?;
        if app.agent.journal().find_input(&key, &id).await?.is_some() {
            return Ok((key, ReplayTarget::Input(id, None)));
        }
    }
    Err(Problem::unknown("run"))
}
