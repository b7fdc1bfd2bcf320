//! `adjutant PROMPT`, `adjutant ask`: one request, one answer.

use std::path::Path;

use adjutant_runtime::BuildError;
use serde_json::Value;

use crate::config::Settings;
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::input::Prompt;
use crate::report::Report;
use crate::screen::Screen;
use crate::sessions::TakeUp;
use crate::talk::{Opening, Talk};

/// How to ask.
pub(crate) struct Options {
    pub(crate) take_up: TakeUp,
    pub(crate) json: bool,
    pub(crate) yes: Vec<String>,
    /// JSON Schema of the answer.
    pub(crate) schema: Option<Value>,
}

/// Reads a JSON Schema.
///
/// # Errors
/// The file cannot be read, or is not JSON.
pub(crate) fn schema(file: &Path) -> Result<Value, CliError> {
    let unusable = |cause: String| {
        CliError::usage(format!("the schema {} cannot be used", file.display())).because(cause)
    };
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(format!("it is not JSON: {error}")))
}

/// Asks once.
///
/// # Errors
/// No turn came about. One that did is an exit code, whatever its outcome.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    prompt: Prompt,
    options: Options,
    mut opening: Opening,
) -> Result<Exit, CliError> {
    prompt.notices.iter().for_each(|notice| screen.note(notice));
    let start = options.take_up.start(settings, screen).await?;
    let mut talk = opening
        .start(Talk::open(
            screen,
            settings,
            options.yes,
            !options.json,
            true,
        ))
        .await?;
    drop(opening);
    let mentioned = match prompt.typed {
        true => talk.mentioned(&prompt.text, settings).await?,
        false => String::new(),
    };
    let message = prompt.message(&mentioned)?;
    if let Some(schema) = options.schema {
        talk.agent = talk.agent.with_output_schema(schema).map_err(|error| {
            let shown = CliError::usage("--schema cannot be used").because(error.to_string());
            match error {
                BuildError::OutputBesideWeakTools { .. } => {
                    shown.or_try("another model: -m gemini")
                }
                _ => shown,
            }
        })?;
    }
    let mut context = talk.context(start).await?;
    talk.tell_left(&talk.agent.key(&context)).await?;
    let response = talk.say(&mut context, &message).await?;
    if options.json {
        screen.answer_line(&json_line(&Report::of(
            &response,
            talk.agent.model().id().to_string(),
        )));
    }
    talk.desk
        .log(&*talk.store, &talk.agent.key(&context), screen)
        .await;
    let exit = talk.exit(&response);
    let conversation = talk.agent.key(&context).conversation;
    talk.leave().await;
    match screen.lost_output() {
        Some(lost) if exit == Exit::Ok && !settings.bounds.temp => Err(CliError {
            message: "the answer could not be written".to_owned(),
            ..lost
        }
        .or_try(format!(
            "adjutant sessions show {conversation}    the conversation is kept"
        ))),
        _ => Ok(exit),
    }
}
