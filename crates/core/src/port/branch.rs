use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, ConversationKey};

/// The place in another conversation at which a branch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchPoint {
    /// The conversation that the branch goes on from.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The place of the last event that the branch has in common with it. 0: they have none in
    /// common.
    pub seq: u64,
}

/// A request to make a branch, for
/// [`ConversationStore::branch`](crate::port::ConversationStore::branch).
#[derive(Debug, Clone, Copy)]
pub struct Branching<'a> {
    /// The conversation whose history the branch begins with.
    pub from: &'a ConversationKey,
    /// The place of the last event of that history. 0: the branch begins with nothing.
    pub seq: u64,
    /// The id of the branch.
    pub id: ConversationId,
    /// The time at which it is made.
    pub at: Timestamp,
}

/// What became of a request to make a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branched {
    /// The branch is there, and begins at this place: of the conversation that recorded the event
    /// at it, which is not the one that was named if that is a branch itself and begins later.
    At(BranchPoint),
    /// The user has no such conversation with the agent.
    NoSuchConversation,
    /// A turn is open at that place, or nothing has happened there yet. Nothing was made.
    NotBetweenTurns,
}

/// Conversations that go on differently from one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternatives {
    /// The last place that they have in common. The first turn behind it is where they differ.
    pub seq: u64,
    /// All of them, at least two, in the order in which they were begun.
    pub conversations: Vec<ConversationId>,
    /// Which of them the conversation is, or comes from: an index of
    /// [`Alternatives::conversations`].
    pub current: usize,
}
