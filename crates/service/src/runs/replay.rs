//! Replay of a run that is not in this process. While another process runs it, its events are
//! forwarded; otherwise a shorter form is made from the journal: messages, tasks, decision and end.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{AcceptedInput, StoreError};
use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, Disposition, InputId, Recorded, TurnId,
    conversation,
};
use axum::response::Response;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::drive::{publish_messages, publish_tasks};
use super::sse;
use crate::agui::{
    AgentInfo, Encoder, InputMessage, Message, OpenParts, Outcome, RunAgentInput, Transcript,
};
use crate::live::{Frame, Run};
use crate::problem::Problem;
use crate::remote::{Followed, Follower};
use crate::state::Shared;

/// Interval at which the journal is checked while the turn goes on in another process.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time in which another process may forward the run's own first event; then this process sends
/// one.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(3);

/// The turn to replay.
#[derive(Debug, Clone)]
pub(crate) enum ReplayTarget {
    Turn(TurnId),
    /// The turn that took this input; or the second, which the input answered.
    Input(InputId, Option<TurnId>),
}

/// The client's names for conversation and run.
#[derive(Debug, Clone)]
pub(crate) struct ClientNames {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
}

/// Parameters for subscribing to the run in another process, see [`Follower::subscribe`].
#[derive(Debug)]
pub(crate) struct RemoteRun {
    /// Id of the last event that the client has.
    pub(crate) after: Option<String>,
    /// Fingerprint of the client's history, if it sent one.
    pub(crate) client: Option<String>,
}

/// The client's history and state.
#[derive(Debug, Default)]
pub(crate) struct ClientHistory {
    messages: Vec<InputMessage>,
    state: Value,
    /// True if it received a part of this run before.
    some: bool,
}

impl ClientHistory {
    /// Takes history and state out of a request.
    pub(crate) fn take(input: &mut RunAgentInput) -> Self {
        let (messages, state) = (
            std::mem::take(&mut input.messages),
            std::mem::take(&mut input.state),
        );
        Self {
            messages,
            state,
            some: false,
        }
    }

    /// Returns an unknown history; `some`: the client received a part of the run.
    pub(crate) fn unknown(some: bool) -> Self {
        Self {
            some,
            ..Self::default()
        }
    }

    /// Returns true if the client may have one of these messages, possibly in part.
    fn may_have(&self, ours: &[Message]) -> bool {
        let is_known =
            |message: &Message| self.messages.iter().any(|theirs| theirs.id == message.id());
        self.some || ours.iter().any(is_known)
    }
}

/// Streams a run that another process executes, from the event after the client's last one; or, if
/// no process publishes it, its recorded form once it has ended or waits. Stops when the client
/// disconnects.
pub(crate) fn response(
    app: &Shared,
    key: ConversationKey,
    target: ReplayTarget,
    names: ClientNames,
    client: ClientHistory,
    remote: Option<RemoteRun>,
) -> Response {
    let run = Arc::new(Run::new(key, names.run_id.clone()));
    let reading = CancellationToken::new();
    let (state, replayed, disconnected) = (app.clone(), run.clone(), reading.clone());
    app.turns.spawn(async move {
        tokio::select! {
            () = replay(&state, &replayed, target, names, client, remote) => {}
            () = disconnected.cancelled() => {}
            // The client reconnects, and another replica continues.
            () = state.stopping.cancelled() => replayed.close(),
        }
    });
    sse::response(run, 0, Some(reading))
}

async fn replay(
    app: &Shared,
    run: &Run,
    target: ReplayTarget,
    names: ClientNames,
    mut client: ClientHistory,
    remote: Option<RemoteRun>,
) {
    let agent = app.agent.for_user(&run.key.user);
    let agent_info = AgentInfo::new(&agent);
    let mut encoder = Encoder::new(names.thread_id, names.run_id, agent_info, []);
    let mut follower = remote.and_then(|RemoteRun { after, client }| {
        Follower::subscribe(
            app.publisher.relay(),
            &run.key,
            run.name.trim().to_owned(),
            after,
            client,
        )
    });
    let mut forwarded = Forwarded {
        run,
        open_parts: OpenParts::default(),
        has_started: false,
        has_some: false,
    };
    // Without other processes there is nothing to wait for.
    if follower.is_none() {
        forwarded.begin(&encoder);
    }
    let first_event_at = Instant::now() + FIRST_EVENT_TIMEOUT;
    let ended = loop {
        // While another process publishes the run, its end arrives as an event.
        if !follower.as_ref().is_some_and(Follower::is_answered) {
            match find_end(app, &run.key, &target).await {
                Ok(Some(ended)) => break ended,
                Ok(None) => {}
                Err(error) => {
                    run.publish([encoder.run_error(&Problem::store(&error))]);
                    return app.report(&error.into());
                }
            }
            if Instant::now() >= first_event_at {
                forwarded.begin(&encoder);
            }
        }
        let Some(followed) = &mut follower else {
            sleep(POLL_INTERVAL).await;
            continue;
        };
        let answered = followed.is_answered();
        tokio::select! {
            next = followed.next() => match next {
                Followed::Events(frames) => {
                    if forwarded.publish(frames) {
                        return;
                    }
                }
                // The other process is gone or stopped publishing; the end will be in the journal.
                Followed::Lost => follower = None,
            },
            () = sleep(POLL_INTERVAL), if !answered => {}
        }
    };
    // Unsubscribes. What is missing is read from the journal.
    drop(follower);
    forwarded.begin(&encoder);
    run.publish(forwarded.open_parts.close_all());
    // A client with a part of the messages needs a snapshot; events would repeat that part.
    client.some |= forwarded.has_some;
    let Some((response, events)) = ended else {
        // The input had no effect, so there is no turn.
        publish_tasks(app, run, &client.state).await;
        run.publish([encoder.run_finished(Outcome::success(), None)]);
        return;
    };
    let ours = Transcript::from_events(&events, agent.tools());
    if client.may_have(ours.messages()) {
        publish_messages(app, run, &client.messages, &encoder).await;
    } else {
        run.publish(encoder.finish_messages(&response, Some(ours.messages())).0);
    }
    publish_tasks(app, run, &client.state).await;
    run.publish([
        encoder.decision(&response),
        encoder.finish(&response, app.agent.now()),
    ]);
}

