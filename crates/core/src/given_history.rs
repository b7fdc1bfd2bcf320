//! A record of the history that a turn started from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The part of the conversation that a turn was given, and the cost of reading it. Recorded with
/// the reply to the first model call, so that showing the turn needs no older events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenHistory {
    /// Number of messages of the history before the given ones.
    pub from: usize,
    /// Number of messages in the request's history.
    pub messages: usize,
    /// Sequence number of the [`ConversationSummarized`](crate::Event::ConversationSummarized)
    /// event whose summary was given, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<u64>,
    /// Cost of reading the state. `None`: it was in memory from the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
}

/// The cost of acquiring a lease and reading the state of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// Time at which the state was complete.
    pub at: Timestamp,
    /// Duration in milliseconds from the statement that acquired the lease, without waiting for
    /// another worker's lease.
    pub ms: u64,
    /// Number of events that were read from the store.
    pub events: usize,
}
