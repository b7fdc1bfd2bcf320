//! Having an Ollama server fetch a model, with its progress, and deleting one.

use std::time::Duration;

use adjutant_core::ModelError;
use adjutant_providers::ollama::{PullProgress, Server};
use serde_json::json;

use crate::config::Settings;
use crate::display::{clean_line, clip, json_line};
use crate::error::CliError;
use crate::lines::{Interrupts, says_yes};
use crate::meter::Meter;
use crate::model_choice::{self, Override};
use crate::screen::Screen;

/// How long the server may say nothing: it looks through the whole file before it says that it is
/// done.
const SILENCE: Duration = Duration::from_secs(900);

/// Fetches a model. Ctrl-C stops; what is there stays for the next time.
///
/// # Errors
/// The server does not answer, or cannot fetch it.
pub(crate) async fn pull(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    let server = server(settings)?.within(SILENCE);
    let mut interrupts = Interrupts::new()?;
    let mut meter = Meter::new(screen);
    let result = {
        let mut tell = |progress: PullProgress| {
            meter.tell(
                step(name, &progress),
                progress.done_bytes,
                progress.total_bytes,
            );
        };
        let pull = server.pull(name, &mut tell);
        tokio::pin!(pull);
        tokio::select! {
            result = &mut pull => Some(result),
            () = interrupts.next() => None,
        }
    };
    meter.end();
    let again = format!("adjutant models pull ollama/{name}    goes on where it stopped");
    match result {
        Some(Ok(())) => Ok(()),
        Some(Err(error @ ModelError::NotFound { .. })) => Err(CliError::no_such_model(format!(
            "there is no model {name:?} that Ollama could fetch"
        ))
        .because(error.to_string())
        .or_try("look for its name at https://ollama.com/library")),
        Some(Err(error)) => {
            let shown = CliError::of_model_error(&error);
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

/// Checks that the server is there and has the model, before a conversation begins; one that is
/// missing is offered to a person who can be asked. What else may be wrong with the server shows
/// when it is asked.
///
/// # Errors
/// There is no server; it does not have the model, and it was not wanted or could not be fetched.
pub(crate) async fn check(
    settings: &Settings,
    screen: &Screen,
    name: &str,
) -> Result<(), CliError> {
    let server = server(settings)?.within(super::PATIENCE_WITH_A_NAMED_ONE);
    match server.show(name).await {
        Err(ModelError::NotFound { .. }) if screen.asks() => offer(settings, screen, name).await,
        Err(ModelError::NotFound { .. }) => Err(missing(name)),
        // Somebody else may answer in its place.
        Err(error @ (ModelError::Network { .. } | ModelError::Timeout { .. }))
            if settings.bounds.in_chat && settings.fallback.is_empty() =>
        {
            Err(CliError::of_model_error(&error).or_try("ollama serve"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn missing(name: &str) -> CliError {
    CliError::no_such_model(format!("Ollama does not have {name}"))
        .or_try(format!("adjutant models pull ollama/{name}"))
        .or_try("adjutant models list")
}

/// Offers to fetch a model that the server does not have.
async fn offer(settings: &Settings, screen: &Screen, name: &str) -> Result<(), CliError> {
    let question = format!("Ollama does not have {}. Fetch it? [Y/n] ", clip(name, 200));
    if says_yes(screen, &question, true).await {
        pull(settings, screen, name).await
    } else {
        Err(missing(name))
    }
}

/// Deletes a model of the server.
///
/// # Errors
/// The server does not answer, or does not have it.
pub(crate) async fn remove(
    settings: &Settings,
    screen: &Screen,
    name: &str,
    json: bool,
) -> Result<(), CliError> {
    server(settings)?
        .remove(name)
        .await
        .map_err(|error| match error {
            ModelError::NotFound { .. } => {
                CliError::no_such_model(format!("Ollama has no model {name:?}"))
                    .or_try("adjutant models list")
            }
            error => CliError::of_model_error(&error),
        })?;
    screen.answer_line(&if json {
        json_line(&json!({ "name": format!("ollama/{name}") }))
    } else {
        format!("ollama/{name} is gone.")
    });
    Ok(())
}

/// The server that the settings lead to.
///
/// # Errors
/// Its address is none.
pub(crate) fn server(settings: &Settings) -> Result<Server, CliError> {
    let provider = super::provider()
        .ok_or_else(|| CliError::failed("this adjutant was built without Ollama"))?;
    let connection = model_choice::connection(settings, provider, &Override::default())?;
    Server::new(&connection).map_err(|error| CliError::of_model_error(&error))
}

/// What the server does, for a person: the digest of a part says nothing to them.
fn step(name: &str, progress: &PullProgress) -> String {
    if progress.total_bytes == 0 || !progress.status.starts_with("pulling") {
        format!("{name}: {}", clean_line(&progress.status))
    } else {
        format!("{name}: fetching")
    }
}
