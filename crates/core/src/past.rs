//! The part of a conversation that a turn was given, as its journal keeps it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The part of its conversation that a turn was given, and what it took to read that. Recorded with
/// the reply to its first model call, so that whoever shows the turn need not read what came
/// before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Number of messages of the conversation's history before those that were given.
    pub from: usize,
    /// Number of messages that were given.
    pub messages: usize,
    /// The place of the [`ConversationSummarized`](crate::Event::ConversationSummarized) whose
    /// summary was given in front of them, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<u64>,
    /// Time and events it took to read it. `None`: it was known from the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
}

/// Time and events it took to claim a conversation and to read its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// Time at which the state was there.
    pub at: Timestamp,
    /// Milliseconds that took, from the statement that claimed the conversation. Waiting for a
    /// claim that another worker had, and for statements before it, is no part of it.
    pub ms: u64,
    /// Number of events that were read, without those that the process remembered.
    pub events: usize,
}
