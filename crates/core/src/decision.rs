//! What a turn amounted to: its kind, its intent, its outcome, and the response that carries them.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::confirmation::{PendingCall, PendingKind};
use crate::cost::{self, Cost};
use crate::error::ModelError;
use crate::id::{ConversationId, TurnId};
use crate::model::Usage;
use crate::tool::{ToolCall, ToolInvocation};

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order in which they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in logs, JSON and HTTP.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == text)
                    .ok_or_else(|| UnknownWord(text.to_owned()))
            }
        }
    };
}

/// A word that names nothing of the list it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {0:?}")]
pub struct UnknownWord(pub String);

word_enum!(
    /// The strongest thing that happened in a turn.
    DecisionKind {
        /// Words only.
        RespondOnly = "RESPOND_ONLY",
        /// A tool was executed.
        InvokeTool = "INVOKE_TOOL",
        /// It ended in a question.
        AskClarification = "ASK_CLARIFICATION",
        /// A call waits for a human.
        RequestConfirmation = "REQUEST_CONFIRMATION",
        /// A call waits for its result, which the caller brings.
        AwaitResult = "AWAIT_RESULT",
        /// A human approved what waited, and it ran.
        ExecutePending = "EXECUTE_PENDING",
        /// A human refused what waited.
        CancelPending = "CANCEL_PENDING",
    }
);

word_enum!(
    /// The end of a turn, for logs and filters.
    OutcomeCategory {
        /// Answered in words.
        ResponseGiven = "SUCCESS:RESPONSE_GIVEN",
        /// Tools did what was asked.
        TaskCompleted = "SUCCESS:TASK_COMPLETED",
        /// A question went back.
        UnclearIntent = "AMBIGUITY:UNCLEAR_INTENT",
        /// Not what this agent is for.
        OutOfScope = "REFUSAL:OUT_OF_SCOPE",
        /// The provider's rate or quota.
        RateLimited = "REFUSAL:RATE_LIMITED",
        /// The model call failed.
        LlmFailure = "ERROR:LLM_FAILURE",
        /// A tool failed.
        ToolFailure = "ERROR:TOOL_FAILURE",
        /// Waits for a human.
        PendingConfirmation = "PENDING:CONFIRMATION",
        /// Waits for a result that the caller brings.
        PendingResult = "PENDING:RESULT",
        /// The caller brought no result of its own tool in time.
        NoResult = "INTERRUPTED:NO_RESULT",
        /// A human said no.
        ConfirmationDenied = "REFUSAL:CONFIRMATION_DENIED",
        /// Nobody answered in time.
        ConfirmationExpired = "REFUSAL:CONFIRMATION_EXPIRED",
        /// The provider filtered the answer.
        ContentFilter = "REFUSAL:CONTENT_FILTER",
        /// The bound of tool rounds.
        IterationsLimit = "LIMIT:ITERATIONS",
        /// The bound of output tokens.
        MaxTokensLimit = "LIMIT:MAX_TOKENS",
        /// The same call again and again.
        IdenticalCallsLimit = "LIMIT:IDENTICAL_CALLS",
        /// The turn took too long.
        DeadlineLimit = "LIMIT:DEADLINE",
        /// A budget was used up.
        BudgetLimit = "LIMIT:BUDGET",
        /// The request does not fit the model's window.
        ContextLimit = "LIMIT:CONTEXT",
        /// The person stopped it.
        Cancelled = "CANCELLED:BY_USER",
        /// A crash left open whether a tool did its work.
        InDoubt = "INTERRUPTED:IN_DOUBT",
        /// Its worker was lost again and again while it ran; it is not tried any more.
        Poisoned = "ERROR:POISONED",
    }
);

impl OutcomeCategory {
    /// Returns the category of a turn that waits for these calls: a doubt weighs more than a
    /// question, and that more than a result.
    #[must_use]
    pub fn waiting_for(pending: &[PendingCall]) -> Self {
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
        match OutcomeCategory::waiting_for(pending) {
            OutcomeCategory::PendingResult => Self::AwaitResult,
            _ => Self::RequestConfirmation,
        }
    }
}

/// What the person wanted, read from what the model chose. No second model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum UserIntent {
    /// A new task.
    CreateTask,
    /// To see tasks.
    ListTasks,
    /// Other words for a task.
    UpdateTask,
    /// A task done.
    CompleteTask,
    /// A task gone.
    DeleteTask,
    /// Talk.
    GeneralChat,
    /// Not clear.
    Ambiguous,
    /// Something this agent is not for.
    OutOfScope,
    /// "Yes" to what waits.
    ConfirmYes,
    /// "No" to what waits.
    ConfirmNo,
    /// Another tool, by its name.
    Tool(String),
}

impl UserIntent {
    /// The intent a call of this tool stands for.
    #[must_use]
    pub fn of_tool(name: &str) -> Self {
        match name {
            "add_task" => Self::CreateTask,
            "list_tasks" => Self::ListTasks,
            "update_task" => Self::UpdateTask,
            "complete_task" => Self::CompleteTask,
            "delete_task" => Self::DeleteTask,
            other => Self::Tool(other.to_owned()),
        }
    }

