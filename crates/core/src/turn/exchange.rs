//! What goes into a turn and what comes out of it.

use crate::budget::Exceeded;
use crate::confirmation::PendingCall;
use crate::event::{RequestedCall, Told, TurnEnd};
use crate::id::{ModelId, TurnId};
use crate::limits::TurnLimits;
use crate::model::{GenerateRequest, GenerationConfig, SchemaSupport};
use crate::output::OutputSchema;
use crate::summary::Recalled;
use crate::tool::ToolCall;
use crate::tool_choice::ToolChoice;
use crate::tool_set::ToolSet;

/// How a model is trusted with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStyle {
    /// It calls them freely, sees the results, and writes the answer.
    Native,
    /// One constrained round of actions; the answer is made from what the tools say of themselves.
    OneRound,
}

/// Everything a turn starts from.
#[derive(Debug, Clone)]
pub struct TurnSetup {
    /// Its id.
    pub turn: TurnId,
    /// The model that is asked.
    pub model: ModelId,
    /// The instruction. Blank: none is sent.
    pub instruction: String,
    /// What it is given of the past.
    pub recalled: Recalled,
    /// The call a person asks for. `Some`: the turn makes it and ends, without a model.
    pub call: Option<RequestedCall>,
    /// What the person says now, cut to the bound.
    pub message: String,
    /// How many Unicode characters it had before.
    pub message_chars: usize,
    /// The text that memory puts in front of it. It stays there in later turns.
    pub told: Vec<Told>,
    /// The tools on offer.
    pub tools: ToolSet,
    /// The tool choice, until results of the caller's tools come with another one.
    pub choice: ToolChoice,
    /// The caller's context, which the model reads in front of the message. Blank: none.
    pub context: String,
    /// Whether the functions [`ASK_USER`](super::ASK_USER) and [`DECLINE`](super::DECLINE) are
    /// offered beside tools.
    pub control_functions: bool,
    /// How answers are generated.
    pub config: GenerationConfig,
    /// The bounds.
    pub limits: TurnLimits,
    /// How the model is trusted with tools.
    pub style: ToolStyle,
    /// What the final answer must look like, if it must. A question or a refusal of the model needs
    /// no form.
    pub output: Option<OutputSchema>,
    /// Whether the model has a form of its own for that, if it is an object; otherwise the schema
    /// stands at the end of the instruction.
    pub schema_support: SchemaSupport,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask the model.
    CallModel(Box<GenerateRequest>),
    /// Take these calls through the gate and execute what may run, in order.
    CallTools(Vec<ToolCall>),
    /// Wait for a human, or for results that others bring; nothing is held meanwhile.
    AskUser {
        /// What waits.
        pending: Vec<PendingCall>,
        /// The words for the person.
        content: String,
    },
    /// Done.
    Finish(Box<TurnEnd>),
}

/// Why a turn is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The person wants it.
    Cancelled,
    /// Its time is up.
    Deadline,
    /// The next step might have broken a budget.
    Budget(Exceeded),
}

/// Something arrived that the turn was not waiting for: a mistake of whoever drives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{input} arrived while the turn was {state}")]
pub struct OutOfOrder {
    /// What arrived.
    pub input: &'static str,
    /// What the turn was doing.
    pub state: &'static str,
}
