//! A run told that this process forgot, or that another one does. As long as it goes on there, it
//! is told as that one tells it. Else it is told from the journal, which is less, and true: the
//! messages of the turn, the tasks, what was decided, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{AcceptedInput, StoreError};
use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, InputId, Recorded, TurnId, conversation,
};
use axum::response::Response;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::drive::{tell_messages, tell_state};
use super::sse;
use crate::agui::{Begun, Encoder, InputMessage, Message, Outcome, RunAgentInput, Transcript};
use crate::live::{Frame, Run};
use crate::problem::Problem;
use crate::remote::{Followed, Follower};
use crate::state::Shared;

/// How often the journal is looked at while the turn goes on somewhere.
const LOOK: Duration = Duration::from_secs(1);

/// Wait for another process to tell the run from its beginning, before the client is told that it
/// has begun.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which turn is told.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    Turn(TurnId),
    /// The one that took this input, or that it answered.
    Input(InputId, Option<TurnId>),
}

/// How the client calls things.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
}

/// The name by which another process that runs it is asked, see [`Follower::of`].
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// The last event of the run that the client has.
    pub(crate) after: Option<String>,
    /// The client's own state of the conversation, if it says so.
    pub(crate) has: Option<String>,
}

/// What a client has of the conversation.
#[derive(Debug, Default)]
pub(crate) struct Has {
    messages: Vec<InputMessage>,
    state: Value,
    /// It was told some of this run before.
    some: bool,
}

impl Has {
    /// Returns what a request to run says.
    pub(crate) fn of(input: &mut RunAgentInput) -> Self {
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

    /// Returns that nothing is known, or that it has some of the run.
    pub(crate) fn some(some: bool) -> Self {
        Self {
            some,
            ..Self::default()
        }
    }

    /// Returns whether it has any of these messages, perhaps in part.
    fn any(&self, ours: &[Message]) -> bool {
        let has = |message: &Message| self.messages.iter().any(|theirs| theirs.id == message.id());
        self.some || ours.iter().any(has)
    }
}

/// Tells a run as it goes on in another process, if one tells it, from the event behind the
/// client's last one on. Else it tells what is recorded, once the run has ended or waits. It goes
/// on as long as somebody reads.
pub(crate) fn response(
    app: &Shared,
    key: ConversationKey,
    of: Of,
    names: Names,
    (has, elsewhere): (Has, Option<Elsewhere>),
) -> Response {
    let run = Arc::new(Run::new(key, names.run_id.clone()));
    let reading = CancellationToken::new();
    let (telling, told, left) = (app.clone(), run.clone(), reading.clone());
    app.turns.spawn(async move {
        tokio::select! {
            () = tell(&telling, &told, of, names, (has, elsewhere)) => {}
            () = left.cancelled() => {}
            () = telling.stopping.cancelled() => told.close(),
        }
    });
    sse::response(run, 0, Some(reading))
}

async fn tell(
    app: &Shared,
    run: &Run,
    of: Of,
    names: Names,
    (mut has, elsewhere): (Has, Option<Elsewhere>),
) {
    let agent = app.agent.for_user(&run.key.user);
    let says = (agent.model().id().clone(), agent.tools());
    let run_id = names.run_id.clone();
    let mut encoder = Encoder::new(names.thread_id, names.run_id, says, []);
    let mut follower = elsewhere.and_then(|Elsewhere { after, has }| {
        Follower::of(
            app.host.relay(),
            &run.key,
            run.name.trim().to_owned(),
            after,
            has,
        )
    });
    let mut passed = Passed {
        run,
        begun: Begun::default(),
        has_begun: false,
        has_some: false,
    };
    if follower.is_none() {
        passed.begin(&encoder);
    }
    let patience = Instant::now() + PATIENCE;
    let ended = loop {
        if !follower.as_ref().is_some_and(Follower::is_answered) {
            match ended(app, &run.key, &of).await {
                Ok(Some(ended)) => break ended,
                Ok(None) => {}
                Err(error) => {
                    run.tell([encoder.failed(&Problem::store(&error))]);
                    return app.tell(error.into());
                }
            }
            if Instant::now() >= patience {
                passed.begin(&encoder);
            }
        }
        let Some(followed) = &mut follower else {
            sleep(LOOK).await;
            continue;
        };
        let answered = followed.is_answered();
        tokio::select! {
            next = followed.next() => match next {
                Followed::Told(frames) => {
                    if passed.on(frames) {
                        return;
                    }
                }
                // Whoever goes on with it, its end will be in the journal.
                Followed::Lost => follower = None,
            },
            () = sleep(LOOK), if !answered => {}
        }
    };
    drop(follower);
    passed.begin(&encoder);
    run.tell(passed.begun.ended());
    has.some |= passed.has_some;
    let Some((response, events)) = ended else {
        // An input that had nothing left to do.
        tell_state(app, run, &has.state).await;
        run.tell([encoder.ended(Outcome::success(), None)]);
        return;
    };
    let ours = Transcript::of(&events, agent.tools());
    if has.any(ours.messages()) {
        tell_messages(app, run, (&has.messages, &run_id), &encoder).await;
    } else {
        run.tell(encoder.said_all(&response, Some(ours.messages())).0);
    }
    tell_state(app, run, &has.state).await;
    run.tell([
        encoder.decision(&response),
        encoder.finished(&response, app.agent.now()),
    ]);
}

/// The events of a run in another process, as they are passed on.
struct Passed<'a> {
    run: &'a Run,
    begun: Begun,
    /// True once it was told that the run has begun.
    has_begun: bool,
    /// True if anything else was.
    has_some: bool,
}

