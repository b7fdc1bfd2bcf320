//! Errors of loading a model file, and of generating with a loaded model.

use std::path::PathBuf;

/// A model file that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file: pull the model or name another file.
    #[error("there is no model file at {}", path.display())]
    NotFound {
        /// The path at which the file was expected.
        path: PathBuf,
    },
    /// The operating system refused to read the file.
    #[error("the model file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The path of the file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a complete GGUF file: remove it and pull the model again.
    #[error("the model file {} is damaged: {reason}", path.display())]
    Damaged {
        /// The path of the damaged file.
        path: PathBuf,
        /// A clause that says what is wrong with it.
        reason: String,
    },
    /// A valid file of a model architecture that this engine does not support.
    #[error("the model file {} holds the architecture `{found}`; supported: {supported}", path.display())]
    UnsupportedArchitecture {
        /// The path of the file with that architecture.
        path: PathBuf,
        /// `general.architecture` of the file.
        found: String,
        /// The supported architectures, separated by commas.
        supported: &'static str,
    },
    /// A valid file whose tokenizer is not supported.
    #[error("the model file {} has a tokenizer that is not supported: {reason}", path.display())]
    UnsupportedTokenizer {
        /// The path of the file with that tokenizer.
        path: PathBuf,
        /// The unknown kind, or the missing part, of the tokenizer.
        reason: String,
    },
}

/// A loaded model that gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The prompt does not fit into the context window: shorten it.
    #[error("the prompt has {prompt_tokens} tokens, the model's window is {window_tokens}")]
    ContextTooLong {
        /// The number of tokens of the prompt.
        prompt_tokens: usize,
        /// The number of tokens that fit, prompt and answer together.
        window_tokens: usize,
    },
    /// The schema cannot be compiled to a constraint: change the schema.
    #[error("the JSON schema cannot be used as a constraint: {reason}")]
    Schema {
        /// The message of the grammar compiler.
        reason: String,
    },
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
    /// The computation failed; the same request would fail again.
    #[error("the model could not be computed: {reason}")]
    Compute {
        /// The message of the engine or the tokenizer.
        reason: String,
        /// The engine's error, if it is the cause.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// A classifier of actions that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifierError {
    /// It is no classifier, or is damaged.
    #[error("the classifier cannot be used: {0}")]
    Damaged(&'static str),
    /// It was trained with the states of another model file.
    #[error("the classifier was trained with another model file")]
    OtherModel,
}

impl DecodeError {
    pub(crate) fn compute(reason: impl Into<String>) -> Self {
        Self::Compute {
            reason: reason.into(),
            source: None,
        }
    }
}

impl From<candle_core::Error> for DecodeError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute {
            reason: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}
