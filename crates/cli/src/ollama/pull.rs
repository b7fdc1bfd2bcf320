//! Pulls a model to an Ollama server with a progress display, and deletes one.

use std::time::Duration;

use adjutant_core::ModelError;
use adjutant_providers::ollama::{PullProgress, Server};
use serde_json::json;

use super::address::{PATIENCE_WITH_A_NAMED_ONE, provider};
use crate::config::Settings;
use crate::error::CliError;
use crate::model_choice::{self, Override};
use crate::terminal::display::{clean_line, clip};
use crate::terminal::progress::DownloadProgress;
use crate::terminal::screen::Screen;
use crate::terminal::signals::Interrupts;
use crate::terminal::yes_no::ask_yes_no;

/// Time the server may send nothing: at the end it verifies the whole file without a report.
const SILENCE: Duration = Duration::from_secs(900);

/// Pulls a model. Ctrl-C stops; a later pull resumes.
///
/// # Errors
/// The server does not respond, or cannot pull it.
pub(crate) async fn pull(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    let server = server(settings)?.within(SILENCE);
    let mut interrupts = Interrupts::new()?;
    let mut display = DownloadProgress::new(screen);
    let result = {
        let mut report = |progress: PullProgress| {
            display.report(
                step(name, &progress),
                progress.done_bytes,
                progress.total_bytes,
            );
        };
        let pull = server.pull(name, &mut report);
        tokio::pin!(pull);
        tokio::select! {
            result = &mut pull => Some(result),
            () = interrupts.next() => None,
        }
    };
    display.end();
    // The server keeps what it has fetched, also when this process ends.
    let again = format!("adjutant models pull ollama/{name}    goes on where it stopped");
    match result {
        Some(Ok(())) => Ok(()),
        Some(Err(error @ ModelError::NotFound { .. })) => Err(CliError::no_such_model(format!(
            "there is no model {name:?} that Ollama could fetch"
        ))
        .because(error.to_string())
        .or_try("look for its name at https://ollama.com/library")),
        Some(Err(error)) => {
            let shown = CliError::from_model_error(&error);
            Err(CliError {
                message: format!("{name} could not be fetched"),
                ..shown
            }
            .because(error.to_string())
            .or_try(again))
        }
        None => Err(
            CliError::interrupted("the download was stopped; what is there is kept").or_try(again),
        ),
    }
}

/// Checks that the server has the model, before a conversation begins, and offers to pull a missing
/// one. Other errors of the server appear when the model is called.
///
/// # Errors
/// There is no server, or it lacks the model and the user declined or the pull failed.
pub(crate) async fn check(
    settings: &Settings,
    screen: &Screen,
    name: &str,
) -> Result<(), CliError> {
    let server = server(settings)?.within(PATIENCE_WITH_A_NAMED_ONE);
    match server.show(name).await {
        // A model may have gigabytes, so it is never fetched without a yes.
        Err(ModelError::NotFound { .. }) if screen.asks() => offer(settings, screen, name).await,
        Err(ModelError::NotFound { .. }) => Err(missing(name)),
        // A fallback may answer in its place.
        Err(error @ (ModelError::Network { .. } | ModelError::Timeout { .. }))
            if settings.bounds.in_chat && settings.fallback.is_empty() =>
        {
            Err(CliError::from_model_error(&error).or_try("ollama serve"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn missing(name: &str) -> CliError {
    CliError::no_such_model(format!("Ollama does not have {name}"))
        .or_try(format!("adjutant models pull ollama/{name}"))
        .or_try("adjutant models list")
}

/// Offers to pull a model that the server lacks.
async fn offer(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    let question = format!("Ollama does not have {}. Fetch it?", clip(name, 200));
    if ask_yes_no(screen, &question, true).await {
        pull(settings, screen, name).await
    } else {
        Err(missing(name))
    }
}

/// Deletes a model of the server.
///
/// # Errors
/// The server does not respond, or lacks the model.
pub(crate) async fn remove(
    settings: &Settings,
    screen: &Screen,
    name: &str,
) -> Result<(), CliError> {
    server(settings)?
        .remove(name)
        .await
        .map_err(|error| match error {
            ModelError::NotFound { .. } => {
                CliError::no_such_model(format!("Ollama has no model {name:?}"))
                    .or_try("adjutant models list")
            }
            error => CliError::from_model_error(&error),
        })?;
    screen.result(&json!({ "name": format!("ollama/{name}") }), || {
        format!("ollama/{name} is gone.")
    });
    Ok(())
}

/// Returns the server in the settings.
///
/// # Errors
/// Its address is invalid.
pub(crate) fn server(settings: &Settings) -> Result<Server, CliError> {
    let provider =
        provider().ok_or_else(|| CliError::failed("this adjutant was built without Ollama"))?;
    let connection = model_choice::connection(settings, provider, &Override::default())?;
    Server::new(&connection).map_err(|error| CliError::from_model_error(&error))
}

/// Describes a step of the server for people, without digests.
fn step(name: &str, progress: &PullProgress) -> String {
    if progress.total_bytes == 0 || !progress.status.starts_with("pulling") {
        format!("{name}: {}", clean_line(&progress.status))
    } else {
        format!("{name}: fetching")
    }
}