impl Passed<'_> {
    /// Tells that the run has begun, unless that was told.
    fn begin(&mut self, encoder: &Encoder<'_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.run.tell([encoder.started()]);
        }
    }

    /// Passes events on. Returns whether the run has ended with them.
    fn on(&mut self, mut frames: Vec<Frame>) -> bool {
        if self.has_begun && !self.has_some {
            frames.retain(|frame| kind(&frame.data) != Some("RUN_STARTED"));
        }
        let ends = frames.last().and_then(|frame| kind(&frame.data));
        let ends = ends.is_some_and(|kind| matches!(kind, "RUN_FINISHED" | "RUN_ERROR"));
        frames.iter().for_each(|frame| self.begun.on(&frame.data));
        (self.has_begun, self.has_some) = (true, true);
        self.run.pass_on(frames);
        if ends {
            self.run.close();
        }
        ends
    }
}

/// Returns what an event is, as we write them: its kind comes first.
fn kind(data: &str) -> Option<&str> {
    data.strip_prefix("{\"type\":\"")?
        .split_once('"')
        .map(|(kind, _)| kind)
}

/// What came of a turn, with its events. `None`: there is no turn.
type Ended = Option<(AgentResponse, Vec<Recorded>)>;

/// Returns whether there is nothing to wait for: the turn, if there is one, ended or waits for a
/// human. `None`: it goes on.
async fn ended(app: &Shared, key: &ConversationKey, of: &Of) -> Result<Option<Ended>, StoreError> {
    let turn = match of {
        Of::Turn(turn) => Some(*turn),
        Of::Input(id, answered) => match app.agent.journal().find_input(key, id).await? {
            Some(AcceptedInput { taken_at: None }) => return Ok(None),
            Some(AcceptedInput {
                taken_at: Some(place),
            }) => turn_at(app, key, place).await?.or(*answered),
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
    Ok(response.map(|response| Some((response, read.events))))
}

/// Returns the turn that took an input, or, while it waits for the end of the turn that is open,
/// that one.
pub(crate) async fn turn_of(
    app: &Shared,
    key: &ConversationKey,
    id: &InputId,
) -> Result<Option<TurnId>, StoreError> {
    match app.agent.journal().find_input(key, id).await? {
        Some(AcceptedInput {
            taken_at: Some(place),
        }) => turn_at(app, key, place).await,
        Some(AcceptedInput { taken_at: None }) => {
            let last = app.agent.journal().load_turns(key, None, 1).await?;
            Ok(last.and_then(|last| conversation::turn_of_input(&last.events, id)))
        }
        None => Ok(None),
    }
}

/// Returns the turn of the event at a place, if it belongs to one.
async fn turn_at(
    app: &Shared,
    key: &ConversationKey,
    place: u64,
) -> Result<Option<TurnId>, StoreError> {
    let read = app
        .agent
        .journal()
        .load_turns(key, Some(place.saturating_add(1)), 1)
        .await?;
    Ok(read.and_then(|read| read.events.last()?.event.turn()))
}
