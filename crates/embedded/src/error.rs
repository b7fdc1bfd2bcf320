//! What can go wrong with a model file and with computing.

use std::path::PathBuf;

/// Why a model file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file: pull the model or name another file.
    #[error("there is no model file at {}", path.display())]
    NotFound {
        /// Where the file was looked for.
        path: PathBuf,
    },
    /// The system would not let us read the file.
    #[error("the model file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a whole GGUF file: remove it and pull the model again.
    #[error("the model file {} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit, in a sentence's part.
        reason: String,
    },
    /// A sound file of a model family that this engine does not compute.
    #[error("the model file {} holds the architecture `{found}`; supported: {supported}", path.display())]
    UnsupportedArchitecture {
        /// The file.
        path: PathBuf,
        /// `general.architecture` of the file.
        found: String,
        /// The families that work, separated by commas.
        supported: &'static str,
    },
    /// A sound file whose tokenizer we cannot rebuild.
    #[error("the model file {} has a tokenizer that is not supported: {reason}", path.display())]
    UnsupportedTokenizer {
        /// The file.
        path: PathBuf,
        /// What is missing or unknown.
        reason: String,
    },
}

/// Why a loaded model gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The prompt does not fit: shorten it.
    #[error("the prompt has {prompt_tokens} tokens, the model's window is {window_tokens}")]
    ContextTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens that fit, prompt and answer together.
        window_tokens: usize,
    },
    /// The schema cannot be turned into a constraint: change the schema.
    #[error("the JSON schema cannot be used as a constraint: {reason}")]
    Schema {
        /// What the grammar compiler said.
        reason: String,
    },
    /// The caller no longer wants the answer.
    #[error("cancelled")]
    Cancelled,
    /// The computation failed; the same request would fail again.
    #[error("the model could not be computed: {reason}")]
    Compute {
        /// What the engine said.
        reason: String,
    },
}

impl From<candle_core::Error> for DecodeError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute {
            reason: error.to_string(),
        }
    }
}
