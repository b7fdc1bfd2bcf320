//! The line editor: reedline in a thread of its own, controlled through channels.
//!
//! It prints below the existing output; it uses no alternate screen and no mouse.

mod burst; // keys that arrive faster than a person types
mod complete; // completion with Tab
mod history; // lines of earlier sessions
mod host; // commands that the editor hands to its caller
mod keys; // key bindings
mod line_state; // records if the edited line holds text
mod paste; // placeholders for long pasted texts
mod prompt; // the prompt `you> `

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reedline::{EditCommand, Reedline, Signal};
use tokio::sync::mpsc;

use complete::ChatCompleter;
use line_state::LineState;
use paste::Pastes;
use prompt::ChatPrompt;

use crate::config::EditorKeys;
use crate::terminal::tty::{Mode, TypeAhead, forget_typed};

pub(crate) use complete::{Arguments, NAMES_MAX, Names};
pub(crate) use prompt::PROMPT;

/// Interval at which the editor's thread checks if it has to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time the thread gets to stop; a terminal that is gone may block it for ever.
const STOP_WITHIN: Duration = Duration::from_millis(700);

/// Result of waiting at the prompt.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A complete line: a message or a command. From a pipe it may be no text.
    Line(Vec<u8>),
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-O: the text so far is to be opened in an external editor.
    Edit(String),
    /// Ctrl-Z: the process is to be suspended. The line is kept.
    Suspend,
    /// Alt-T: the model's thinking is to be shown or hidden. The line is kept.
    Thinking,
    /// A paste was refused as too long. The line is kept.
    TooLong,
    /// Ctrl-D on an empty line, or the end of a pipe.
    End,
    /// SIGTERM or SIGHUP, while the prompt was shown.
    Terminated,
    /// The wait was stopped by [`Editor::stop`]. The line is kept.
    Stopped,
    /// The terminal cannot be read, with the cause.
    Failed(String),
}

/// A request to the editor's thread.
enum Request {
    /// Continue with the line as it is.
    Read,
    /// Replace the line by this text first.
    ReadFrom(String),
}

/// Handle of the thread that runs the line editor.
pub(crate) struct Editor {
    requests: std::sync::mpsc::Sender<Request>,
    typed: mpsc::Receiver<Typed>,
    stop: Arc<AtomicBool>,
    waiting: bool,
    /// Mode of the terminal between two prompts: without it, an Enter typed in that moment would be
    /// translated to a newline.
    _between: Mode,
}

/// Settings of the line editor.
pub(crate) struct Options {
    /// File of the history; `None` keeps it for this session only.
    pub(crate) history: Option<PathBuf>,
    /// Completion of names after `@`.
    pub(crate) names: Names,
    /// Completion of command arguments.
    pub(crate) arguments: Arguments,
    /// Keys of the editor.
    pub(crate) keys: EditorKeys,
    /// True if colours are allowed (NO_COLOR is not set, for example).
    pub(crate) colors: bool,
}

/// The terminal does not answer the question for its cursor's position, which the line editor
/// needs.
#[derive(Default)]
pub(crate) struct NoCursorReport {
    /// Text that was typed while the answer was awaited.
    pub(crate) typed: String,
}