    /// The word in logs and JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::CreateTask => "CREATE_TASK",
            Self::ListTasks => "LIST_TASKS",
            Self::UpdateTask => "UPDATE_TASK",
            Self::CompleteTask => "COMPLETE_TASK",
            Self::DeleteTask => "DELETE_TASK",
            Self::GeneralChat => "GENERAL_CHAT",
            Self::Ambiguous => "AMBIGUOUS",
            Self::OutOfScope => "OUT_OF_SCOPE",
            Self::ConfirmYes => "CONFIRM_YES",
            Self::ConfirmNo => "CONFIRM_NO",
            Self::Tool(name) => name,
        }
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
            "CREATE_TASK" => Self::CreateTask,
            "LIST_TASKS" => Self::ListTasks,
            "UPDATE_TASK" => Self::UpdateTask,
            "COMPLETE_TASK" => Self::CompleteTask,
            "DELETE_TASK" => Self::DeleteTask,
            "GENERAL_CHAT" => Self::GeneralChat,
            "AMBIGUOUS" => Self::Ambiguous,
            "OUT_OF_SCOPE" => Self::OutOfScope,
            "CONFIRM_YES" => Self::ConfirmYes,
            "CONFIRM_NO" => Self::ConfirmNo,
            _ => Self::Tool(word),
        }
    }
}

/// What the turn decided. Source: seeds 000 and 001, `AgentDecision`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentDecision {
    /// The strongest thing that happened.
    pub kind: DecisionKind,
    /// What the person wanted, as the model's choice shows.
    pub intent: UserIntent,
    /// Words for the person.
    pub text: String,
    /// The calls the model asked for, in order, known or not.
    pub tool_calls: Vec<ToolCall>,
    /// Calls that wait for a human.
    pub pending: Vec<PendingCall>,
}

/// Something the person should know beside the answer: a cut, a dropped setting, a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// A stable word, such as `message_cut`.
    pub code: String,
    /// One sentence.
    pub text: String,
}

impl Notice {
    /// A part of a request that could not be sent as it was asked.
    #[must_use]
    pub fn not_sent(loss: impl Into<String>) -> Self {
        Self {
            code: "not_sent".to_owned(),
            text: loss.into(),
        }
    }

    /// Adds it to others, unless it is one of them: a person is told once a turn.
    pub(crate) fn join(self, others: &mut Vec<Self>) {
        if !others.contains(&self) {
            others.push(self);
        }
    }
}

/// The typed cause of a turn that did not simply succeed.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnError {
    /// The model call failed.
    #[error(transparent)]
    Model {
        /// How.
        #[serde(flatten)]
        error: ModelError,
    },
    /// A tool failed or a call of it was refused, and that was not made good: the tool did not
    /// succeed in a later round, nor, if it only reads, did any other.
    #[error("{tool}: {message}")]
    Tool {
        /// Which.
        tool: String,
        /// Its words.
        message: String,
    },
    /// The workers that ran it were lost, again and again.
    #[error("its worker was lost {times} times while it ran; it is not tried again")]
    Poisoned {
        /// How often.
        times: u32,
    },
    /// A bound was reached.
    #[error("{bound} reached: {value} (set {key})")]
    Limit {
        /// The bound's name.
        bound: String,
        /// Its value.
        value: String,
        /// The setting that changes it.
        key: String,
    },
}

impl TurnError {
    /// A stable word: a model error's code, `tool_failure`, `poisoned`, `budget_used_up`, or
    /// `limit_reached`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model { error } => error.code(),
            Self::Tool { .. } => "tool_failure",
            Self::Poisoned { .. } => "poisoned",
            Self::Limit { key, .. } if key.starts_with("budget.") => "budget_used_up",
            Self::Limit { .. } => "limit_reached",
        }
    }
}

/// What a turn gives back, whatever its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentResponse {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn, and the id of its decision in the log.
    pub turn: TurnId,
    /// Words for the person. Never empty.
    pub content: String,
    /// Calls of known tools whose arguments fitted: run, failed or denied.
    pub tools_used: Vec<ToolInvocation>,
    /// What was decided.
    pub decision: AgentDecision,
    /// How it ended.
    pub outcome: OutcomeCategory,
    /// The answer as JSON that fits its schema, if one was asked for and given; see
    /// [`AgentResponse::output`].
    #[serde(default)]
    pub output: Option<Value>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Money of all model calls that were answered. `None`: not known, and shown as `$?`. Zero:
    /// nothing was paid, as with a model on the user's own machine.
    #[serde(rename = "cost_usd", default, with = "cost::in_usd")]
    pub cost: Option<Cost>,
    /// The typed cause, if it did not simply succeed.
    pub error: Option<TurnError>,
    /// What else the person should know.
    pub notices: Vec<Notice>,
    /// Where the time went.
    pub timing: Timing,
}

/// Why a response holds no value of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The turn ended without a structured answer: it failed, asked something back, waits for a
    /// human, or no schema was set.
    #[error("the turn ended with {outcome} and gave no structured answer")]
    None {
        /// How it ended; the response has the words and the typed cause.
        outcome: OutcomeCategory,
    },
    /// The answer fits the schema that was sent, and the type does not take it.
    #[error("the answer is no {type_name}: {reason}")]
    Unreadable {
        /// The type.
        type_name: &'static str,
        /// Where and why.
        reason: String,
    },
}

impl AgentResponse {
    /// The structured answer as a Rust value.
    ///
    /// # Errors
    /// [`OutputError`]: there is none, or it is no `T`.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        let value = self.output.as_ref().ok_or(OutputError::None {
            outcome: self.outcome,
        })?;
        T::deserialize(value).map_err(|error| OutputError::Unreadable {
            type_name: std::any::type_name::<T>(),
            reason: error.to_string(),
        })
    }
}

/// Where the time of a turn went, in milliseconds of the run that ended it and those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// In model calls.
    pub model_ms: u64,
    /// In tools.
    pub tool_ms: u64,
    /// From the first event to the last, waiting for people included.
    pub total_ms: u64,
}
