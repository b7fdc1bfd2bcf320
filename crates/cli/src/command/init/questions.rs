//! Questions of `init` at a terminal. Ctrl-C and Esc cancel everything; nothing was written then.

use std::path::{Path, PathBuf};

use inquire::error::InquireResult;
use inquire::list_option::ListOption;
use inquire::validator::Validation;
use inquire::{InquireError, Select, Text};

use super::choices::ModelOption;
use super::folder_question::{Answer, Question};
use super::validate::{MEMORY, folder, note};
use crate::error::CliError;
use crate::terminal::screen::Screen;

/// Columns in front of each line of a choice.
const MARK: usize = 2;

/// Columns that all questions and their help fit into.
const WIDE: usize = 72;

/// Asks for the model.
///
/// # Errors
/// The user cancels.
pub(super) fn model(mut found: Vec<ModelOption>, screen: &Screen) -> Result<ModelOption, CliError> {
    let columns = screen.columns() - MARK;
    let lines = found.iter().map(|model| model.line(columns)).collect();
    let names: Vec<String> = found.iter().map(ModelOption::name).collect();
    let name = |chosen: ListOption<&String>| names.get(chosen.index).cloned().unwrap_or_default();
    let question = fitting(screen, "Which model answers?", "Model?");
    let select = select(question, lines, screen).with_formatter(&name);
    let index = answered(select.raw_prompt())?.index;
    Ok(found.swap_remove(index))
}

/// Returns a choice of these lines.
fn select<'a>(question: &'a str, lines: Vec<String>, screen: &Screen) -> Select<'a, String> {
    const USUAL: &str = "↑↓ to move, enter to select, type to filter";
    Select::new(question, lines).with_help_message(fitting(
        screen,
        USUAL,
        "↑↓, Enter; type to filter",
    ))
}

/// Returns the short words for a narrow terminal: a line that it wraps is divided within a word.
fn fitting<'a>(screen: &Screen, words: &'a str, short: &'a str) -> &'a str {
    if screen.columns() < WIDE {
        short
    } else {
        words
    }
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
    const NONE: &str = "none: facts about you are kept in the database";
    let mut options: Vec<String> = found
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    options.extend([OTHER.to_owned(), NONE.to_owned()]);
    let question = fitting(
        screen,
        "Where are your notes (an Obsidian vault, or any folder)?",
        "Folder of your notes?",
    );
    let select = select(question, options, screen);
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
pub(super) fn memory(screen: &Screen) -> Result<String, CliError> {
    let right = |text: &str| {
        Ok(match note(text) {
            Ok(_) => Validation::Valid,
            Err(error) => Validation::Invalid(error.message.into()),
        })
    };
    let question = fitting(
        screen,
        "Where does memory go (a file of the vault)?",
        "File of memory?",
    );
    answered(
        Text::new(question)
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
