//! The log: one line per event, as text or JSON. `serve` always has one, other commands if
//! `ADJUTANT_LOG` is set.

mod filter; // filter by crate and level
mod layer; // collects events and spans
mod line; // formats a line
mod panic; // logs panics
mod writer; // writes lines in a thread

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::config::{Settings, Sources};
use crate::error::CliError;
use crate::private_file;
use crate::terminal::screen::{Screen, Verbosity};
use layer::Layer;
pub(crate) use line::LogFormat;
use writer::Thread;

/// Logs until it is dropped; everything logged before is written then.
pub(crate) struct Logging(#[expect(dead_code, reason = "held until it is dropped")] Thread);

/// The place that log lines are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    StandardError,
    /// A file of the user's, to which lines are appended.
    File(PathBuf),
}

/// Starts to log the events that pass `filter`.
///
/// # Errors
/// `filter` is malformed, or the process has a log already.
pub(crate) fn start(
    format: LogFormat,
    filter: Option<&str>,
    verbosity: Verbosity,
    destination: &Destination,
) -> Result<Logging, CliError> {
    let filter = match filter {
        Some(filter) => filter::parse(filter)?,
        None => filter::default(verbosity),
    };
    let failed = |error: &dyn std::error::Error| {
        CliError::failed("the log cannot be written").because(error.to_string())
    };
    let to: Box<dyn io::Write + Send> = match destination {
        Destination::StandardError => Box::new(io::stderr()),
        Destination::File(path) => {
            Box::new(private_file::append(path).map_err(|error| failed(&error))?)
        }
    };
    let (queue, thread) = writer::start(format, to).map_err(|error| failed(&error))?;
    let subscriber = registry().with(Layer {
        filter,
        format,
        queue,
    });
    tracing::subscriber::set_global_default(subscriber).map_err(|error| failed(&error))?;
    // With the log in a file, a panic is still to be seen on standard error.
    if *destination == Destination::StandardError {
        std::panic::set_hook(Box::new(panic::log));
    }
    Ok(Logging(thread))
}

/// Starts the log of a command other than `serve`, which logs only if `ADJUTANT_LOG` is set. A chat
/// on a terminal logs to the file `adjutant.log` of the state folder, because lines of a log would
/// break its display; every other command logs to standard error.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_if_asked(
    sources: &Sources,
    settings: &Settings,
    screen: &Screen,
    in_chat: bool,
) -> Result<Option<Logging>, CliError> {
    let Some(filter) = sources.variables.get("ADJUTANT_LOG") else {
        return Ok(None);
    };
    let destination = if in_chat && io::stderr().is_terminal() {
        let path = sources.dirs.state.join("adjutant.log");
        screen.note(&format!("logging to {}", path.display()));
        Destination::File(path)
    } else {
        Destination::StandardError
    };
    let format = settings.serve.log_format;
    start(format, Some(filter), screen.verbosity(), &destination).map(Some)
}
