//! Notifications about conversations, so that waiting needs no polling.

use crate::BoxFuture;
use crate::id::ConversationKey;

/// A change of a conversation, made by this or another process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An input was accepted in a conversation whose lease a worker holds, or may hold.
    Input(ConversationKey),
    /// The lease of the conversation was released.
    Free(ConversationKey),
    /// Some notifications were lost: everything that is waited for has to be read again.
    Missed,
}

/// A subscription to the changes of a journal, made by
/// [`Journal::changes`](super::Journal::changes).
pub trait Changes: Send {
    /// Waits for the next change. Returns `None` when there will be no more. Cancel safe: dropping
    /// the future loses no change.
    fn next(&mut self) -> BoxFuture<'_, Option<Change>>;
}
