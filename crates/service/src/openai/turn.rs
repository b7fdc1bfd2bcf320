//! A request that becomes a turn or goes on with one, the same for every route of this API.

use adjutant_core::limits::CONFIRMATION_EXPIRY_STATELESS;
use adjutant_core::{
    AgentResponse, ClientSide, ConversationId, InputBody, InputId, InvalidClientSide, Notice,
    TraceContext, TurnLimits, UserId, read_message,
};
use adjutant_runtime::{Agent, BuildError, RunContext, RunStream};
use axum::http::HeaderMap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use super::answer::{Encoder, Piece};
use super::background::{self, is_background};
use super::error::{about, invalid};
use super::history::{self, FROM_THE_APPLICATION, Room, Transcript};
use super::message::{ChatMessage, MessageContent, Messages, Role};
use super::models::{self, Which};
use super::results::{self, Results};
use super::stateless::{self, Belongs, Candidates};
use super::wishes::Wishes;
use crate::idempotency::request_name;
use crate::limits::RunningTurn;
use crate::problem::Problem;
use crate::state::{BackgroundPrompts, Shared};

/// A part of a running turn's answer, or its end.
pub(super) enum Passed {
    Piece(Piece),
    /// The end: what it came to, and whether a tool ran.
    End(Box<Result<AgentResponse, Problem>>, bool),
}

/// A request, whichever route it came to.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) messages: Messages,
    pub(super) wishes: Wishes,
    /// The application's words for this turn alone. Later turns do not have them.
    pub(super) instructions: Option<String>,
    /// The answer of ours that it goes on from. `None`: it names none, and the messages say what
    /// was before.
    pub(super) named: Option<Named>,
}

/// An answer that a request goes on from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) conversation: ConversationId,
    /// True if it asked for a yes or no, or for results.
    pub(super) waits: bool,
}

/// The sender of a request, and what is known of it beside its body.
pub(super) struct Sender {
    pub(super) user: UserId,
    pub(super) request_id: Option<String>,
    pub(super) trace: Option<TraceContext>,
    pub(super) headers: HeaderMap,
    /// A hash of the body.
    pub(super) fingerprint: String,
}

/// A turn that has begun, or its answer that was known already.
pub(super) struct Begun {
    pub(super) passed: UnboundedReceiver<Passed>,
    pub(super) conversation: ConversationId,
    /// The input that it answers. `None`: nothing new, it is the end of that conversation.
    pub(super) input: Option<InputId>,
    /// Notices about parts of the request that have no effect.
    pub(super) notices: Vec<Notice>,
}

