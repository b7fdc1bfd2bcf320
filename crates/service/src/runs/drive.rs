//! Execution of a run: drives the turn and publishes its events.

use std::sync::Arc;

use adjutant_core::port::Turns;
use adjutant_core::{
    AgentResponse, ConversationKey, InputId, Notice, TraceContext, TurnId, conversation,
};
use adjutant_runtime::{Agent, RunContext, RunError, RunEvent};
use adjutant_tools::TaskFilter;
use serde_json::Value;

use super::request::ParsedRequest;
use crate::admission::RunningTurn;
use crate::agui::{
    AgentInfo, Encoder, Event, InputMessage, Message, Outcome, RunAgentInput, State, Transcript,
    result_message,
};
use crate::auth::Caller;
use crate::live::Run;
use crate::problem::Problem;
use crate::state::Shared;
use crate::titles;

/// A run to be started.
pub(crate) struct NewRun {
    pub(crate) id: InputId,
    pub(crate) caller: Caller,
    pub(crate) input: RunAgentInput,
    pub(crate) request: ParsedRequest,
    /// Position of the client in the conversation.
    pub(crate) position: ClientPosition,
    /// Id of the HTTP request.
    pub(crate) request_id: Option<String>,
    /// Trace of the HTTP request.
    pub(crate) trace: Option<TraceContext>,
    /// Entry among the user's concurrent turns.
    pub(crate) running: RunningTurn,
}

/// The end of the conversation when a run was requested, and whether the client is up to date.
#[derive(Debug)]
pub(crate) struct ClientPosition {
    /// True if the client has the conversation up to its end.
    is_up_to_date: bool,
    /// Position in the journal after which the published turn begins.
    after: u64,
    /// Messages of the turn that the client has, if the run continues a turn.
    known: Vec<Message>,
}

impl ClientPosition {
    /// Compares the client's history with the last turn. `last` is `None` in a new conversation.
    pub(crate) fn compare(agent: &Agent, input: &RunAgentInput, last: Option<&Turns>) -> Self {
        let events = last.map(|last| last.events.as_slice()).unwrap_or_default();
        let transcript = Transcript::from_events(events, agent.tools());
        let results = input.results(&conversation::pending(events));
        let is_up_to_date = input.is_up_to_date(transcript.messages(), &results);
        match last {
            Some(last) if !input.resume.is_empty() || !results.is_empty() => {
                // Results that the client brings are in its own history.
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
                    is_up_to_date,
                    after: last.after,
                    known,
                }
            }
            last => Self {
                is_up_to_date,
                after: last.map_or(0, |last| last.known().seq),
                known: Vec::new(),
            },
        }
    }
}

