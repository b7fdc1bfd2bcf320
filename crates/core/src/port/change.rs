//! News of conversations, for those that wait for something to happen in them.

use crate::BoxFuture;
use crate::id::ConversationKey;

/// A change of a conversation, made by this process or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An input was accepted while a worker has the conversation, or may have it.
    Input(ConversationKey),
    /// The claim was given back.
    Free(ConversationKey),
    /// Some changes were not told: whoever waits has to look.
    Missed,
}

/// The news of a journal from the moment they were asked for, see
/// [`Journal::changes`](super::Journal::changes).
pub trait Changes: Send {
    /// Waits for the next change. `None`: there will be none any more. Nothing is lost if the
    /// future is dropped before it is ready.
    fn next(&mut self) -> BoxFuture<'_, Option<Change>>;
}
