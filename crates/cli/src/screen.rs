//! Where output goes: the answer to standard output, everything else to standard error.

use std::any::Any;
use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use anstream::{AutoStream, ColorChoice};
use crossterm::terminal;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::display::{clean_line, fold, wrap};
use crate::error::CliError;
use crate::render::live::{self, LiveLine, Status};

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Columns and rows of a terminal that does not say, and the least columns that anything is laid
/// out for.
const COLUMNS: usize = 80;
const ROWS: usize = 24;
const COLUMNS_MIN: usize = 20;

/// Notices that stand for as long as their cause does: they come with every turn, and are told
/// once. The others say something of their turn.
const STANDING: &[&str] = &[
    "not_sent",
    "instruction_incomplete",
    "context_trimmed",
    "context_not_summarized",
];

/// The two streams, and what is known about who sits in front of them.
///
/// A stream nobody reads any more (`| head`) swallows the rest quietly: the turn still ends and is
/// recorded.
pub(crate) struct Screen {
    streams: Arc<Mutex<Streams>>,
    out_is_terminal: bool,
    err_is_terminal: bool,
    out_is_styled: bool,
    err_is_styled: bool,
    asks: bool,
    verbosity: Verbosity,
    streams_events: bool,
    size: Size,
    shows_thinking: AtomicBool,
    /// Notices that were told.
    told: Mutex<HashSet<String>>,
    /// The reason why something of the output was lost, such as a full disk.
    lost: OnceLock<io::Error>,
    /// The writer of the log, while a service runs: it gets what otherwise goes to standard error.
    logging: OnceLock<Box<dyn Any + Send + Sync>>,
}

type Stream = AutoStream<Box<dyn Write + Send>>;

/// Columns and rows, as they are now.
type Size = Arc<dyn Fn() -> (usize, usize) + Send + Sync>;

/// Whatever is written, in order.
struct Streams {
    out: Stream,
    err: Stream,
    /// Below everything else, at a terminal that can take it away again.
    live: Option<LiveLine>,
    /// Whether somebody draws the live line again and again.
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

    /// Writes to standard error. Nowhere is left to tell that it cannot be told.
    fn tell(&mut self, text: &str) {
        let _ = self.write(To::Err, text);
    }

    fn draw(&mut self, (columns, rows): (usize, usize)) {
        if let Some(live) = &mut self.live {
            let drawing = live.drawing(columns, rows, Instant::now());
            self.tell(&drawing);
        }
    }

