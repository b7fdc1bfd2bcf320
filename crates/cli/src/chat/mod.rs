//! `adjutant` and `adjutant chat`: a conversation with one person.

mod act; // what commands do
mod branches; // other ways to go on
mod commands; // /help and the others
mod editor; // a line at a terminal
mod from_memory; // what the last answer rests on
mod lifecycle; // where a session is
pub(crate) mod outside; // $EDITOR, the clipboard

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::{OutcomeCategory, TurnId, Usage};
use adjutant_runtime::RunContext;

use crate::config::{Settings, Sources};
use crate::error::{CliError, Exit};
use crate::input::{self, checked, mention};
use crate::screen::Screen;
use crate::sessions::{self, LastAnswer, Start, TakeUp};
use crate::talk::{Opening, Talk};
use crate::tty::{Ahead, MarkedPastes, Mode};
use crate::{completions, db, memory};

use editor::{Editor, PROMPT, Typed};
use lifecycle::{Event, State};

/// A second Ctrl-C on an empty line within this time quits.
const QUIT_WITHIN: Duration = Duration::from_secs(2);

/// What was typed, for the next time; in the state directory.
const HISTORY: &str = "history.txt";

/// Talks until the person leaves.
///
/// # Errors
/// No assistant could be started. Once it runs, what goes wrong is told and the talk goes on.
pub(crate) async fn run(
    sources: &Sources,
    settings: &Settings,
    screen: &Screen,
    options: Options,
) -> Result<Exit, CliError> {
    let mut chat = match Chat::start(sources, settings, screen, options).await {
        Ok(chat) => chat,
        Err(error) => {
            // What is missing is told by whoever called, with its way out; there is nothing to
            // save.
            State::Initializing
                .after(Event::NotOpened)
                .map_err(out_of_order)?;
            return Err(error);
        }
    };
    let left = chat.until_left().await;
    chat.leave().await?;
    left
}

/// How to begin.
pub(crate) struct Options {
    pub(crate) take_up: TakeUp,
    pub(crate) yes: Vec<String>,
    /// Files that go along with the first message.
    pub(crate) files: Vec<String>,
}

/// A session: the assistant, the person, and what they are at.
struct Chat<'a> {
    talk: Talk<'a>,
    /// What the settings come from, for who looks at all of it.
    sources: &'a Sources,
    settings: Settings,
    context: RunContext,
    state: State,
    /// At a terminal that can be edited on. Else lines are read as they come.
    editor: Option<Editor>,
    /// How the terminal was before there was an editor; it is put back after the editor has.
    _ahead: Option<Mode>,
    /// What stands at the next prompt before anything is typed.
    fill: Option<String>,
    /// Frames with the files that go along with the first message.
    files: String,
    usage: Usage,
    turns: u32,
    /// The turn that the next message stands in the place of, after `/rewind`.
    rewound: Option<TurnId>,
    /// The last answer, for `/copy` and `/trace`.
    answer: Option<LastAnswer>,
    interrupted: Option<Instant>,
}

/// What comes from the person, or from the system.
enum Heard {
    Line(Vec<u8>),
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-O.
    Edit(String),
    /// Alt-T.
    Thinking,
    TooLong,
    End,
    /// SIGTERM or SIGHUP.
    Ending,
}

/// What happens after a line.
enum Next {
    Prompt,
    Leave,
}

