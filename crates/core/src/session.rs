//! Sessions: a conversation as a person experiences it, with its start, length and end.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::conversation::{Status, turn_history};
use crate::event::{Event, Recorded};
use crate::port::{ConversationSummary, Loaded};
use crate::turn::{estimate_tokens, message_tokens, said_in};

/// Duration without an event after which a session is closed.
pub const SESSION_IDLE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The state of a session, from empty to closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The session has no events yet.
    Empty,
    /// The session is open.
    Active,
    /// The session is open, and long enough to be summarised.
    Summarize,
    /// The person ended it, or nothing happened for [`SESSION_IDLE_MAX`]. The next input opens it
    /// again.
    Closed,
}

impl SessionState {
    /// Returns the name of the state, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Active => "active",
            Self::Summarize => "summarize",
            Self::Closed => "closed",
        }
    }
}

impl ConversationSummary {
    /// Returns the state without reading the messages, so never [`SessionState::Summarize`].
    #[must_use]
    pub fn state(&self, now: Timestamp) -> SessionState {
        if self.ended || is_idle(self.last_activity, now) {
            SessionState::Closed
        } else {
            SessionState::Active
        }
    }
}

/// The figures of a conversation as a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// State at the time of the query.
    pub state: SessionState,
    /// Time at which the first input was accepted. `None` without events.
    pub started_at: Option<Timestamp>,
    /// Time of the last event or input. `None` without events.
    pub last_activity: Option<Timestamp>,
    /// Number of turns that were started.
    pub turns: usize,
    /// Number of messages of people, models and tools in the history, including those of the open
    /// turn.
    pub messages: usize,
    /// Estimated size of the history that a model would be given, in tokens ([`estimate_tokens`]):
    /// summary and later messages, without instruction and tools.
    pub token_estimate: u32,
    /// Number of messages, from the beginning, that a summary replaces. `None`: there is no
    /// summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarized_at: Option<usize>,
}

/// Returns the figures of a conversation at `now`. From `summarize_from` tokens on it is to be
/// summarised; `None`: never.
#[must_use]
pub fn session(known: &Loaded, now: Timestamp, summarize_from: Option<u32>) -> Session {
    let Loaded { events, inbox } = known;
    let accepted = |recorded: &Recorded| match &*recorded.event {
        Event::TurnStarted { accepted_at, .. } => accepted_at.unwrap_or(recorded.at),
        _ => recorded.at,
    };
    let waiting = || inbox.iter().map(|input| input.at);
    let started_at = events.iter().map(accepted).chain(waiting()).min();
    let last_activity = events
        .iter()
        .map(|recorded| recorded.at)
        .chain(waiting())
        .max();
    let status = Status::from_events(events);
    let past = turn_history(events, None);
    let open_messages = status
        .turn
        .map_or_else(Vec::new, |turn| said_in(events, turn));
    let messages = past.from + past.messages.len() + open_messages.len();
    let summary = past.summary.as_ref();
    let token_estimate = past.messages.iter().chain(&open_messages).fold(
        summary.map_or(0, |summary| estimate_tokens(&summary.block())),
        |sum, message| sum.saturating_add(message_tokens(message, &estimate_tokens)),
    );
    // An input that waits or a turn that runs keeps the session open, however long it takes.
    let runs = !inbox.is_empty() || status.runs();
    let state = match last_activity {
        None => SessionState::Empty,
        Some(_) if runs => SessionState::Active,
        Some(last) if status.session_ended || is_idle(last, now) => SessionState::Closed,
        // For instance after an input that had nothing to act on.
        Some(_) if messages == 0 => SessionState::Empty,
        Some(_) if summarize_from.is_some_and(|from| token_estimate >= from) => {
            SessionState::Summarize
        }
        Some(_) => SessionState::Active,
    };
    Session {
        state,
        started_at,
        last_activity,
        turns: usize::try_from(status.turns).unwrap_or(usize::MAX),
        messages,
        token_estimate,
        summarized_at: past.summary.map(|summary| summary.summarized_at),
    }
}

fn is_idle(last: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last) >= SESSION_IDLE_MAX
}
