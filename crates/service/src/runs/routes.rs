//! The addresses.

use std::borrow::Cow;
use std::sync::Arc;

use adjutant_core::port::{StoreError, Turns};
use adjutant_core::{
    ClientSide, ConversationKey, Input, InputBody, InputId, Recorded, TurnId, UserId, conversation,
};
use adjutant_runtime::{RunContext, RunError};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::asked::{self, Refused};
use super::drive::{Beginning, Place, drive};
use super::recorded::{self, Elsewhere, Has, Names, Of};
use super::sse;
use crate::agui::{Encoder, RunAgentInput};
use crate::chat::{ChatResponse, FailedTurn, THREAD_ID_MAX, answer, conversation_of};
use crate::length::at_most;
use crate::live::Run;
use crate::object::Object;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::User;

const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(start))
        .routes(routes!(events))
        .routes(routes!(cancel))
}

/// Runs the agent (AG-UI 1.0).
///
/// With `Accept: text/event-stream` the answer is the run's events, each with an id; otherwise it
/// is one JSON object, as `/v1/chat` gives it. The run goes on to its end also when the client goes
/// away. The same `runId` again in the same conversation is the same run.
#[utoipa::path(post, path = "/v1/runs", operation_id = "run_agent", tag = "chat", request_body = RunAgentInput, responses(
    (status = 200, description = "The run's events, or what the turn came to.", content(
        (ChatResponse = "application/json"), (String = "text/event-stream"))),
    (status = 404, description = "What was answered does not wait (any more)."),
    (status = 409, description = "Something waits for an answer first."),
    (status = 422, description = "The request cannot be understood, or its `runId` was used in this conversation for another one."),
    (status = 502, description = "The model did not give a usable answer.", body = FailedTurn,
        content_type = "application/problem+json"),
    (status = 504, description = "The model did not answer in time.", body = FailedTurn,
        content_type = "application/problem+json"),
))]
pub(crate) async fn start(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Object<RunAgentInput>>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(Object(mut input)) = body?;
    let key = app.agent.key_of(user, conversation_of(&input.thread_id)?);
    let id = run_name(&input.run_id)?;
    let client = input
        .client()
        .map_err(|error| Problem::invalid(error.to_string()))?;
    let streams = sse::wanted(&headers);
    let answers = input.resume.len();
    let asks = input.asks();
    let run = match app.runs.named(&key, id.as_str()) {
        Some(run) if run.asks != asks => return Err(Problem::store(&StoreError::Reused)),
        Some(run) if !streams || run.began_with == input.has() => run,
        // It was told some of it before, and would have that twice.
        Some(_) => {
            let has = Has::of(&mut input);
            let names = Names {
                thread_id: input.thread_id,
                run_id: input.run_id,
            };
            return Ok(recorded::response(
                &app,
                key,
                Of::Input(id, None),
                names,
                (has, None),
            ));
        }
        None => {
            let failed = |error: StoreError| Problem::store(&error);
            let last = app
                .agent
                .journal()
                .load_turns(&key, None, 1)
                .await
                .map_err(failed)?;
            let events = events_for(&app, &key, &input, last.as_ref())
                .await
                .map_err(failed)?;
            if app
                .agent
                .journal()
                .find_input(&key, &id)
                .await
                .map_err(failed)?
                .is_some()
            {
                return again(&app, key, id, (input, client), &events, streams).await;
            }
            let place = Place::of(&app.agent.for_user(&key.user), &input, last.as_ref());
            let asked = match asked::read(&input, client, &events, app.agent.now()) {
                Ok(asked) => asked,
                Err(Refused::Invalid(problem)) => return Err(problem),
                Err(Refused::Pending(problem)) if streams => {
                    return Ok(refused(&app, key, &input, &problem));
                }
                Err(Refused::Pending(problem)) => return Err(problem),
            };
            if asked.body.is_none() && !streams {
                return Err(Problem::unknown(
                    "pending call: nothing of that name was asked here",
                ));
            }
            let running = app.begin_turn(&key.user)?;
            let (run, is_new) =
                app.runs
                    .begin(key, id.as_str().to_owned(), (input.has(), asks.clone()));
            if run.asks != asks {
                return Err(Problem::store(&StoreError::Reused));
            }
            let asks = asked.body.is_some();
            if is_new {
                let beginning = Beginning {
                    id,
                    input: input.clone(),
                    asked,
                    place,
                    request_id,
                    trace,
                    running,
                };
                app.turns.spawn(drive(app.clone(), run.clone(), beginning));
            }
            // Whoever is told that the run has begun can rely on its end, also if this process does
            // not live to see it.
            if asks && let Some(error) = run.accepted().await {
                app.runs.remove(&run);
                return Err(Problem::run(error));
            }
            run
        }
    };
    if streams {
        return Ok(sse::response(run, 0, None));
    }
    let response = match run.end().await {
        Some(Ok(response)) => response.clone(),
        Some(Err(error)) => return Err(Problem::run(error)),
        None => return Err(Problem::internal()),
    };
    Ok(answer(&app, response, answers, Some(input.thread_id))?.into_response())
}