impl<'a> Chat<'a> {
    /// Opens everything, says what is there, and finishes what was left open.
    async fn start(
        sources: &'a Sources,
        settings: &Settings,
        screen: &'a Screen,
        Options {
            take_up,
            yes,
            files,
        }: Options,
    ) -> Result<Self, CliError> {
        let state = State::Initializing;
        let files = input::files_for_chat(files, screen).await?;
        let start = take_up.start(settings, screen).await?;
        // What is typed while servers start is the editor's: Enter has to stay the key that it is.
        let mut opening = Opening::begin()?;
        let ahead = can_edit(screen).then(|| Mode::turn(Ahead::Keys));
        let mut talk = opening
            .start(Talk::open(screen, settings, yes, true, false))
            .await?;
        drop(opening);
        screen.note(&greeting(&talk).await);
        talk.resume().await?;
        db::remove_old(settings, &*talk.store, screen).await;
        let context = talk.context(start).await?;
        if screen.asks() {
            screen.note("/help · Ctrl-D quits");
        }
        let answer = match start {
            Start::New => None,
            _ => sessions::show_again(screen, &*talk.store, &context, talk.desk.vault()).await?,
        };
        let editor = open_editor(settings, &mut talk).await;
        talk.ahead = if editor.is_some() {
            Ahead::Keys
        } else {
            Ahead::Lines
        };
        let ahead = ahead.filter(|_| editor.is_some());
        let state = state.after(Event::Opened).map_err(out_of_order)?;
        Ok(Self {
            talk,
            sources,
            settings: settings.clone(),
            context,
            state,
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

    fn goes(&mut self, event: Event) -> Result<(), CliError> {
        self.state = self.state.after(event).map_err(out_of_order)?;
        Ok(())
    }

    /// Ends in good order, whatever the reason.
    async fn leave(mut self) -> Result<(), CliError> {
        self.goes(Event::Leave)?;
        if let Some(editor) = &mut self.editor {
            editor.stop().await;
        }
        self.ended().await;
        self.talk.leave().await;
        self.state.after(Event::Saved).map_err(out_of_order)?;
        Ok(())
    }

    /// Writes down that the person left the conversation. What was said is in the journal since it
    /// was said, so that a failure here is worth a line and no more.
    async fn ended(&self) {
        if let Err(error) =
            sessions::end(&*self.talk.store, &self.talk.agent.key(&self.context)).await
        {
            self.talk.screen.note(&error.message);
        }
        self.talk
            .desk
            .log(
                &*self.talk.store,
                &self.talk.agent.key(&self.context),
                self.talk.screen,
            )
            .await;
    }

    async fn until_left(&mut self) -> Result<Exit, CliError> {
        let screen = self.talk.screen;
        loop {
            let line = match self.heard().await? {
                Heard::Line(line) => line,
                Heard::Interrupt => {
                    if self
                        .interrupted
                        .is_some_and(|at| at.elapsed() < QUIT_WITHIN)
                    {
                        return Ok(Exit::Interrupted);
                    }
                    self.interrupted = Some(Instant::now());
                    screen.note("Ctrl-C again, or Ctrl-D, quits");
                    continue;
                }
                Heard::Edit(text) => {
                    self.edit(&text).await?;
                    continue;
                }
                Heard::Thinking => {
                    self.thinking("")?;
                    continue;
                }
                Heard::TooLong => {
                    screen.error(&CliError::usage(
                        "the pasted text is longer than 1048576 bytes (1 MiB), the most that is taken; it is left out",
                    ));
                    continue;
                }
                Heard::End => return Ok(Exit::Ok),
                Heard::Ending => return Err(CliError::terminated()),
            };
            self.interrupted = None;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            // Keys that are pressed meanwhile are the next prompt's.
            let modes = (
                Mode::turn(self.talk.ahead),
                MarkedPastes::during(self.talk.ahead),
            );
            let done = self.line(line).await;
            drop(modes);
            match done {
                Ok(Next::Prompt) => {}
                Ok(Next::Leave) => return Ok(Exit::Ok),
                Err(error) if matches!(error.exit, Exit::Interrupted | Exit::Terminated) => {
                    return Err(error);
                }
                Err(error) => screen.error(&error),
            }
        }
    }

    /// Waits for what comes next.
    async fn heard(&mut self) -> Result<Heard, CliError> {
        let screen = self.talk.screen;
        let Some(editor) = &mut self.editor else {
            return self.heard_plainly().await;
        };
        let typed = tokio::select! {
            typed = editor.next(&mut self.fill) => typed,
            // From elsewhere: the terminal's own is a key here.
            () = self.talk.interrupts.next() => {
                editor.stop().await;
                screen.side("\n");
                return Ok(Heard::Interrupt);
            }
            () = self.talk.endings.next() => {
                editor.stop().await;
                screen.side("\n");
                return Ok(Heard::Ending);
            }
        };
        Ok(match typed {
            Typed::Line(line) => Heard::Line(line.into_bytes()),
            Typed::Interrupt => {
                screen.side("\n");
                Heard::Interrupt
            }
            Typed::Edit(text) => Heard::Edit(text),
            Typed::Thinking => {
                screen.side("\n");
                Heard::Thinking
            }
            Typed::TooLong => {
                screen.side("\n");
                Heard::TooLong
            }
            Typed::End => Heard::End,
            Typed::Stopped => Heard::Line(Vec::new()),
            Typed::Failed(reason) => {
                return Err(CliError::failed("the terminal cannot be read").because(reason));
            }
        })
    }

    /// The same from a pipe, or a terminal that cannot be edited on.
    async fn heard_plainly(&mut self) -> Result<Heard, CliError> {
        let screen = self.talk.screen;
        if let Some(text) = self.fill.take() {
            return Ok(Heard::Line(text.into_bytes()));
        }
        if screen.asks() {
            screen.side(PROMPT);
        }
        let line = tokio::select! {
            line = self.talk.lines.next() => line,
            () = self.talk.interrupts.next() => {
                screen.side("\n");
                return Ok(Heard::Interrupt);
            }
            () = self.talk.endings.next() => {
                screen.side("\n");
                return Ok(Heard::Ending);
            }
        };
        let line = line.map_err(|error| {
            CliError::failed("standard input cannot be read").because(error.to_string())
        })?;
        if line.is_none() && screen.asks() {
            screen.side("\n");
        }
        Ok(line.map_or(Heard::End, Heard::Line))
    }

    async fn line(&mut self, line: Vec<u8>) -> Result<Next, CliError> {
        let prompt = checked(line, "the line")?;
        prompt
            .notices
            .iter()
            .for_each(|notice| self.talk.screen.note(notice));
        let text = prompt.text.trim();
        if text.starts_with('/') {
            let (action, rest) = commands::read(text)?;
            return self.command(action, rest).await;
        }
        if let Some(fact) = memory::fact_typed(text) {
            self.talk
                .screen
                .side_line(&self.talk.desk.slash_remember(fact).await?);
            return Ok(Next::Prompt);
        }
        self.say(text.to_owned()).await?;
        Ok(Next::Prompt)
    }

    /// One turn, from the message to the next prompt.
    async fn say(&mut self, text: String) -> Result<(), CliError> {
        self.branch_if_rewound().await?;
        let mentioned = match self.talk.mentioned(&text, &self.settings).await {
            Ok(frames) => frames,
            Err(error) => {
                // It comes back to be mended; where nothing can be edited, it would only be read
                // again.
                self.fill = Some(text).filter(|_| self.editor.is_some());
                return Err(error);
            }
        };
        let whole = [&*text, &mentioned, &self.files].concat();
        if let Err(error) = self.talk.agent.check_message(&whole) {
            // What was attached stays for the next message.
            self.fill = Some(text).filter(|_| self.editor.is_some());
            return Err(error.into());
        }
        self.files.clear();
        self.send(&whole).await
    }

    /// The same for words that have what is attached to them already.
    async fn send(&mut self, text: &str) -> Result<(), CliError> {
        self.goes(Event::Message)?;
        let mut said = self.turn(text).await;
        if matches!(said, Ok(OutcomeCategory::ContextLimit)) {
            match self.compact("").await {
                // What does not fit was put into fewer words, and is said once more.
                Ok(true) => {
                    self.goes(Event::Overflows)?;
                    said = self.turn(text).await;
                }
                Ok(false) => {}
                Err(error) => said = Err(error),
            }
        }
        self.goes(Event::Fits)?;
        said.map(drop)
    }

    /// One turn and its count: from PROCESSING to CHECK CONTEXT.
    async fn turn(&mut self, text: &str) -> Result<OutcomeCategory, CliError> {
        match self.talk.say(&mut self.context, text).await {
            Ok(response) => {
                self.goes(Event::Answered)?;
                self.usage = self.usage.plus(self.talk.spent().usage);
                self.turns += 1;
                let outcome = response.outcome;
                self.answer = Some(LastAnswer {
                    content: response.content,
                    turn: Some(response.turn),
                });
                Ok(outcome)
            }
            Err(error) => {
                self.goes(Event::TurnFailed)?;
                Err(error)
            }
        }
    }
}

/// Returns whether everything that is read and written is a terminal that a line can be edited on.
fn can_edit(screen: &Screen) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the terminal is belongs to it, and is no setting"
    )]
    let plain = std::env::var("TERM").map_or(true, |kind| kind.is_empty() || kind == "dumb");
    !plain && screen.asks() && screen.shows_answers_live()
}

