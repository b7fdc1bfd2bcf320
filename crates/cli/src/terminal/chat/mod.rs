//! `adjutant` and `adjutant chat`: an interactive conversation, from its start to the exit.

mod actions; // the implementations of the slash commands
mod branches; // /retry, /rewind and /branches
mod commands; // the table of slash commands
mod editor; // the line editor
pub(crate) mod external; // $EDITOR and the clipboard
mod recalled; // /memory told

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::{OutcomeCategory, TurnId, Usage};
use adjutant_runtime::RunContext;

use crate::command::completions;
use crate::command::db;
use crate::command::sessions::{self, LastAnswer, Resume, Start};
use crate::config::{Settings, Sources};
use crate::error::{CliError, Exit};
use crate::memory;
use crate::terminal::input::{self, mention, parse_prompt};
use crate::terminal::screen::Screen;
use crate::terminal::session::{Session, Startup};
use crate::terminal::tty::{BracketedPaste, Mode, TypeAhead, obeys_escapes};

use editor::{Editor, PROMPT, Typed};

/// Two Ctrl-C on an empty line within this time quit.
const QUIT_WITHIN: Duration = Duration::from_secs(2);

/// File of the editor's history, in the state directory.
const HISTORY: &str = "history.txt";

/// Runs the conversation until the user leaves.
///
/// # Errors
/// Model, store or tools cannot be opened. Once the conversation runs, errors are printed and it
/// continues.
pub(crate) async fn run(
    sources: &Sources,
    settings: &Settings,
    screen: &Screen,
    options: Options,
) -> Result<Exit, CliError> {
    let mut chat = Chat::start(sources, settings, screen, options).await?;
    let exit = chat.run_until_exit().await;
    // After an error too: the end is recorded, and the servers are stopped.
    chat.leave().await;
    exit
}

/// Options of the command line for a conversation.
pub(crate) struct Options {
    pub(crate) resume: Resume,
    pub(crate) yes: Vec<String>,
    /// Files attached to the first message.
    pub(crate) files: Vec<String>,
}

/// State of an interactive conversation.
struct Chat<'a> {
    session: Session<'a>,
    /// Sources of the settings, which `/doctor` loads again.
    sources: &'a Sources,
    settings: Settings,
    context: RunContext,
    /// The line editor; `None` where lines are read from a pipe or a plain terminal.
    editor: Option<Editor>,
    /// Restores the terminal's mode. Declared after the editor, so that it is dropped after it.
    _ahead: Option<Mode>,
    /// Text to put at the next prompt.
    fill: Option<String>,
    /// Framed files to attach to the first message.
    files: String,
    usage: Usage,
    turns: u32,
    /// Set by `/rewind`: the turn that the next message replaces.
    rewound: Option<TurnId>,
    /// The last answer, for `/copy`, `/trace`, `/good` and `/bad`.
    answer: Option<LastAnswer>,
    interrupted: Option<Instant>,
}

/// The step after a line was handled.
enum Next {
    Prompt,
    Leave,
}

impl<'a> Chat<'a> {
    /// Opens model, store and tools, prints the greeting, and recovers open turns.
    async fn start(
        sources: &'a Sources,
        settings: &Settings,
        screen: &'a Screen,
        Options { resume, yes, files }: Options,
    ) -> Result<Self, CliError> {
        // Before anything is opened: a wrong file name is an error before a model is downloaded or
        // a server is started.
        let files = input::files_for_chat(files, screen).await?;
        let start = resume.resolve(settings, screen).await?;
        // From here the keyboard belongs to the editor: in line mode, an Enter typed while servers
        // start would reach it as Ctrl-J.
        let mut startup = Startup::listen()?;
        let ahead = can_edit(screen).then(|| Mode::turn(TypeAhead::Keys));
        let mut session = startup
            .run(Session::open(screen, settings, yes, true, false))
            .await?;
        drop(startup);
        screen.note_parts(&greeting(&session).await);
        // Before the context is loaded: an open turn may be in the conversation that is continued.
        session.recover_open_turns().await?;
        db::remove_old(settings, &*session.store, screen).await;
        let context = session.context(start).await?;
        if screen.asks() {
            screen.note("/help · Ctrl-D quits");
        }
        let answer = match start {
            Start::New => None,
            _ => session.print_resumed(&context).await?,
        };
        let editor = open_editor(settings, &mut session).await;
        session.ahead = if editor.is_some() {
            TypeAhead::Keys
        } else {
            TypeAhead::Lines
        };
        // Without an editor, lines are read in the mode that the terminal had.
        let ahead = ahead.filter(|_| editor.is_some());
        Ok(Self {
            session,
            sources,
            settings: settings.clone(),
            context,
            editor,
            _ahead: ahead,
            fill: None,
            files,
            usage: Usage::default(),
            turns: 0,
            rewound: None,
            answer,
            interrupted: None,
        })
    }

