//! The line editor of a terminal: what reedline does, in a thread of its own, told and stopped from
//! here.
//!
//! It prints below what is there and owns no screen: no alternate screen, no mouse.

mod complete; // what Tab offers
mod history; // what was said before
mod keys; // what a key does
mod paste; // long texts, shown as one word
mod prompt; // "you> "
mod watched; // whether there is anything to clear

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use reedline::{EditCommand, Reedline, Signal};
use tokio::sync::mpsc;

use complete::Words;
use paste::Pastes;
use prompt::You;
use watched::Watched;

use crate::tty::{Ahead, Mode};

pub(crate) use complete::{Arguments, Names};
pub(crate) use prompt::PROMPT;

/// How often the editor looks whether it has to stop.
const LOOK: Duration = Duration::from_millis(100);

/// How long its end is waited for; a terminal that is gone may keep it.
const STOP_WITHIN: Duration = Duration::from_millis(700);

/// What a key asks for that is not the editor's to do.
mod host {
    /// Ctrl-O.
    pub(super) const EDIT: &str = "edit";
    /// Alt-T.
    pub(super) const THINKING: &str = "thinking";
    /// A paste that is longer than a message may be.
    pub(super) const TOO_LONG: &str = "too long";
}

/// What came of a wait at the prompt.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A message or a command.
    Line(String),
    /// Ctrl-C where there was nothing to clear.
    Interrupt,
    /// Ctrl-O: the text so far is to be opened in an editor.
    Edit(String),
    /// Alt-T: a model's thinking is to be shown, or hidden; what is typed stays.
    Thinking,
    /// A paste was refused; what was there before is still there.
    TooLong,
    /// Ctrl-D.
    End,
    /// The wait was called off; what is typed stays.
    Stopped,
    /// The terminal cannot be read.
    Failed(String),
}

/// What the editor is told before it waits.
enum Wish {
    /// Goes on with what is there.
    Read,
    /// Starts with this text.
    ReadFrom(String),
}

/// A line editor in its thread.
pub(crate) struct Editor {
    wishes: std::sync::mpsc::Sender<Wish>,
    typed: mpsc::Receiver<Typed>,
    stop: Arc<AtomicBool>,
    waiting: bool,
    /// What the terminal goes back to between two prompts: a key that is pressed in that instant
    /// stays the key that it is.
    _between: Mode,
}

/// How the editor is set up.
pub(crate) struct Options {
    /// Where lines are kept for the next time; without, they are forgotten with the session.
    pub(crate) history: Option<PathBuf>,
    /// What can stand after `@`.
    pub(crate) names: Names,
    /// The arguments of commands.
    pub(crate) arguments: Arguments,
    /// Whether NO_COLOR and its like allow colours.
    pub(crate) colors: bool,
}

/// The terminal does not say where its cursor is, so that nothing can be edited in place.
pub(crate) struct NoTerminal {
    /// What was typed meanwhile.
    pub(crate) typed: String,
}

impl Editor {
    /// Starts it. A terminal that does not answer is given two seconds, as over a slow line.
    ///
    /// # Errors
    /// [`NoTerminal`].
    pub(crate) async fn open(options: Options) -> Result<(Self, Option<String>), NoTerminal> {
        let between = Mode::turn(Ahead::Keys);
        let (wishes, wished) = std::sync::mpsc::channel();
        let (send, typed) = mpsc::channel(1);
        let (opened, ready) = tokio::sync::oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || {
            if let Err(none) = terminal_answers() {
                let _ = opened.send(Err(none));
                return;
            }
            let pastes = Pastes::default();
            let (history, notice) = history::open(options.history.clone(), pastes.clone());
            let words = Words {
                names: options.names.clone(),
                arguments: Arc::clone(&options.arguments),
            };
            let line = Watched::default();
            let mut reedline = reedline(&options, words, pastes.clone(), stopped)
                .with_highlighter(Box::new(line.clone()))
                .with_history(history);
            if opened.send(Ok(notice)).is_err() {
                return;
            }
            while let Ok(wish) = wished.recv() {
                if let Wish::ReadFrom(text) = wish {
                    let text = pastes.shorten(&text);
                    reedline
                        .run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(text)]);
                }
                if send
                    .blocking_send(read(&mut reedline, &pastes, &line))
                    .is_err()
                {
                    return;
                }
            }
        });
        match ready.await {
            Ok(Ok(notice)) => Ok((
                Self {
                    wishes,
                    typed,
                    stop,
                    waiting: false,
                    _between: between,
                },
                notice,
            )),
            Ok(Err(none)) => Err(none),
            Err(_) => Err(NoTerminal {
                typed: String::new(),
            }),
        }
    }

    /// Waits at the prompt. Dropping the future calls nothing off: [`Editor::stop`] does.
    pub(crate) async fn next(&mut self, fill: &mut Option<String>) -> Typed {
        if !self.waiting {
            self.waiting = true;
            let wish = fill.take().map_or(Wish::Read, Wish::ReadFrom);
            // The thread ends only with this, or with the terminal.
            let _ = self.wishes.send(wish);
        }
        let typed = self.typed.recv().await;
        self.waiting = false;
        typed.unwrap_or_else(|| Typed::Failed("the line editor has ended".to_owned()))
    }

    /// Calls the wait at the prompt off, so that something else can be printed or the process can
    /// end; the terminal is as it was before the wait.
    pub(crate) async fn stop(&mut self) {
        if !self.waiting {
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        if tokio::time::timeout(STOP_WITHIN, self.typed.recv())
            .await
            .is_err()
        {
            // Its thread hangs in a read of a terminal that is gone. What can be put right is.
            let _ = crossterm::terminal::disable_raw_mode();
            return;
        }
        self.stop.store(false, Ordering::Relaxed);
        self.waiting = false;
    }
}

