//! `adjutant man`: the manual as man pages.

use std::path::Path;

use clap::CommandFactory as _;
use serde_json::json;

use crate::args::Cli;
use crate::command::output::file_error;
use crate::error::{CliError, Exit};
use crate::terminal::display::shown_path;
use crate::terminal::screen::Screen;

/// Prints the first page, or writes all pages into a folder.
///
/// # Errors
/// The folder cannot be created or written.
pub(crate) fn run(screen: &Screen, folder: Option<&Path>) -> Result<Exit, CliError> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        let made = clap_mangen::Man::new(Cli::command()).render(&mut page);
        made.map_err(|error| CliError::failed("there is no manual").because(error.to_string()))?;
        screen.answer(&String::from_utf8_lossy(&page));
        return Ok(Exit::Ok);
    };
    let unusable = |error: std::io::Error| file_error(folder, "written", &error);
    std::fs::create_dir_all(folder).map_err(unusable)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(unusable)?;
    screen.result(&json!({ "folder": folder.to_string_lossy() }), || {
        format!(
            "The manual is in {0}: man -l {0}/adjutant.1",
            shown_path(folder)
        )
    });
    Ok(Exit::Ok)
}
