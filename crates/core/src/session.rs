//! Where a conversation stands as a person's session: since when, until when, how long it has
//! grown, whether it is over.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::conversation;
use crate::conversation::{Status, recalled};
use crate::event::{Event, Recorded};
use crate::port::{ConversationSummary, Loaded};
use crate::turn::{estimate_tokens, message_tokens, replay};

/// A session in which nothing has happened for this long is over.
pub const SESSION_IDLE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing has been said.
    Empty,
    /// It goes on.
    Active,
    /// It goes on, and has grown so long that it is to be summarized.
    Summarize,
    /// The person ended it, or nothing has happened in it for [`SESSION_IDLE_MAX`]. The next input
    /// opens it again.
    Closed,
}

impl SessionState {
    /// The word people and programs read.
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
    /// Its state as far as a list knows it: never [`SessionState::Summarize`], for which its
    /// messages have to be read.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> SessionState {
        if self.ended || is_idle(self.last_activity, now) {
            SessionState::Closed
        } else {
            SessionState::Active
        }
    }
}

/// A conversation as a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Where it stands.
    pub state: SessionState,
    /// When its first input was accepted. `None`: nothing has been said.
    pub started_at: Option<Timestamp>,
    /// When anything last happened in it. `None`: nothing has been said.
    pub last_activity: Option<Timestamp>,
    /// Turns that were begun.
    pub turns: usize,
    /// Messages of people, models and tools, as the history of the conversation holds them; those
    /// of the turn that is open as far as it came.
    pub messages: usize,
    /// What a model would be given of them, in tokens, by [`estimate_tokens`]: the summary and what
    /// was said since. Instruction and tools are not in it.
    pub token_estimate: u32,
    /// How many messages of the conversation, from its beginning, a summary stands for. `None`: it
    /// was not summarized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarized_at: Option<usize>,
}

/// What everything known of a conversation adds up to at `now`. With so many tokens,
/// `summarize_from`, it is to be summarized; `None`: never.
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
    let past = recalled(events, None);
    let open = conversation::open_turn(events).and_then(|turn| replay(events, turn));
    let said_now = open.map(|open| open.messages).unwrap_or_default();
    let messages = past.from + past.messages.len() + said_now.len();
    let summary = past
        .summary
        .as_ref()
        .map_or(0, |summary| estimate_tokens(&summary.block()));
    let token_estimate = past
        .messages
        .iter()
        .chain(&said_now)
        .fold(summary, |sum, message| {
            sum.saturating_add(message_tokens(message, &estimate_tokens))
        });
    let turns = events
        .iter()
        .filter(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }))
        .count();
    let ended = events
        .last()
        .is_some_and(|last| matches!(*last.event, Event::SessionEnded {}));
    // What was accepted and not begun, or has begun and neither ended nor waits, is not over
    // however long it takes.
    let runs = !inbox.is_empty() || Status::of(events).runs();
    let state = match last_activity {
        None => SessionState::Empty,
        Some(_) if runs => SessionState::Active,
        Some(last) if ended || is_idle(last, now) => SessionState::Closed,
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
        turns,
        messages,
        token_estimate,
        summarized_at: past.summary.map(|summary| summary.summarized_at),
    }
}

fn is_idle(last: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last) >= SESSION_IDLE_MAX
}