/// A line editor, if everything that is read and written is a terminal that it can work on.
async fn open_editor(settings: &Settings, talk: &mut Talk<'_>) -> Option<Editor> {
    let screen = talk.screen;
    if !can_edit(screen) {
        return None;
    }
    let options = editor::Options {
        history: (!settings.bounds.temp).then(|| settings.dirs.state.join(HISTORY)),
        names: {
            let vault = talk
                .desk
                .memory()
                .and_then(|memory| Some(memory.vault()?.root().to_owned()));
            Arc::new(move |typed: &str| {
                let notes = vault.iter().flat_map(|root| mention::names(root, typed));
                notes.chain(mention::paths(typed)).collect()
            })
        },
        arguments: arguments(settings.clone()),
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
            talk.lines.put_back(&none.typed);
            None
        }
    }
}

/// Finds the arguments of commands, in the editor's thread, at each Tab.
fn arguments(settings: Settings) -> editor::Arguments {
    Arc::new(move |command: &str| match command {
        "/model" => completions::models_of(&settings),
        "/resume" => completions::conversations_of(&settings),
        _ => Vec::new(),
    })
}

/// `adjutant 0.1.0 · ollama/qwen3:30b-a3b · ctx 32768 · vault Notes · memory 12 facts`: who
/// answers, and what is known.
async fn greeting(talk: &Talk<'_>) -> String {
    let window = talk.model.capabilities().context_window;
    format!(
        "{} · ctx {window} · {}",
        crate::talk::header(&*talk.model),
        talk.desk.headline().await
    )
}

/// A mistake of ours, told as one.
fn out_of_order(error: lifecycle::OutOfOrder) -> CliError {
    CliError::failed(format!(
        "the session is {:?}, where {:?} does not happen",
        error.state, error.event
    ))
}
