//! `POST /v1/chat/completions`.

use std::convert::Infallible;
use std::time::Duration;

use adjutant_core::limits::CONFIRMATION_EXPIRY_STATELESS;
use adjutant_core::{
    AgentResponse, ClientSide, InputBody, InvalidClientSide, Notice, TurnLimits, fingerprint, read_message,
};
use adjutant_runtime::{Agent, BuildError, RunContext, RunStream};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::Span;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Encoder, Piece};
use super::background::{self, is_background};
use super::error::{ErrorBody, about, invalid};
use super::history::{self, Room, Transcript};
use super::models::{self, Which};
use super::request::{CompletionRequest, Wishes};
use super::results::{self, Results};
use super::stateless::{self, Belongs};
use super::wire::{Completion, Delta, Envelope};
use crate::idempotency::request_name;
use crate::limits::RunningTurn;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::{BackgroundPrompts, Shared};
use crate::trace::Trace;
use crate::user::User;

/// A stream whose turn has said nothing yet waits so long before it begins: a turn that fails at once has a status that says
/// so, and no proxy takes a slow one for a dead one.
const BEGINNING: Duration = Duration::from_secs(5);
/// How often a silent stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Clients of this API send some failed requests again by themselves, unless they are told not to.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(completions))
        .routes(routes!(models::list))
        .routes(routes!(models::one))
}

/// What a running turn passes on.
enum Passed {
    Piece(Piece),
    /// The end: what it came to, and whether a tool ran.
    End(Box<Result<AgentResponse, Problem>>, bool),
}

