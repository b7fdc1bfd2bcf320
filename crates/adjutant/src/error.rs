use adjutant_core::port::StoreError;
use adjutant_core::{InvalidClientSide, InvalidTool, ModelError, OutputError};
use adjutant_runtime::{BuildError, RunError};

use crate::ModelFromEnvError;

/// What can go wrong on the way to a running agent. A turn that ran is no error, whatever its
/// outcome.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment names no usable model.
    #[error(transparent)]
    ModelFromEnv(#[from] ModelFromEnvError),
    /// A model could not be made.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The agent could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A tool could not be made.
    #[error(transparent)]
    Tool(#[from] InvalidTool),
    /// Tools that the caller executes, their choice, or context cannot be added to a message.
    #[error(transparent)]
    Client(#[from] InvalidClientSide),
    /// No turn could start or be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A response holds no value of the type that was asked for.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent could not be served.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] adjutant_service::ServeError),
}

/// A `main` that returns this error prints it with `Debug`; the reader of that line needs the
/// words, not the variant.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The result of most functions a program with an agent has.
pub type Result<T, E = Error> = std::result::Result<T, E>;
