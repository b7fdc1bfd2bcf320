//! Where output goes: the answer to standard output, everything else to standard error.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anstream::stream::{AsLockedWrite, RawStream};
use anstream::{AutoStream, ColorChoice};
use crossterm::terminal;

use crate::display::{clean_line, wrap};
use crate::error::CliError;
use crate::render::live::{LiveLine, Status};

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Columns of a terminal that does not say, and the least that anything is laid out for.
const COLUMNS: usize = 80;
const COLUMNS_MIN: usize = 20;

/// Notices that stand for as long as their cause does: they come with every turn, and are told once. The others say
/// something of their turn.
const STANDING: &[&str] =
    &["not_sent", "instruction_incomplete", "context_trimmed", "context_not_summarized"];

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
    streams_events: bool,
    /// Below everything else, at a terminal that can take it away again.
    live: Mutex<Option<LiveLine>>,
    /// Notices that were told.
    told: Mutex<HashSet<String>>,
    /// Why something of the output was lost, such as a full disk.
    lost: OnceLock<io::Error>,
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
            streams_events: false,
            live: Mutex::new(None),
            told: Mutex::new(HashSet::new()),
            lost: OnceLock::new(),
        }
    }

    /// The same screen, but standard output holds a run's events as JSON, one a line.
    pub(crate) fn streaming_events(self, streams_events: bool) -> Self {
        Self { streams_events, ..self }
    }

    pub(crate) fn streams_events(&self) -> bool {
        self.streams_events
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

    /// Whether the answer may have colours and attributes.
    pub(crate) fn styles_answers(&self) -> bool {
        self.out_is_terminal && styled(&self.out)
    }

    /// Whether a line can be shown and taken away again: a terminal that colours are not kept from.
    pub(crate) fn shows_live(&self) -> bool {
        self.shows_progress() && styled(&self.err)
    }

    /// Columns of the terminal, as it is now.
    pub(crate) fn columns(&self) -> usize {
        let columns = terminal::size().map_or(0, |(columns, _)| usize::from(columns));
        if columns == 0 { COLUMNS } else { columns.max(COLUMNS_MIN) }
    }

    /// Shows what is happening now, and the unfinished end of the answer, until [`Screen::end_live`].
    pub(crate) fn live(&self, status: &Status, tail: &str) {
        if self.shows_live() {
            let columns = self.columns();
            let mut live = lock(&self.live);
            live.get_or_insert_with(|| LiveLine::new(status.clone())).show(status.clone(), tail, columns);
        }
    }

    /// Takes the live line away. Whoever reads from the terminal does this first.
    pub(crate) fn end_live(&self) {
        lock(&self.live).take();
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
        if let Err(error) = self.write(&self.out, text)
            // Whoever closed the pipe does not want to hear more.
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            let _ = self.lost.set(error);
        }
    }

    /// Returns why something of the output was lost, if it was.
    pub(crate) fn lost_output(&self) -> Option<CliError> {
        self.lost.get().map(output_lost)
    }

    /// A line of the answer.
    pub(crate) fn answer_line(&self, text: &str) {
        self.answer(&format!("{text}\n"));
    }

    /// Text on standard error, as it is.
    pub(crate) fn side(&self, text: &str) {
        // Nowhere is left to tell that it cannot be told.
        let _ = self.write(&self.err, text);
    }

    fn write<S: RawStream + AsLockedWrite>(
        &self,
        stream: &Mutex<AutoStream<S>>,
        text: &str,
    ) -> io::Result<()> {
        let write = || {
            let mut stream = lock(stream);
            stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
        };
        let mut live = lock(&self.live);
        if !text.ends_with('\n') {
            // What ends inside a line takes the live line's place.
            live.take();
        }
        match &*live {
            Some(line) => line.above(write),
            None => write(),
        }
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

    /// Something the person should know, after a `!`. What stands for as long as its cause is told once.
    pub(crate) fn notice(&self, code: &str, text: &str) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let new = lock(&self.told).insert(format!("{code} {text}"));
        if !new && STANDING.contains(&code) && !self.verbose() {
            return;
        }
        let columns = if self.err_is_terminal { self.columns() - 4 } else { usize::MAX };
        for (number, line) in wrap(&clean_line(text), columns).iter().enumerate() {
            let mark = if number == 0 { '!' } else { ' ' };
            self.side_line(&dim(&format!("  {mark} {line}")));
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

/// Returns what to tell about output that could not be written.
pub(crate) fn output_lost(error: &io::Error) -> CliError {
    CliError::failed("the output could not be written").because(error.to_string())
}

/// Text in the quiet colour, for standard error.
pub(crate) fn dim(text: &str) -> String {
    format!("{DIM}{text}{PLAIN}")
}

fn styled<S: RawStream>(stream: &Mutex<AutoStream<S>>) -> bool {
    lock(stream).current_choice() != ColorChoice::Never
}

fn lock<T>(stream: &Mutex<T>) -> MutexGuard<'_, T> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
