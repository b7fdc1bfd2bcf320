//! How a tool call ended.

use crate::confirmation::PendingCall;
use crate::event::Refusal;
use crate::tool::{Arguments, ToolResult};

/// How one call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// It ran.
    Executed {
        /// What it ran with.
        arguments: Arguments,
        /// What came out.
        result: ToolResult,
        /// Words for the person: the tool's own about a success, or what they read in the place of
        /// the result's error.
        summary: Option<String>,
    },
    /// The gate refused it.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The words for the model.
        message: String,
    },
    /// It waits: for a human, or for its result.
    Waiting(PendingCall),
    /// It is not clear what is meant.
    Asked {
        /// The question for the person.
        question: String,
    },
    /// A human said no.
    Denied {
        /// What would have run.
        arguments: Arguments,
    },
    /// Nobody answered in time.
    Expired {
        /// What would have run.
        arguments: Arguments,
    },
    /// Nobody brought its result in time.
    NoResult {
        /// The arguments that the caller was given.
        arguments: Arguments,
    },
    /// It was interrupted, and stays so: nobody knows whether it was done.
    InDoubt {
        /// What it was begun with.
        arguments: Arguments,
    },
    /// It was interrupted, and the person says that it was done.
    TakenAsDone {
        /// What it was begun with.
        arguments: Arguments,
    },
}

impl CallEnd {
    /// What was begun, where the same call is not to be made again in this turn: it may have been
    /// carried out, as far as anybody knew.
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
            Self::Waiting(_)
            | Self::Refused { .. }
            | Self::Asked { .. }
            | Self::Denied { .. }
            | Self::Expired { .. }
            | Self::NoResult { .. } => None,
        }
    }
}
