//! A run told from the journal: after this process forgot it, or when another one did it. What is told is less, and true:
//! the messages, the tasks, what was decided, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::Loaded;
use adjutant_core::{CancellationToken, ConversationKey, InputId, TurnId, conversation};
use axum::response::Response;

use super::drive::tell_state;
use super::sse;
use crate::agui::{Encoder, Event, Outcome, Transcript};
use crate::live::Run;
use crate::problem::Problem;
use crate::state::Shared;

/// How often the journal is looked at while the turn goes on somewhere.
const LOOK: Duration = Duration::from_secs(1);

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

/// Whether the conversation has accepted an input of this id.
pub(crate) fn has_input(loaded: &Loaded, id: &InputId) -> bool {
    loaded.inbox.iter().any(|input| input.id == *id)
        || loaded.events.iter().any(|recorded| recorded.event.takes_input() == Some(id))
}

/// Tells what is recorded, and waits for the rest as long as somebody reads.
pub(crate) fn response(app: &Shared, key: ConversationKey, of: Of, names: Names) -> Response {
    let run = Arc::new(Run::new(key, names.run_id.clone()));
    let reading = CancellationToken::new();
    let (telling, told, left) = (app.clone(), run.clone(), reading.clone());
    app.turns.spawn(async move {
        tokio::select! {
            () = tell(&telling, &told, of, names) => {}
            () = left.cancelled() => {}
            () = telling.stopping.cancelled() => told.close(),
        }
    });
    sse::response(run, 0, Some(reading))
}

async fn tell(app: &Shared, run: &Run, of: Of, names: Names) {
    let encoder = Encoder::new(names.thread_id, names.run_id, app.agent.model().id().clone(), []);
    run.tell([encoder.started()]);
    let (loaded, turn) = loop {
        match app.agent.journal().load(&run.key).await {
            Ok(loaded) => {
                if let Some(turn) = ended(&run.key, &loaded, &of) {
                    break (loaded, turn);
                }
            }
            Err(error) => {
                run.tell([encoder.failed(&Problem::store(&error))]);
                return app.tell(error.into());
            }
        }
        tokio::time::sleep(LOOK).await;
    };
    let messages = Transcript::of(&loaded.events, app.agent.tools()).into_messages();
    run.tell([Event::MessagesSnapshot { messages }]);
    tell_state(app, run).await;
    let response = turn.and_then(|turn| conversation::response(run.key.conversation, &loaded.events, turn));
    match response {
        Some(response) => run.tell([encoder.decision(&response), encoder.finished(&response)]),
        // An input that had nothing left to do.
        None => run.tell([encoder.ended(Outcome::Success, None)]),
    }
}

/// Whether there is nothing to wait for: the turn, if there is one, ended or waits for a human.
#[expect(clippy::option_option, reason = "not ended, or ended with or without a turn")]
fn ended(key: &ConversationKey, loaded: &Loaded, of: &Of) -> Option<Option<TurnId>> {
    let turn = match of {
        Of::Turn(turn) => Some(*turn),
        Of::Input(id, _) if loaded.inbox.iter().any(|input| input.id == *id) => return None,
        Of::Input(id, answered) => conversation::turn_of_input(&loaded.events, id).or(*answered),
    };
    match turn {
        Some(turn) => conversation::response(key.conversation, &loaded.events, turn).map(|_| Some(turn)),
        None => Some(None),
    }
}
