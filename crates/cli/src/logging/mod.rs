//! The log of `serve`: one line an event on standard error, for a person or for a program.

mod filter; // which events
mod layer; // events, and the spans around them
mod line; // an event in one line
mod panic; // what broke down
mod writer; // lines, written without waiting for their reader

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::error::CliError;
use crate::screen::Verbosity;
use layer::Layer;
pub(crate) use line::LogFormat;
use writer::Thread;

/// A log that goes on until this is dropped, after what was logged before.
pub(crate) struct Logging(#[expect(dead_code, reason = "held until it is dropped")] Thread);

/// Begins to log what `filter` lets through.
///
/// # Errors
/// `filter` is none; the process logs already.
pub(crate) fn begin(
    format: LogFormat,
    filter: Option<&str>,
    verbosity: Verbosity,
) -> Result<Logging, CliError> {
    let filter = match filter {
        Some(filter) => filter::read(filter)?,
        None => filter::usual(verbosity),
    };
    let failed = |error: &dyn std::error::Error| {
        CliError::failed("the log cannot be written").because(error.to_string())
    };
    let (queue, thread) = writer::start(format).map_err(|error| failed(&error))?;
    let subscriber = registry().with(Layer {
        filter,
        format,
        queue,
    });
    tracing::subscriber::set_global_default(subscriber).map_err(|error| failed(&error))?;
    std::panic::set_hook(Box::new(panic::log));
    Ok(Logging(thread))
}