/// Guard that ends a run when its publisher stops, also by a panic.
struct CloseOnDrop(Arc<Run>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs a turn to its end and publishes its events, with or without subscribers.
pub(crate) async fn drive(app: Shared, run: Arc<Run>, mut new_run: NewRun) {
    // Subscribers must not wait forever, whatever happens here.
    let _close = CloseOnDrop(run.clone());
    // Other processes can subscribe as long as the run goes on.
    let _published = app.publisher.activate();
    let agent = app.agent.for_user(&run.key.user);
    let known = std::mem::take(&mut new_run.position.known);
    let NewRun {
        id, input, request, ..
    } = &new_run;
    let mut encoder = Encoder::new(
        input.thread_id.clone(),
        input.run_id.clone(),
        AgentInfo::new(&agent),
        known,
    );
    run.publish([encoder.run_started()]);
    let mut state = publish_tasks(&app, &run, &input.state).await;
    // There is nothing to do, and the client still gets a complete run.
    let Some(body) = request.body.clone() else {
        if !new_run.position.is_up_to_date {
            publish_messages(&app, &run, &input.messages, &encoder).await;
        }
        run.publish(request.notices.iter().map(notice));
        run.publish([encoder.run_finished(Outcome::success(), None)]);
        return;
    };
    let context = RunContext {
        conversation: run.key.conversation,
        cancelled: run.cancelled.clone(),
        request_id: new_run.request_id.clone(),
        fingerprint: Some(run.fingerprints.request.clone()),
        trace: new_run.trace.clone(),
        time_zone: input.time_zone(),
        ..new_run.caller.run_context()
    };
    let mut stream = agent
        .stream_input(&context, Some(id.clone()), body)
        // A run goes on without its client, so dropping the stream must not stop the turn.
        .detached();
    // The agent may first finish an earlier turn, or continue with later inputs. Only events of the
    // turn that took this input are published.
    let mut ours = false;
    let mut response = None;
    while let Some(event) = stream.next().await {
        match &event {
            RunEvent::TurnStarted {
                turn, input: taken, ..
            } => {
                let is_ours = taken == id || request.turn == Some(*turn);
                // The conversation went on with another input: the end of this run is in the
                // journal.
                if ours && !is_ours && !run.has_ended() {
                    let ended = run.turn();
                    if let Some(ended) = recorded_response(&app, &run.key, ended).await {
                        end(&app, &run, &mut encoder, &new_run, ended).await;
                    }
                }
                ours = is_ours;
                if ours {
                    run.set_turn(*turn);
                }
            }
            RunEvent::Accepted => run.set_accepted(),
            RunEvent::Finished(ended) => {
                response = Some((**ended).clone());
                continue;
            }
            _ => {}
        }
        if !ours || run.has_ended() {
            continue;
        }
        run.publish(encoder.encode(&event));
        if let RunEvent::ToolFinished { tool, .. } = &event {
            publish_task_changes(&app, &run, tool, &mut state).await;
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
        Ok(response) => end(&app, &run, &mut encoder, &new_run, response).await,
        Err(error) => fail(&app, &run, &mut encoder, error),
    }
}

/// Publishes the end of a run whose turn ended or waits. First come the messages that the client
/// lacks, so that it has the full history when it answers: as events, or as a snapshot for a client
/// whose history differs.
async fn end(
    app: &Shared,
    run: &Run,
    encoder: &mut Encoder<'_>,
    new_run: &NewRun,
    mut response: AgentResponse,
) {
    let NewRun {
        input,
        request,
        position,
        running,
        ..
    } = new_run;
    running.record_end(&response);
    titles::generate(app, &run.key, &response);
    response
        .notices
        .splice(0..0, request.notices.iter().cloned());
    run.set_turn(response.turn);
    let turn = app
        .agent
        .journal()
        .load_turn(&run.key, response.turn)
        .await
        .unwrap_or_else(|error| {
            app.report(&error.into());
            None
        });
    let events = turn
        .as_ref()
        .map(|turn| turn.events.as_slice())
        .unwrap_or_default();
    let agent = app.agent.for_user(&run.key.user);
    let ours = Transcript::from_events(events, agent.tools());
    let is_up_to_date =
        position.is_up_to_date && turn.is_some_and(|turn| turn.after == position.after);
    let (events, is_complete) =
        encoder.finish_messages(&response, is_up_to_date.then_some(ours.messages()));
    run.publish(events);
    // A snapshot has the text of the deltas that were left out to bound the memory.
    if !is_complete || run.is_cut() {
        publish_messages(app, run, &input.messages, encoder).await;
    }
    run.publish([encoder.decision(&response)]);
    let last = encoder.finish(&response, app.agent.now());
    // Before the last event, after which subscribers read the result.
    run.set_result(Ok(response));
    run.publish([last]);
}

fn fail(app: &Shared, run: &Run, encoder: &mut Encoder<'_>, error: RunError) {
    let problem = Problem::run(&error);
    run.publish(encoder.close_all());
    let last = encoder.run_error(&problem);
    if problem.is_internal() {
        app.report(&error);
    }
    run.set_result(Err(error));
    run.publish([last]);
}

/// Publishes the whole conversation as a snapshot, with the client's ids where it has the messages.
pub(crate) async fn publish_messages(
    app: &Shared,
    run: &Run,
    client: &[InputMessage],
    encoder: &Encoder<'_>,
) {
    match app.agent.journal().load(&run.key).await {
        Ok(loaded) => {
            let agent = app.agent.for_user(&run.key.user);
            let transcript = Transcript::from_events(&loaded.events, agent.tools());
            let messages = transcript.for_client(client, encoder.sent(), encoder.run_id());
            run.publish([Event::MessagesSnapshot { messages }]);
        }
        Err(error) => app.report(&error.into()),
    }
}

fn notice(notice: &Notice) -> Event {
    Event::custom("notice", serde_json::json!(notice))
}

/// Publishes the open tasks, if there is a task store and the client's state differs.
pub(crate) async fn publish_tasks(app: &Shared, run: &Run, theirs: &Value) -> Option<State> {
    let tasks = app
        .tasks
        .get()?
        .list(&run.key.user, TaskFilter::Pending)
        .await;
    match tasks {
        Ok(tasks) => {
            let state = State::new(&tasks);
            if !state.equals(theirs) {
                run.publish([Event::StateSnapshot {
                    snapshot: state.snapshot(),
                }]);
            }
            Some(state)
        }
        Err(error) => {
            app.report(&error.into());
            None
        }
    }
}

/// Publishes changes of the open tasks after a tool that may have changed them.
async fn publish_task_changes(app: &Shared, run: &Run, tool: &str, state: &mut Option<State>) {
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
                run.publish([Event::StateDelta { delta }]);
            }
        }
        Err(error) => app.report(&error.into()),
    }
}

/// Reads the response of an ended turn from the journal.
async fn recorded_response(
    app: &Shared,
    key: &ConversationKey,
    turn: Option<TurnId>,
) -> Option<AgentResponse> {
    let turn = turn?;
    match app.agent.journal().load_turn(key, turn).await {
        Ok(read) => conversation::response(key.conversation, &read?.events, turn),
        Err(error) => {
            app.report(&error.into());
            None
        }
    }
}
