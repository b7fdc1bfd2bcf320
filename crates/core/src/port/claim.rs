//! Who may work on a conversation.

/// What came of claiming a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Somebody alive has it, or there is no such conversation.
    Refused,
    /// It was free, or this worker had it already.
    Granted,
    /// Another worker had it and did not give it back: it died, or stood still for longer than its
    /// claim.
    TakenOver,
}

impl Claim {
    /// Returns whether the worker has the conversation now.
    #[must_use]
    pub fn is_held(self) -> bool {
        self != Self::Refused
    }
}
