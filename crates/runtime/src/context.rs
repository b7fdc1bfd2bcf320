use adjutant_core::{CancellationToken, ConversationId, ConversationKey, Message, PendingCall, UserId};
use uuid::Uuid;

/// Everything a turn knows beside its input: who asks, in which conversation, what was said, what waits.
///
/// The engine keeps no state of its own between turns. A context can be kept, cloned, or loaded from the journal with
/// [`crate::Agent::context`].
#[derive(Debug, Clone)]
pub struct RunContext {
    /// For whom. Comes from authentication, never from a model.
    pub user: UserId,
    /// Which conversation.
    pub conversation: ConversationId,
    /// What was said before, without an instruction. Each run appends both sides.
    pub history: Vec<Message>,
    /// Calls that wait for a human.
    pub pending: Vec<PendingCall>,
    /// Fires to stop the running turn.
    pub cancelled: CancellationToken,
    /// The HTTP request the input comes with, if it comes with one. It is written into the decision log.
    pub request_id: Option<String>,
}

impl RunContext {
    /// A new conversation of `user`.
    #[must_use]
    pub fn new(user: UserId) -> Self {
        Self {
            user,
            conversation: ConversationId(Uuid::now_v7()),
            history: Vec::new(),
            pending: Vec::new(),
            cancelled: CancellationToken::new(),
            request_id: None,
        }
    }

    /// The same with a history from elsewhere.
    #[must_use]
    pub fn with_history(mut self, history: Vec<Message>) -> Self {
        self.history = history;
        self
    }

    /// Owner and conversation, as stores look things up.
    #[must_use]
    pub fn key(&self) -> ConversationKey {
        ConversationKey { user: self.user.clone(), conversation: self.conversation }
    }
}

impl Default for RunContext {
    /// A new conversation of the one user of a machine without authentication.
    fn default() -> Self {
        Self::new(UserId::local())
    }
}