/// The events that a request is read beside: those of the last turn, and all if it answers
/// something from before.
async fn events_for<'a>(
    app: &Shared,
    key: &ConversationKey,
    input: &RunAgentInput,
    last: Option<&'a Turns>,
) -> Result<Cow<'a, [Recorded]>, StoreError> {
    match last {
        None => Ok(Cow::default()),
        Some(last) if last.after > 0 && asked::is_about_earlier(input, &last.events) => {
            Ok(Cow::Owned(app.agent.journal().load(key).await?.events))
        }
        Some(last) => Ok(Cow::Borrowed(&last.events)),
    }
}

/// The same run again, after this process forgot it, or from another one.
async fn again(
    app: &Shared,
    key: ConversationKey,
    id: InputId,
    (mut input, client): (RunAgentInput, Option<Box<ClientSide>>),
    events: &[Recorded],
    streams: bool,
) -> Result<Response, Problem> {
    let (asked, asks) = (
        asked::read(&input, client, events, app.agent.now()).ok(),
        Some(input.asks()),
    );
    if streams {
        // Known already, so nothing is done but to compare the two.
        let body = InputBody::Answers {
            answers: Vec::new(),
        };
        let known = Input {
            fingerprint: asks,
            ..Input::new(id.clone(), app.agent.now(), body)
        };
        app.agent
            .journal()
            .submit(&key, &known)
            .await
            .map_err(|error| Problem::store(&error))?;
        let elsewhere = Elsewhere {
            after: None,
            has: Some(input.has()),
        };
        let has = Has::of(&mut input);
        let names = Names {
            thread_id: input.thread_id,
            run_id: input.run_id,
        };
        let answered = asked.and_then(|asked| asked.turn);
        return Ok(recorded::response(
            app,
            key,
            Of::Input(id, answered),
            names,
            (has, Some(elsewhere)),
        ));
    }
    let body = asked.and_then(|asked| asked.body);
    let body = body.unwrap_or(InputBody::Answers {
        answers: Vec::new(),
    });
    let mut context = RunContext {
        conversation: key.conversation,
        fingerprint: asks,
        ..RunContext::new(key.user)
    };
    let (agent, running) = (app.agent.clone(), app.begin_turn(&context.user)?);
    let turn = app.turns.spawn(async move {
        let response = agent.run_input(&mut context, Some(id), body).await;
        drop(running);
        response
    });
    let response = turn
        .await
        .map_err(|_| Problem::internal())?
        .map_err(|error| Problem::run(&error))?;
    Ok(answer(app, response, input.resume.len(), Some(input.thread_id))?.into_response())
}

/// A run that fails before it begins.
fn refused(
    app: &Shared,
    key: ConversationKey,
    input: &RunAgentInput,
    problem: &Problem,
) -> Response {
    let agent = app.agent.for_user(&key.user);
    let says = (agent.model().id().clone(), agent.tools());
    let encoder = Encoder::new(input.thread_id.clone(), input.run_id.clone(), says, []);
    let run = Run::new(key, input.run_id.clone());
    run.tell([encoder.failed(problem)]);
    sse::response(Arc::new(run), 0, None)
}

/// A client's name for a run.
fn run_name(name: &str) -> Result<InputId, Problem> {
    at_most("runId", name, THREAD_ID_MAX)?;
    InputId::new(name.trim()).map_err(|_| Problem::invalid("runId is empty"))
}

/// Where the run is, for one that this process does not know by its name.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Where {
    /// The conversation. Needed when the run is called by the client's own name for it, and was
    /// done by another process or more than ten minutes ago.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
}

/// Tells a run again and goes on telling it: from the event behind `Last-Event-ID`, or from the
/// beginning.
///
/// A run that this process does not know any more is told from the journal: the messages of its
/// turn, the tasks, what was decided, and its end. The answer is empty (204) if the client has its
/// last event.
#[utoipa::path(get, path = "/v1/runs/{run_id}/events", operation_id = "follow_run", tag = "chat", params(
    ("run_id" = String, Path, description = "The decision's id, or the client's name for the run."),
    ("Last-Event-ID" = Option<String>, Header, description = "The last event the client has."),
    Where,
), responses(
    (status = 200, description = "The run's events.", content_type = "text/event-stream", body = String),
    (status = 204, description = "There is nothing behind that event."),
    (status = 404, description = "There is no such run."),
))]
pub(crate) async fn events(
    State(app): State<Shared>,
    User(user): User,
    Path(run_id): Path<String>,
    place: Result<Query<Where>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(place) = place?;
    place
        .thread_id
        .as_deref()
        .map(conversation_of)
        .transpose()?;
    // A turn that waited here may have gone on elsewhere since.
    let live = app
        .runs
        .find(&user, &run_id)
        .filter(|run| run.name == run_id || !run.waits());
    if let Some(run) = live {
        let last = headers
            .get(LAST_EVENT_ID)
            .and_then(|value| value.to_str().ok());
        let from = last.map_or(0, |id| run.place_of(id));
        return Ok(if run.has_told(from) {
            StatusCode::NO_CONTENT.into_response()
        } else {
            sse::response(run, from, None)
        });
    }
    let (key, of) = find(&app, &user, &run_id, place.thread_id.as_deref()).await?;
    let thread_id = place
        .thread_id
        .unwrap_or_else(|| key.conversation.to_string());
    let after = headers
        .get(LAST_EVENT_ID)
        .map(|id| id.to_str().unwrap_or_default().to_owned());
    let has = Has::some(after.is_some());
    let elsewhere = Elsewhere { after, has: None };
    Ok(recorded::response(
        &app,
        key,
        of,
        Names { thread_id, run_id },
        (has, Some(elsewhere)),
    ))
}

