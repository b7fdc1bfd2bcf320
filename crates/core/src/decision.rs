//! The decision of a turn: its kind, the user's intent, the outcome, and the response with all of
//! them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Exceeded;
use crate::confirmation::{PendingCall, PendingKind};
use crate::cost::{self, Cost};
use crate::error::ModelError;
use crate::id::{ConversationId, TurnId};
use crate::limit_name::LimitName;
use crate::model::Usage;
use crate::names::impl_names;
use crate::output::as_type;
use crate::tool::{ToolCall, ToolInvocation};

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl_names!($name, UnknownWord { $($variant = $word),+ });
    };
}

/// A word that is none of the enum's values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {0:?}")]
pub struct UnknownWord(pub String);

word_enum!(
    /// The strongest thing that happened in a turn.
    DecisionKind {
        /// The model answered in text, without calls.
        RespondOnly = "RESPOND_ONLY",
        /// At least one tool was executed.
        InvokeTool = "INVOKE_TOOL",
        /// The turn ended with a question.
        AskClarification = "ASK_CLARIFICATION",
        /// A call waits for a person's confirmation.
        RequestConfirmation = "REQUEST_CONFIRMATION",
        /// A call waits for its result, which the caller brings.
        AwaitResult = "AWAIT_RESULT",
        /// A person approved a pending call, and it ran.
        ExecutePending = "EXECUTE_PENDING",
        /// A person denied a pending call.
        CancelPending = "CANCEL_PENDING",
    }
);

word_enum!(
    /// The outcome of a turn, for logs and filters.
    OutcomeCategory {
        /// The model answered in text.
        ResponseGiven = "SUCCESS:RESPONSE_GIVEN",
        /// At least one tool did what was asked for; [`AgentResponse::failed_calls`] has the calls
        /// that failed beside it.
        TaskCompleted = "SUCCESS:TASK_COMPLETED",
        /// The user was asked a question.
        UnclearIntent = "AMBIGUITY:UNCLEAR_INTENT",
        /// The request is not one that this agent is for.
        OutOfScope = "REFUSAL:OUT_OF_SCOPE",
        /// The provider's rate limit or quota was reached.
        RateLimited = "REFUSAL:RATE_LIMITED",
        /// The model call failed.
        LlmFailure = "ERROR:LLM_FAILURE",
        /// Tool calls failed, and none succeeded.
        ToolFailure = "ERROR:TOOL_FAILURE",
        /// A call waits for a person's confirmation.
        PendingConfirmation = "PENDING:CONFIRMATION",
        /// A call waits for a result that the caller brings.
        PendingResult = "PENDING:RESULT",
        /// The caller brought no result of its tool in time.
        NoResult = "INTERRUPTED:NO_RESULT",
        /// A person denied the call.
        ConfirmationDenied = "REFUSAL:CONFIRMATION_DENIED",
        /// The confirmation expired without an answer.
        ConfirmationExpired = "REFUSAL:CONFIRMATION_EXPIRED",
        /// The provider filtered the answer.
        ContentFilter = "REFUSAL:CONTENT_FILTER",
        /// The bound of tool rounds was reached.
        IterationsLimit = "LIMIT:ITERATIONS",
        /// The bound of output tokens was reached.
        MaxTokensLimit = "LIMIT:MAX_TOKENS",
        /// The same call was made too often.
        IdenticalCallsLimit = "LIMIT:IDENTICAL_CALLS",
        /// The turn took longer than its deadline.
        DeadlineLimit = "LIMIT:DEADLINE",
        /// A budget was used up.
        BudgetLimit = "LIMIT:BUDGET",
        /// The request does not fit the model's context window.
        ContextLimit = "LIMIT:CONTEXT",
        /// The user stopped the turn.
        Cancelled = "CANCELLED:BY_USER",
        /// A crash left open whether a call was carried out.
        InDoubt = "INTERRUPTED:IN_DOUBT",
        /// Its workers were lost again and again while they ran it; it is not tried any more.
        Poisoned = "ERROR:POISONED",
    }
);

impl OutcomeCategory {
    /// Returns the category of a turn that waits for these calls: a call in doubt outweighs a
    /// confirmation, and that a result.
    #[must_use]
    pub fn waiting_for(pending: &[PendingCall]) -> Self {
        // A doubt is about what may have happened already, so it outweighs what has not begun.
        let any = |kind| pending.iter().any(|call| call.kind() == kind);
        if any(PendingKind::Doubt) {
            Self::InDoubt
        } else if any(PendingKind::Confirmation) || pending.is_empty() {
            Self::PendingConfirmation
        } else {
            Self::PendingResult
        }
    }
}

