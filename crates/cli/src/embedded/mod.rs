//! Models that run in this process: download, verification and deletion.

pub(crate) mod threads; // the number of threads of a model

use std::path::{Path, PathBuf};

use adjutant_core::{CancellationToken, nearest};
use adjutant_embedded::catalogue::{self, DEFAULT_MODEL, InstallState, KNOWN_MODELS, KnownModel};
use adjutant_embedded::pull::{self, Progress, PullError, Step};
use serde_json::{Value, json};

use crate::config::Settings;
use crate::error::CliError;
use crate::model_choice::{Named, key_variables};
use crate::terminal::display::size;
use crate::terminal::progress::DownloadProgress;
use crate::terminal::screen::Screen;
use crate::terminal::signals::Interrupts;
use crate::terminal::yes_no::ask_yes_no;

/// Downloads a model.
///
/// # Errors
/// There is no such model, no source for it, or no place to store it.
pub(crate) async fn pull(
    settings: &Settings,
    screen: &Screen,
    name: Option<String>,
) -> Result<(), CliError> {
    let model = find_model(name.as_deref().or(settings.embedded_model.as_deref()))?;
    let file = download(model, &settings.dirs.models(), screen).await?;
    screen.result(
        &json!({ "name": model.name, "path": file.to_string_lossy() }),
        || format!("{} is ready: {}", model.name, file.display()),
    );
    Ok(())
}

/// Deletes a model.
///
/// # Errors
/// There is no such model, or it cannot be deleted.
pub(crate) fn remove(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    let model = find_model(Some(name))?;
    let freed = catalogue::remove(&settings.dirs.models(), model.name)
        .map_err(|error| CliError::failed(error.to_string()))?;
    screen.result(&json!({ "name": model.name, "freed_bytes": freed }), || {
        format!("{} is gone; {} are free again", model.name, size(freed))
    });
    Ok(())
}

/// Returns the file of a model, downloading it if the user agrees. If the user named the model and
/// cannot be asked, it is downloaded without a question.
///
/// # Errors
/// There is no such model, it must not be downloaded, or the download failed.
pub(crate) async fn ensure_installed(
    settings: &Settings,
    screen: &Screen,
    name: Option<String>,
    named: Named,
) -> Result<(String, PathBuf), CliError> {
    let dir = settings.dirs.models();
    let model = find_model(name.as_deref())?;
    if model.state_in(&dir) != InstallState::Installed {
        if screen.asks() {
            ask_for_download(model, &dir, screen, named).await?;
        } else if named == Named::No {
            return Err(missing(model));
        }
        download(model, &dir, screen).await?;
    }
    verify(model, &dir, screen).await?;
    Ok((model.name.to_owned(), model.path_in(&dir)))
}

/// Returns the file of a model that is installed, without downloading or asking.
///
/// # Errors
/// There is no such model, or it is not installed.
pub(crate) async fn find_installed(
    settings: &Settings,
    screen: &Screen,
    name: &str,
) -> Result<(String, PathBuf), CliError> {
    let dir = settings.dirs.models();
    let model = find_model(Some(name))?;
    if model.state_in(&dir) != InstallState::Installed {
        return Err(CliError::configuration(format!(
            "{} is not installed",
            model.name
        )));
    }
    verify(model, &dir, screen).await?;
    Ok((model.name.to_owned(), model.path_in(&dir)))
}

/// Verifies the checksum of an installed model: once, and again after its file was changed.
async fn verify(model: &'static KnownModel, dir: &Path, screen: &Screen) -> Result<(), CliError> {
    if model.is_verified_in(dir) {
        return Ok(());
    }
    let doing = format!("checking {} (once)", model.name);
    // Without a bar, a single line is enough.
    let mut display = screen
        .shows_progress()
        .then(|| DownloadProgress::new(screen));
    if display.is_none() {
        screen.note(&doing);
    }
    let (sender, mut progress) = tokio::sync::watch::channel(0);
    let folder = dir.to_owned();
    // Hashing gigabytes takes seconds, in which the bar is drawn.
    let verifying = tokio::task::spawn_blocking(move || {
        model.verify_in(&folder, &mut |done| {
            sender.send_replace(done);
        })
    });
    // The sender is dropped when the check has ended, which closes the channel.
    while progress.changed().await.is_ok() {
        let done = *progress.borrow_and_update();
        if let Some(display) = &mut display {
            display.report(doing.clone(), done, model.bytes);
        }
    }
    if let Some(display) = &display {
        display.end();
    }
    let verified = verifying
        .await
        .map_err(|error| CliError::failed(error.to_string()))?;
    verified.map_err(|error| {
        CliError::configuration(format!("the file of {} is not the model", model.name))
            .because(error.to_string())
            .or_try(format!(
                "adjutant models rm {0}, then adjutant models pull {0}",
                model.name
            ))
            .or_try("-m embedded:FILE.gguf    takes any file, unchecked")
    })
}

/// Returns the entry of the catalogue with this name, or the default one.
///
/// # Errors
/// There is none; the nearest name is suggested.
pub(crate) fn find_model(name: Option<&str>) -> Result<&'static KnownModel, CliError> {
    let name = name.unwrap_or(DEFAULT_MODEL);
    KnownModel::find(name).ok_or_else(|| {
        let error = CliError::no_such_model(format!("there is no embedded model called {name:?}"));
        let error = match nearest(name, KNOWN_MODELS.iter().map(|model| model.name)) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.because(format!(
                "there are {}",
                KNOWN_MODELS.map(|model| model.name).join(", ")
            )),
        };
        error.or_try("-m embedded:FILE.gguf for a file of your own")
    })
}