impl Editor {
    /// Starts the editor's thread. Waits up to two seconds for the terminal's answer, as over a
    /// slow connection. The second value is a notice for the user.
    ///
    /// # Errors
    /// [`NoCursorReport`].
    pub(crate) async fn open(options: Options) -> Result<(Self, Option<String>), NoCursorReport> {
        let between = Mode::turn(TypeAhead::Keys);
        let (requests, wished) = std::sync::mpsc::channel();
        // A request is answered once and sent only after the last answer, so the thread never waits
        // here.
        let (send, typed) = mpsc::channel(1);
        let (opened, ready) = tokio::sync::oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || {
            // In this thread, because the terminal's answer is awaited by a blocking read.
            if let Err(none) = terminal_answers() {
                // If the receiver is gone, the chat has ended meanwhile.
                let _ = opened.send(Err(none));
                return;
            }
            let pastes = Pastes::default();
            let (history, notice) = history::open(options.history, pastes.clone());
            let words = ChatCompleter {
                names: options.names,
                arguments: options.arguments,
            };
            let line = LineState::new(pastes.clone());
            let keys = keys::KeyBindings::new(options.keys, pastes.clone());
            let mut reedline = reedline(options.colors, words, keys, stopped)
                .with_highlighter(Box::new(line.clone()))
                .with_history(history);
            if opened.send(Ok(notice)).is_err() {
                return;
            }
            while let Ok(request) = wished.recv() {
                if let Request::ReadFrom(text) = request {
                    let text = pastes.shorten(&text);
                    reedline
                        .run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(text)]);
                }
                if send
                    .blocking_send(read_line(&mut reedline, &pastes, &line))
                    .is_err()
                {
                    return;
                }
            }
        });
        // If the thread has panicked, lines can still be read without it.
        let notice = ready
            .await
            .unwrap_or_else(|_| Err(NoCursorReport::default()))?;
        let editor = Self {
            requests,
            typed,
            stop,
            waiting: false,
            _between: between,
        };
        Ok((editor, notice))
    }

    /// Waits for input at the prompt. Dropping the future does not stop the editor;
    /// [`Editor::stop`] does.
    pub(crate) async fn next(&mut self, fill: &mut Option<String>) -> Typed {
        if !self.waiting {
            self.waiting = true;
            let request = fill.take().map_or(Request::Read, Request::ReadFrom);
            // If the thread has ended, receiving from it below fails and reports that.
            let _ = self.requests.send(request);
        }
        let typed = self.typed.recv().await;
        self.waiting = false;
        typed.unwrap_or_else(|| Typed::Failed("the line editor has ended".to_owned()))
    }

    /// Stops waiting at the prompt and restores the terminal's mode, so that something else can be
    /// printed.
    pub(crate) async fn stop(&mut self) {
        if !self.waiting {
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        if tokio::time::timeout(STOP_WITHIN, self.typed.recv())
            .await
            .is_err()
        {
            // The thread blocks in a read of a terminal that is gone. At least the mode is
            // restored.
            let _ = crossterm::terminal::disable_raw_mode();
            return;
        }
        self.stop.store(false, Ordering::Relaxed);
        self.waiting = false;
    }
}

fn reedline(
    colors: bool,
    words: ChatCompleter,
    keys: keys::KeyBindings,
    stop: Arc<AtomicBool>,
) -> Reedline {
    let hinter = reedline::DefaultHinter::default()
        .with_style(reedline::Color::DarkGray.normal())
        .with_min_chars(2);
    Reedline::create()
        .use_bracketed_paste(true)
        // Without this protocol, Shift-Enter and Ctrl-Enter are the same byte as Enter.
        .use_kitty_keyboard_enhancement(true)
        .with_ansi_colors(colors)
        .with_hinter(Box::new(hinter))
        .with_completer(Box::new(words))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(complete::menu())
        .with_edit_mode(Box::new(keys))
        // reedline checks the signal between two polls for a key.
        .with_break_signal(stop)
        .with_poll_interval(POLL_INTERVAL)
}

/// Reads one line, until Enter, a key of the caller's, or a stop.
fn read_line(reedline: &mut Reedline, pastes: &Pastes, line: &LineState) -> Typed {
    loop {
        // The highlighter has not drawn the new line yet: its state is that of the line before.
        line.forget();
        let signal = match reedline.read_line(&ChatPrompt) {
            Ok(signal) => signal,
            Err(error) => return Typed::Failed(error.to_string()),
        };
        match signal {
            Signal::Success(text) => {
                // A line not yet in the file would be lost if the process is killed. A failed write
                // costs only the history.
                let _ = reedline.sync_history();
                let line = pastes.expand(&text);
                pastes.clear();
                return Typed::Line(line.into_bytes());
            }
            Signal::HostCommand(command) if command == host::EDIT => {
                return Typed::Edit(pastes.expand(reedline.current_buffer_contents()));
            }
            Signal::HostCommand(command) if command == host::SUSPEND => return Typed::Suspend,
            Signal::HostCommand(command) if command == host::THINKING => return Typed::Thinking,
            Signal::HostCommand(command) if command == host::TOO_LONG => return Typed::TooLong,
            Signal::HostCommand(_) => {}
            // The first Ctrl-C clears the line or leaves the search; it does not count for
            // quitting.
            Signal::CtrlC if line.holds_text() => {
                // Drops pieces that are still on their way: they belong to the text that is given up.
                forget_typed();
                pastes.clear();
            }
            Signal::CtrlC => return Typed::Interrupt,
            Signal::CtrlD => return Typed::End,
            Signal::ExternalBreak(_) => return Typed::Stopped,
            // `Signal` is non-exhaustive.
            _ => {}
        }
    }
}

/// Asks the terminal for its cursor's position. reedline would wait two seconds before each prompt
/// for a terminal that does not answer.
fn terminal_answers() -> Result<(), NoCursorReport> {
    let asked = crossterm::terminal::enable_raw_mode().and_then(|()| crossterm::cursor::position());
    if asked.is_ok() {
        // Raw mode stays on until the first prompt: keys typed now are input of the editor.
        return Ok(());
    }
    let typed = burst::typed_meanwhile();
    // If the terminal is gone, there is no mode to restore.
    let _ = crossterm::terminal::disable_raw_mode();
    Err(NoCursorReport { typed })
}
