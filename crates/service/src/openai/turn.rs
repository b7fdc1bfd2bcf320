//! Starting a turn for a request, or continuing one; the same for every route of this API.

use adjutant_core::limits::CONFIRMATION_EXPIRY_STATELESS;
use adjutant_core::{
    AgentResponse, CLIENT_CONTEXT_INTRODUCTION, ClientSide, ConversationId, InputBody, InputId,
    InvalidClientSide, Notice, TraceContext, TurnLimits, read_message,
};
use adjutant_runtime::{Agent, BuildError, RunContext, RunStream};
use axum::http::HeaderMap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use super::answer::{AnswerPart, Encoder};
use super::background::{self, is_background};
use super::error::{about, invalid};
use super::history::{self, HistoryLimits, Transcript};
use super::message::{ChatMessage, MessageContent, Messages, Role};
use super::models::{self, ModelKind};
use super::options::RequestOptions;
use super::results::{self, Results, ResultsTarget};
use super::stateless::{self, Candidates, Continuation};
use crate::admission::RunningTurn;
use crate::auth::Caller;
use crate::idempotency::idempotency_key;
use crate::problem::Problem;
use crate::state::{BackgroundPrompts, Shared};

/// An event of a running turn's answer.
pub(super) enum AnswerEvent {
    /// A part of the answer.
    Part(AnswerPart),
    /// The end: the turn's response, and true if a tool was executed.
    End(Box<Result<AgentResponse, Problem>>, bool),
}

/// A request of any route of this API.
#[derive(Debug)]
pub(super) struct TurnRequest {
    pub(super) model: String,
    pub(super) messages: Messages,
    pub(super) options: RequestOptions,
    /// Instructions of the client for this turn only.
    pub(super) instructions: Option<String>,
    /// The response that the request continues. `None`: the messages have the whole history.
    pub(super) previous: Option<Previous>,
}

/// A response that a request continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Previous {
    pub(super) conversation: ConversationId,
    /// True if it asked for a confirmation or for results.
    pub(super) waits: bool,
}

/// The caller and the HTTP request.
pub(super) struct Sender {
    pub(super) caller: Caller,
    pub(super) request_id: Option<String>,
    pub(super) trace: Option<TraceContext>,
    pub(super) headers: HeaderMap,
    /// Fingerprint of the body.
    pub(super) fingerprint: String,
}

/// A started turn, or one whose answer was known already.
pub(super) struct StartedTurn {
    pub(super) events: UnboundedReceiver<AnswerEvent>,
    pub(super) conversation: ConversationId,
    /// The input that was submitted. `None`: the answer is that of the conversation's last turn.
    pub(super) input: Option<InputId>,
    /// Notices about ignored parts of the request.
    pub(super) notices: Vec<Notice>,
}

