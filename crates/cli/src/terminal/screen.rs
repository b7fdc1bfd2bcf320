//! Standard output and standard error of the process: answers go to the first, all else to the
//! second.

use std::any::Any;
use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use anstream::{AutoStream, ColorChoice};
use crossterm::terminal;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::error::CliError;
use crate::terminal::display::{clean_line, fold, join_parts, json_line, wrap};
use crate::terminal::render::live::{self, LiveLine, Status};
use crate::terminal::tty;

/// Target of the events logged here. Users name it in `ADJUTANT_LOG`, so it does not follow the
/// module.
const TARGET: &str = "adjutant::screen";

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Size of a terminal that reports none, and the least width that text is laid out for.
const COLUMNS: usize = 80;
const ROWS: usize = 24;
const COLUMNS_MIN: usize = 20;

/// Notices that are repeated with every turn while their cause lasts; they are printed once. All
/// others concern a single turn.
const STANDING: &[&str] = &[
    "not_sent",
    "instruction_incomplete",
    "context_trimmed",
    "history_trimmed",
    "context_not_summarized",
];

/// The two output streams, and what is known about the reader of each.
///
/// A closed stream (`| head`) discards the rest silently, so that the turn still ends and is
/// recorded.
pub(crate) struct Screen {
    streams: Arc<Mutex<Streams>>,
    out_is_terminal: bool,
    err_is_terminal: bool,
    out_is_styled: bool,
    err_is_styled: bool,
    asks: bool,
    verbosity: Verbosity,
    format: Format,
    size: Size,
    shows_thinking: AtomicBool,
    /// Standing notices that were printed already.
    printed_notices: Mutex<HashSet<String>>,
    /// The first write error on standard output, such as a full disk.
    lost: OnceLock<io::Error>,
    /// Guard of the log while a service runs; notes, notices and errors are logged then.
    logging: OnceLock<Box<dyn Any + Send + Sync>>,
}

type Stream = AutoStream<Box<dyn Write + Send>>;

/// Returns the current columns and rows.
type Size = Arc<dyn Fn() -> (usize, usize) + Send + Sync>;

/// The streams behind one lock, so that their output stays in order.
struct Streams {
    out: Stream,
    err: Stream,
    /// Live line below all other output, at a terminal that can remove it again.
    live: Option<LiveLine>,
    /// True while a task redraws the live line.
    ticks: bool,
}

#[derive(Clone, Copy)]
enum To {
    Out,
    Err,
}

impl Streams {
    fn write(&mut self, to: To, text: &str) -> io::Result<()> {
        let stream = match to {
            To::Out => &mut self.out,
            To::Err => &mut self.err,
        };
        stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush())
    }

    /// Writes to standard error. If that fails, there is no place left to report it.
    fn write_err(&mut self, text: &str) {
        let _ = self.write(To::Err, text);
    }

    fn draw(&mut self, size: &Size) {
        if let Some(live) = &mut self.live {
            let (columns, rows) = size();
            let drawing = live.drawing(columns, rows, Instant::now());
            self.write_err(&drawing);
        }
    }

    fn end_live(&mut self) {
        if self.live.take().is_some() {
            self.write_err(live::CLEAR);
        }
    }
}

/// Format of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON object: `--json`.
    Json,
    /// Events of a run as JSON lines, then the object of `--json`: `--stream-json`.
    JsonEvents,
}

/// Amount of output on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors and questions.
    Quiet,
    /// Also the model's name and notices; at a terminal, tools and tokens.
    Normal,
    /// Also tools, tokens and the turn's id where there is no terminal.
    Verbose,
}

