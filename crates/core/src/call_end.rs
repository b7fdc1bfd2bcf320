//! The ends of tool calls.

use crate::confirmation::PendingCall;
use crate::event::Refusal;
use crate::tool::{Arguments, ToolResult};

/// The end of a tool call, by what became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// The call was executed, with success or an error.
    Executed {
        /// Arguments that the tool received, with references resolved.
        arguments: Arguments,
        /// Result as the model reads it.
        result: ToolResult,
        /// Text for the person: the tool's description of a success, or a replacement for the
        /// error.
        summary: Option<String>,
    },
    /// The gate refused the call.
    Refused {
        /// Reason as a value for programs.
        refusal: Refusal,
        /// Explanation for the model.
        message: String,
    },
    /// The call waits for a person, or for a result from the caller.
    Waiting(PendingCall),
    /// A reference is ambiguous, and the person has to say what is meant.
    Asked {
        /// Question that the person is asked.
        question: String,
    },
    /// A person denied the call.
    Denied {
        /// Arguments of the call that did not run.
        arguments: Arguments,
    },
    /// The confirmation expired without an answer.
    Expired {
        /// Arguments of the call that did not run.
        arguments: Arguments,
    },
    /// The caller submitted no result in time.
    NoResult {
        /// Arguments that the caller received.
        arguments: Arguments,
    },
    /// The call was interrupted, and it stays unknown whether it had its effect.
    InDoubt {
        /// Arguments that the call was started with.
        arguments: Arguments,
    },
    /// The call was interrupted, and the person says that it had its effect.
    TakenAsDone {
        /// Arguments that the call was started with.
        arguments: Arguments,
    },
}

impl CallEnd {
    /// Returns the arguments of a call that was interrupted and may have had its effect, so that
    /// the same call is not repeated in this turn.
    #[must_use]
    pub fn interrupted(&self) -> Option<&Arguments> {
        match self {
            Self::InDoubt { arguments }
            | Self::TakenAsDone { arguments }
            | Self::Waiting(PendingCall {
                arguments,
                doubt: Some(_),
                ..
            }) => Some(arguments),
            Self::Executed {
                arguments, result, ..
            } => result.is_unknown().then_some(arguments),
            _ => None,
        }
    }
}
