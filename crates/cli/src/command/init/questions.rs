//! Questions of `init` at a terminal. Ctrl-C and Esc cancel everything; nothing was written then.

use std::path::{Path, PathBuf};

use inquire::error::InquireResult;
use inquire::validator::Validation;
use inquire::{InquireError, Select, Text};

use super::choices::ModelOption;
use super::folder_question::{Answer, Question};
use super::validate::{MEMORY, folder, note};
use crate::error::CliError;
use crate::terminal::screen::Screen;

/// Asks for the model.
///
/// # Errors
/// The user cancels.
pub(super) fn model(found: Vec<ModelOption>) -> Result<ModelOption, CliError> {
    answered(Select::new("Which model answers?", found).prompt())
}

/// Asks for the vault; `None` for no vault.
///
/// # Errors
/// The user cancels.
pub(super) fn vault(
    here: &Path,
    found: Vec<PathBuf>,
    screen: &Screen,
) -> Result<Option<PathBuf>, CliError> {
    const OTHER: &str = "another folder";
    const NONE: &str = "none: nothing is remembered";
    let mut options: Vec<String> = found
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    options.extend([OTHER.to_owned(), NONE.to_owned()]);
    let question = "Where are your notes (an Obsidian vault, or any folder)?";
    let select = Select::new(question, options);
    let index = answered(select.raw_prompt())?.index;
    if let Some(path) = found.get(index) {
        return Ok(Some(path.clone()));
    }
    if index > found.len() {
        return Ok(None);
    }
    other_folder(here, screen).map(Some)
}

/// Asks for a folder that was not found automatically, until it can be the vault.
fn other_folder(here: &Path, screen: &Screen) -> Result<PathBuf, CliError> {
    let mut question = Question::new(here, screen.styles_answers());
    loop {
        match question.ask() {
            Answer::Typed(path) if path.trim().is_empty() => {
                screen.note("type the path of a folder")
            }
            Answer::Typed(path) => match folder(here, Path::new(path.trim())) {
                Ok(folder) => return Ok(folder),
                Err(error) => screen.note(&error.cause.unwrap_or(error.message)),
            },
            Answer::Cancelled => return Err(stopped()),
            Answer::NoTerminal => break,
        }
    }
    // Where keys cannot be read one by one, a plain question without completion has to do.
    let place = here.to_owned();
    let right = move |text: &str| {
        Ok(match folder(&place, Path::new(text.trim())) {
            Ok(_) => Validation::Valid,
            Err(error) => Validation::Invalid(error.cause.unwrap_or(error.message).into()),
        })
    };
    let path = answered(Text::new("Which folder?").with_validator(right).prompt())?;
    folder(here, Path::new(path.trim()))
}

/// Asks for the file of facts.
///
/// # Errors
/// The user cancels.
pub(super) fn memory() -> Result<String, CliError> {
    let right = |text: &str| {
        Ok(match note(text) {
            Ok(_) => Validation::Valid,
            Err(error) => Validation::Invalid(error.message.into()),
        })
    };
    answered(
        Text::new("Where does memory go (a file of the vault)?")
            .with_default(MEMORY)
            .with_validator(right)
            .prompt(),
    )
}

fn answered<T>(answer: InquireResult<T>) -> Result<T, CliError> {
    answer.map_err(|error| match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => stopped(),
        error => CliError::failed("questions cannot be asked here")
            .because(error.to_string())
            .or_try("adjutant init --model MODEL --vault DIR --yes"),
    })
}

fn stopped() -> CliError {
    CliError::interrupted("nothing was written")
}