impl Screen {
    pub(crate) fn new(color: ColorChoice, verbosity: Verbosity, no_input: bool) -> Self {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let (out_is_terminal, err_is_terminal) = (out.is_terminal(), err.is_terminal());
        // Without `--color` each stream decides alone: one of them may be a file.
        let choose = |of_stream: ColorChoice| {
            if color == ColorChoice::Auto {
                of_stream
            } else {
                color
            }
        };
        let (of_out, of_err) = (
            choose(AutoStream::choice(&out)),
            choose(AutoStream::choice(&err)),
        );
        let mut screen = Self::with_streams(
            AutoStream::new(Box::new(out), of_out),
            AutoStream::new(Box::new(err), of_err),
            Arc::new(size_of_terminal),
        );
        screen.out_is_terminal = out_is_terminal;
        screen.err_is_terminal = err_is_terminal;
        // Questions are printed on standard error, so standard output may be redirected.
        screen.asks = !no_input && err_is_terminal && std::io::stdin().is_terminal();
        screen.verbosity = verbosity;
        screen
    }

    /// Creates a screen that writes to an emulated terminal.
    #[cfg(test)]
    pub(crate) fn for_test(
        terminal: impl Write + Clone + Send + 'static,
        styled: bool,
        size: impl Fn() -> (usize, usize) + Send + Sync + 'static,
    ) -> Self {
        let choice = if styled {
            ColorChoice::AlwaysAnsi
        } else {
            ColorChoice::Never
        };
        let stream =
            || AutoStream::new(Box::new(terminal.clone()) as Box<dyn Write + Send>, choice);
        Self::with_streams(stream(), stream(), Arc::new(size))
    }

    /// Creates a screen whose streams are terminals, where the user cannot be asked.
    fn with_streams(out: Stream, err: Stream, size: Size) -> Self {
        Self {
            out_is_terminal: true,
            err_is_terminal: true,
            out_is_styled: out.current_choice() != ColorChoice::Never,
            err_is_styled: err.current_choice() != ColorChoice::Never,
            streams: Arc::new(Mutex::new(Streams {
                out,
                err,
                live: None,
                ticks: false,
            })),
            asks: false,
            verbosity: Verbosity::Normal,
            format: Format::Text,
            size,
            shows_thinking: AtomicBool::new(false),
            printed_notices: Mutex::new(HashSet::new()),
            lost: OnceLock::new(),
            logging: OnceLock::new(),
        }
    }

    /// Sets the format of standard output.
    pub(crate) fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Returns true if standard output is for programs: `--json` or `--stream-json`.
    pub(crate) fn json(&self) -> bool {
        self.format != Format::Text
    }

    /// Returns true if the events of a run are written to standard output.
    pub(crate) fn streams_events(&self) -> bool {
        self.format == Format::JsonEvents
    }

    /// Sends notes, notices and errors to the log from now on. `logging` is kept until the screen
    /// is dropped.
    pub(crate) fn use_log(&self, logging: impl Any + Send + Sync) {
        // The log is set up once; `adjutant serve` runs once per process.
        let _ = self.logging.set(Box::new(logging));
    }

    /// Returns true if notes, notices and errors are logged.
    pub(crate) fn logs(&self) -> bool {
        self.logging.get().is_some()
    }

    pub(crate) fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Returns true if the user can be asked: standard error and standard input are terminals.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Returns true if answers are shown while they arrive.
    pub(crate) fn shows_answers_live(&self) -> bool {
        self.out_is_terminal
    }

