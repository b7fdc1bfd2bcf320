//! Events and errors of a worker.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use adjutant_runtime::RunError;

/// An event that a running [`Worker`](crate::Worker) reports to its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// An error that is retried, or whose message says what to change.
    Failed(WorkerError),
    /// Restate calls this worker from now on.
    Registered {
        /// The URL at which Restate calls it.
        here: String,
    },
}

impl fmt::Display for WorkerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => fmt::Display::fmt(error, f),
            Self::Registered { here } => {
                write!(f, "Restate knows this worker now, and calls it at {here}")
            }
        }
    }
}

/// An error because of which Restate does not call this process, or a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The socket address cannot be bound.
    #[error("cannot listen on {listen} for Restate: {reason}")]
    Bind {
        /// The socket address of `listen=`.
        listen: SocketAddr,
        /// The error of the operating system.
        reason: String,
    },
    /// The file with the token for Restate cannot be used.
    #[error("cannot read the token for Restate from {path}: {reason}")]
    Token {
        /// The path given by `token_file=`.
        path: PathBuf,
        /// The error of the operating system, or the reason why the content is not a token.
        reason: String,
    },
    /// No HTTP client can be created, so Restate cannot be reached at all.
    #[error("cannot ask Restate: {0}")]
    Client(String),
    /// The worker could not be registered with Restate. It is retried, and turns run without
    /// Restate until then.
    #[error("Restate does not know this worker yet: {0}")]
    NotRegistered(String),
    /// Another worker of the same version is registered at another address. This one takes over
    /// when the other is gone.
    #[error(
        "Restate calls the worker at {called}, and this one is at {here}: give both the same advertise= (a name that spreads \
         connections), or only one of them gets work"
    )]
    Elsewhere {
        /// The URL that Restate calls.
        called: String,
        /// The URL of this worker.
        here: String,
    },
    /// A worker of another version has started and gets new calls. This one takes over when that
    /// one is gone.
    #[error(
        "Restate calls the worker at {called}, which started later and is another version, {version}: what began at {here} ends \
         there, and it is called again when the other one is gone"
    )]
    Replaced {
        /// The URL that Restate calls.
        called: String,
        /// The version of the worker at that URL.
        version: String,
        /// The URL of this worker.
        here: String,
    },
    /// A connection could not be accepted; later ones are.
    #[error("Restate could not connect: {0}")]
    Accept(String),
    /// A call was refused because it has no valid signature of Restate.
    #[error("a call to this worker was turned away: {0}; key= in --dispatch says whose are taken")]
    Refused(String),
    /// A conversation could not continue. Restate retries unless the error is permanent.
    #[error(transparent)]
    Run(#[from] RunError),
}
