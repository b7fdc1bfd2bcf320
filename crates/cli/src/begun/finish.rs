//! Finishing open turns, or leaving them: what a start takes up, and what is seen to before
//! something is said.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{ConversationKey, LanguageModel, OutcomeCategory};
use adjutant_runtime::RunContext;

use super::found::{self, Open};
use super::rule::{Change, placed};
use crate::confirm::{Approver, Chosen};
use crate::display::{clean_line, clip};
use crate::error::{CliError, Exit};
use crate::model_choice;
use crate::render::live::Status;
use crate::talk::Talk;

/// Keys that answer what becomes of an open turn.
const FINISH_LEAVE_DROP: &[char] = &['y', 'n', 'd'];

/// Characters of an answer that is told in one line.
const ANSWER_CHARS: usize = 300;

/// Time after which it is looked whether a turn that runs elsewhere has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The model that finishes an open turn, or nobody.
enum Who {
    /// The model in use.
    Own,
    /// The model that it began with, which is another.
    Begun(Arc<dyn LanguageModel>),
    /// Nobody could be asked; the reason why its own model does not.
    Nobody(String),
    /// The person leaves it open.
    Left,
    /// The person ended it.
    Dropped,
}

impl Talk<'_> {
    /// Tells each turn that was left open, and finishes those that may be finished.
    ///
    /// # Errors
    /// The store cannot be read, or the process is asked to end.
    pub(crate) async fn resume(&mut self) -> Result<(), CliError> {
        // With --no-tools nothing that was begun can be finished; the next start does it.
        if self.agent.tools().is_empty() {
            return Ok(());
        }
        for open in found::left(&*self.store, &self.user, self.agent.now()).await? {
            match self.take_up(&open).await {
                Ok(()) => {}
                Err(error) if error.exit == Exit::Terminated => return Err(error),
                // Nothing of it is lost, and nothing else has to wait for it.
                Err(error) => {
                    self.screen.note(&format!(
                        "it cannot go on now: {}",
                        clip(&error.message, ANSWER_CHARS)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Says how many other conversations were left open, where none of them is taken up.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn tell_left(&self, own: &ConversationKey) -> Result<(), CliError> {
        let mut keys = found::left_keys(&*self.store, &self.user, self.agent.now()).await?;
        keys.retain(|key| key != own);
        let words = match keys.len() {
            0 => return Ok(()),
            1 => "a turn in another conversation was interrupted: adjutant chat finishes it"
                .to_owned(),
            more => {
                format!(
                    "turns in {more} other conversations were interrupted: adjutant chat finishes them"
                )
            }
        };
        self.screen
            .note(&format!("{words}; adjutant turns list shows what is open"));
        Ok(())
    }

    /// Sees to what is open in a conversation before something is said in it. Returns the model
    /// that the open turn waits with, if that is another than the one in use.
    ///
    /// # Errors
    /// The open turn stays as it is, so that nothing can be said; or the store cannot be read.
    pub(crate) async fn clear_way(
        &mut self,
        context: &mut RunContext,
    ) -> Result<Option<Arc<dyn LanguageModel>>, CliError> {
        let key = self.agent.key(context);
        loop {
            let Some(open) = found::in_conversation(&*self.store, &key).await? else {
                return Ok(None);
            };
            let stays = open.begun.finished_by(&*self.model) == Change::Stays;
            if stays && (open.waits || self.agent.tools().is_empty()) {
                return Ok(None);
            }
            if !open.waits && !found::is_left(&*self.store, &key).await? {
                if stays {
                    // Whoever runs it is waited for when the message is sent.
                    return Ok(None);
                }
                self.wait_for_others().await?;
                continue;
            }
            if open.waits {
                match self.who(&open).await? {
                    Who::Own => return Ok(None),
                    Who::Begun(model) => return Ok(Some(model)),
                    Who::Nobody(why) => return Err(nobody(&open, &why, &*self.model)),
                    Who::Left => return Err(not_sent()),
                    Who::Dropped => {}
                }
            } else {
                self.tell(&open);
                match self.who(&open).await? {
                    Who::Own => self.run_open(&open).await?,
                    Who::Begun(model) => self.run_begun(&open, model).await?,
                    Who::Nobody(why) => return Err(nobody(&open, &why, &*self.model)),
                    Who::Left => return Err(not_sent()),
                    Who::Dropped => {}
                }
            }
            *context = self.agent.context(&key).await?;
        }
    }

    async fn take_up(&mut self, open: &Open) -> Result<(), CliError> {
        self.tell(open);
        match self.who(open).await? {
            Who::Own => self.run_open(open).await?,
            Who::Begun(model) => self.run_begun(open, model).await?,
            Who::Nobody(why) => {
                let error = nobody(open, &why, &*self.model);
                self.screen.note(&format!(
                    "  it stays open: {}",
                    error.cause.unwrap_or_default()
                ));
                error
                    .tries
                    .iter()
                    .for_each(|way| self.screen.note(&format!("  {way}")));
            }
            Who::Left => self
                .screen
                .note("  it stays open; adjutant turns list shows it"),
            Who::Dropped => {}
        }
        Ok(())
    }

    fn tell(&self, open: &Open) {
        self.screen
            .note(&format!("left open: {}", open.line(self.agent.now())));
    }

    /// Finds who finishes a turn: the model it began with if that can be had, else whoever the
    /// settings or the person say.
    async fn who(&mut self, open: &Open) -> Result<Who, CliError> {
        let change = open.begun.finished_by(&*self.model);
        if change == Change::Stays {
            return Ok(Who::Own);
        }
        let why = match model_choice::begun(&self.settings, self.screen, open.begun.model.as_ref())
            .await
        {
            Ok(model) if open.begun.finished_by(&*model) == Change::Stays => {
                self.screen.note(&format!(
                    "  {} goes on with it, the model it began with",
                    model.id()
                ));
                return Ok(Who::Begun(model));
            }
            Ok(_) => "its server may have had another address".to_owned(),
            Err(why) => why,
        };
        let own = placed(self.model.id(), self.model.capabilities().local);
        if self.settings.finish_with_any_model {
            self.screen.note(&format!(
                "  {own} goes on with it: turns.finish_with_any_model is set"
            ));
            return Ok(Who::Own);
        }
        if !self.screen.asks() {
            return Ok(Who::Nobody(why));
        }
        let began = open.begun.name();
        self.screen.note(&format!(
            "  {began} cannot go on: {}",
            clip(&why, ANSWER_CHARS)
        ));
        let sends = match change {
            Change::Leaves => " The conversation is sent there.",
            Change::Stays | Change::Moves => "",
        };
        let question = clean_line(&format!(
            "? This turn began with {began}. Finish it with {own}?{sends}"
        ));
        self.ask(
            open,
            &format!("{question}  [y] finish it  [n] leave it open  [d] drop it "),
        )
        .await
    }

    async fn ask(&mut self, open: &Open, question: &str) -> Result<Who, CliError> {
        self.screen.end_live();
        loop {
            let mut approver = Approver {
                screen: self.screen,
                lines: &mut self.lines,
                interrupts: &mut self.interrupts,
                yes: &[],
                permissions: &mut self.permissions,
            };
            let chosen = tokio::select! {
                chosen = approver.choose(question, FINISH_LEAVE_DROP) => chosen,
                () = self.endings.next() => {
                    self.screen.side("\n");
                    return Err(CliError::terminated());
                }
            };
            let Chosen::Words(words) = chosen else {
                return Ok(Who::Left);
            };
            match words.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Who::Own),
                "" | "n" | "no" => return Ok(Who::Left),
                "d" | "drop" => {
                    self.agent.drop_turn(&open.key).await?;
                    self.screen
                        .note("  it is ended; what was said in it is kept");
                    return Ok(Who::Dropped);
                }
                _ => self.screen.side_line("  Please answer y, n or d."),
            }
        }
    }

    /// The same as [`Talk::run_open`] by the model that the turn began with.
    async fn run_begun(
        &mut self,
        open: &Open,
        model: Arc<dyn LanguageModel>,
    ) -> Result<(), CliError> {
        let own = self.swap_model(model)?;
        let ended = self.run_open(open).await;
        self.restore(own);
        ended
    }

    /// Runs a turn to its end, shown like any other. Where it cannot be watched, a line tells what
    /// came of it.
    async fn run_open(&mut self, open: &Open) -> Result<(), CliError> {
        let shown = self.screen.shows_answers_live();
        let response = self.go_on(&open.key, shown).await?;
        if response.outcome == OutcomeCategory::Cancelled {
            self.screen
                .note("  this turn is ended, and what was said in it is kept");
        } else if !shown {
            let content = clip(&response.content, ANSWER_CHARS);
            let how = if CliError::of_response(&response).is_some() {
                "could not finish"
            } else {
                "finished"
            };
            self.screen
                .note(&format!("{how} what was left open: {content}"));
        }
        Ok(())
    }

    /// Waits while a turn of another model runs in another process: it must not be taken over from
    /// it unasked.
    async fn wait_for_others(&mut self) -> Result<(), CliError> {
        self.screen
            .live(&Status::new("waiting for the turn that runs elsewhere"), "");
        let waited = tokio::select! {
            () = tokio::time::sleep(LOOK) => Ok(()),
            () = self.interrupts.next() => {
                let stopped = "not sent: a turn of this conversation runs elsewhere";
                Err(if self.settings.bounds.in_chat {
                    CliError::failed(stopped)
                } else {
                    CliError::interrupted(stopped)
                })
            }
            () = self.endings.next() => Err(CliError::terminated()),
        };
        self.screen.end_live();
        waited
    }
}

/// Returns the reason why a turn stays open where nobody can be asked, with the ways out.
fn nobody(open: &Open, why: &str, own: &dyn LanguageModel) -> CliError {
    let own = placed(own.id(), own.capabilities().local);
    let mut error = CliError::confirmation_needed("this conversation still has an unfinished turn")
        .because(format!(
            "it began with {}, which cannot go on ({why}); {own} needs a yes to finish it",
            open.begun.name()
        ));
    if let Some(model) = open
        .begun
        .model
        .as_ref()
        .filter(|model| model_choice::is_name(model))
    {
        error = error.or_try(format!(
            "adjutant chat -m {model}    finishes it, once that can be had"
        ));
    }
    if open.turn.is_some() {
        error = error.or_try(format!(
            "adjutant turns drop {}    ends it",
            open.short_id()
        ));
    }
    error.or_try("adjutant chat    asks, at a terminal")
}

/// The error of a message that the person keeps back by leaving a turn open.
fn not_sent() -> CliError {
    CliError::confirmation_needed("not sent: the open turn of this conversation comes first")
        .or_try("send the message again, and answer y or d")
        .or_try("adjutant …    without -c begins another conversation; /new does in a chat")
}
