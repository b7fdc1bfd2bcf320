//! A turn runs, and is told.

use std::sync::Arc;

use adjutant_core::port::Turns;
use adjutant_core::{
    AgentResponse, ConversationKey, InputId, Notice, TaskFilter, TraceContext, TurnId, conversation,
};
use adjutant_runtime::{Agent, RunContext, RunError, RunEvent};
use serde_json::Value;

use super::asked::Asked;
use crate::agui::{
    Encoder, Event, InputMessage, Message, Outcome, RunAgentInput, State, Transcript,
    result_message,
};
use crate::limits::RunningTurn;
use crate::live::Run;
use crate::problem::Problem;
use crate::state::Shared;
use crate::titles;

/// What a run begins with.
pub(crate) struct Beginning {
    pub(crate) id: InputId,
    pub(crate) input: RunAgentInput,
    pub(crate) asked: Asked,
    /// Where the conversation was when it was asked, and whether the client is there too.
    pub(crate) place: Place,
    /// What the request is called by.
    pub(crate) request_id: Option<String>,
    /// The trace that it belongs to.
    pub(crate) trace: Option<TraceContext>,
    /// Counts it among its user's turns.
    pub(crate) running: RunningTurn,
}

/// The end of a conversation when a run was asked for.
#[derive(Debug)]
pub(crate) struct Place {
    /// Whether the client has the conversation up to there.
    follows: bool,
    /// The place behind which the turn begins that the client is told.
    after: u64,
    /// The messages that the client has of the turn, if it is gone on with.
    known: Vec<Message>,
}

impl Place {
    /// Reads where a conversation is from its last turn. `None`: there is no conversation yet.
    pub(crate) fn of(agent: &Agent, input: &RunAgentInput, last: Option<&Turns>) -> Self {
        let events = last.map(|last| last.events.as_slice()).unwrap_or_default();
        let transcript = Transcript::of(events, agent.tools());
        let results = input.results(&conversation::pending(events));
        let follows = input.follows(transcript.messages(), &results);
        match last {
            Some(last) if !input.resume.is_empty() || !results.is_empty() => {
                // What the client brings it has.
                let brought = results.iter().filter_map(|answer| {
                    let result = answer.result.as_ref()?;
                    Some(result_message(&answer.call_id, result.to_text(), result))
                });
                let known = transcript
                    .messages()
                    .iter()
                    .cloned()
                    .chain(brought)
                    .collect();
                Self {
                    follows,
                    after: last.after,
                    known,
                }
            }
            last => Self {
                follows,
                after: last.map_or(0, |last| last.known().seq),
                known: Vec::new(),
            },
        }
    }
}

