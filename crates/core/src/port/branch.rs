use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, ConversationKey};

/// The position in another conversation at which a branch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchPoint {
    /// Conversation that the branch continues.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// Sequence number of the last common event. 0: there is none.
    pub seq: u64,
}

/// The arguments of [`ConversationStore::branch`](crate::port::ConversationStore::branch).
#[derive(Debug, Clone, Copy)]
pub struct Branching<'a> {
    /// Conversation whose history the branch begins with.
    pub from: &'a ConversationKey,
    /// Sequence number of the last event of that history. 0: the branch begins empty.
    pub seq: u64,
    /// Id of the new conversation.
    pub id: ConversationId,
    /// Time at which the branch is created.
    pub at: Timestamp,
}

/// The result of [`ConversationStore::branch`](crate::port::ConversationStore::branch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branched {
    /// The branch exists. The position names the conversation that recorded the event, which is an
    /// earlier one if the named conversation is a branch itself and begins later.
    At(BranchPoint),
    /// The user has no such conversation with the agent.
    NoSuchConversation,
    /// A turn is open at that position, or nothing has happened there yet. Nothing was created.
    NotBetweenTurns,
}

/// Conversations that share their events up to one position and differ after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternatives {
    /// Sequence number of the last common event; the first turn after it differs.
    pub seq: u64,
    /// Ids of these conversations, at least two, in the order of creation.
    pub conversations: Vec<ConversationId>,
    /// Index in [`Alternatives::conversations`] of the one that the conversation is, or descends
    /// from.
    pub current: usize,
}
