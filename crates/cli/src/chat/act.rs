//! Carries out the commands of a conversation in the terminal (`/model`, `/edit`, `/export`, ...).

use std::path::Path;

use adjutant_core::port::Rated;
use adjutant_core::{Feedback, ModelError, Rating, TimeBound};
use adjutant_runtime::{Compaction, Counting, RunContext};

use super::commands::{self, Action};
use super::{Chat, Next, greeting, outside};
use crate::config::Settings;
use crate::display::{clean_line, clip, plural, tokens};
use crate::error::CliError;
use crate::render::live::Status;
use crate::render::{Renderer, reading};
use crate::screen::dim;
use crate::sessions::{self, export_of};
use crate::store;
use crate::{doctor, log, tools};

/// Sessions of a list.
const SESSIONS: u32 = 20;

impl Chat<'_> {
    /// Does what a command says.
    pub(super) async fn command(&mut self, action: Action, rest: &str) -> Result<Next, CliError> {
        let screen = self.talk.screen;
        match action {
            Action::Quit => return Ok(Next::Leave),
            Action::Help => commands::help()
                .iter()
                .for_each(|line| screen.side_line(line)),
            Action::Model => self.model(rest).await?,
            Action::Tools => tools::list(
                &self.talk.agent,
                &self.settings,
                self.talk.servers(),
                screen,
            )?,
            Action::Memory if rest.trim() == "told" => self.tell_memory().await?,
            Action::Memory => {
                let lines = self.talk.desk.slash_memory(rest).await?;
                lines.iter().for_each(|line| screen.side_line(line));
            }
            Action::Remember => screen.side_line(&self.talk.desk.slash_remember(rest).await?),
            Action::Forget => screen.side_line(&self.talk.desk.slash_forget(rest).await?),
            Action::Undo => screen.side_line(&self.talk.desk.slash_undo().await?),
            Action::Context => self.tell_context().await?,
            Action::Compact => drop(self.compact(rest).await?),
            Action::Usage => screen.side_line(&self.words()),
            Action::Retry => self.retry().await?,
            Action::Rewind => self.rewind(rest).await?,
            Action::Branches => self.branches(rest).await?,
            Action::Edit => self.edit(rest).await?,
            Action::Copy => {
                let Some(answer) = &self.answer else {
                    return Err(CliError::usage("there is no answer yet"));
                };
                outside::copy(screen, &answer.content)?;
                screen.note("the last answer was copied to the terminal's clipboard");
            }
            Action::Good => self.rate(Rating::Up, rest).await?,
            Action::Bad => self.rate(Rating::Down, rest).await?,
            Action::Export => self.export(rest).await?,
            Action::Sessions => self.tell_sessions(rest).await?,
            Action::Resume => self.resume(rest).await?,
            Action::Rename => {
                self.begun().await?;
                let title =
                    sessions::rename(&*self.talk.store, &self.talk.agent.key(&self.context), rest)
                        .await?;
                screen.note(&format!("this conversation is now called “{title}”"));
            }
            Action::New => {
                self.go_to(RunContext::new(self.talk.user.clone())).await;
                screen.note("a new conversation");
            }
            Action::Trace => {
                let Some(turn) = self.answer.as_ref().and_then(|answer| answer.turn) else {
                    return Err(
                        CliError::usage("there has been no turn yet").or_try("adjutant log list")
                    );
                };
                log::show_turn(
                    &*self.talk.store,
                    &self.talk.user,
                    turn,
                    &self.settings,
                    screen,
                )
                .await?;
            }
            Action::Thinking => self.thinking(rest)?,
            Action::Doctor => {
                // What has to be mended is told; the conversation goes on either way.
                doctor::run(self.sources, screen, None, false).await?;
            }
        }
        Ok(Next::Prompt)
    }

    async fn model(&mut self, name: &str) -> Result<(), CliError> {
        let screen = self.talk.screen;
        if name.is_empty() {
            screen.side_line(&clean_line(&format!(
                "{}   (another: /model NAME)",
                self.talk.model.id()
            )));
            return Ok(());
        }
        let settings = Settings {
            model: Some(name.to_owned()),
            ..self.settings.clone()
        };
        self.talk.use_model(&settings).await?;
        self.settings = settings;
        screen.note(&greeting(&self.talk).await);
        Ok(())
    }

    /// Shows the model's thinking from now on, or hides it; without a word, the other of the two.
    pub(super) fn thinking(&self, word: &str) -> Result<(), CliError> {
        let screen = self.talk.screen;
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
            "thinking is shown from now on"
        } else {
            "thinking is hidden from now on"
        });
        Ok(())
    }

    /// What comes back from the editor stands at the next prompt; where nothing can stand there, it
    /// is sent.
    ///
    /// # Errors
    /// The process was asked to end meanwhile.
    pub(super) async fn edit(&mut self, text: &str) -> Result<(), CliError> {
        let edited = tokio::select! {
            edited = outside::edited(text) => edited,
            () = self.talk.endings.next() => return Err(CliError::terminated()),
        };
        match edited {
            Ok(text) => self.fill = Some(text).filter(|text| !text.trim().is_empty()),
            Err(error) => {
                self.talk.screen.error(&error);
                self.fill =
                    Some(text.to_owned()).filter(|text| self.editor.is_some() && !text.is_empty());
            }
        }
        Ok(())
    }

    fn words(&self) -> String {
        let count =
            |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "{} · {} tokens in · {} tokens out",
            plural(self.turns.into(), "turn", "turns"),
            count(self.usage.input_tokens),
            count(self.usage.output_tokens)
        )
    }

    async fn tell_context(&self) -> Result<(), CliError> {
        let screen = self.talk.screen;
        let used = self
            .talk
            .agent
            .context_use(&self.talk.agent.key(&self.context))
            .await?;
        let row = |name: &str, count: u32| {
            screen.side_line(&format!("  {name:22} {:>8}", tokens(u64::from(count))));
        };
        row("instruction", used.instruction);
        if let Some(told) = &self.talk.told {
            for part in told.parts().await {
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

    /// Has older turns put into fewer words. Whether they are fewer now.
    pub(super) async fn compact(&mut self, focus: &str) -> Result<bool, CliError> {
        let screen = self.talk.screen;
        let (key, focus) = (
            self.talk.agent.key(&self.context),
            Some(focus).filter(|focus| !focus.is_empty()),
        );
        screen.note("summarizing the conversation so far; Ctrl-C stops");
        // Until it begins, a turn that runs in this conversation elsewhere is waited for.
        screen.live(&Status::new("waiting"), "");
        let mut renderer = Renderer::new(screen, false, None);
        let done = {
            let agent = self.talk.agent.clone();
            tokio::select! {
                done = agent.compact_telling(&key, focus, |event| renderer.event(event)) => Ok(Some(done)),
                () = self.talk.interrupts.next() => Ok(None),
                () = self.talk.endings.next() => Err(CliError::terminated()),
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
                let cause = CliError::of_model_error(&error);
                let tries = match &error {
                    // A summary has the time of a turn.
                    ModelError::Timeout {
                        waited,
                        bound: TimeBound::Total,
                        ..
                    } => {
                        vec![reading::more_time_in_all(
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
            // What else may come of it is no change.
            _ => screen.note("nothing has changed"),
        }
        self.context = self.talk.agent.context(&key).await?;
        Ok(is_shorter)
    }

    /// Keeps what the person thinks of the last answer.
    async fn rate(&self, rating: Rating, why: &str) -> Result<(), CliError> {
        let nothing = || CliError::usage("there is no answer yet");
        let turn = self
            .answer
            .as_ref()
            .and_then(|answer| answer.turn)
            .ok_or_else(nothing)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "when it was said is written down"
        )]
        let now = jiff::Timestamp::now();
        let feedback = Feedback::new(rating, Some(why), now);
        let feedback = feedback.map_err(|error| CliError::usage(error.to_string()))?;
        match self
            .talk
            .store
            .rate(&self.talk.user, turn, Some(&feedback))
            .await?
        {
            Rated::Kept { .. } => self
                .talk
                .screen
                .note("noted with the answer (adjutant log show)"),
            Rated::NoSuchTurn | Rated::Open => return Err(nothing()),
        }
        Ok(())
    }

    /// The conversation as it is kept.
    ///
    /// # Errors
    /// Nothing was said in it yet.
    async fn begun(&self) -> Result<adjutant_core::port::ConversationSummary, CliError> {
        let nothing = || CliError::usage("nothing has been said in this conversation yet");
        self.talk
            .store
            .summary(&self.talk.agent.key(&self.context))
            .await?
            .ok_or_else(nothing)
    }

    async fn export(&self, file: &str) -> Result<(), CliError> {
        let summary = self.begun().await?;
        let text = export_of(&*self.talk.store, &self.talk.user, summary)
            .await?
            .markdown();
        if file.is_empty() {
            self.talk.screen.answer(&text);
            return Ok(());
        }
        let file = sessions::save(Path::new(file), &text, false).map_err(|error| CliError {
            tries: vec!["/export ANOTHER.md".to_owned()],
            ..error
        })?;
        self.talk
            .screen
            .note(&format!("written to {}", file.display()));
        Ok(())
    }

    async fn tell_sessions(&self, words: &str) -> Result<(), CliError> {
        let listed =
            sessions::list(&*self.talk.store, &self.talk.user, Some(words), SESSIONS).await?;
        if listed.is_empty() {
            self.talk.screen.note("no conversation matches");
            return Ok(());
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "how long ago something is has to be told by somebody"
        )]
        let now = jiff::Timestamp::now();
        self.talk.screen.side_line(&sessions::table(&listed, now));
        Ok(())
    }

    /// Goes on in another conversation: the one that is meant, or one that is picked.
    async fn resume(&mut self, id: &str) -> Result<(), CliError> {
        let (store, user) = (&*self.talk.store, &self.talk.user);
        let summary = if !id.is_empty() {
            sessions::find(store, user, id).await?
        } else if self.editor.is_some() {
            let Some(picked) = sessions::pick(store, user).await? else {
                return Ok(());
            };
            picked
        } else {
            return Err(CliError::usage("which conversation do you mean?")
                .or_try("/sessions, then /resume ID"));
        };
        let key = store::key_of(user, summary.id);
        let context = self.talk.agent.context(&key).await?;
        self.go_to(context).await;
        self.talk
            .screen
            .note(&format!("going on with “{}”", sessions::title(&summary)));
        let vault = self.talk.desk.vault();
        self.answer =
            sessions::show_again(self.talk.screen, &*self.talk.store, &self.context, vault).await?;
        Ok(())
    }
}