    /// Records the end of the conversation and stops the editor and the MCP servers.
    async fn leave(mut self) {
        if let Some(editor) = &mut self.editor {
            editor.stop().await;
        }
        // Before the end is recorded: a turn whose call goes on has not ended.
        self.session.wait_for_calls().await;
        // After the editor is stopped: in raw mode, notes would not begin at the first column.
        self.record_end().await;
        self.session.leave().await;
    }

    /// Records in the journal and in the daily note that the user left the conversation. A failure
    /// is only printed: all messages are in the journal already.
    async fn record_end(&self) {
        let Session { screen, store, .. } = &self.session;
        let key = self.session.agent.key(&self.context);
        if let Err(error) = sessions::end(&**store, &key).await {
            screen.note(&error.message);
        }
        self.session.user_memory.log(&**store, &key, screen).await;
    }

    async fn run_until_exit(&mut self) -> Result<Exit, CliError> {
        let screen = self.session.screen;
        loop {
            match self.next_input().await? {
                Typed::Line(line) => {
                    self.interrupted = None;
                    if let Next::Leave = self.run_line(line).await? {
                        return Ok(Exit::Ok);
                    }
                }
                Typed::Interrupt => {
                    if self
                        .interrupted
                        .is_some_and(|at| at.elapsed() < QUIT_WITHIN)
                    {
                        return Ok(Exit::Interrupted);
                    }
                    self.interrupted = Some(Instant::now());
                    screen.note("Ctrl-C again, or Ctrl-D, quits");
                }
                Typed::Edit(text) => self.edit(&text).await?,
                Typed::Thinking => self.thinking("")?,
                Typed::TooLong => screen.error(&CliError::usage(
                    "the pasted text is longer than 1048576 bytes (1 MiB), the most that is taken; it is left out",
                )),
                Typed::Suspend => screen.suspend(),
                Typed::Stopped => {}
                Typed::End => return Ok(Exit::Ok),
                Typed::Terminated => return Err(CliError::terminated()),
                Typed::Failed(reason) => {
                    return Err(CliError::failed("the terminal cannot be read").because(reason));
                }
            }
        }
    }

    /// Waits for the next input of the prompt.
    async fn next_input(&mut self) -> Result<Typed, CliError> {
        let Some(editor) = &mut self.editor else {
            return self.next_plain_input().await;
        };
        let typed = tokio::select! {
            typed = editor.next(&mut self.fill) => typed,
            // A SIGINT sent by another process: with the editor in raw mode, Ctrl-C of this
            // terminal is a key.
            () = self.session.interrupts.next() => {
                editor.stop().await;
                Typed::Interrupt
            }
            () = self.session.endings.next() => {
                editor.stop().await;
                Typed::Terminated
            }
        };
        // The cursor is still in the line that was edited.
        if let Typed::Interrupt
        | Typed::Suspend
        | Typed::Thinking
        | Typed::TooLong
        | Typed::Terminated = typed
        {
            self.session.screen.side("\n");
        }
        Ok(typed)
    }

    /// Waits for the next input where there is no line editor.
    async fn next_plain_input(&mut self) -> Result<Typed, CliError> {
        let screen = self.session.screen;
        if let Some(text) = self.fill.take() {
            return Ok(Typed::Line(text.into_bytes()));
        }
        if screen.asks() {
            screen.side(PROMPT);
        }
        let line = tokio::select! {
            line = self.session.lines.next() => line,
            () = self.session.interrupts.next() => {
                screen.side("\n");
                return Ok(Typed::Interrupt);
            }
            () = self.session.endings.next() => {
                screen.side("\n");
                return Ok(Typed::Terminated);
            }
        };
        let line = line.map_err(|error| {
            CliError::failed("standard input cannot be read").because(error.to_string())
        })?;
        if line.is_none() && screen.asks() {
            screen.side("\n");
        }
        Ok(line.map_or(Typed::End, Typed::Line))
    }