/// Closes a run, if it is not, when nobody tells it any more.
struct Closed(Arc<Run>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs what was asked to its end, whoever listens.
pub(crate) async fn drive(app: Shared, run: Arc<Run>, beginning: Beginning) {
    let Beginning {
        id,
        input,
        asked,
        mut place,
        request_id,
        trace,
        running,
    } = beginning;
    // Whatever happens here, nobody waits for ever.
    let _closed = Closed(run.clone());
    // Whoever asks for it elsewhere is told it as long as it goes on.
    let _hosted = app.host.host();
    let agent = app.agent.for_user(&run.key.user);
    let says = (agent.model().id().clone(), agent.tools());
    let known = std::mem::take(&mut place.known);
    let mut encoder = Encoder::new(input.thread_id.clone(), input.run_id.clone(), says, known);
    run.tell([encoder.started()]);
    let mut state = tell_state(&app, &run, &input.state).await;
    let Some(body) = asked.body.clone() else {
        if !place.follows {
            tell_messages(&app, &run, (&input.messages, &input.run_id), &encoder).await;
        }
        run.tell(asked.notices.iter().map(notice));
        run.tell([encoder.ended(Outcome::success(), None)]);
        return;
    };
    let context = RunContext {
        conversation: run.key.conversation,
        cancelled: run.cancelled.clone(),
        request_id,
        fingerprint: Some(run.asks.clone()),
        trace,
        ..RunContext::new(run.key.user.clone())
    };
    let mut stream = agent
        .stream_input(&context, Some(id.clone()), body)
        .detached();
    // A run may have to see to what was asked before, or to what comes behind: that is not told
    // here.
    let mut ours = false;
    let mut response = None;
    while let Some(event) = stream.next().await {
        match &event {
            RunEvent::TurnStarted {
                turn, input: taken, ..
            } => {
                let is_ours = *taken == id || asked.turn == Some(*turn);
                if ours && !is_ours && !run.has_ended() {
                    let ended = run.turn();
                    if let Some(ended) = response_of(&app, &run.key, ended).await {
                        end(
                            &app,
                            &run,
                            &mut encoder,
                            (&input, &asked, &place, &running),
                            ended,
                        )
                        .await;
                    }
                }
                ours = is_ours;
                if ours {
                    run.is_of(*turn);
                }
            }
            RunEvent::Accepted => run.is_accepted(),
            RunEvent::Finished(ended) => {
                response = Some((**ended).clone());
                continue;
            }
            _ => {}
        }
        if !ours || run.has_ended() {
            continue;
        }
        run.tell(encoder.on(&event));
        if let RunEvent::ToolFinished { tool, .. } = &event {
            tell_changes(&app, &run, tool, &mut state).await;
        }
    }
    if run.has_ended() {
        return;
    }
    let ended = match (response, stream.finish().await) {
        (Some(response), Ok(_)) => Ok(response),
        (None, Ok((response, _))) => Ok(response),
        (_, Err(error)) => Err(error),
    };
    match ended {
        Ok(response) => {
            end(
                &app,
                &run,
                &mut encoder,
                (&input, &asked, &place, &running),
                response,
            )
            .await
        }
        Err(error) => fail(&app, &run, &mut encoder, error),
    }
}

/// The end of a run whose turn ended or waits. What the client lacks of it comes first, so that
/// whoever answers what waits has what we have: as events, or, for a client that had none of the
/// conversation or lost track of it, as all messages.
async fn end(
    app: &Shared,
    run: &Run,
    encoder: &mut Encoder<'_>,
    (input, asked, place, running): (&RunAgentInput, &Asked, &Place, &RunningTurn),
    mut response: AgentResponse,
) {
    running.ended(&response);
    titles::find(app, &run.key, &response);
    response.notices.splice(0..0, asked.notices.iter().cloned());
    run.is_of(response.turn);
    let turn = app
        .agent
        .journal()
        .load_turn(&run.key, response.turn)
        .await
        .unwrap_or_else(|error| {
            app.tell(error.into());
            None
        });
    let events = turn
        .as_ref()
        .map(|turn| turn.events.as_slice())
        .unwrap_or_default();
    let agent = app.agent.for_user(&run.key.user);
    let ours = Transcript::of(events, agent.tools());
    let follows = place.follows && turn.is_some_and(|turn| turn.after == place.after);
    let (events, is_told) = encoder.said_all(&response, follows.then_some(ours.messages()));
    run.tell(events);
    if !is_told || run.is_cut() {
        tell_messages(app, run, (&input.messages, &input.run_id), encoder).await;
    }
    run.tell([encoder.decision(&response)]);
    let last = encoder.finished(&response, app.agent.now());
    run.ended(Ok(response));
    run.tell([last]);
}

fn fail(app: &Shared, run: &Run, encoder: &mut Encoder<'_>, error: RunError) {
    let problem = Problem::run(&error);
    run.tell(encoder.closed());
    let last = encoder.failed(&problem);
    if problem.is_ours() {
        app.tell(error.clone());
    }
    run.ended(Err(error));
    run.tell([last]);
}

/// Tells a client that has some of a conversation, and perhaps other things, all of it.
pub(crate) async fn tell_messages(
    app: &Shared,
    run: &Run,
    (client, run_id): (&[InputMessage], &str),
    encoder: &Encoder<'_>,
) {
    match app.agent.journal().load(&run.key).await {
        Ok(loaded) => {
            let agent = app.agent.for_user(&run.key.user);
            let transcript = Transcript::of(&loaded.events, agent.tools());
            let messages = transcript.for_client(client, encoder.sent(), run_id);
            run.tell([Event::MessagesSnapshot { messages }]);
        }
        Err(error) => app.tell(error.into()),
    }
}

fn notice(notice: &Notice) -> Event {
    Event::Custom {
        name: "notice",
        value: serde_json::json!(notice),
    }
}

/// The open tasks, if there are any to show, unless they are what the client has.
pub(crate) async fn tell_state(app: &Shared, run: &Run, theirs: &Value) -> Option<State> {
    let tasks = app
        .tasks
        .get()?
        .list(&run.key.user, TaskFilter::Pending)
        .await;
    match tasks {
        Ok(tasks) => {
            let state = State::of(&tasks);
            if !state.is(theirs) {
                run.tell([Event::StateSnapshot {
                    snapshot: state.snapshot(),
                }]);
            }
            Some(state)
        }
        Err(error) => {
            app.tell(error.into());
            None
        }
    }
}

/// How the tasks are different after a tool that may have changed them.
async fn tell_changes(app: &Shared, run: &Run, tool: &str, state: &mut Option<State>) {
    let agent = app.agent.for_user(&run.key.user);
    let reads = agent
        .tools()
        .get(tool)
        .is_some_and(|tool| tool.definition().annotations.read_only);
    let (Some(known), Some(tasks), false) = (state, app.tasks.get(), reads) else {
        return;
    };
    match tasks.list(&run.key.user, TaskFilter::Pending).await {
        Ok(tasks) => {
            let delta = known.update(&tasks);
            if !delta.is_empty() {
                run.tell([Event::StateDelta { delta }]);
            }
        }
        Err(error) => app.tell(error.into()),
    }
}

/// What the journal knows of the end of a turn.
async fn response_of(
    app: &Shared,
    key: &ConversationKey,
    turn: Option<TurnId>,
) -> Option<AgentResponse> {
    let turn = turn?;
    let read = app.agent.journal().load_turn(key, turn).await.ok()??;
    conversation::response(key.conversation, &read.events, turn)
}
