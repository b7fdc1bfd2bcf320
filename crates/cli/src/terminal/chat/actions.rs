//! Implementations of the slash commands (`/model`, `/edit`, `/export`, ...); `commands.rs` has
//! their table.

use std::path::Path;

use adjutant_core::port::Rated;
use adjutant_core::{Feedback, ModelError, Rating, TimeBound};
use adjutant_runtime::{Compaction, Counting, RunContext};

use super::commands::{self, Action};
use super::{Chat, Next, external, greeting};
use crate::clock;
use crate::command::doctor;
use crate::command::log;
use crate::command::sessions::{self, load_export};
use crate::command::tools;
use crate::config::Settings;
use crate::error::CliError;
use crate::store;
use crate::terminal::display::{clean_line, clip, plural, tokens};
use crate::terminal::render::live::Status;
use crate::terminal::render::{Renderer, prompt_progress};
use crate::terminal::screen::dim;
use crate::terminal::session::Session;

/// Conversations that `/sessions` lists at most.
const SESSIONS: u32 = 20;

impl Chat<'_> {
    /// Runs one slash command. `rest` is the text after its name.
    pub(super) async fn command(&mut self, action: Action, rest: &str) -> Result<Next, CliError> {
        let screen = self.session.screen;
        match action {
            Action::Quit => return Ok(Next::Leave),
            Action::Help => commands::help()
                .iter()
                .for_each(|line| screen.side_line(line)),
            Action::Model => self.model(rest).await?,
            Action::Tools => tools::list(
                &self.session.agent,
                &self.settings,
                self.session.servers.as_ref(),
                screen,
            )?,
            Action::Memory if rest.trim() == "told" => self.print_recalled().await?,
            Action::Memory => {
                let lines = self.session.user_memory.slash_memory(rest).await?;
                lines.iter().for_each(|line| screen.side_line(line));
            }
            Action::Remember => {
                screen.side_line(&self.session.user_memory.slash_remember(rest).await?)
            }
            Action::Forget => screen.side_line(&self.session.user_memory.slash_forget(rest).await?),
            Action::Undo => screen.side_line(&self.session.user_memory.slash_undo().await?),
            Action::Context => self.print_context().await?,
            Action::Compact => drop(self.compact(rest).await?),
            Action::Usage => screen.side_line(&self.usage_line()),
            Action::Retry => self.retry().await?,
            Action::Rewind => self.rewind(rest).await?,
            Action::Branches => self.branches(rest).await?,
            Action::Edit => self.edit(rest).await?,
            Action::Copy => {
                let Some(answer) = &self.answer else {
                    return Err(CliError::usage("there is no answer yet"));
                };
                external::copy(screen, &answer.content)?;
                screen.note("the last answer was copied to the terminal's clipboard");
            }
            Action::Good => self.rate(Rating::Up, rest).await?,
            Action::Bad => self.rate(Rating::Down, rest).await?,
            Action::Export => self.export(rest).await?,
            Action::Sessions => self.print_sessions(rest).await?,
            Action::Resume => self.resume(rest).await?,
            Action::Rename => {
                self.summary().await?;
                let title = sessions::rename(
                    &*self.session.store,
                    &self.session.agent.key(&self.context),
                    rest,
                )
                .await?;
                screen.note(&format!("this conversation is now called “{title}”"));
            }
            Action::New => {
                self.go_to(RunContext::new(self.session.user.clone())).await;
                screen.note("a new conversation");
            }
            Action::Trace => {
                let Some(turn) = self.answer.as_ref().and_then(|answer| answer.turn) else {
                    return Err(
                        CliError::usage("there has been no turn yet").or_try("adjutant log list")
                    );
                };
                log::show_turn(
                    &*self.session.store,
                    &self.session.user,
                    turn,
                    &self.settings,
                    screen,
                )
                .await?;
            }
            Action::Thinking => self.thinking(rest)?,
            Action::Doctor => {
                // A failed check is printed; the conversation continues in either case.
                doctor::run(self.sources, screen, None).await?;
            }
        }
        Ok(Next::Prompt)
    }

    async fn model(&mut self, name: &str) -> Result<(), CliError> {
        let screen = self.session.screen;
        if name.is_empty() {
            screen.side_line(&clean_line(&format!(
                "{}   (another: /model NAME)",
                self.session.model.id()
            )));
            return Ok(());
        }
        let settings = Settings {
            model: Some(name.to_owned()),
            ..self.settings.clone()
        };
        self.session.use_model(&settings).await?;
        // Only now: a model that cannot be opened leaves the conversation as it was.
        self.settings = settings;
        screen.note_parts(&greeting(&self.session).await);
        Ok(())
    }

    /// Shows or hides the model's thinking from now on. An empty `word` toggles it.
    pub(super) fn thinking(&self, word: &str) -> Result<(), CliError> {
        let screen = self.session.screen;
        let shows = match word {
            "" => !screen.shows_thinking(),
            "show" => true,
            "hide" => false,
            other => {
                return Err(CliError::usage(format!(
                    "{} is neither show nor hide",
                    clip(other, 40)
                ))
                .or_try("/thinking show"));
            }
        };
        screen.show_thinking(shows);
        screen.note(if shows {
            "the model's thinking is shown now"
        } else {
            "the model's thinking is hidden now"
        });
        Ok(())
    }

    /// Opens `text` in the external editor and puts the result at the next prompt. Where the prompt
    /// cannot be edited, the result is submitted.
    ///
    /// # Errors
    /// The process received a termination signal meanwhile.
    pub(super) async fn edit(&mut self, text: &str) -> Result<(), CliError> {
        // No Ctrl-C here: it is a key of the external editor, which has the terminal now.
        let edited = tokio::select! {
            edited = external::edited(text) => edited,
            () = self.session.endings.next() => return Err(CliError::terminated()),
        };
        match edited {
            Ok(text) => self.fill = Some(text).filter(|text| !text.trim().is_empty()),
            Err(error) => {
                self.session.screen.error(&error);
                self.fill =
                    Some(text.to_owned()).filter(|text| self.editor.is_some() && !text.is_empty());
            }
        }
        Ok(())
    }

    fn usage_line(&self) -> String {
        let count =
            |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "{} · {} tokens in · {} tokens out",
            plural(self.turns.into(), "turn", "turns"),
            count(self.usage.input_tokens),
            count(self.usage.output_tokens)
        )
    }

    async fn print_context(&self) -> Result<(), CliError> {
        let screen = self.session.screen;
        let used = self
            .session
            .agent
            .context_use(&self.session.agent.key(&self.context))
            .await?;
        let row = |name: &str, count: u32| {
            screen.side_line(&format!("  {name:22} {:>8}", tokens(u64::from(count))));
        };
        row("instruction", used.instruction);
        if let Some(instruction) = &self.session.instruction {
            for part in instruction.parts().await {
                let notice = part
                    .notice
                    .map(|notice| format!("  {}", clip(&notice, 200)))
                    .unwrap_or_default();
                let name = clip(&part.name, 60);
                screen.side_line(&dim(&format!(
                    "    {name:20} {:>8}{notice}",
                    tokens(u64::from(part.tokens))
                )));
            }
        }
        row("tools", used.tools);
        row("summary", used.summary);
        row("what was said", used.history);
        row("results of tools", used.results);
        if used.other > 0 {
            row("other", used.other);
        }
        let counted = match used.counting {
            Counting::Estimated => "estimated",
            _ => "counted",
        };
        screen.side_line(&format!(
            "  {} of {} tokens, {:.0} % ({counted}); {} are kept free for the answer",
            tokens(u64::from(used.total())),
            tokens(u64::from(used.usable())),
            used.share() * 100.0,
            tokens(u64::from(used.reserve)),
        ));
        if let Some(messages) = used.summarized_at {
            screen.side_line(&format!(
                "  a summary stands for the first {messages} messages"
            ));
        }
        Ok(())
    }

    /// Compacts the conversation: a summary replaces its older turns. Returns true if it is shorter
    /// now.
    pub(super) async fn compact(&mut self, focus: &str) -> Result<bool, CliError> {
        let screen = self.session.screen;
        let key = self.session.agent.key(&self.context);
        let focus = Some(focus).filter(|focus| !focus.is_empty());
        screen.note("summarizing the conversation so far; Ctrl-C stops");
        // If another process runs a turn of this conversation, the compaction waits for it.
        screen.live(&Status::new("waiting"), "");
        let mut renderer = Renderer::new(screen, false, None);
        let done = {
            // A clone, because the other branches borrow the session.
            let agent = self.session.agent.clone();
            tokio::select! {
                done = agent.compact_with_progress(&key, focus, |event| renderer.event(event)) => Ok(Some(done)),
                () = self.session.interrupts.next() => Ok(None),
                () = self.session.endings.next() => Err(CliError::terminated()),
            }
        };
        let unread = renderer.unread();
        renderer.end_lines();
        let Some(done) = done? else {
            screen.note("stopped; nothing has changed");
            return Ok(false);
        };
        let done = done?;
        let is_shorter = matches!(done, Compaction::Done { .. });
        match done {
            Compaction::Done {
                messages,
                before,
                after,
                usage,
                ..
            } => {
                self.usage = self.usage.plus(usage);
                screen.note(&format!(
                    "{messages} messages are {} tokens now; they were {}. All of them are kept (adjutant sessions export)",
                    tokens(u64::from(after)),
                    tokens(u64::from(before))
                ));
            }
            Compaction::NothingToDo => screen.note("there is nothing to summarize"),
            Compaction::Failed { reason, error } => {
                let failed = CliError::failed("no summary was made; the conversation is unchanged");
                let Some(error) = error else {
                    return Err(failed.because(reason));
                };
                let cause = CliError::from_model_error(&error);
                let tries = match &error {
                    // A summary is bounded by the time of a turn.
                    ModelError::Timeout {
                        waited,
                        bound: TimeBound::Total,
                        ..
                    } => {
                        vec![prompt_progress::more_time_in_all(
                            *waited,
                            unread.and_then(|unread| unread.left),
                        )]
                    }
                    _ => cause.tries,
                };
                return Err(CliError {
                    tries,
                    ..failed.because(cause.message)
                });
            }
            // `Compaction` is non-exhaustive: every outcome that may be added leaves the
            // conversation as it was.
            _ => screen.note("nothing has changed"),
        }
        self.context = self.session.agent.context(&key).await?;
        Ok(is_shorter)
    }

    /// Stores the user's rating of the last answer.
    async fn rate(&self, rating: Rating, why: &str) -> Result<(), CliError> {
        let Session {
            screen,
            store,
            user,
            ..
        } = &self.session;
        let nothing = || CliError::usage("there is no answer yet");
        let answer = self.answer.as_ref().ok_or_else(nothing)?;
        let turn = answer.turn.ok_or_else(nothing)?;
        let feedback = Feedback::new(rating, Some(why), clock::now())
            .map_err(|error| CliError::usage(error.to_string()))?;
        match store.rate(user, turn, Some(&feedback)).await? {
            Rated::Kept { .. } => screen.note("noted with the answer (adjutant log show)"),
            Rated::NoSuchTurn | Rated::Open => return Err(nothing()),
        }
        Ok(())
    }

    /// Loads the summary row of this conversation.
    ///
    /// # Errors
    /// The conversation has no messages yet, or the store cannot be read.
    async fn summary(&self) -> Result<adjutant_core::port::ConversationSummary, CliError> {
        let nothing = || CliError::usage("nothing has been said in this conversation yet");
        self.session
            .store
            .summary(&self.session.agent.key(&self.context))
            .await?
            .ok_or_else(nothing)
    }

    async fn export(&self, file: &str) -> Result<(), CliError> {
        let summary = self.summary().await?;
        let text = load_export(&*self.session.store, &self.session.user, summary)
            .await?
            .markdown();
        if file.is_empty() {
            self.session.screen.answer(&text);
            return Ok(());
        }
        let file = sessions::save(Path::new(file), &text, false).map_err(|error| CliError {
            tries: vec!["/export ANOTHER.md".to_owned()],
            ..error
        })?;
        self.session
            .screen
            .note(&format!("written to {}", file.display()));
        Ok(())
    }

    async fn print_sessions(&self, words: &str) -> Result<(), CliError> {
        let Session {
            screen,
            store,
            user,
            ..
        } = &self.session;
        let listed = sessions::list(&**store, user, Some(words), SESSIONS).await?;
        if listed.is_empty() {
            screen.note("no conversation matches");
        } else {
            screen.side_line(&sessions::table(&listed, clock::now()));
        }
        Ok(())
    }

    /// Switches to another conversation: the one whose id starts or ends with `id`, or, if that is
    /// empty, one picked from a list.
    async fn resume(&mut self, id: &str) -> Result<(), CliError> {
        let (store, user) = (&*self.session.store, &self.session.user);
        let summary = if !id.is_empty() {
            sessions::find(store, user, id).await?
        } else if self.editor.is_some() {
            // A list that redraws itself is nothing for `TERM=dumb` (docs/screen-readers.md).
            let Some(picked) = sessions::pick(store, user).await? else {
                return Ok(());
            };
            picked
        } else {
            return Err(CliError::usage("which conversation do you mean?")
                .or_try("/sessions, then /resume ID"));
        };
        let key = store::key_of(user, summary.id);
        let context = self.session.agent.context(&key).await?;
        self.go_to(context).await;
        self.session
            .screen
            .note(&format!("going on with “{}”", sessions::title(&summary)));
        self.answer = self.session.print_resumed(&self.context).await?;
        Ok(())
    }
}
