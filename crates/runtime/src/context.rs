//! [`RunContext`]: the user, the conversation and the history that a run belongs to.

use adjutant_core::{
    AgentName, CancellationToken, ConversationId, ConversationKey, InputId, Message, PendingCall,
    TraceContext, UserId,
};
use jiff::tz::TimeZone;
use uuid::Uuid;

/// The user, conversation, history and pending calls of a run: everything beside its input.
///
/// The runtime keeps no state between runs that a caller depends on. A context can be kept, cloned,
/// or loaded from the journal with [`Agent::context`](crate::Agent::context).
///
/// # Examples
///
/// ```
/// use adjutant_core::UserId;
/// use adjutant_providers::scripted::{ScriptedModel, text};
/// use adjutant_runtime::{Agent, RunContext};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let agent = Agent::builder("helper")
///     .model(ScriptedModel::new([text("Hello."), text("You said hi.")]))
///     .instruction("Be brief.")
///     .build()?;
/// let mut context = RunContext::new(UserId::new("ann")?);
/// agent.run_in(&mut context, "Hi.").await?;
/// agent.run_in(&mut context, "What did I say?").await?;
/// assert_eq!(context.history.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The user whom the conversation belongs to. Comes from authentication, never from a model.
    pub user: UserId,
    /// Id of the conversation; unique per user and agent.
    pub conversation: ConversationId,
    /// Earlier messages, without an instruction. Each run appends both sides. It may be left empty
    /// for a conversation that the journal knows, which then decides;
    /// [`Agent::context`](crate::Agent::context) fills it with the messages that the next request
    /// begins with, and so does a run if another process continued the conversation in between.
    pub history: Vec<Message>,
    /// True if the history holds text of others, or a model wrote some of it after reading such text:
    /// calls that are not in the user's own words are then confirmed. Results of tools say so
    /// themselves; set it for documents and answers that came from elsewhere. Each run brings it up
    /// to date.
    pub history_is_from_others: bool,
    /// Calls that wait for a confirmation or a result, as the caller was shown them. A message that
    /// answers none of them is then dropped as an unclear answer; from a caller without them it is
    /// queued until they are answered ([`Disposition`](adjutant_core::Disposition)).
    pub pending: Vec<PendingCall>,
    /// False if the caller may not answer pending calls, because it is a program and not the person
    /// who was asked: an input that would is refused ([`RunError::MayNotAnswer`](crate::RunError::MayNotAnswer)).
    /// Results of client-side tools are no such answers. What such a caller says is none of the
    /// person's words, and what it writes is text of others. Default true.
    pub may_answer: bool,
    /// Stops the running turn when it is cancelled. The run then returns at once, with
    /// [`OutcomeCategory::Cancelled`](adjutant_core::OutcomeCategory::Cancelled). Calls that only
    /// read are dropped; one with an effect goes on in the background until it ends or its time is
    /// up, the response names it, and the next input of the conversation runs after it. If the
    /// process ends first, the call is in doubt ([`Agent::calls_ended`](crate::Agent::calls_ended)
    /// waits for it).
    pub cancelled: CancellationToken,
    /// The HTTP request the input came with, for the decision log. `None`: not over HTTP.
    pub request_id: Option<String>,
    /// A hash of the request the input came with, if its client sent an idempotency key: see
    /// [`Input::fingerprint`](adjutant_core::Input::fingerprint).
    pub fingerprint: Option<String>,
    /// The distributed trace that the input belongs to; passed on to models over HTTP and to MCP
    /// servers. It is not stored: a turn that another process continues has none.
    pub trace: Option<TraceContext>,
    /// The person's time zone. Their message is then sent to the model, now and in later turns, with
    /// its local time in front. A zone without a name of the IANA database counts as unknown. `None`:
    /// the stored one ([`AgentBuilder::user_settings`](crate::AgentBuilder::user_settings)); without
    /// it the model is told no time.
    pub time_zone: Option<TimeZone>,
}

/// Namespace of the conversation ids that [`RunContext::for_call`] derives from a name.
const CALLS: Uuid = Uuid::from_u128(0x4f0e_2a6d_7b1c_4e83_9d55_c80a_61f2_3e97);

impl RunContext {
    /// Returns the context of a new conversation of `user`.
    #[must_use]
    pub fn new(user: UserId) -> Self {
        Self {
            user,
            conversation: ConversationId(Uuid::now_v7()),
            history: Vec::new(),
            history_is_from_others: false,
            pending: Vec::new(),
            may_answer: true,
            cancelled: CancellationToken::new(),
            request_id: None,
            fingerprint: None,
            trace: None,
            time_zone: None,
        }
    }

    /// Returns the context of one call without a model
    /// ([`Agent::call_tool`](crate::Agent::call_tool)). It has a conversation of its own, which is
    /// left out of lists. The same `name` of the same user is the same conversation, so that a
    /// repeated call is recognised.
    #[must_use]
    pub fn for_call(user: UserId, name: Option<&InputId>) -> Self {
        let unique = match name {
            // A hash of the name, so that every process finds the same conversation without a
            // lookup.
            Some(name) => Uuid::new_v5(&CALLS, name.as_str().as_bytes()),
            None => Uuid::now_v7(),
        };
        let conversation = ConversationId::of_request(unique.into_bytes());
        Self {
            conversation,
            ..Self::new(user)
        }
    }

    /// Returns the context with a history from elsewhere. The history is checked before an input is
    /// accepted ([`check_history`](adjutant_core::check_history)).
    #[must_use]
    pub fn with_history(mut self, history: Vec<Message>) -> Self {
        self.history = history;
        self
    }

    /// Returns the key under which stores keep the conversation with `agent`. See
    /// [`Agent::key`](crate::Agent::key).
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
    /// Returns a new conversation of the local user, for programs without authentication.
    fn default() -> Self {
        Self::new(UserId::local())
    }
}
