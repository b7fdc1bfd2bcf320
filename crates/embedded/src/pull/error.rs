//! Failures of a pull, and of the single sources.

use std::path::PathBuf;

use crate::catalogue::known_names;

/// The failure of a pull, named after what the user can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The name is not in the catalogue: choose a known one, or give a file.
    #[error(
        "there is no model called {name:?}; known: {}, or any file with -m embedded:FILE.gguf",
        known_names()
    )]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// Another process is downloading the same model: wait for it.
    #[error("another process is fetching this model into {}", path.display())]
    Busy {
        /// The path of the file that it writes.
        path: PathBuf,
    },
    /// The models folder cannot be written: choose another one or fix its permissions.
    #[error("{} cannot be written: {source}", path.display())]
    NotWritable {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The disk is full: make room. The bytes so far are kept.
    #[error("the disk of {} is full; {missing_bytes} more bytes are needed", path.display())]
    DiskFull {
        /// The path of the models folder.
        path: PathBuf,
        /// The number of bytes that are missing.
        missing_bytes: u64,
    },
    /// No source has the model. The bytes so far are kept.
    #[error(
        "{name} could not be fetched:{}\nAny GGUF file of it works too: download {file} ({bytes} bytes) on another \
         machine and use -m embedded:FILE.gguf",
        lines(.failures)
    )]
    NoSource {
        /// The name of the model that was requested.
        name: &'static str,
        /// The name of its file on the model hub.
        file: &'static str,
        /// The size of its file in bytes.
        bytes: u64,
        /// The failure of each source, in order.
        failures: Vec<SourceFailure>,
    },
    /// The caller cancelled the pull. The bytes so far are kept.
    #[error("stopped; what was fetched so far is kept")]
    Cancelled,
}

/// A source that did not have the model, and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceFailure {
    /// The source for people, as in [`Progress::source`](super::Progress::source).
    pub source: &'static str,
    /// The cause of its failure.
    pub cause: FailureCause,
}

/// The cause of a source's failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// The source could not be reached, or the connection broke.
    #[error("{reason}")]
    Unreachable {
        /// A message for people, with all causes.
        reason: String,
    },
    /// The source answered, but not with the model.
    #[error("{reason}")]
    NotThere {
        /// A message for people that describes the answer.
        reason: String,
    },
    /// The source sent other bytes than the model's. They were removed.
    #[error("its file has the wrong SHA-256 {found} (expected {expected}); it was removed")]
    WrongDigest {
        /// The SHA-256 that the catalogue has.
        expected: &'static str,
        /// The SHA-256 of the bytes that were received.
        found: String,
    },
}

/// A failure of one source, after which the next one is tried, or of the whole pull.
#[derive(Debug)]
pub(super) enum FetchError {
    Source(FailureCause),
    Pull(PullError),
}

impl From<PullError> for FetchError {
    fn from(error: PullError) -> Self {
        Self::Pull(error)
    }
}

impl FetchError {
    pub(super) fn unreachable(reason: impl Into<String>) -> Self {
        Self::Source(FailureCause::Unreachable {
            reason: reason.into(),
        })
    }

    pub(super) fn not_there(reason: impl Into<String>) -> Self {
        Self::Source(FailureCause::NotThere {
            reason: reason.into(),
        })
    }
}

fn lines(failures: &[SourceFailure]) -> String {
    let line = |failure: &SourceFailure| format!("\n- {}: {}", failure.source, failure.cause);
    failures.iter().map(line).collect()
}