/// Asks if a model should be downloaded; the default is yes.
async fn ask_for_download(
    model: &KnownModel,
    dir: &Path,
    screen: &Screen,
    named: Named,
) -> Result<(), CliError> {
    let why = if named == Named::Yes {
        ""
    } else {
        "No API key and no local server found. "
    };
    let left = match model.state_in(dir) {
        InstallState::Partial { bytes } => format!("{} of it are here", size(bytes)),
        InstallState::Missing | InstallState::Damaged { .. } | InstallState::Installed => {
            "once".to_owned()
        }
    };
    let question = format!(
        "{why}Download the embedded model ({}, {}, {left})?",
        model.name,
        size(model.bytes)
    );
    if ask_yes_no(screen, &question, true).await {
        Ok(())
    } else {
        Err(missing(model))
    }
}

fn missing(model: &KnownModel) -> CliError {
    let error = CliError::configuration("there is no language model to ask")
        .because(format!(
            "no key in the environment, no local server, and the embedded model {} is not downloaded",
            model.name
        ))
        .or_try("adjutant init    asks three questions and sets things up")
        .or_try(format!(
            "adjutant models pull {}    ({}, once)",
            model.name,
            size(model.bytes)
        ));
    key_variables()
        .into_iter()
        .fold(error, CliError::or_try)
        .or_try("adjutant -m embedded:FILE.gguf …")
        .or_try("adjutant -m demo …    canned answers, to look around")
}

/// Downloads a model. Ctrl-C stops; a later download resumes.
async fn download(
    model: &'static KnownModel,
    dir: &Path,
    screen: &Screen,
) -> Result<PathBuf, CliError> {
    let mut interrupts = Interrupts::new()?;
    let cancel = CancellationToken::new();
    let mut display = DownloadProgress::new(screen);
    let sources = pull::Sources::default();
    let result = {
        let mut report = |progress: Progress| {
            let (name, source) = (model.name, progress.source);
            let counted = match progress.step {
                Step::Connecting => {
                    return display.begin_step(format!("looking for {name} at {source}"));
                }
                Step::Downloading => format!("{name} from {source}"),
                Step::Checking => format!("checking {name}"),
            };
            display.report(counted, progress.done_bytes, progress.total_bytes);
        };
        let pull = pull::pull(model.name, dir, &sources, &mut report, &cancel);
        tokio::pin!(pull);
        loop {
            tokio::select! {
                result = &mut pull => break result,
                // Not dropped: the download has to keep its part of the file and to report how it
                // goes on.
                () = interrupts.next() => cancel.cancel(),
            }
        }
    };
    display.end();
    result.map_err(|error| match error {
        PullError::Cancelled => CliError::interrupted(
            "the download was stopped; what is there is kept",
        )
        .or_try(format!(
            "adjutant models pull {}    goes on where it stopped",
            model.name
        )),
        PullError::NoSource {
            name,
            file,
            bytes,
            failures,
        } => {
            let causes: Vec<String> = failures
                .iter()
                .map(|failure| format!("{}: {}", failure.source, failure.cause))
                .collect();
            CliError::configuration(format!("{name} could not be fetched"))
                .because(causes.join("; "))
                .or_try("again later: what is there is kept")
                .or_try(format!(
                    "get {file} ({}) elsewhere, then adjutant -m embedded:FILE.gguf …",
                    size(bytes)
                ))
        }
        PullError::Busy { .. } => CliError::failed(error.to_string()).or_try("wait for it"),
        error => CliError::configuration(error.to_string()),
    })
}

/// Returns available and installed models, each as a line and as JSON.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn list(settings: &Settings) -> Result<Vec<(String, Value)>, CliError> {
    let dir = settings.dirs.models();
    let models = catalogue::list(&dir).map_err(|error| {
        CliError::configuration(format!("{} cannot be read", dir.display()))
            .because(error.to_string())
    })?;
    let row = |model: &catalogue::ListedModel| {
        let state = match model.state {
            InstallState::Installed => "installed".to_owned(),
            InstallState::Partial { bytes } => format!("{} fetched", size(bytes)),
            InstallState::Damaged { .. } => "damaged; pull it again".to_owned(),
            InstallState::Missing => "not here".to_owned(),
        };
        let (spec, note) = match model.known {
            Some(known) => (format!("embedded/{}", model.name), known.note),
            None => (model.name.clone(), "a file of your own: -m embedded:FILE"),
        };
        let json = json!({
            "name": model.name,
            "path": model.path.to_string_lossy(),
            "bytes": model.bytes,
            "installed": model.state == InstallState::Installed,
            "default": model.name == DEFAULT_MODEL,
        });
        (
            format!("{spec:44} {:>8}  {state:12}  {note}", size(model.bytes)),
            json,
        )
    };
    Ok(models.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_is_an_error_with_the_nearest() {
        let error = find_model(Some("qwen2.5-coder-1b")).unwrap_err();
        assert_eq!(error.exit as u8, 3);
        assert!(error.cause.unwrap().contains("did you mean qwen2.5-coder-"));
        assert_eq!(find_model(None).unwrap().name, DEFAULT_MODEL);
    }
}