/// Answers the last message, with those before it as the history.
///
/// The agent's tools run here; what they do is told as `reasoning_content`. Calls of the client's `tools` end the answer with `tool_calls`,
/// and the request with their results goes on from there. What needs a yes asks for it, and the next message is the answer. The turn
/// goes on to its end also when the client goes away.
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
    let asks = fingerprint(&body);
    let request = CompletionRequest::read(body)?;
    let agent = app.agent.for_user(&user);
    let which = models::find(&agent, &request.model)?;
    let Wishes { output, max_tokens, client, mut notices } = request.wishes()?;
    let results = Results::of(&request.messages);
    let background = app.background_prompts == BackgroundPrompts::Plain
        && results.is_none()
        && is_background(&request.messages);
    if background && which == Which::Agent {
        notices.push(background::notice());
    }
    let words_only = background || which == Which::Plain;
    let client = client_of(&agent, client, (which, background), &mut notices)?;
    let limits = TurnLimits {
        output_tokens_max: max_tokens,
        words_only,
        confirmation_expiry: agent.limits().confirmation_expiry.min(CONFIRMATION_EXPIRY_STATELESS),
        // An interface quotes a whole conversation in one message.
        message_chars_max: agent.limits().message_chars_max.filter(|_| !words_only),
        ..agent.limits().clone()
    };
    let room = Room { messages_max: limits.history_messages_max, with_tools: !words_only };
    let transcript = match &results {
        Some(_) => history::read_with_results(&request.messages, room)?,
        None => history::read(&request.messages, background, room)?,
    };
    let Transcript { message, said, history, notices: left_out } = transcript;
    notices.extend(left_out);
    if let Some(schema) = output.as_ref().filter(|_| !words_only) {
        agent
            .with_output_schema(schema.clone())
            .map_err(|error| invalid("response_format", error.to_string()))?;
    }
    let name = request_name(&headers).map_err(|problem| about("idempotency-key", problem))?;
    let belongs = match &results {
        _ if words_only => Belongs::New,
        Some(results) => {
            let choice = client.as_ref().map(|client| client.choice.clone()).unwrap_or_default();
            match results::belongs(&agent, &user, &said, results, &choice).await? {
                results::Belongs::Waiting(key, answers) => Belongs::Awaiting(key, answers),
                results::Belongs::Before(response) => Belongs::Settled(response),
                results::Belongs::Nowhere => Belongs::New,
            }
        }
        None => stateless::belongs(&agent, &user, &said).await?,
    };

    let running = match &belongs {
        Belongs::Settled(_) => None,
        Belongs::Waiting(..) | Belongs::Awaiting(..) | Belongs::New => Some(app.begin_turn(&user)?),
    };
    let mut context = RunContext { request_id, trace, ..RunContext::new(user) };
    context.fingerprint = name.is_some().then_some(asks);
    let fresh = context.conversation.0;
    let stream = request.stream.unwrap_or_default();
    let options = request.stream_options.unwrap_or_default();
    let envelope = Envelope {
        id: format!("chatcmpl-{}", fresh.simple()),
        created: app.agent.now().as_second(),
        model: request.model,
        with_usage: stream && options.include_usage.unwrap_or_default(),
        notices,
    };
    let passed = match belongs {
        Belongs::Settled(response) => told(*response),
        Belongs::Waiting(key, pending) => {
            context.conversation = key.conversation;
            let answers = read_message(&pending, &message);
            let input = match answers.is_empty() {
                true => InputBody::Message {
                    text: message,
                    output_schema: None,
                    limits: Some(Box::new(limits)),
                    client: None,
                },
                false => InputBody::Answers {
                    answers: answers.into_iter().map(|(call, verdict)| call.answer(verdict)).collect(),
                },
            };
            follow(&app, app.agent.stream_input(&context, name, input), Encoder::default(), running)
        }
        Belongs::Awaiting(key, answers) => {
            context.conversation = key.conversation;
            let encoder = Encoder::new(output.is_some());
            follow(
                &app,
                app.agent.stream_input(&context, name, InputBody::Answers { answers }),
                encoder,
                running,
            )
        }
        Belongs::New => {
            context.conversation = stateless::new_id(&context.user, &said, fresh, name.as_ref());
            if name.is_some() {
                stateless::is_first(&app.agent, &app.agent.key(&context)).await?;
            }
            context.history = history;
            let encoder = Encoder::new(output.is_some());
            let limits = Some(Box::new(limits));
            let input = InputBody::Message { text: message, output_schema: output, limits, client };
            follow(&app, app.agent.stream_input(&context, name, input), encoder, running)
        }
    };
    if stream { pieces(app, passed, envelope).await } else { whole(passed, envelope).await }
}

/// Returns the client's tools and choice, if the model can be given them. `None`: there are none, or they have no effect.
fn client_of(
    agent: &Agent,
    client: ClientSide,
    (which, background): (Which, bool),
    notices: &mut Vec<Notice>,
) -> Result<Option<Box<ClientSide>>, Problem> {
    if client == ClientSide::default() {
        return Ok(None);
    }
    if background {
        notices.push(Notice::not_sent(
            "tools were not used: a request about a conversation is answered in words.",
        ));
        return Ok(None);
    }
    if which == Which::Plain {
        return match client.tools.is_empty() && !client.choice.requires_call() {
            true => Ok(None),
            false => Err(invalid("tools", "this model has no tools; the agent itself takes them")),
        };
    }
    agent.with_client(client.clone()).map_err(|error| {
        let is_choice = matches!(
            &error,
            BuildError::Client(InvalidClientSide::NothingToChoose | InvalidClientSide::UnknownChoice { .. })
        );
        invalid(if is_choice { "tool_choice" } else { "tools" }, error.to_string())
    })?;
    Ok(Some(Box::new(client)))
}

