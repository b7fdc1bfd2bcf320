//! What a turn was given of its conversation, as its journal keeps it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a turn was given of its conversation, and what it took to read that. Recorded with the reply to its first model call, so
/// that whoever shows the turn need not read what came before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// How many messages of the conversation's history come before those that were given.
    pub from: usize,
    /// How many were given.
    pub messages: usize,
    /// The place of the [`ConversationSummarized`](crate::Event::ConversationSummarized) whose summary was given in front of them, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<u64>,
    /// How it was read. `None`: it was known from the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
}

/// How a conversation was claimed and its state was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// When the state was there.
    pub at: Timestamp,
    /// How long that took, in milliseconds: from the statement that claimed the conversation. Waiting for a claim that another
    /// worker had, and for statements before it, is no part of it.
    pub ms: u64,
    /// How many events were read. What the process remembered of the conversation it did not read.
    pub events: usize,
}
