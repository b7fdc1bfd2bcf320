use adjutant_core::{
    AgentName, CancellationToken, ConversationId, ConversationKey, InputId, Message, PendingCall,
    TraceContext, UserId,
};
use uuid::Uuid;

/// Everything a turn knows beside its input: who asks, in which conversation, what was said, what
/// waits.
///
/// The engine keeps no state of its own between turns. A context can be kept, cloned, or loaded
/// from the journal with [`crate::Agent::context`].
#[derive(Debug, Clone)]
pub struct RunContext {
    /// For whom. Comes from authentication, never from a model.
    pub user: UserId,
    /// Which conversation.
    pub conversation: ConversationId,
    /// Messages said before, without an instruction. Each run appends both sides. It may be left
    /// empty for a conversation that the journal knows, which is then what counts;
    /// [`crate::Agent::context`] fills it with those that the next request begins with, and so does
    /// a run if others went on with the conversation meanwhile.
    pub history: Vec<Message>,
    /// Calls that wait for a human.
    pub pending: Vec<PendingCall>,
    /// Fires to stop the running turn.
    pub cancelled: CancellationToken,
    /// The HTTP request the input comes with, if it comes with one. It is written into the decision
    /// log.
    pub request_id: Option<String>,
    /// A hash of the request the input comes with, where its client names the request: see
    /// [`Input::fingerprint`](adjutant_core::Input::fingerprint).
    pub fingerprint: Option<String>,
    /// The trace that the input belongs to. Models over HTTP and MCP servers that its turn asks get
    /// it handed on. It is written nowhere: a turn that another process goes on with has none.
    /// `None`: no trace.
    pub trace: Option<TraceContext>,
}

/// Calls that their callers name have their conversations in this namespace.
const CALLS: Uuid = Uuid::from_u128(0x4f0e_2a6d_7b1c_4e83_9d55_c80a_61f2_3e97);

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
            fingerprint: None,
            trace: None,
        }
    }

    /// Returns the context of one call without a model ([`crate::Agent::call_tool`]): a
    /// conversation of its own, which lists of conversations leave out. The same `name` of the same
    /// user is the same conversation.
    #[must_use]
    pub fn for_call(user: UserId, name: Option<&InputId>) -> Self {
        let unique = match name {
            Some(name) => Uuid::new_v5(&CALLS, name.as_str().as_bytes()),
            None => Uuid::now_v7(),
        };
        let conversation = ConversationId::of_request(unique.into_bytes());
        Self {
            conversation,
            ..Self::new(user)
        }
    }

    /// The same with a history from elsewhere. It is checked before anything is accepted
    /// ([`check_history`](adjutant_core::check_history)).
    #[must_use]
    pub fn with_history(mut self, history: Vec<Message>) -> Self {
        self.history = history;
        self
    }

    /// Returns the key under which stores keep the conversation with `agent`. See
    /// [`crate::Agent::key`].
    #[must_use]
    pub fn key(&self, agent: &AgentName) -> ConversationKey {
        ConversationKey {
            agent: agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }
}

impl Default for RunContext {
    /// A new conversation of the one user of a machine without authentication.
    fn default() -> Self {
        Self::new(UserId::local())
    }
}
