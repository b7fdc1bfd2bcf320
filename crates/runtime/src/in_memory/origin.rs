//! Where a branch begins.

use adjutant_core::ConversationId;
use adjutant_core::port::BranchPoint;

/// The place at which a conversation branches off another of the same user and agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) conversation: ConversationId,
    pub(super) seq: u64,
    /// Branches are numbered in the order in which they are made.
    pub(super) number: u64,
}

impl Origin {
    pub(super) fn point(self) -> BranchPoint {
        BranchPoint {
            conversation: self.conversation,
            seq: self.seq,
        }
    }
}