    /// Handles a line. Errors are printed, except those that end the conversation.
    async fn run_line(&mut self, line: Vec<u8>) -> Result<Next, CliError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(Next::Prompt);
        }
        // Keys typed while the line is handled are input of the next prompt.
        let _modes = (
            Mode::turn(self.session.ahead),
            BracketedPaste::during(self.session.ahead),
        );
        match self.handle_line(line).await {
            Err(error) if !matches!(error.exit, Exit::Interrupted | Exit::Terminated) => {
                self.session.screen.error(&error);
                Ok(Next::Prompt)
            }
            done => done,
        }
    }

    async fn handle_line(&mut self, line: Vec<u8>) -> Result<Next, CliError> {
        let prompt = parse_prompt(line, "the line")?;
        prompt
            .notices
            .iter()
            .for_each(|notice| self.session.screen.note(notice));
        let text = prompt.text.trim();
        if text.starts_with('/') {
            let (action, rest) = commands::parse(text)?;
            return self.command(action, rest).await;
        }
        if let Some(fact) = memory::fact_typed(text) {
            self.session
                .screen
                .side_line(&self.session.user_memory.slash_remember(fact).await?);
            return Ok(Next::Prompt);
        }
        self.submit_message(text.to_owned()).await?;
        Ok(Next::Prompt)
    }

    /// Attaches what the message mentions and submits it. After an error the text is back at the
    /// prompt.
    async fn submit_message(&mut self, text: String) -> Result<(), CliError> {
        self.branch_if_rewound().await?;
        let mentioned = match self.session.mentioned(&text, &self.settings).await {
            Ok(frames) => frames,
            Err(error) => {
                // Without an editor the same line would be submitted again, and so in a loop.
                self.fill = Some(text).filter(|_| self.editor.is_some());
                return Err(error);
            }
        };
        let whole = [&*text, &mentioned, &self.files].concat();
        if let Err(error) = self.session.agent.check_message(&whole) {
            // `self.files` stays set: the attached files go with the corrected message.
            self.fill = Some(text).filter(|_| self.editor.is_some());
            return Err(error.into());
        }
        self.files.clear();
        let outcome = self.run_message(&whole).await;
        if self.session.dropped && self.editor.is_some() {
            self.session
                .screen
                .note("your message was not sent while the question waited; Enter sends it");
            self.fill = Some(text);
        }
        outcome
    }

    /// Runs the turn of a message whose attachments are in its text. If it exceeds the context
    /// window, compacts the conversation and runs it once more.
    async fn run_message(&mut self, text: &str) -> Result<(), CliError> {
        let mut outcome = self.run_turn(text).await;
        if matches!(outcome, Ok(OutcomeCategory::ContextLimit)) {
            match self.compact("").await {
                // A single retry: if the message alone exceeds the window, another summary would
                // not help.
                Ok(true) => {
                    outcome = self.run_turn(text).await;
                }
                Ok(false) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome.map(drop)
    }

    /// Runs one turn and adds its usage to the session's.
    async fn run_turn(&mut self, text: &str) -> Result<OutcomeCategory, CliError> {
        let response = self.session.submit(&mut self.context, text).await?;
        // Not only the last response: a confirmation divides a turn into several runs.
        self.usage = self.usage.plus(self.session.spent.usage);
        self.turns += 1;
        let outcome = response.outcome;
        self.answer = Some(LastAnswer {
            content: response.content,
            turn: Some(response.turn),
        });
        Ok(outcome)
    }
}

/// Returns true if input and output are a terminal that the line editor can work on.
fn can_edit(screen: &Screen) -> bool {
    obeys_escapes() && screen.asks() && screen.shows_answers_live()
}

/// Opens the line editor, if input and output are a terminal that it can work on.
async fn open_editor(settings: &Settings, session: &mut Session<'_>) -> Option<Editor> {
    let screen = session.screen;
    if !can_edit(screen) {
        return None;
    }
    let options = editor::Options {
        // `--temp` leaves nothing behind.
        history: (!settings.bounds.temp).then(|| settings.dirs.state.join(HISTORY)),
        names: {
            let vault = session.user_memory.vault().cloned();
            Arc::new(move |typed: &str| {
                let notes = vault
                    .iter()
                    .flat_map(|vault| vault.note_names(typed, editor::NAMES_MAX));
                notes.chain(mention::paths(typed)).collect()
            })
        },
        arguments: arguments(settings.clone()),
        keys: settings.editor_keys,
        colors: screen.styles_answers(),
    };
    match Editor::open(options).await {
        Ok((editor, notice)) => {
            if let Some(notice) = notice {
                screen.note(&notice);
            }
            Some(editor)
        }
        Err(none) => {
            // Keys that arrived in place of the cursor's position are the beginning of the first
            // line.
            session.lines.put_back(&none.typed);
            None
        }
    }
}

/// Returns the completion of command arguments, which the editor's thread calls at each Tab.
fn arguments(settings: Settings) -> editor::Arguments {
    Arc::new(move |command: &str| match command {
        "/model" => completions::models_of(&settings),
        "/resume" => completions::conversations_of(&settings),
        _ => Vec::new(),
    })
}

/// Returns the parts of a conversation's first line: `adjutant 0.1.0 · ollama/qwen3:30b-a3b · ctx
/// 32768 · vault Notes · memory 12 facts`.
async fn greeting(session: &Session<'_>) -> Vec<String> {
    let window = session.model.capabilities().context_window;
    let mut parts = crate::terminal::session::header(&*session.model).to_vec();
    parts.push(format!("ctx {window}"));
    parts.extend(session.user_memory.headline().await);
    parts
}