/// Starts the turn that answers a request, or continues the one that waits for the request's
/// messages.
pub(super) async fn start(
    app: &Shared,
    sender: Sender,
    request: TurnRequest,
) -> Result<StartedTurn, Problem> {
    let Sender {
        caller, headers, ..
    } = sender;
    let user = caller.user.clone();
    let TurnRequest {
        messages,
        instructions,
        ..
    } = request;
    let agent = app.agent.for_user(&user);
    let kind = models::find(&agent, &request.model)?;
    let RequestOptions {
        output,
        output_param,
        max_tokens,
        client,
        mut notices,
    } = request.options;
    // A request that ends with results continues a turn of the agent: it is not an interface's own.
    let results = Results::from_messages(&messages);
    let background = app.background_prompts == BackgroundPrompts::Plain
        && results.is_none()
        && is_of_interface(&messages, instructions.as_deref());
    if background && kind == ModelKind::Agent {
        notices.push(background::notice());
    }
    let words_only = background || kind == ModelKind::Plain;
    let client = check_client(&agent, client, kind, background, &mut notices)?;
    let client = with_instructions(&agent, client, instructions)?;
    let limits = TurnLimits {
        output_tokens_max: max_tokens,
        words_only,
        // Each request is a conversation of its own, so a summary would be paid with each of them.
        summarize_at: None,
        confirmation_expiry: agent
            .limits()
            .confirmation_expiry
            .min(CONFIRMATION_EXPIRY_STATELESS),
        // An interface's own request quotes a whole conversation in one message.
        message_chars_max: agent.limits().message_chars_max.filter(|_| !words_only),
        ..agent.limits().clone()
    };
    let history_limits = HistoryLimits {
        messages_max: limits.history_messages_max,
        with_tools: !words_only,
    };
    let Transcript {
        message,
        dialogue,
        history,
        notices: left_out,
    } = match &results {
        Some(_) => history::parse_with_results(&messages, history_limits)?,
        None => history::parse(&messages, background, history_limits)?,
    };
    notices.extend(left_out);
    // Only validated here: the turn gets the schema with its input.
    if let Some(schema) = output.as_ref().filter(|_| !words_only) {
        agent
            .with_output_schema(schema.clone())
            .map_err(|error| invalid(output_param, error.to_string()))?;
    }
    let key = idempotency_key(&headers).map_err(|problem| about("idempotency-key", problem))?;
    let candidates = match request.previous {
        Some(previous) if previous.waits => Candidates::Named(previous.conversation),
        Some(_) => Candidates::StartedAt(Vec::new()),
        None if results.is_some() => Candidates::for_results(&user, &dialogue),
        None => Candidates::for_answer(&user, &dialogue),
    };
    let continuation = match &results {
        _ if words_only => Continuation::New,
        Some(results) => {
            let choice = client
                .as_ref()
                .map(|client| client.choice.clone())
                .unwrap_or_default();
            match results::find_target(&agent, &user, &candidates, results, &choice).await? {
                ResultsTarget::Waiting(key, answers) => Continuation::Awaiting(key, answers),
                ResultsTarget::Repeated(response) => Continuation::Settled(response),
                ResultsTarget::None => Continuation::New,
            }
        }
        None => stateless::find(&agent, &user, &candidates, &dialogue).await?,
    };

    let mut context = RunContext {
        request_id: sender.request_id,
        trace: sender.trace,
        // A request without a key is never a repetition of another.
        fingerprint: key.is_some().then_some(sender.fingerprint),
        ..caller.run_context()
    };
    let fresh = context.conversation.0;
    let input = key.clone().unwrap_or_else(|| InputId::from(Uuid::now_v7()));
    let whole = output.is_some();
    let limits = Some(Box::new(limits));
    let (body, encoder) = match continuation {
        Continuation::Settled(response) => {
            return Ok(StartedTurn {
                conversation: response.conversation,
                events: known_answer(*response),
                input: None,
                notices,
            });
        }
        Continuation::Waiting(key, pending) => {
            context.conversation = key.conversation;
            let answers = read_message(&pending, &message);
            let body = if answers.is_empty() {
                InputBody::Message {
                    text: message,
                    output_schema: None,
                    limits,
                    client: None,
                    shown: Vec::new(),
                    time_zone: None,
                    from_others: false,
                }
            } else {
                let answers = answers.into_iter();
                InputBody::Answers {
                    answers: answers
                        .map(|(call, verdict)| call.answer(verdict))
                        .collect(),
                }
            };
            // The dialogue ends with the question, so the client was asked.
            context.pending = pending;
            (body, Encoder::default())
        }
        Continuation::Awaiting(key, answers) => {
            context.conversation = key.conversation;
            (InputBody::Answers { answers }, Encoder::new(whole))
        }
        Continuation::New => {
            context.conversation = stateless::new_id(&context.user, &dialogue, fresh, key.as_ref());
            if key.is_some() {
                stateless::check_key_is_new(&app.agent, &app.agent.key(&context)).await?;
            }
            context.history_is_from_others = history::is_from_others(&history);
            context.history = history;
            let body = InputBody::Message {
                text: message,
                output_schema: output,
                limits,
                client,
                shown: Vec::new(),
                time_zone: None,
                from_others: false,
            };
            (body, Encoder::new(whole))
        }
    };
    // After the look-ups, so that a repeated request gets its answer also at the limit of turns.
    let running = app.begin_turn(&context.user)?;
    let stream = app.agent.stream_input(&context, Some(input.clone()), body);
    let events = follow(app, stream, encoder, running);
    Ok(StartedTurn {
        events,
        conversation: context.conversation,
        input: Some(input),
        notices,
    })
}

