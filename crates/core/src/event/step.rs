//! Steps of a conversation, and the step that each event belongs to.

use std::fmt;

use super::Event;
use crate::confirmation::PendingCall;
use crate::id::{CallId, InputId, TurnId};

/// Identifies a step of a conversation by name and not by position, so that a step recorded twice
/// is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepId {
    /// A turn, from its start to its end.
    Turn(TurnId),
    /// A model call of a turn, by its number from 1.
    Model(TurnId, u32),
    /// A summary before a model call of a turn, counted from 1.
    Summary(TurnId, u32),
    /// A start of a tool call, by its number from 1. The first start is the step of the call
    /// itself.
    Call(CallId, u32),
    /// An input that is queued until a turn ends. It may wait behind several turns, one after the
    /// other.
    Queued(TurnId, InputId),
}

/// Writes the step in the form in which stores keep it.
impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "{turn}"),
            Self::Model(turn, number) => write!(f, "{turn}/model/{number}"),
            Self::Summary(turn, number) => write!(f, "{turn}/summary/{number}"),
            Self::Call(call, 1) => write!(f, "{call}"),
            Self::Call(call, attempt) => write!(f, "{call}#{attempt}"),
            Self::Queued(turn, input) => write!(f, "{turn}/queued/{input}"),
        }
    }
}

impl Event {
    /// Returns the step that the event belongs to. A conversation has at most one event of each
    /// kind for a step.
    ///
    /// `CallStarted` has none, because a repeated attempt is recorded again.
    #[must_use]
    pub fn step(&self) -> Option<StepId> {
        match self {
            Self::TurnStarted { turn, .. } | Self::TurnFinished { turn, .. } => {
                Some(StepId::Turn(*turn))
            }
            Self::ModelReplied { turn, number, .. } => Some(StepId::Model(*turn, *number)),
            Self::ConversationSummarized {
                turn: Some(turn),
                number,
                ..
            }
            | Self::SummaryFailed {
                turn: Some(turn),
                number,
                ..
            } => Some(StepId::Summary(*turn, *number)),
            Self::CallChecked { call, .. }
            | Self::CallFinished { call, .. }
            | Self::CallInDoubt {
                call, doubt: None, ..
            }
            | Self::CallAnswered { call, .. } => Some(StepId::Call(call.clone(), 1)),
            Self::CallInDoubt {
                call,
                doubt: Some(PendingCall { doubt, .. }),
                ..
            } => Some(StepId::Call(
                call.clone(),
                doubt.as_ref().map_or(1, |doubt| doubt.attempt),
            )),
            Self::DoubtResolved { call, attempt, .. } => Some(StepId::Call(call.clone(), *attempt)),
            Self::InputQueued { turn, input } => Some(StepId::Queued(*turn, input.clone())),
            Self::CallStarted { .. }
            | Self::Decided { .. }
            | Self::TurnStopped { .. }
            | Self::TurnTakenUp { .. }
            | Self::ConversationSummarized { turn: None, .. }
            | Self::SummaryFailed { turn: None, .. }
            | Self::CallEdited { .. }
            | Self::AnswerRefused { .. }
            | Self::HistorySet { .. }
            | Self::TurnParked { .. }
            | Self::AnswerUnclear { .. }
            | Self::SessionEnded {}
            | Self::InputIgnored { .. } => None,
        }
    }
}
