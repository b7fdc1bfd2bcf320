//! The input and output of a turn: its setup, the actions that it asks for, and errors of its
//! driver.

use crate::budget::Exceeded;
use crate::confirmation::PendingCall;
use crate::event::{RecalledText, RequestedCall, TurnEnd};
use crate::id::{ModelId, TurnId};
use crate::limits::TurnLimits;
use crate::model::{GenerateRequest, GenerationConfig, SchemaSupport};
use crate::output::OutputSchema;
use crate::summary::TurnHistory;
use crate::tool::ToolCall;
use crate::tool_choice::ToolChoice;
use crate::tool_set::ToolSet;

/// The way in which a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStyle {
    /// The model calls tools freely, sees the results, and writes the answer.
    Native,
    /// The model chooses actions once (constrained tool calling); the answer is made of the tools'
    /// own descriptions.
    OneRound,
}

/// Everything that a turn starts from.
#[derive(Debug, Clone)]
pub struct TurnSetup {
    /// Id of the new turn.
    pub turn: TurnId,
    /// Model that the turn calls.
    pub model: ModelId,
    /// Instruction of the agent. Blank: none is sent.
    pub instruction: String,
    /// History that the turn is given.
    pub recalled: TurnHistory,
    /// Call that a person requests. `Some`: the turn makes it and ends, without a model.
    pub call: Option<RequestedCall>,
    /// The person's message, truncated to the limit.
    pub message: String,
    /// Length of the original message, in Unicode characters.
    pub message_chars: usize,
    /// Local time at which the person sent the message, with its zone. It stays in front of the
    /// message in later turns. `None`: not known.
    pub sent_at: Option<String>,
    /// Texts that automatic recall attached to the message. They stay there in later turns.
    pub recalled_texts: Vec<RecalledText>,
    /// Tools that the model may call.
    pub tools: ToolSet,
    /// Tool choice until results of the caller's tools bring another one.
    pub choice: ToolChoice,
    /// Context from the caller, in front of the message. Blank: none.
    pub context: String,
    /// True if [`ASK_USER`](super::ASK_USER) and [`DECLINE`](super::DECLINE) are offered together
    /// with tools.
    pub control_functions: bool,
    /// True if an answer after failed calls says which failed and why, in the tools' words, and
    /// the turn is a failure if no call succeeded. False: the model's answer and its meaning
    /// stand.
    pub reports_failed_calls: bool,
    /// Returns true if a text says that something was changed or will be. Where the model says so
    /// and nothing was changed, a notice tells the person, and with
    /// [`reports_failed_calls`](Self::reports_failed_calls) the words of failed calls stand in the
    /// place of the text. `None`: texts are not checked.
    pub claims_change: Option<fn(&str) -> bool>,
    /// Sampling settings and output limit.
    pub config: GenerationConfig,
    /// Limits that the turn runs under.
    pub limits: TurnLimits,
    /// The way in which the model calls tools.
    pub style: ToolStyle,
    /// Schema of the final answer, if one is required. Questions and refusals of the model need not
    /// fit it.
    pub output: Option<OutputSchema>,
    /// The model's native support for such a schema; without it the schema is at the end of the
    /// instruction.
    pub schema_support: SchemaSupport,
}

/// The next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this request to the model.
    // Boxed: actions are moved about, and a request is five times the size of the others.
    CallModel(Box<GenerateRequest>),
    /// Pass these calls through the gate in order, and execute those that may run.
    CallTools(Vec<ToolCall>),
    /// Wait for a person or for results from the caller. Nothing is held meanwhile.
    AskUser {
        /// Calls that wait for a person or the caller.
        pending: Vec<PendingCall>,
        /// Question for the person.
        content: String,
    },
    /// The turn is over, with this end.
    Finish(Box<TurnEnd>),
}

/// The reason for which a turn is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The person or their client cancelled it.
    Cancelled,
    /// The turn's deadline has passed.
    Deadline,
    /// The next step could have exceeded a budget.
    Budget(Exceeded),
}

/// The error for an arrival that the turn does not wait for: a bug of its driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{input} arrived while the turn was {state}")]
pub struct OutOfOrder {
    /// Description of the arrival.
    pub input: &'static str,
    /// State of the turn at that time.
    pub state: &'static str,
}