/// State of forwarding the events of a run in another process.
struct Forwarded<'a> {
    run: &'a Run,
    open_parts: OpenParts,
    /// True once an event `RUN_STARTED` was published.
    has_started: bool,
    /// True once other events were published.
    has_some: bool,
}

impl Forwarded<'_> {
    /// Publishes `RUN_STARTED`, unless that was done.
    fn begin(&mut self, encoder: &Encoder<'_>) {
        if !std::mem::replace(&mut self.has_started, true) {
            self.run.publish([encoder.run_started()]);
        }
    }

    /// Publishes events. Returns true if the run has ended with them.
    fn publish(&mut self, mut frames: Vec<Frame>) -> bool {
        // This process has published one already, because the other was slow to answer.
        if self.has_started && !self.has_some {
            frames.retain(|frame| kind(&frame.data) != Some("RUN_STARTED"));
        }
        let ends = frames.last().and_then(|frame| kind(&frame.data));
        let ends = ends.is_some_and(|kind| matches!(kind, "RUN_FINISHED" | "RUN_ERROR"));
        frames
            .iter()
            .for_each(|frame| self.open_parts.record(&frame.data));
        (self.has_started, self.has_some) = (true, true);
        self.run.publish_frames(frames);
        if ends {
            self.run.close();
        }
        ends
    }
}

/// Returns the type of a serialized event. The serializer writes `type` first.
fn kind(data: &str) -> Option<&str> {
    data.strip_prefix("{\"type\":\"")?
        .split_once('"')
        .map(|(kind, _)| kind)
}

/// Response and events of a turn; `None` if there is no turn.
type Ended = Option<(AgentResponse, Vec<Recorded>)>;

/// Returns the turn's response once it has ended or waits; `None` while it goes on.
async fn find_end(
    app: &Shared,
    key: &ConversationKey,
    target: &ReplayTarget,
) -> Result<Option<Ended>, StoreError> {
    let turn = match target {
        ReplayTarget::Turn(turn) => Some(*turn),
        ReplayTarget::Input(id, answered) => match app.agent.journal().find_input(key, id).await? {
            Some(AcceptedInput { taken_at: None }) => return Ok(None),
            Some(AcceptedInput {
                taken_at: Some(position),
            }) => turn_at(app, key, position).await?.or(*answered),
            None => *answered,
        },
    };
    let Some(turn) = turn else {
        return Ok(Some(None));
    };
    let Some(read) = app.agent.journal().load_turn(key, turn).await? else {
        return Ok(Some(None));
    };
    let response = conversation::response(key.conversation, &read.events, turn);
    Ok(response.map(|mut response| {
        if let ReplayTarget::Input(id, _) = target {
            response.disposition =
                conversation::disposition(&read.events, id).unwrap_or(Disposition::Dropped);
        }
        Some((response, read.events))
    }))
}

/// Returns the turn that took an input; while the input is queued, the open turn.
pub(crate) async fn turn_for_input(
    app: &Shared,
    key: &ConversationKey,
    id: &InputId,
) -> Result<Option<TurnId>, StoreError> {
    match app.agent.journal().find_input(key, id).await? {
        Some(AcceptedInput {
            taken_at: Some(position),
        }) => turn_at(app, key, position).await,
        Some(AcceptedInput { taken_at: None }) => {
            let last = app.agent.journal().load_turns(key, None, 1).await?;
            Ok(last.and_then(|last| conversation::turn_of_input(&last.events, id)))
        }
        None => Ok(None),
    }
}

/// Returns the turn of the event at a position in the journal.
async fn turn_at(
    app: &Shared,
    key: &ConversationKey,
    position: u64,
) -> Result<Option<TurnId>, StoreError> {
    let read = app
        .agent
        .journal()
        .load_turns(key, Some(position.saturating_add(1)), 1)
        .await?;
    Ok(read.and_then(|read| read.events.last()?.event.turn()))
}
