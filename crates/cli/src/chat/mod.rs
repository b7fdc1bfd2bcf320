//! `adjutant` and `adjutant chat`: a conversation with one person.

mod attach; // @note
mod commands; // /help and the others
mod editor; // a line at a terminal
mod lifecycle; // where a session is
pub(crate) mod outside; // $EDITOR, the clipboard

use std::time::{Duration, Instant};

use adjutant_core::{AgentResponse, Message, Role, Usage};
use adjutant_runtime::RunContext;

use crate::config::Settings;
use crate::display::{clean, clip};
use crate::error::{CliError, Exit};
use crate::input::checked;
use crate::screen::Screen;
use crate::sessions::{self, Start, TakeUp};
use crate::talk::Talk;
use crate::tty::Ahead;
use crate::{db, log, tools};

use commands::Action;
use editor::{Editor, Typed};
use lifecycle::{Event, State};

/// What stands before what is typed.
const PROMPT: &str = "you> ";

/// A second Ctrl-C on an empty line within this time quits.
const QUIT_WITHIN: Duration = Duration::from_secs(2);

/// What was typed, for the next time; in the state directory.
const HISTORY: &str = "history.txt";

/// Talks until the person leaves.
///
/// # Errors
/// No assistant could be started. Once it runs, what goes wrong is told and the talk goes on.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    take_up: TakeUp,
    yes: Vec<String>,
) -> Result<Exit, CliError> {
    let mut chat = match Chat::start(settings, screen, take_up, yes).await {
        Ok(chat) => chat,
        Err(error) => {
            // What is missing is told by whoever called, with its way out; there is nothing to save.
            State::Initializing.after(Event::NotOpened).map_err(out_of_order)?;
            return Err(error);
        }
    };
    let left = chat.until_left().await;
    chat.leave().await?;
    left
}

/// A session: the assistant, the person, and what they are at.
struct Chat<'a> {
    talk: Talk<'a>,
    settings: Settings,
    context: RunContext,
    state: State,
    /// At a terminal that can be edited on. Else lines are read as they come.
    editor: Option<Editor>,
    /// What stands at the next prompt before anything is typed.
    fill: Option<String>,
    usage: Usage,
    turns: u32,
    /// The last message, for `/retry`.
    said: Option<String>,
    /// The last answer, for `/copy` and `/trace`.
    answer: Option<AgentResponse>,
    interrupted: Option<Instant>,
}