/// Whether there is anything to stop.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Cancelled {
    run_id: String,
    status: CancelStatus,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CancelStatus {
    /// It is stopped, or will be in a moment.
    Stopping,
    /// It had ended before; nothing was stopped.
    Ended,
}

/// Stops a run.
///
/// All that was done before stays done, and a call that waits for an answer is not done. Stopping
/// what has ended is no error.
#[utoipa::path(post, path = "/v1/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "chat", params(
    ("run_id" = String, Path, description = "The decision's id, or the client's name for the run."),
    Where,
), responses(
    (status = 202, description = "It is being stopped, or had ended before.", body = Cancelled),
    (status = 404, description = "There is no such run."),
))]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Path(run_id): Path<String>,
    place: Result<Query<Where>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(place) = place?;
    place
        .thread_id
        .as_deref()
        .map(conversation_of)
        .transpose()?;
    let answer = |status| {
        (
            StatusCode::ACCEPTED,
            Json(Cancelled {
                run_id: run_id.clone(),
                status,
            }),
        )
            .into_response()
    };
    let live = app.runs.find(&user, &run_id);
    if let Some(run) = live.as_ref().filter(|run| !run.has_ended()) {
        run.cancelled.cancel();
        return Ok(answer(CancelStatus::Stopping));
    }
    let (key, turn) = match live.and_then(|run| Some((run.key.clone(), run.turn()?))) {
        Some((key, turn)) => (key, Some(turn)),
        None => match find(&app, &user, &run_id, place.thread_id.as_deref()).await? {
            (key, Of::Turn(turn)) => (key, Some(turn)),
            (key, Of::Input(id, _)) => {
                let turn = recorded::turn_of(&app, &key, &id).await;
                (key, turn.map_err(|error| Problem::store(&error))?)
            }
        },
    };
    let last = app
        .agent
        .journal()
        .load_turns(&key, None, 1)
        .await
        .map_err(|error| Problem::store(&error))?;
    let last = last.map(|last| last.events).unwrap_or_default();
    if turn.is_none() || conversation::open_turn(&last) != turn {
        return Ok(answer(CancelStatus::Ended));
    }
    if conversation::pending(&last).is_empty() {
        // Whoever runs it is told.
        let (id, at) = (InputId::from(Uuid::now_v7()), app.agent.now());
        let input = Input {
            id,
            at,
            request_id,
            fingerprint: None,
            after: 0,
            body: InputBody::Cancel,
        };
        app.agent
            .journal()
            .submit(&key, &input)
            .await
            .map_err(|error| Problem::store(&error))?;
        return Ok(answer(CancelStatus::Stopping));
    }
    let mut context = RunContext {
        conversation: key.conversation,
        request_id,
        ..RunContext::new(key.user)
    };
    let agent = app.agent.clone();
    let stopped = app
        .turns
        .spawn(async move { agent.cancel(&mut context).await });
    match stopped.await.map_err(|_| Problem::internal())? {
        // That it ended in the meantime is what was wanted.
        Ok(_) | Err(RunError::CannotContinue(_)) => {}
        Err(error) => return Err(Problem::run(&error)),
    }
    Ok(answer(CancelStatus::Stopping))
}

/// A run of the user that this process does not know.
async fn find(
    app: &Shared,
    user: &UserId,
    run_id: &str,
    thread_id: Option<&str>,
) -> Result<(ConversationKey, Of), Problem> {
    if let Ok(turn) = run_id.parse::<TurnId>() {
        let decision = app
            .agent
            .logs()
            .decision(user, turn)
            .await
            .map_err(|error| Problem::store(&error))?;
        if let Some(decision) = decision.filter(|decision| decision.agent == *app.agent.name()) {
            return Ok((decision.key(), Of::Turn(turn)));
        }
    }
    if let Some(thread_id) = thread_id {
        let key = app.agent.key_of(user.clone(), conversation_of(thread_id)?);
        let id = run_name(run_id)?;
        let found = app.agent.journal().find_input(&key, &id).await;
        if found.map_err(|error| Problem::store(&error))?.is_some() {
            return Ok((key, Of::Input(id, None)));
        }
    }
    Err(Problem::unknown("run"))
}
