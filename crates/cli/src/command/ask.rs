//! `adjutant PROMPT` and `adjutant ask`: a single message and its answer.

use std::path::Path;

use adjutant_runtime::BuildError;
use serde_json::Value;

use crate::command::sessions::{Resume, Start};
use crate::config::{Settings, ToolCalling, read_named_text};
use crate::error::{CliError, Exit};
use crate::terminal::input::Prompt;
use crate::terminal::json_answer::JsonAnswer;
use crate::terminal::screen::Screen;
use crate::terminal::session::{Session, Startup};

/// Options of the command line for a single message.
pub(crate) struct Options {
    pub(crate) resume: Resume,
    pub(crate) yes: Vec<String>,
    /// JSON Schema that the answer has to match.
    pub(crate) schema: Option<Value>,
}

/// Loads a JSON Schema from a file.
///
/// # Errors
/// The file cannot be read, or is not JSON.
pub(crate) fn schema(file: &Path) -> Result<Value, CliError> {
    let unusable = |cause: String| {
        CliError::usage(format!("the schema {} cannot be used", file.display())).because(cause)
    };
    let text = read_named_text(file).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(format!("it is not JSON: {error}")))
}

/// Submits one message and prints its answer.
///
/// # Errors
/// No turn was started. A turn that failed is an exit code instead.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    prompt: Prompt,
    options: Options,
    mut startup: Startup,
) -> Result<Exit, CliError> {
    prompt.notices.iter().for_each(|notice| screen.note(notice));
    let mut settings = settings.clone();
    // Constrained actions leave no room for an answer by a schema.
    if options.schema.is_some() && settings.llm.tool_calling == ToolCalling::Auto {
        settings.llm.tool_calling = ToolCalling::Free;
    }
    let settings = &settings;
    // Before the session loads a model: a wrong id should fail at once.
    let start = options.resume.resolve(settings, screen).await?;
    let mut session = startup
        .run(Session::open(
            screen,
            settings,
            options.yes,
            !screen.json(),
            true,
        ))
        .await?;
    drop(startup);
    // Text from a pipe may contain any `@`, such as one of an address; it attaches nothing.
    let mentioned = match prompt.typed {
        true => session.mentioned(&prompt.text, settings).await?,
        false => String::new(),
    };
    let message = prompt.message(&mentioned)?;
    if let Some(schema) = options.schema {
        session.agent = session.agent.with_output_schema(schema).map_err(|error| {
            let shown = CliError::usage("--schema cannot be used").because(error.to_string());
            // Constrained tool calling fixes the format of every answer, so another model has to be
            // named.
            match error {
                BuildError::OutputBesideWeakTools { .. } => {
                    shown.or_try("another model: -m gemini")
                }
                _ => shown,
            }
        })?;
    }
    // A question with its answer is no conversation yet: a script would fill the vault with notes.
    let is_continued = !matches!(start, Start::New);
    let mut context = session.context(start).await?;
    session
        .note_open_turns(&session.agent.key(&context))
        .await?;
    let response = session.submit(&mut context, &message).await?;
    if screen.json() {
        screen.answer_json(&JsonAnswer::from_response(
            &response,
            session.agent.model().id().to_string(),
        ));
    }
    if is_continued {
        session
            .user_memory
            .log(&*session.store, &session.agent.key(&context), screen)
            .await;
    }
    let exit = session.exit(&response);
    let conversation = session.agent.key(&context).conversation;
    session.leave().await;
    // The turn itself went well and is recorded, so the remedy is to print its answer again. With
    // `--temp` nothing is kept that could be printed.
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
