//! Errors of building an agent and of running a turn.

use adjutant_core::port::StoreError;
use adjutant_core::{
    Empty, InvalidClientSide, InvalidMessage, InvalidTool, InvalidTranscript, ModelId,
    UnusableSchema,
};

/// An error in the parts of an agent, found by [`AgentBuilder::build`](crate::AgentBuilder::build).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The agent's name or its instruction is blank.
    #[error(transparent)]
    Empty(#[from] Empty),
    /// A tool cannot be registered: its name is taken, or its schema is invalid.
    #[error(transparent)]
    Tool(#[from] InvalidTool),
    /// [`AgentBuilder::model`](crate::AgentBuilder::model) was not called.
    #[error("the agent has no model: set one with `.model(...)`")]
    NoModel,
    /// The output schema is not a valid JSON Schema, or uses unsupported keywords.
    #[error("the output schema cannot be used: {0}")]
    Output(#[source] UnusableSchema),
    /// A budget limits money, but the price table has no row for the model.
    #[error(
        "a budget of money is set, and the price of {model} is not known: give its price in a table of prices, leave the budget out, or bound tokens instead"
    )]
    UnknownPrice {
        /// The model without a known price.
        model: ModelId,
    },
    /// Client-side tools cannot be offered: see [`Agent::with_client`](crate::Agent::with_client).
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// A weak model, which gets one round of constrained tool calling, cannot also answer in the
    /// form of a schema.
    #[error(
        "{model} cannot both use tools and answer by a schema: leave out the tools or the schema, or choose another model"
    )]
    OutputBesideWeakTools {
        /// The weak model that was given both.
        model: ModelId,
    },
}

/// An error because of which no turn could start or be journaled. A turn that ran is `Ok`, whatever
/// its outcome: the failure of a model or a tool is in
/// [`AgentResponse`](adjutant_core::AgentResponse).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The message consists of white space only. Nothing was accepted.
    #[error("the message is empty")]
    EmptyMessage,
    /// The context's history cannot be sent to a model. Nothing was accepted.
    #[error("the history of the context cannot be used: {0}")]
    History(#[from] InvalidTranscript),
    /// The message exceeds the fixed size limit of all messages. Nothing was accepted.
    #[error("the message has {bytes} bytes; at most {max} are taken")]
    MessageTooLarge {
        /// Size of the message in bytes.
        bytes: usize,
        /// Largest size that is accepted, in bytes.
        max: usize,
    },
    /// The message is longer than the agent's limit, and is not to be cut
    /// ([`LongMessage`](adjutant_core::LongMessage)). Nothing was accepted.
    #[error(
        "the message has {chars} characters, and at most {max} are taken (agent.message_chars_max); nothing was done"
    )]
    MessageTooLong {
        /// Length of the message in Unicode characters.
        chars: usize,
        /// Largest length that is accepted, in Unicode characters.
        max: usize,
    },
    /// The input answers a pending call, and its caller may not
    /// ([`RunContext::may_answer`](crate::RunContext::may_answer)). Nothing was accepted, and the
    /// call stays pending.
    #[error(
        "a person has to answer this question, and this caller may not answer in their place; nothing was done"
    )]
    MayNotAnswer,
    /// Tools, tool choice or context of the message cannot be used. Nothing was accepted.
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// The conversation's store failed. Inputs that were accepted are not lost.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process held the lease of the conversation for as long as a turn may take.
    #[error(
        "another process is working on this conversation; the message is accepted and will be answered there"
    )]
    Busy,
    /// The recorded turn does not fit this program: it was recorded by another version or with
    /// another agent.
    #[error("the recorded turn cannot be continued: {0}")]
    CannotContinue(String),
}

impl From<adjutant_core::turn::OutOfOrder> for RunError {
    fn from(error: adjutant_core::turn::OutOfOrder) -> Self {
        Self::CannotContinue(error.to_string())
    }
}

impl From<InvalidMessage> for RunError {
    fn from(error: InvalidMessage) -> Self {
        // Inputs are checked when they are submitted, so this is a message in the journal.
        Self::CannotContinue(error.to_string())
    }
}
