//! A turn runs, and is told.

use std::sync::Arc;

use adjutant_core::{AgentResponse, ConversationKey, InputId, Notice, Recorded, TurnId, conversation};
use adjutant_runtime::{RunContext, RunError, RunEvent};

use super::asked::Asked;
use crate::agui::{Encoder, Event, Outcome, RunAgentInput, State, Transcript};
use crate::limits::RunningTurn;
use crate::live::Run;
use crate::problem::Problem;
use crate::state::Shared;

/// What a run begins with.
pub(crate) struct Beginning {
    pub(crate) id: InputId,
    pub(crate) input: RunAgentInput,
    pub(crate) asked: Asked,
    /// What the request is called by.
    pub(crate) request_id: Option<String>,
    /// Counts it among its user's turns.
    pub(crate) running: RunningTurn,
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
    let Beginning { id, input, asked, request_id, running } = beginning;
    // Whatever happens here, nobody waits for ever.
    let _closed = Closed(run.clone());
    let model = app.agent.model().id().clone();
    let mut encoder =
        Encoder::new(input.thread_id.clone(), input.run_id.clone(), model, asked.known.iter().cloned());
    run.tell([encoder.started()]);
    let mut state = tell_state(&app, &run).await;
    let Some(body) = asked.body.clone() else {
        let loaded = app.agent.journal().load(&run.key).await.unwrap_or_default();
        let notices = asked.notices.iter().map(notice);
        run.tell([messages(&app, &loaded.events, &input, &encoder)].into_iter().chain(notices));
        run.tell([encoder.ended(Outcome::Success, None)]);
        return;
    };
    let context = RunContext {
        conversation: run.key.conversation,
        cancelled: run.cancelled.clone(),
        request_id,
        ..RunContext::new(run.key.user.clone())
    };
    let mut stream = app.agent.stream_input(&context, Some(id.clone()), body).detached();
    // A run may have to see to what was asked before, or to what comes behind: that is not told here.
    let mut ours = false;
    let mut response = None;
    while let Some(event) = stream.next().await {
        match &event {
            RunEvent::TurnStarted { turn, input: taken, .. } => {
                let is_ours = *taken == id || asked.turn == Some(*turn);
                if ours && !is_ours && !run.has_ended() {
                    let ended = run.turn();
                    if let Some(ended) = response_of(&app, &run.key, ended).await {
                        end(&app, &run, &mut encoder, (&input, &asked, &running), ended).await;
                    }
                }
                ours = is_ours;
                if ours {
                    run.is_of(*turn);
                }
            }
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
        Ok(response) => end(&app, &run, &mut encoder, (&input, &asked, &running), response).await,
        Err(error) => fail(&app, &run, &mut encoder, error),
    }
}

/// The end of a run whose turn ended or waits. The snapshots come first, so that whoever answers what waits, and whoever
/// lost something on the way, has what we have.
async fn end(
    app: &Shared,
    run: &Run,
    encoder: &mut Encoder,
    (input, asked, running): (&RunAgentInput, &Asked, &RunningTurn),
    mut response: AgentResponse,
) {
    running.ended(&response);
    response.notices.splice(0..0, asked.notices.iter().cloned());
    run.is_of(response.turn);
    run.tell(encoder.said_all(&response, Problem::of_turn(&response).is_some()));
    match app.agent.journal().load(&run.key).await {
        Ok(loaded) => run.tell([messages(app, &loaded.events, input, encoder)]),
        Err(error) => app.tell(error.into()),
    }
    tell_state(app, run).await;
    run.tell([encoder.decision(&response)]);
    let last = encoder.finished(&response);
    run.ended(Ok(response));
    run.tell([last]);
}

fn fail(app: &Shared, run: &Run, encoder: &mut Encoder, error: RunError) {
    let problem = Problem::run(&error);
    run.tell(encoder.closed());
    let last = encoder.failed(&problem);
    if problem.is_ours() {
        app.tell(error.clone());
    }
    run.ended(Err(error));
    run.tell([last]);
}

/// What a conversation holds, for a client that has some of it.
fn messages(app: &Shared, events: &[Recorded], input: &RunAgentInput, encoder: &Encoder) -> Event {
    let transcript = Transcript::of(events, app.agent.tools());
    let messages = transcript.for_client(&input.messages, encoder.sent(), &input.run_id);
    Event::MessagesSnapshot { messages }
}

fn notice(notice: &Notice) -> Event {
    Event::Custom { name: "notice", value: serde_json::json!(notice) }
}

/// The tasks, if there are any to show.
pub(crate) async fn tell_state(app: &Shared, run: &Run) -> Option<State> {
    let tasks = app.tasks.get()?.list(&run.key.user, adjutant_core::TaskFilter::All).await;
    match tasks {
        Ok(tasks) => {
            let state = State::of(&tasks);
            run.tell([Event::StateSnapshot { snapshot: state.snapshot() }]);
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
    let reads = app.agent.tools().get(tool).is_some_and(|tool| tool.definition().annotations.read_only);
    let (Some(known), Some(tasks), false) = (state, app.tasks.get(), reads) else { return };
    match tasks.list(&run.key.user, adjutant_core::TaskFilter::All).await {
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
async fn response_of(app: &Shared, key: &ConversationKey, turn: Option<TurnId>) -> Option<AgentResponse> {
    let loaded = app.agent.journal().load(key).await.ok()?;
    conversation::response(key.conversation, &loaded.events, turn?)
}