/// Follows a turn to its end, whether anybody listens or not.
fn follow(
    app: &Shared,
    mut stream: RunStream,
    mut encoder: Encoder,
    running: Option<RunningTurn>,
) -> UnboundedReceiver<Passed> {
    let (sender, passed) = unbounded_channel();
    // Whoever no longer listens misses it; the turn goes on.
    let pass = |sender: &UnboundedSender<Passed>, passed: Passed| drop(sender.send(passed));
    let agent = app.agent.clone();
    app.turns.spawn(async move {
        let mut ran = false;
        while let Some(event) = stream.next().await {
            ran |= matches!(event, adjutant_runtime::RunEvent::ToolStarted { .. });
            if let Some(piece) = encoder.event(&event) {
                pass(&sender, Passed::Piece(piece));
            }
        }
        let finished = stream.finish().await;
        if let (Ok((response, _)), Some(running)) = (&finished, &running) {
            running.ended(response);
        }
        // Whoever has the answer may ask again.
        drop(running);
        let end = match finished {
            Ok((response, _)) => match Problem::of_turn(&response, agent.now()) {
                Some(problem) => Err(problem),
                None => {
                    if let Some(piece) = encoder.end(&response) {
                        pass(&sender, Passed::Piece(piece));
                    }
                    Ok(response)
                }
            },
            Err(error) => Err(Problem::run(&error)),
        };
        pass(&sender, Passed::End(Box::new(end), ran));
    });
    passed
}

/// What is known already.
fn told(response: AgentResponse) -> UnboundedReceiver<Passed> {
    let (sender, passed) = unbounded_channel();
    // The receiver is in this function's hands.
    if let Some(piece) = Encoder::default().end(&response) {
        drop(sender.send(Passed::Piece(piece)));
    }
    drop(sender.send(Passed::End(Box::new(Ok(response)), false)));
    passed
}

/// The whole answer, once it is there.
async fn whole(mut passed: UnboundedReceiver<Passed>, envelope: Envelope) -> Result<Response, Problem> {
    let (mut content, mut reasoning) = (String::new(), String::new());
    while let Some(next) = passed.recv().await {
        match next {
            Passed::Piece(Piece::Content(text)) => content.push_str(&text),
            Passed::Piece(Piece::Reasoning(text) | Piece::Note(text)) => reasoning.push_str(&text),
            Passed::End(end, ran) => {
                return match *end {
                    Ok(response) => {
                        Ok(Json(envelope.completion(content, reasoning, &response)).into_response())
                    }
                    Err(problem) => Ok(failed(problem, ran)),
                };
            }
        }
    }
    Err(Problem::internal())
}

/// A failed turn. Sent again, it would do again what its tools did.
fn failed(problem: Problem, ran: bool) -> Response {
    let mut response = problem.into_response();
    if ran {
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// The answer in pieces.
async fn pieces(
    app: Shared,
    mut passed: UnboundedReceiver<Passed>,
    envelope: Envelope,
) -> Result<Response, Problem> {
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
        return Ok(failed(problem, ran));
    }
    let first =
        envelope.chunk(Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() });
    // The answer is read outside of the request's span.
    let span = Span::current();
    let rest = futures::stream::iter(begun).chain(UnboundedReceiverStream::new(passed));
    let events = futures::stream::iter([event(&first)])
        .chain(rest.flat_map(move |passed| {
            futures::stream::iter(span.in_scope(|| encoded(&app, &envelope, passed)))
        }))
        .map(Ok::<Event, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// What was passed on, as events of the stream.
fn encoded(app: &Shared, envelope: &Envelope, passed: Passed) -> Vec<Event> {
    let delta = match passed {
        Passed::Piece(Piece::Content(text)) => Delta { content: Some(text), ..Delta::default() },
        Passed::Piece(Piece::Reasoning(text) | Piece::Note(text)) => {
            Delta { reasoning_content: Some(text), ..Delta::default() }
        }
        Passed::End(end, _) => {
            let mut events = match *end {
                Ok(response) => {
                    let mut events: Vec<Event> = envelope.call_chunks(&response).iter().map(event).collect();
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
    // Strings, numbers and lists of them: there is nothing in it that is no JSON.
    Event::default().json_data(data).unwrap_or_default()
}
