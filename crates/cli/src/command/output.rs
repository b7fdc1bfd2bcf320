//! Output that several commands share: tables, lists, and the errors of files.

use std::fmt::Display;
use std::path::Path;

use adjutant_core::{Arguments, UserId};
use comfy_table::{ContentArrangement, Row, Table, presets};
use serde::Serialize;

use crate::config::{Settings, Sources};
use crate::error::CliError;
use crate::id_prefix::Kind;
use crate::terminal::display::tokens;
use crate::terminal::screen::Screen;

/// Formats rows as a table without borders; an empty `header` is left out.
pub(super) fn table<R: Into<Row>>(header: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut table = Table::new();
    // Cells are copied from the output and read by scripts, so none is wrapped to the terminal.
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if !header.is_empty() {
        table.set_header(header.iter().copied());
    }
    table.add_rows(rows);
    table.trim_fmt()
}

/// Names a kind of object for error messages: one, several, and the command that lists them.
pub(super) const fn kind(one: &'static str, many: &'static str, list: &'static str) -> Kind {
    Kind { one, many, list }
}

/// Prints a list: all of `items` with `--json`, else `text`, or `none` if there are no items.
pub(super) fn print_list<T: Serialize>(
    screen: &Screen,
    items: &[T],
    none: &str,
    text: impl FnOnce() -> String,
) {
    screen.result(&items, || match items.is_empty() {
        true => none.to_owned(),
        false => text(),
    });
}

/// Joins the lines of an answer.
pub(super) fn lines<T>(items: &[T], line: impl FnMut(&T) -> String) -> String {
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a number of tokens, or `?` if the provider did not count them.
pub(super) fn counted(count: Option<u64>) -> String {
    count.map_or_else(|| "?".to_owned(), tokens)
}

/// Cuts a page that was loaded with one item more than `limit`. Returns true if there are more.
pub(super) fn cut_to<T>(page: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = page.len() > limit;
    page.truncate(limit);
    more
}

/// Returns the error of a file that could not be `done`, such as `written`.
pub(super) fn file_error(path: &Path, done: &str, error: &impl Display) -> CliError {
    CliError::failed(format!("{} cannot be {done}", path.display())).because(error.to_string())
}

/// Parses the option `--user`.
///
/// # Errors
/// It cannot be the name of a user.
pub(super) fn user_option(name: &str) -> Result<UserId, CliError> {
    UserId::new(name).map_err(|error| CliError::usage(format!("--user: {error}")))
}

/// Parses the arguments of `--args`.
///
/// # Errors
/// They are not a JSON object.
pub(super) fn parse_arguments(text: &str) -> Result<Arguments, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::usage("--args has to be a JSON object").because(error.to_string())
    })
}

/// Loads the settings, and prints their warnings.
///
/// # Errors
/// A source cannot be read, or a setting is invalid.
pub(super) fn load_settings(sources: &Sources, screen: &Screen) -> Result<Settings, CliError> {
    let settings = sources.load()?;
    note_warnings(&settings, screen);
    Ok(settings)
}

/// Prints the warnings about settings as notes.
pub(super) fn note_warnings(settings: &Settings, screen: &Screen) {
    settings
        .warnings
        .iter()
        .for_each(|warning| screen.note(warning));
}
