//! Where output goes: the answer to standard output, everything else to standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};

use crate::display::clean_line;
use crate::error::CliError;

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// The two streams, and what is known about who sits in front of them.
///
/// A stream nobody reads any more (`| head`) swallows the rest quietly: the turn still ends and is recorded.
pub(crate) struct Screen {
    out: Mutex<AutoStream<std::io::Stdout>>,
    err: Mutex<AutoStream<std::io::Stderr>>,
    out_is_terminal: bool,
    err_is_terminal: bool,
    asks: bool,
    verbosity: Verbosity,
}

/// How much is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors and questions.
    Quiet,
    /// Also the model's name and notices; at a terminal, tools and tokens.
    Normal,
    /// Tools, tokens and the turn's id, terminal or not.
    Verbose,
}

impl Screen {
    pub(crate) fn new(color: ColorChoice, verbosity: Verbosity, no_input: bool) -> Self {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let (out_is_terminal, err_is_terminal) = (out.is_terminal(), err.is_terminal());
        Self {
            out: Mutex::new(AutoStream::new(out, color)),
            err: Mutex::new(AutoStream::new(err, color)),
            out_is_terminal,
            err_is_terminal,
            asks: !no_input && err_is_terminal && std::io::stdin().is_terminal(),
            verbosity,
        }
    }

    /// Whether a person can be asked: they see standard error and type into standard input.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Whether a person watches the answer come.
    pub(crate) fn shows_answers_live(&self) -> bool {
        self.out_is_terminal
    }

    /// Whether a person watches standard error, and has not asked for silence.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err_is_terminal && self.verbosity != Verbosity::Quiet
    }

    /// Whether tools and tokens are told.
    pub(crate) fn shows_work(&self) -> bool {
        self.shows_progress() || self.verbose()
    }

    pub(crate) fn verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Part of the answer, as it is.
    pub(crate) fn answer(&self, text: &str) {
        let mut out = lock(&self.out);
        // Whoever closed the pipe does not want to hear more.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// A line of the answer.
    pub(crate) fn answer_line(&self, text: &str) {
        self.answer(&format!("{text}\n"));
    }

    /// Text on standard error, as it is.
    pub(crate) fn side(&self, text: &str) {
        let mut err = lock(&self.err);
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// A line on standard error.
    pub(crate) fn side_line(&self, text: &str) {
        self.side(&format!("{text}\n"));
    }

    /// A line that is good to know; not shown with `-q`.
    pub(crate) fn note(&self, text: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.side_line(&format!("{DIM}{}{PLAIN}", clean_line(text)));
        }
    }

    /// What did not work, why, and what to do.
    pub(crate) fn error(&self, error: &CliError) {
        let mut text = format!("{RED}{BOLD}Error:{PLAIN} {}\n", clean_line(&error.message));
        if let Some(cause) = &error.cause {
            text.push_str(&format!("  {DIM}cause:{PLAIN} {}\n", clean_line(cause)));
        }
        for way in &error.tries {
            text.push_str(&format!("  {DIM}try:{PLAIN} {}\n", clean_line(way)));
        }
        self.side(&text);
    }
}

/// Text in the quiet colour, for standard error.
pub(crate) fn dim(text: &str) -> String {
    format!("{DIM}{text}{PLAIN}")
}

fn lock<T>(stream: &Mutex<T>) -> MutexGuard<'_, T> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
