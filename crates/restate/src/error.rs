use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use adjutant_runtime::RunError;

/// An event at a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Something is wrong. It is mended by itself, or said what else.
    Failed(WorkerError),
    /// Restate calls this worker, and did not before.
    Registered {
        /// The address at which it does.
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

/// Why Restate does not call this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen} for Restate: {reason}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        reason: String,
    },
    /// There is no token to ask Restate with.
    #[error("cannot read the token for Restate from {path}: {reason}")]
    Token {
        /// What `token_file=` says.
        path: PathBuf,
        /// What the system says, or what is wrong with it.
        reason: String,
    },
    /// Restate cannot be asked at all.
    #[error("cannot ask Restate: {0}")]
    Client(String),
    /// Restate does not know of us yet; it is tried again and again, and until then the work is
    /// done without it.
    #[error("Restate does not know this worker yet: {0}")]
    NotRegistered(String),
    /// Two workers run without a common address. This one takes over when the other is gone.
    #[error(
        "Restate calls the worker at {called}, and this one is at {here}: give both the same advertise= (a name that spreads \
         connections), or only one of them gets work"
    )]
    Elsewhere {
        /// The address that Restate calls.
        called: String,
        /// The address of this worker.
        here: String,
    },
    /// A worker of another version has started and is called from now on. This one takes over when
    /// that one is gone.
    #[error(
        "Restate calls the worker at {called}, which started later and is another version, {version}: what began at {here} ends \
         there, and it is called again when the other one is gone"
    )]
    Replaced {
        /// The address that Restate calls.
        called: String,
        /// The version that is there.
        version: String,
        /// The address of this worker.
        here: String,
    },
    /// A connection could not be taken; the next ones are.
    #[error("Restate could not connect: {0}")]
    Accept(String),
    /// A call did not bear Restate's signature, and was not taken.
    #[error("a call to this worker was turned away: {0}; key= in --dispatch says whose are taken")]
    Refused(String),
    /// A conversation could not go on; Restate tries again if that can help.
    #[error(transparent)]
    Run(#[from] RunError),
}