/// Returns true if the interface asks on its own account, and not the user. Instructions count as
/// the first message.
fn is_of_interface(messages: &Messages, instructions: Option<&str>) -> bool {
    let Some(instructions) = instructions else {
        return is_background(&messages.list);
    };
    let first = ChatMessage::new(Role::System, MessageContent::Text(instructions.to_owned()));
    let all: Vec<ChatMessage> = std::iter::once(first)
        .chain(messages.list.iter().cloned())
        .collect();
    is_background(&all)
}

/// Adds the client's instructions for this turn to its context.
fn with_instructions(
    agent: &Agent,
    client: Option<Box<ClientSide>>,
    instructions: Option<String>,
) -> Result<Option<Box<ClientSide>>, Problem> {
    let Some(text) = instructions.filter(|text| !text.trim().is_empty()) else {
        return Ok(client);
    };
    let mut client = client.unwrap_or_default();
    client.context = format!("{}\n\n{text}", CLIENT_CONTEXT_INTRODUCTION.trim_end());
    let context = ClientSide {
        context: client.context.clone(),
        ..ClientSide::default()
    };
    agent
        .with_client(context)
        .map_err(|error| invalid("instructions", error.to_string()))?;
    Ok(Some(client))
}

/// Checks the client's tools and choice. Returns `None` if there are none, or they are ignored.
fn check_client(
    agent: &Agent,
    client: ClientSide,
    kind: ModelKind,
    background: bool,
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
    if kind == ModelKind::Plain {
        return match client.tools.is_empty() && !client.choice.requires_call() {
            true => Ok(None),
            false => Err(invalid(
                "tools",
                "this model has no tools; the agent itself takes them",
            )),
        };
    }
    // Only validated here: the turn gets the tools with its input.
    agent.with_client(client.clone()).map_err(|error| {
        let is_choice = matches!(
            &error,
            BuildError::Client(
                InvalidClientSide::NothingToChoose | InvalidClientSide::UnknownChoice { .. }
            )
        );
        invalid(
            if is_choice { "tool_choice" } else { "tools" },
            error.to_string(),
        )
    })?;
    Ok(Some(Box::new(client)))
}

/// Sends a turn's events to the response. The turn continues when the client disconnects.
fn follow(
    app: &Shared,
    mut stream: RunStream,
    mut encoder: Encoder,
    running: RunningTurn,
) -> UnboundedReceiver<AnswerEvent> {
    let (sender, events) = unbounded_channel();
    // Sending fails when the client has disconnected, which does not concern the turn.
    let send = |sender: &UnboundedSender<AnswerEvent>, event| drop(sender.send(event));
    let agent = app.agent.clone();
    app.turns.spawn(async move {
        let mut ran = false;
        while let Some(event) = stream.next().await {
            ran |= matches!(event, adjutant_runtime::RunEvent::ToolStarted { .. });
            if let Some(piece) = encoder.encode(&event) {
                send(&sender, AnswerEvent::Part(piece));
            }
        }
        let finished = stream.finish().await;
        if let Ok((response, _)) = &finished {
            running.record_end(response);
        }
        // Before the answer ends: the client may send its next request at once.
        drop(running);
        let end = match finished {
            Ok((response, _)) => match Problem::for_turn(&response, agent.now()) {
                Some(problem) => Err(problem),
                None => {
                    if let Some(piece) = encoder.finish(&response) {
                        send(&sender, AnswerEvent::Part(piece));
                    }
                    Ok(response)
                }
            },
            Err(error) => Err(Problem::run(&error)),
        };
        send(&sender, AnswerEvent::End(Box::new(end), ran));
    });
    events
}

/// Returns the events of an answer that is already known.
fn known_answer(response: AgentResponse) -> UnboundedReceiver<AnswerEvent> {
    let (sender, events) = unbounded_channel();
    // Sending cannot fail while the receiver is held here.
    if let Some(piece) = Encoder::default().finish(&response) {
        drop(sender.send(AnswerEvent::Part(piece)));
    }
    drop(sender.send(AnswerEvent::End(Box::new(Ok(response)), false)));
    events
}