impl DecisionKind {
    /// Returns the decision of a turn that waits for these calls: [`Self::AwaitResult`] if all of
    /// them await results.
    #[must_use]
    pub fn waiting_for(pending: &[PendingCall]) -> Self {
        // One rule for both, so that kind and outcome of a waiting turn cannot disagree.
        match OutcomeCategory::waiting_for(pending) {
            OutcomeCategory::PendingResult => Self::AwaitResult,
            _ => Self::RequestConfirmation,
        }
    }
}

/// The user's intent, as the model's choice shows it; no model is asked for it.
///
/// Stored and shown as one word, such as `GENERAL_CHAT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum UserIntent {
    /// A conversation without tools.
    GeneralChat,
    /// A request that is not clear, so that the model asked back.
    Ambiguous,
    /// A request that this agent is not for.
    OutOfScope,
    /// Approval of a pending call.
    ConfirmYes,
    /// Denial of a pending call.
    ConfirmNo,
    /// A request that a tool serves: the intent that its definition names
    /// ([`ToolDefinition::intent`](crate::ToolDefinition::intent)).
    Tool(String),
}

impl UserIntent {
    /// Returns the word in logs and JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::GeneralChat => "GENERAL_CHAT",
            Self::Ambiguous => "AMBIGUOUS",
            Self::OutOfScope => "OUT_OF_SCOPE",
            Self::ConfirmYes => "CONFIRM_YES",
            Self::ConfirmNo => "CONFIRM_NO",
            Self::Tool(intent) => intent,
        }
    }
}

impl From<&PendingCall> for UserIntent {
    fn from(call: &PendingCall) -> Self {
        Self::Tool(call.intent.as_ref().unwrap_or(&call.tool).clone())
    }
}

impl From<UserIntent> for String {
    fn from(intent: UserIntent) -> Self {
        intent.as_str().to_owned()
    }
}

impl From<String> for UserIntent {
    fn from(word: String) -> Self {
        match word.as_str() {
            "GENERAL_CHAT" => Self::GeneralChat,
            "AMBIGUOUS" => Self::Ambiguous,
            "OUT_OF_SCOPE" => Self::OutOfScope,
            "CONFIRM_YES" => Self::ConfirmYes,
            "CONFIRM_NO" => Self::ConfirmNo,
            // Intents are the tools' own, so every other word is one.
            _ => Self::Tool(word),
        }
    }
}

/// The decision of a turn, as the log and the API show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentDecision {
    /// The strongest thing that happened in the turn.
    pub kind: DecisionKind,
    /// The user's intent, as the model's choice of tools shows it.
    pub intent: UserIntent,
    /// The text for the user.
    pub text: String,
    /// The calls that the model asked for, in order, known or not.
    pub tool_calls: Vec<ToolCall>,
    /// The calls that wait for a person.
    pub pending: Vec<PendingCall>,
}

/// A notice for the user beside the answer: a cut, a dropped setting, a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// A stable word, such as `message_cut`.
    pub code: String,
    /// One sentence for the user.
    pub text: String,
}

impl Notice {
    /// Creates a notice from its code, such as `message_cut`, and its sentence.
    #[must_use]
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            text: text.into(),
        }
    }

    /// Creates the notice for a part of a request that could not be sent as it was asked.
    #[must_use]
    pub fn not_sent(loss: impl Into<String>) -> Self {
        Self::new("not_sent", loss)
    }

    /// Adds the notice to others, unless it is one of them: the user reads it once in a turn.
    pub(crate) fn join(self, others: &mut Vec<Self>) {
        if !others.contains(&self) {
            others.push(self);
        }
    }
}

/// The typed cause of a turn that did not simply succeed.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
// Beside the code of a model error, which is flattened into the same object.
#[serde(tag = "source", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnError {
    /// The model call failed, and no other model answered.
    #[error(transparent)]
    Model {
        /// The error of the model call.
        #[serde(flatten)]
        error: ModelError,
    },
    /// A tool failed or a call of it was refused, and no call succeeded. The last of the
    /// [`FailedCall`]s.
    #[error("{tool}: {message}")]
    Tool {
        /// The name of the tool.
        tool: String,
        /// The message of the tool or of the gate.
        message: String,
    },
    /// The workers that ran the turn were lost again and again.
    #[error("its worker was lost {times} times while it ran; it is not tried again")]
    Poisoned {
        /// Number of workers that were lost.
        times: u32,
    },
    /// A bound of the turn was reached.
    #[error("{limit} reached: {value}")]
    Limit {
        /// The name of the bound.
        #[serde(rename = "bound")]
        limit: LimitName,
        /// The bound's value, with its unit.
        value: String,
        /// The setting that changes the bound, as versions stored it that knew settings. `None` in
        /// every new error: the caller knows its settings.
        #[serde(rename = "key", default, skip_serializing_if = "Option::is_none")]
        stored_setting: Option<String>,
    },
}

