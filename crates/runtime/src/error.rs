use adjutant_core::port::StoreError;
use adjutant_core::{
    Empty, InvalidClientSide, InvalidMessage, InvalidTool, InvalidTranscript, ModelId,
    UnusableSchema,
};

/// Why an agent cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A name or an instruction is blank.
    #[error(transparent)]
    Empty(#[from] Empty),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] InvalidTool),
    /// No model was given.
    #[error("the agent has no model: set one with `.model(...)`")]
    NoModel,
    /// The schema of the answer cannot be used.
    #[error("the output schema cannot be used: {0}")]
    Output(UnusableSchema),
    /// A budget of money cannot be kept where nobody knows what a call costs.
    #[error(
        "a budget of money is set, and the price of {model} is not known: give its price in a table of prices, leave the budget out, or bound tokens instead"
    )]
    UnknownPrice {
        /// The model.
        model: ModelId,
    },
    /// Tools that the caller executes cannot be offered.
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// A model that is trusted with one constrained round of tools does not write the answer
    /// itself.
    #[error(
        "{model} cannot both use tools and answer by a schema: leave out the tools or the schema, or choose another model"
    )]
    OutputBesideWeakTools {
        /// The model.
        model: ModelId,
    },
}

/// Why no turn could start or be written. A turn that ran is `Ok`, whatever its outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is nothing in the message.
    #[error("the message is empty")]
    EmptyMessage,
    /// The context's history cannot be sent to a model. Nothing was accepted.
    #[error("the history of the context cannot be used: {0}")]
    History(#[from] InvalidTranscript),
    /// The message is over the bound of every message.
    #[error("the message has {bytes} bytes; at most {max} are taken")]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The message is longer than the agent takes, and is not to be cut
    /// ([`LongMessage`](adjutant_core::LongMessage)). Nothing was accepted.
    #[error(
        "the message has {chars} characters, and at most {max} are taken (agent.message_chars_max); nothing was done"
    )]
    MessageTooLong {
        /// Its characters.
        chars: usize,
        /// The bound.
        max: usize,
    },
    /// Tools, tool choice or context of the message cannot be used. Nothing was accepted.
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// The conversation's store failed; nothing that was accepted is lost.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has been working on the conversation the whole time we waited.
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
    fn from(_: InvalidMessage) -> Self {
        Self::EmptyMessage
    }
}