/// What comes from the person, or from the system.
enum Heard {
    Line(Vec<u8>),
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-O.
    Edit(String),
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
        settings: &Settings,
        screen: &'a Screen,
        take_up: TakeUp,
        yes: Vec<String>,
    ) -> Result<Self, CliError> {
        let state = State::Initializing;
        let start = take_up.start(settings, screen).await?;
        let mut talk = Talk::open(screen, settings, yes, true, false).await?;
        screen.note(&format!("{} · {}", greeting(&talk), talk.desk.headline().await));
        talk.resume().await?;
        db::remove_old(settings, &*talk.store, screen).await;
        let context = talk.context(start).await?;
        if screen.asks() {
            screen.note("/help · Ctrl-D quits");
        }
        if start != Start::New {
            sessions::show_again(screen, &*talk.store, &context).await?;
        }
        let editor = open_editor(settings, &mut talk).await;
        talk.ahead = if editor.is_some() { Ahead::Keys } else { Ahead::Lines };
        let state = state.after(Event::Opened).map_err(out_of_order)?;
        Ok(Self {
            talk,
            settings: settings.clone(),
            context,
            state,
            editor,
            fill: None,
            usage: Usage::default(),
            turns: 0,
            said: None,
            answer: None,
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
        // What was said is in the journal since it was said; that it ended is not worth an error.
        if let Err(error) = sessions::end(&*self.talk.store, &self.context.key()).await {
            self.talk.screen.note(&error.message);
        }
        self.talk.leave().await;
        self.state.after(Event::Saved).map_err(out_of_order)?;
        Ok(())
    }

    async fn until_left(&mut self) -> Result<Exit, CliError> {
        let screen = self.talk.screen;
        loop {
            let line = match self.heard().await? {
                Heard::Line(line) => line,
                Heard::Interrupt => {
                    if self.interrupted.is_some_and(|at| at.elapsed() < QUIT_WITHIN) {
                        return Ok(Exit::Interrupted);
                    }
                    self.interrupted = Some(Instant::now());
                    screen.note("Ctrl-C again, or Ctrl-D, quits");
                    continue;
                }
                Heard::Edit(text) => {
                    self.edit(&text);
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
            match self.line(line).await {
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
        let Some(editor) = &mut self.editor else { return self.heard_plainly().await };
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
        let line = line
            .map_err(|error| CliError::failed("standard input cannot be read").because(error.to_string()))?;
        if line.is_none() && screen.asks() {
            screen.side("\n");
        }
        Ok(line.map_or(Heard::End, Heard::Line))
    }

    async fn line(&mut self, line: Vec<u8>) -> Result<Next, CliError> {
        let prompt = checked(line, "the line")?;
        if let Some(notice) = &prompt.notice {
            self.talk.screen.note(notice);
        }
        let text = prompt.text.trim();
        if text.starts_with('/') {
            let (action, rest) = commands::read(text)?;
            return self.command(action, rest).await;
        }
        self.say(text.to_owned()).await?;
        Ok(Next::Prompt)
    }

    /// One turn, from the message to the next prompt.
    async fn say(&mut self, text: String) -> Result<(), CliError> {
        self.goes(Event::Message)?;
        self.said = Some(text.clone());
        let said = self.talk.say(&mut self.context, &text).await;
        let said = match said {
            Ok(response) => {
                self.goes(Event::Answered)?;
                self.usage = self.usage.plus(response.usage);
                self.turns += 1;
                self.answer = Some(response);
                Ok(())
            }
            Err(error) => {
                self.goes(Event::TurnFailed)?;
                Err(error)
            }
        };
        self.goes(Event::Fits)?;
        said
    }

    async fn command(&mut self, action: Action, rest: &str) -> Result<Next, CliError> {
        let screen = self.talk.screen;
        match action {
            Action::Quit => return Ok(Next::Leave),
            Action::Help => commands::help().iter().for_each(|line| screen.side_line(line)),
            Action::Model if rest.is_empty() => {
                screen.side_line(&clean(&format!("{}   (another: /model NAME)", self.talk.model.id())));
            }
            Action::Model => self.use_model(rest).await?,
            Action::Tools => {
                tools::list(&self.talk.agent, &self.settings, self.talk.servers(), screen)?;
            }
            Action::Usage => screen.side_line(&self.words()),
            Action::Retry => {
                let Some(text) = self.said.clone() else {
                    return Err(CliError::usage("nothing was said yet"));
                };
                screen.side_line(&dim(&format!("{PROMPT}{}", clip(&text, 160))));
                self.say(text).await?;
            }
            Action::Edit => self.edit(rest),
            Action::Copy => {
                let Some(answer) = &self.answer else {
                    return Err(CliError::usage("there is no answer yet"));
                };
                outside::copy(screen, &clean(&answer.content))?;
                screen.note("the last answer was given to the terminal's clipboard");
            }
            Action::New => {
                self.context = RunContext::new(self.talk.user.clone());
                screen.note("a new conversation");
            }
            Action::Trace => {
                let Some(answer) = &self.answer else {
                    return Err(CliError::usage("there was no turn yet").or_try("adjutant log list"));
                };
                log::show_turn(&*self.talk.store, &self.talk.user, answer.turn, &self.settings, screen)
                    .await?;
            }
        }
        Ok(Next::Prompt)
    }

    /// What comes back from the editor stands at the next prompt; where nothing can stand there, it is sent.
    fn edit(&mut self, text: &str) {
        match outside::edited(text) {
            Ok(text) => self.fill = Some(text).filter(|text| !text.trim().is_empty()),
            Err(error) => {
                self.talk.screen.error(&error);
                self.fill = Some(text.to_owned()).filter(|text| self.editor.is_some() && !text.is_empty());
            }
        }
    }

    async fn use_model(&mut self, name: &str) -> Result<(), CliError> {
        let settings = Settings { model: Some(name.to_owned()), ..self.settings.clone() };
        self.talk.use_model(&settings).await?;
        self.settings = settings;
        self.talk.screen.note(&greeting(&self.talk));
        Ok(())
    }

    fn words(&self) -> String {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "{} turns · {} tokens in · {} tokens out",
            self.turns,
            count(self.usage.input_tokens),
            count(self.usage.output_tokens)
        )
    }
}

/// A line editor, if everything that is read and written is a terminal that it can work on.
async fn open_editor(settings: &Settings, talk: &mut Talk<'_>) -> Option<Editor> {
    let screen = talk.screen;
    #[expect(clippy::disallowed_methods, reason = "what the terminal is belongs to it, and is no setting")]
    let plain = std::env::var("TERM").map_or(true, |kind| kind.is_empty() || kind == "dumb");
    if plain || !screen.asks() || !screen.shows_answers_live() {
        return None;
    }
    let options = editor::Options {
        history: Some(settings.dirs.state.join(HISTORY)),
        notes: None,
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

/// `adjutant 0.1.0 · ollama/qwen3:30b-a3b · ctx 32768`: who answers, and what is known of it.
fn greeting(talk: &Talk<'_>) -> String {
    let window = talk.model.capabilities().context_window;
    format!("{} · ctx {window}", crate::talk::header(&*talk.model))
}

/// A mistake of ours, told as one.
fn out_of_order(error: lifecycle::OutOfOrder) -> CliError {
    CliError::failed(format!("the session is {:?}, where {:?} does not happen", error.state, error.event))
}
