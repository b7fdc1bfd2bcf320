//! Results of acquiring the lease of a conversation.

/// The result of [`Journal::claim`](super::Journal::claim).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Another live worker holds the lease, or the conversation does not exist.
    Refused,
    /// The lease was free, or this worker held it already.
    Granted,
    /// The lease was taken from a worker that did not release it: one that died, or was suspended
    /// past its expiry.
    TakenOver,
}

impl Claim {
    /// Returns true if the worker holds the lease now.
    #[must_use]
    pub fn is_held(self) -> bool {
        self != Self::Refused
    }
}