impl TurnError {
    /// Returns a stable word: a model error's code, `tool_failure`, `poisoned`, `budget_used_up`,
    /// or `limit_reached`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model { error } => error.code(),
            Self::Tool { .. } => "tool_failure",
            Self::Poisoned { .. } => "poisoned",
            Self::Limit {
                limit: LimitName::Budget { .. },
                ..
            } => "budget_used_up",
            Self::Limit { .. } => "limit_reached",
        }
    }
}

impl From<Exceeded> for TurnError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit {
            limit: LimitName::Budget {
                scope: exceeded.scope,
                quantity: exceeded.quantity,
            },
            value: exceeded.value(),
            stored_setting: None,
        }
    }
}

/// A call that failed or was refused, and that no later success replaced: the tool did not succeed
/// in a later round, nor, if it only reads, did any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCall {
    /// Name of the tool, as the model called it.
    pub tool: String,
    /// The step that failed and the reason, in words for the person.
    pub message: String,
}

/// The fate of an input at the moment of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// A turn of its own ran, and the response is that of this turn.
    #[default]
    Ran,
    /// It was accepted, and runs after the turn that is open now. It need not be sent again. The
    /// response is the question that the open turn waits with.
    Queued,
    /// It was read as the answer to a question, or it stopped the open turn. The response is that
    /// of this turn.
    Answered,
    /// It never runs, and changed nothing: it was no usable answer to the question that its sender
    /// had been asked, or there was nothing left to answer.
    Dropped,
}

/// The response of a turn, whatever its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentResponse {
    /// The conversation that the turn belongs to.
    pub conversation: ConversationId,
    /// The id of the turn, and of its decision in the log.
    pub turn: TurnId,
    /// The text for the user. Never empty.
    pub content: String,
    /// Calls of known tools with valid arguments: executed, failed or denied.
    pub tools_used: Vec<ToolInvocation>,
    /// The calls that failed, also in a turn that succeeded otherwise.
    #[serde(default)]
    pub failed_calls: Vec<FailedCall>,
    /// The decision of the turn, with the calls that the model asked for.
    pub decision: AgentDecision,
    /// The category of the turn's end.
    pub outcome: OutcomeCategory,
    /// The fate of the input that the response was asked for.
    #[serde(default)]
    pub disposition: Disposition,
    /// The answer as JSON that fits its schema, if one was asked for and given; see
    /// [`AgentResponse::output`].
    #[serde(default)]
    pub output: Option<Value>,
    /// Tokens of all model calls together.
    pub usage: Usage,
    /// Money of all model calls that were answered. `None`: not known, and shown as `$?`. Zero:
    /// nothing was paid, as with a model on the user's own machine.
    #[serde(rename = "cost_usd", default, with = "cost::in_usd")]
    // Dollars outside of the journal, where programs of others read it.
    pub cost: Option<Cost>,
    /// The typed cause, if the turn did not simply succeed.
    pub error: Option<TurnError>,
    /// Notices for the user beside the answer.
    pub notices: Vec<Notice>,
    /// Time of the turn by where it was spent.
    pub timing: Timing,
}

/// A response that holds no value of the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The turn ended without a structured answer: it failed, asked back, waits for a person, or no
    /// schema was set.
    #[error("the turn ended with {outcome} and gave no structured answer")]
    None {
        /// The category of the turn's end; the response has the text and the typed cause.
        outcome: OutcomeCategory,
    },
    /// The answer fits the schema that was sent, and the Rust type does not take it.
    #[error("the answer is no {type_name}: {reason}")]
    Unreadable {
        /// The name of the Rust type.
        type_name: &'static str,
        /// The place in the JSON, and the reason.
        reason: String,
    },
}

impl AgentResponse {
    /// Deserialises the structured answer.
    ///
    /// # Errors
    /// [`OutputError`] if there is no such answer, or it is no `T`.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        let value = self.output.as_ref().ok_or(OutputError::None {
            outcome: self.outcome,
        })?;
        as_type(value).map_err(|error| OutputError::Unreadable {
            type_name: std::any::type_name::<T>(),
            reason: error.to_string(),
        })
    }
}

/// Time of a turn by where it was spent, in milliseconds, over all runs of the turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Time in model calls, in milliseconds.
    pub model_ms: u64,
    /// Time in tool calls, in milliseconds.
    pub tool_ms: u64,
    /// Time from the first event to the last, in milliseconds, waiting for people included.
    pub total_ms: u64,
}