fn reedline(options: &Options, words: Words, pastes: Pastes, stop: Arc<AtomicBool>) -> Reedline {
    let hinter = reedline::DefaultHinter::default()
        .with_style(reedline::Color::DarkGray.normal())
        .with_min_chars(2);
    Reedline::create()
        .use_bracketed_paste(true)
        .use_kitty_keyboard_enhancement(true)
        .with_ansi_colors(options.colors)
        .with_hinter(Box::new(hinter))
        .with_completer(Box::new(words))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(complete::menu())
        .with_edit_mode(Box::new(keys::Keys::new(pastes)))
        .with_break_signal(stop)
        .with_poll_interval(LOOK)
}

/// One wait at the prompt.
fn read(reedline: &mut Reedline, pastes: &Pastes, line: &Watched) -> Typed {
    loop {
        line.forget();
        let signal = match reedline.read_line(&You) {
            Ok(signal) => signal,
            Err(error) => return Typed::Failed(error.to_string()),
        };
        match signal {
            Signal::Success(text) => {
                // A line that is not on the disk yet would be lost with the process. Without a disk
                // it is only forgotten.
                let _ = reedline.sync_history();
                let line = pastes.expand(&text);
                pastes.clear();
                return Typed::Line(line);
            }
            Signal::HostCommand(command) if command == host::EDIT => {
                return Typed::Edit(pastes.expand(reedline.current_buffer_contents()));
            }
            Signal::HostCommand(command) if command == host::THINKING => return Typed::Thinking,
            Signal::HostCommand(command) if command == host::TOO_LONG => return Typed::TooLong,
            Signal::HostCommand(_) => {}
            // It cleared the line, or left the search.
            Signal::CtrlC if line.holds_text() => pastes.clear(),
            Signal::CtrlC => return Typed::Interrupt,
            Signal::CtrlD => return Typed::End,
            Signal::ExternalBreak(_) => return Typed::Stopped,
            // The editor may learn to say more.
            _ => {}
        }
    }
}

/// Whether the terminal says where its cursor is: without that the editor waits two seconds before
/// each prompt.
fn terminal_answers() -> Result<(), NoTerminal> {
    let asked = crossterm::terminal::enable_raw_mode().and_then(|()| crossterm::cursor::position());
    if asked.is_ok() {
        // Raw mode stays until the first prompt: what is typed now is the editor's.
        return Ok(());
    }
    let typed = typed_meanwhile();
    let _ = crossterm::terminal::disable_raw_mode();
    Err(NoTerminal { typed })
}

/// What was read while the answer was waited for, as text.
fn typed_meanwhile() -> String {
    use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
    let mut typed = String::new();
    while typed.len() <= MESSAGE_BYTES_MAX && poll(Duration::ZERO).unwrap_or(false) {
        let Ok(event) = read() else { break };
        match event {
            Event::Paste(text) => typed.push_str(&text),
            Event::Key(key) => match key.code {
                KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL => typed.push('\n'),
                KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => typed.push(c),
                KeyCode::Enter => typed.push('\n'),
                KeyCode::Tab => typed.push('\t'),
                KeyCode::Backspace => {
                    typed.pop();
                }
                _ => {}
            },
            _ => {}
        }
    }
    typed
}