    fn end_live(&mut self) {
        if self.live.take().is_some() {
            self.tell(live::CLEAR);
        }
    }
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
        let streams = Streams {
            out: AutoStream::new(Box::new(out), of_out),
            err: AutoStream::new(Box::new(err), of_err),
            live: None,
            ticks: false,
        };
        Self {
            out_is_styled: streams.out.current_choice() != ColorChoice::Never,
            err_is_styled: streams.err.current_choice() != ColorChoice::Never,
            streams: Arc::new(Mutex::new(streams)),
            out_is_terminal,
            err_is_terminal,
            asks: !no_input && err_is_terminal && std::io::stdin().is_terminal(),
            verbosity,
            streams_events: false,
            size: Arc::new(size_of_terminal),
            shows_thinking: AtomicBool::new(false),
            told: Mutex::new(HashSet::new()),
            lost: OnceLock::new(),
            logging: OnceLock::new(),
        }
    }

    /// A terminal that is written to as bytes.
    #[cfg(test)]
    pub(crate) fn of_test(
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
        Self {
            streams: Arc::new(Mutex::new(Streams {
                out: stream(),
                err: stream(),
                live: None,
                ticks: false,
            })),
            out_is_terminal: true,
            err_is_terminal: true,
            out_is_styled: styled,
            err_is_styled: styled,
            asks: false,
            verbosity: Verbosity::Normal,
            streams_events: false,
            size: Arc::new(size),
            shows_thinking: AtomicBool::new(false),
            told: Mutex::new(HashSet::new()),
            lost: OnceLock::new(),
            logging: OnceLock::new(),
        }
    }

    /// The same screen, but standard output holds a run's events as JSON, one a line.
    pub(crate) fn streaming_events(mut self, streams_events: bool) -> Self {
        self.streams_events = streams_events;
        self
    }

    pub(crate) fn streams_events(&self) -> bool {
        self.streams_events
    }

    /// Logs from now on what is told on standard error. `logging` is held until the screen is gone.
    pub(crate) fn log_by(&self, logging: impl Any + Send + Sync) {
        // A process serves once.
        let _ = self.logging.set(Box::new(logging));
    }

    /// Returns whether what is told is logged.
    pub(crate) fn logs(&self) -> bool {
        self.logging.get().is_some()
    }

    pub(crate) fn verbosity(&self) -> Verbosity {
        self.verbosity
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
        self.out_is_terminal && self.out_is_styled
    }

    /// Whether a line can be shown and taken away again: a terminal that colours are not kept from.
    pub(crate) fn shows_live(&self) -> bool {
        self.shows_progress() && self.err_is_styled && !self.logs()
    }

    /// Columns of the terminal, as it is now.
    pub(crate) fn columns(&self) -> usize {
        (self.size)().0.max(COLUMNS_MIN)
    }

    /// Shows what is happening now, and the unfinished end of the answer, until
    /// [`Screen::end_live`].
    pub(crate) fn live(&self, status: &Status, tail: &str) {
        if !self.shows_live() {
            return;
        }
        let mut streams = lock(&self.streams);
        let live = streams
            .live
            .get_or_insert_with(|| LiveLine::new(status.clone()));
        live.set(status.clone(), tail.to_owned());
        if live.is_due(Instant::now()) {
            streams.draw((self.size)());
        }
        if !std::mem::replace(&mut streams.ticks, true) {
            tokio::spawn(tick(Arc::downgrade(&self.streams), Arc::clone(&self.size)));
        }
    }

    /// Takes the live line away. Whoever reads from the terminal does this first.
    pub(crate) fn end_live(&self) {
        lock(&self.streams).end_live();
    }

    /// Shows a model's thinking from now on, or hides it.
    pub(crate) fn show_thinking(&self, shows: bool) {
        self.shows_thinking.store(shows, Ordering::Relaxed);
    }

    pub(crate) fn shows_thinking(&self) -> bool {
        self.shows_thinking.load(Ordering::Relaxed)
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
        if let Err(error) = self.write(To::Out, text)
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

    /// A line of the answer of a command; its words are kept together at a terminal.
    pub(crate) fn answer_line(&self, text: &str) {
        let text = format!("{text}\n");
        self.answer(&if self.out_is_terminal {
            fold(&text, self.columns())
        } else {
            text
        });
    }

    /// Text on standard error; its words are kept together at a terminal.
    pub(crate) fn side(&self, text: &str) {
        // Nowhere is left to tell that it cannot be told.
        let _ = match self.err_is_terminal {
            true => self.write(To::Err, &fold(text, self.columns())),
            false => self.write(To::Err, text),
        };
    }

    fn write(&self, to: To, text: &str) -> io::Result<()> {
        let mut streams = lock(&self.streams);
        if streams.live.is_some() {
            streams.tell(live::CLEAR);
        }
        if !text.ends_with('\n') {
            // What ends inside a line takes the live line's place.
            streams.live = None;
        }
        let written = streams.write(to, text);
        streams.draw((self.size)());
        written
    }

    /// A line on standard error.
    pub(crate) fn side_line(&self, text: &str) {
        self.side(&format!("{text}\n"));
    }

    /// A line that is good to know; not shown with `-q`.
    pub(crate) fn note(&self, text: &str) {
        if self.logs() {
            info!("{text}");
        } else if self.verbosity != Verbosity::Quiet {
            self.side_line(&format!("{DIM}{}{PLAIN}", clean_line(text)));
        }
    }

    /// Something the person should know, after a `!`. What stands for as long as its cause is told
    /// once.
    pub(crate) fn notice(&self, code: &str, text: &str) {
        if self.logs() {
            return warn!(code, "{text}");
        }
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let new = lock(&self.told).insert(format!("{code} {text}"));
        if !new && STANDING.contains(&code) && !self.verbose() {
            return;
        }
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

    /// What did not work, why, and what to do.
    pub(crate) fn error(&self, error: &CliError) {
        if self.logs() {
            let tries = (!error.tries.is_empty()).then(|| error.tries.join("; "));
            return error!(error = error.cause, tries, "{}", error.message);
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

/// Nothing is left behind by whoever ends with an error.
impl Drop for Screen {
    fn drop(&mut self) {
        self.end_live();
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

/// Draws the live line again and again, until it is taken away.
async fn tick(streams: Weak<Mutex<Streams>>, size: Size) {
    let mut ticks = interval(live::TICK);
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
        streams.draw(size());
    }
}

fn lock<T>(stream: &Mutex<T>) -> MutexGuard<'_, T> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