/// Begins the turn that answers a request, or goes on with the one that waits for what the request
/// brings.
pub(super) async fn begin(app: &Shared, sender: Sender, asked: Asked) -> Result<Begun, Problem> {
    let Sender {
        user,
        request_id,
        trace,
        headers,
        fingerprint,
    } = sender;
    let Asked {
        model,
        messages,
        wishes,
        instructions,
        named,
    } = asked;
    let agent = app.agent.for_user(&user);
    let which = models::find(&agent, &model)?;
    let Wishes {
        output,
        form,
        max_tokens,
        client,
        mut notices,
    } = wishes;
    let results = Results::of(&messages);
    let background = app.background_prompts == BackgroundPrompts::Plain
        && results.is_none()
        && is_of_interface(&messages, instructions.as_deref());
    if background && which == Which::Agent {
        notices.push(background::notice());
    }
    let words_only = background || which == Which::Plain;
    let client = client_of(&agent, client, (which, background), &mut notices)?;
    let client = with_instructions(&agent, client, instructions)?;
    let limits = TurnLimits {
        output_tokens_max: max_tokens,
        words_only,
        confirmation_expiry: agent
            .limits()
            .confirmation_expiry
            .min(CONFIRMATION_EXPIRY_STATELESS),
        // An interface quotes a whole conversation in one message.
        message_chars_max: agent.limits().message_chars_max.filter(|_| !words_only),
        ..agent.limits().clone()
    };
    let room = Room {
        messages_max: limits.history_messages_max,
        with_tools: !words_only,
    };
    let transcript = match &results {
        Some(_) => history::read_with_results(&messages, room)?,
        None => history::read(&messages, background, room)?,
    };
    let Transcript {
        message,
        said,
        history,
        notices: left_out,
    } = transcript;
    notices.extend(left_out);
    if let Some(schema) = output.as_ref().filter(|_| !words_only) {
        agent
            .with_output_schema(schema.clone())
            .map_err(|error| invalid(form, error.to_string()))?;
    }
    let name = request_name(&headers).map_err(|problem| about("idempotency-key", problem))?;
    let candidates = match (named, &results) {
        (
            Some(Named {
                conversation,
                waits: true,
            }),
            _,
        ) => Candidates::Named(conversation),
        (Some(Named { waits: false, .. }), _) => Candidates::BegunAt(Vec::new()),
        (None, Some(_)) => Candidates::of_results(&user, &said),
        (None, None) => Candidates::of_answer(&user, &said),
    };
    let belongs = match &results {
        _ if words_only => Belongs::New,
        Some(results) => {
            let choice = client
                .as_ref()
                .map(|client| client.choice.clone())
                .unwrap_or_default();
            match results::belongs(&agent, &user, &candidates, results, &choice).await? {
                results::Belongs::Waiting(key, answers) => Belongs::Awaiting(key, answers),
                results::Belongs::Before(response) => Belongs::Settled(response),
                results::Belongs::Nowhere => Belongs::New,
            }
        }
        None => stateless::belongs(&agent, &user, &candidates, &said).await?,
    };

    let mut context = RunContext {
        request_id,
        trace,
        ..RunContext::new(user)
    };
    context.fingerprint = name.is_some().then_some(fingerprint);
    let fresh = context.conversation.0;
    let input = name
        .clone()
        .unwrap_or_else(|| InputId::from(Uuid::now_v7()));
    let (body, encoder) = match belongs {
        Belongs::Settled(response) => {
            let conversation = response.conversation;
            return Ok(Begun {
                passed: told(*response),
                conversation,
                input: None,
                notices,
            });
        }
        Belongs::Waiting(key, pending) => {
            context.conversation = key.conversation;
            let answers = read_message(&pending, &message);
            let body = match answers.is_empty() {
                true => InputBody::Message {
                    text: message,
                    output_schema: None,
                    limits: Some(Box::new(limits)),
                    client: None,
                },
                false => InputBody::Answers {
                    answers: answers
                        .into_iter()
                        .map(|(call, verdict)| call.answer(verdict))
                        .collect(),
                },
            };
            (body, Encoder::default())
        }
        Belongs::Awaiting(key, answers) => {
            context.conversation = key.conversation;
            (
                InputBody::Answers { answers },
                Encoder::new(output.is_some()),
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
            (
                InputBody::Message {
                    text: message,
                    output_schema: output,
                    limits,
                    client,
                },
                encoder,
            )
        }
    };
    let running = app.begin_turn(&context.user)?;
    let stream = app.agent.stream_input(&context, Some(input.clone()), body);
    let passed = follow(app, stream, encoder, running);
    Ok(Begun {
        passed,
        conversation: context.conversation,
        input: Some(input),
        notices,
    })
}

/// Returns whether no person asks, but the interface that they use. Instructions count as the first
/// message.
fn is_of_interface(messages: &Messages, instructions: Option<&str>) -> bool {
    let Some(instructions) = instructions else {
        return is_background(&messages.list);
    };
    let first = ChatMessage::saying(Role::System, MessageContent::Words(instructions.to_owned()));
    let all: Vec<ChatMessage> = std::iter::once(first)
        .chain(messages.list.iter().cloned())
        .collect();
    is_background(&all)
}

/// Adds the application's words for this turn to what the client brings.
fn with_instructions(
    agent: &Agent,
    client: Option<Box<ClientSide>>,
    instructions: Option<String>,
) -> Result<Option<Box<ClientSide>>, Problem> {
    let Some(words) = instructions.filter(|words| !words.trim().is_empty()) else {
        return Ok(client);
    };
    let mut client = client.unwrap_or_default();
    client.context = format!("{}\n\n{words}", FROM_THE_APPLICATION.trim_end());
    let context = ClientSide {
        context: client.context.clone(),
        ..ClientSide::default()
    };
    agent
        .with_client(context)
        .map_err(|error| invalid("instructions", error.to_string()))?;
    Ok(Some(client))
}

/// Returns the client's tools and choice, if the model can be given them. `None`: there are none,
/// or they have no effect.
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
            false => Err(invalid(
                "tools",
                "this model has no tools; the agent itself takes them",
            )),
        };
    }
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

/// Follows a turn to its end, whether anybody listens or not.
fn follow(
    app: &Shared,
    mut stream: RunStream,
    mut encoder: Encoder,
    running: RunningTurn,
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
        if let Ok((response, _)) = &finished {
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

/// Passes on an answer that is known already.
fn told(response: AgentResponse) -> UnboundedReceiver<Passed> {
    let (sender, passed) = unbounded_channel();
    // The receiver is in this function's hands.
    if let Some(piece) = Encoder::default().end(&response) {
        drop(sender.send(Passed::Piece(piece)));
    }
    drop(sender.send(Passed::End(Box::new(Ok(response)), false)));
    passed
}
