//! [`Error`]: one error type for programs with an agent.

use adjutant_core::port::StoreError;
use adjutant_core::{InvalidClientSide, InvalidTool, ModelError, OutputError};
use adjutant_runtime::{BuildError, RunError};

use crate::ModelFromEnvError;

/// An error on the way to a running agent. A turn that ran is not an error, whatever its outcome.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment configures no usable model.
    #[error(transparent)]
    ModelFromEnv(#[from] ModelFromEnvError),
    /// A model adapter could not be created.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The parts of the agent do not fit together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The definition of a tool is invalid.
    #[error(transparent)]
    Tool(#[from] InvalidTool),
    /// Client-side tools, a tool choice, or context cannot be added to a message.
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// No turn could start or be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A response contains no value of the requested type.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent could not be served over HTTP.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] adjutant_service::ServeError),
}

/// Prints the message, not the variant: a `main` that returns this error prints it with `Debug`.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `main` prints the error that it returns with `Debug`.
        std::fmt::Display::fmt(self, f)
    }
}

/// A `Result` with [`Error`] as its default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