    /// Returns true if standard error is a terminal and `-q` is not set.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err_is_terminal && self.verbosity != Verbosity::Quiet
    }

    /// Returns true if answers may have colours and attributes.
    pub(crate) fn styles_answers(&self) -> bool {
        self.out_is_terminal && self.out_is_styled
    }

    /// Returns true if a line can be shown and removed again, which needs a terminal with escape
    /// sequences.
    pub(crate) fn shows_live(&self) -> bool {
        self.shows_progress() && self.err_is_styled && !self.logs()
    }

    /// Returns the current columns of the terminal.
    pub(crate) fn columns(&self) -> usize {
        (self.size)().0.max(COLUMNS_MIN)
    }

    /// Shows a status, and the unfinished end of the answer above it, until [`Screen::end_live`].
    pub(crate) fn live(&self, status: &Status, tail: &str) {
        if !self.shows_live() {
            return;
        }
        let mut streams = lock(&self.streams);
        let live = streams
            .live
            .get_or_insert_with(|| LiveLine::new(status.clone()));
        live.set(status.clone(), tail.to_owned());
        // An answer arrives in many small pieces. The ticker draws what is left out here.
        if live.is_due(Instant::now()) {
            streams.draw(&self.size);
        }
        if !std::mem::replace(&mut streams.ticks, true) {
            // Weak, so that the task ends with the screen.
            tokio::spawn(tick(Arc::downgrade(&self.streams), Arc::clone(&self.size)));
        }
    }

    /// Removes the live line. Required before anything is read from the terminal.
    pub(crate) fn end_live(&self) {
        lock(&self.streams).end_live();
    }

    /// Suspends this process as the shell's job, without the live line, and goes on when the shell
    /// has it. Says so if no shell is waiting.
    pub(crate) fn suspend(&self) {
        let is_done = suspend(&self.streams, &self.size);
        if !is_done {
            self.note("there is no shell to return to: this terminal runs adjutant alone");
        }
    }

    /// Suspends this process in the same way at Ctrl-Z of the terminal, from now on.
    ///
    /// # Errors
    /// The signal cannot be listened for.
    #[cfg(unix)]
    pub(crate) fn suspend_on_signal(&self) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let number = rustix::process::Signal::TSTP.as_raw();
        let mut stops = signal(SignalKind::from_raw(number))?;
        let (streams, size) = (Arc::downgrade(&self.streams), Arc::clone(&self.size));
        tokio::spawn(async move {
            while stops.recv().await.is_some() {
                let Some(streams) = streams.upgrade() else {
                    return;
                };
                suspend(&streams, &size);
            }
        });
        Ok(())
    }

    /// Does nothing: other systems suspend no processes.
    #[cfg(not(unix))]
    pub(crate) fn suspend_on_signal(&self) -> io::Result<()> {
        Ok(())
    }

    /// Shows or hides the model's thinking from now on.
    pub(crate) fn show_thinking(&self, shows: bool) {
        self.shows_thinking.store(shows, Ordering::Relaxed);
    }

    pub(crate) fn shows_thinking(&self) -> bool {
        self.shows_thinking.load(Ordering::Relaxed)
    }

    /// Returns true if tool calls and tokens are printed.
    pub(crate) fn shows_work(&self) -> bool {
        self.shows_progress() || self.verbose()
    }

    pub(crate) fn verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Writes a part of the answer unchanged.
    pub(crate) fn answer(&self, text: &str) {
        if let Err(error) = self.write(To::Out, text)
            // A closed pipe is no error: its reader has seen enough.
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            // The first error is kept: it is the cause of the others.
            let _ = self.lost.set(error);
        }
    }

    /// Returns the error of output that was lost, if any was.
    pub(crate) fn lost_output(&self) -> Option<CliError> {
        self.lost.get().map(output_lost)
    }

    /// Writes a line of a command's answer; at a terminal it is wrapped between words.
    pub(crate) fn answer_line(&self, text: &str) {
        let text = format!("{text}\n");
        self.answer(&if self.out_is_terminal {
            fold(&text, self.columns())
        } else {
            text
        });
    }

    /// Writes a value as one line of JSON to standard output.
    pub(crate) fn answer_json(&self, value: &impl Serialize) {
        self.answer_line(&json_line(value));
    }

    /// Writes the result of a command: `value` with `--json`, else the text.
    pub(crate) fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        if self.json() {
            self.answer_json(value);
        } else {
            self.answer_line(&text());
        }
    }

    /// Writes text to standard error; at a terminal it is wrapped between words.
    pub(crate) fn side(&self, text: &str) {
        // If standard error fails, there is no place left to report it.
        let _ = match self.err_is_terminal {
            true => self.write(To::Err, &fold(text, self.columns())),
            false => self.write(To::Err, text),
        };
    }

    fn write(&self, to: To, text: &str) -> io::Result<()> {
        let mut streams = lock(&self.streams);
        // The live line is below all other output: it is cleared, and drawn again behind the text.
        if streams.live.is_some() {
            streams.write_err(live::CLEAR);
        }
        if !text.ends_with('\n') {
            // Text without a final newline continues where the live line was.
            streams.live = None;
        }
        let written = streams.write(to, text);
        streams.draw(&self.size);
        written
    }

    /// Writes a line to standard error.
    pub(crate) fn side_line(&self, text: &str) {
        self.side(&format!("{text}\n"));
    }

    /// Writes additional information, which `-q` hides.
    pub(crate) fn note(&self, text: &str) {
        if self.logs() {
            info!(target: TARGET, "{text}");
        } else if self.verbosity != Verbosity::Quiet {
            self.side_line(&format!("{DIM}{}{PLAIN}", clean_line(text)));
        }
    }

    /// Writes parts of a note, joined by ` · `: on several lines where one is too narrow, and none of
    /// them divided.
    pub(crate) fn note_parts(&self, parts: &[String]) {
        let columns = match self.err_is_terminal && !self.logs() {
            true => self.columns(),
            false => usize::MAX,
        };
        let lines = join_parts(parts, columns);
        lines.iter().for_each(|line| self.note(line));
    }

    /// Returns a function that reads the current columns of the terminal.
    #[cfg(any(feature = "embedded", feature = "ollama"))]
    pub(crate) fn current_columns(&self) -> impl Fn() -> usize + Clone + Send + Sync + 'static {
        let size = Arc::clone(&self.size);
        move || size().0.max(COLUMNS_MIN)
    }

    /// Writes a warning, after a `!`. A standing one (see `STANDING`) is written once.
    pub(crate) fn notice(&self, code: &str, text: &str) {
        if self.logs() {
            return warn!(target: TARGET, code, "{text}");
        }
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let new = lock(&self.printed_notices).insert(format!("{code} {text}"));
        if !new && STANDING.contains(&code) && !self.verbose() {
            return;
        }
        // The mark takes four columns, and `columns` returns no fewer than `COLUMNS_MIN`.
        let columns = if self.err_is_terminal {
            self.columns() - 4
        } else {
            usize::MAX
        };
        for (number, line) in wrap(&clean_line(text), columns).iter().enumerate() {
            let mark = if number == 0 { '!' } else { ' ' };
            self.side_line(&dim(&format!("  {mark} {line}")));
        }
    }

    /// Writes an error with its cause and remedies.
    pub(crate) fn error(&self, error: &CliError) {
        if self.logs() {
            let tries = (!error.tries.is_empty()).then(|| error.tries.join("; "));
            return error!(target: TARGET, error = error.cause, tries, "{}", error.message);
        }
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

/// Removes the live line when a command returns early with an error.
impl Drop for Screen {
    fn drop(&mut self) {
        self.end_live();
    }
}

/// Returns the error for standard output that could not be written.
pub(crate) fn output_lost(error: &io::Error) -> CliError {
    CliError::failed("the output could not be written").because(error.to_string())
}

/// Styles text for standard error as less important.
pub(crate) fn dim(text: &str) -> String {
    format!("{DIM}{text}{PLAIN}")
}

/// Suspends this process, holding the streams, so that nothing is printed meanwhile. Returns false
/// if no shell is waiting.
fn suspend(streams: &Mutex<Streams>, size: &Size) -> bool {
    let mut streams = lock(streams);
    if streams.live.is_some() {
        streams.write_err(live::CLEAR);
    }
    let is_done = tty::suspend();
    streams.draw(size);
    is_done
}

fn size_of_terminal() -> (usize, usize) {
    let (columns, rows) = terminal::size().unwrap_or_default();
    let known = |cells: u16, usual| {
        if cells == 0 {
            usual
        } else {
            usize::from(cells)
        }
    };
    (known(columns, COLUMNS), known(rows, ROWS))
}

/// Redraws the live line until it is removed.
async fn tick(streams: Weak<Mutex<Streams>>, size: Size) {
    let mut ticks = interval(live::TICK);
    // After the process was suspended, one drawing replaces all that were missed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(streams) = streams.upgrade() else {
            return;
        };
        let mut streams = lock(&streams);
        if streams.live.is_none() {
            streams.ticks = false;
            return;
        }
        streams.draw(&size);
    }
}

fn lock<T>(stream: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in the middle of a line leaves streams that can still be written to.
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
