//! `adjutant PROMPT`, `adjutant ask`: one request, one answer.

use crate::config::Settings;
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::input::Prompt;
use crate::report::Report;
use crate::screen::Screen;
use crate::talk::Talk;

/// How to ask.
pub(crate) struct Options {
    pub(crate) continues: bool,
    pub(crate) json: bool,
    pub(crate) yes: Vec<String>,
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
) -> Result<Exit, CliError> {
    if let Some(notice) = &prompt.notice {
        screen.note(notice);
    }
    let mut talk = Talk::start(screen, settings, options.yes, !options.json).await?;
    let mut context = talk.context(options.continues).await?;
    let response = talk.say(&mut context, &prompt.text).await?;
    if options.json {
        screen.answer_line(&json_line(&Report::of(&response, talk.agent.model().id().to_string())));
    }
    Ok(talk.exit(&response))
}
