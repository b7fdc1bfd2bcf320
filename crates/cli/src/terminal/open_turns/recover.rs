//! Recovery of open turns: at the start of a session, and before a message is submitted to a
//! conversation that has one.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{ConversationKey, LanguageModel, OutcomeCategory};
use adjutant_runtime::RunContext;

use super::find::{self, OpenTurn};
use super::rule::{Change, placed};
use crate::error::{CliError, Exit};
use crate::model_choice;
use crate::terminal::confirm::Approver;
use crate::terminal::display::{clean_line, clip};
use crate::terminal::render::live::Status;
use crate::terminal::session::Session;

/// Keys that answer the question about an open turn.
const FINISH_LEAVE_DROP: &[char] = &['y', 'n', 'd'];

/// Characters of an answer or cause in a one-line note.
const ANSWER_CHARS: usize = 300;

/// Interval at which a turn that runs in another process is checked for its end.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The decision about an open turn.
enum Decision {
    /// The current model finishes it.
    Current,
    /// The model that it began with finishes it; that is not the current one.
    Original(Arc<dyn LanguageModel>),
    /// The original model is unavailable, for this reason, and the user could not be asked.
    Unanswered(String),
    /// The user leaves it open.
    LeaveOpen,
    /// The user ended it.
    Dropped,
}

impl Session<'_> {
    /// Lists the open turns and recovers those that may be.
    ///
    /// # Errors
    /// The store cannot be read, or a termination signal came.
    pub(crate) async fn recover_open_turns(&mut self) -> Result<(), CliError> {
        // Without tools their calls would fail. The next start recovers them.
        if self.agent.tools().is_empty() {
            return Ok(());
        }
        for open in find::recoverable(&*self.store, &self.user, self.agent.now()).await? {
            match self.recover(&open).await {
                Ok(()) => {}
                Err(error) if error.exit == Exit::Terminated => return Err(error),
                // The turn is still in the journal, and the others can be recovered without it.
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

    /// Prints how many other conversations have open turns, for commands that recover none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn note_open_turns(&self, own: &ConversationKey) -> Result<(), CliError> {
        let mut keys = find::recoverable_keys(&*self.store, &self.user, self.agent.now()).await?;
        keys.retain(|key| key != own);
        let (which, them) = match keys.len() {
            0 => return Ok(()),
            1 => ("a turn in another conversation was".to_owned(), "it"),
            more => (format!("turns in {more} other conversations were"), "them"),
        };
        self.screen.note(&format!(
            "{which} interrupted: adjutant chat finishes {them}; adjutant turns list shows what is open"
        ));
        Ok(())
    }

    /// Finishes what is open in a conversation before something is submitted to it. Returns the
    /// model that the open turn needs if it waits for a confirmation and that is not the current
    /// model.
    ///
    /// # Errors
    /// The turn stays open, so that nothing can be submitted; or the store cannot be read.
    pub(crate) async fn close_open_turn(
        &mut self,
        context: &mut RunContext,
    ) -> Result<Option<Arc<dyn LanguageModel>>, CliError> {
        let key = self.agent.key(context);
        // Until nothing is open: a message that was accepted may wait behind a turn that is closed.
        loop {
            let Some(open) = find::in_conversation(&*self.store, &key).await? else {
                return Ok(None);
            };
            let stays = open.origin.finished_by(&*self.model) == Change::Stays;
            if stays && (open.waits || self.agent.tools().is_empty()) {
                return Ok(None);
            }
            if !open.waits && !find::is_recoverable(&*self.store, &key).await? {
                if stays {
                    // Another process runs it: submitting the message waits for it.
                    return Ok(None);
                }
                self.wait_for_others().await?;
                continue;
            }
            if !open.waits {
                self.announce(&open);
            }
            match self.decide(&open).await? {
                // What the caller submits is the answer that this turn waits for.
                Decision::Current if open.waits => return Ok(None),
                Decision::Original(model) if open.waits => return Ok(Some(model)),
                Decision::Current => self.run_recovered(&open).await?,
                Decision::Original(model) => self.run_by_original_model(&open, model).await?,
                Decision::Unanswered(why) => {
                    return Err(needs_confirmation(&open, &why, &*self.model));
                }
                Decision::LeaveOpen => return Err(not_sent()),
                Decision::Dropped => {}
            }
            *context = self.agent.context(&key).await?;
        }
    }

    async fn recover(&mut self, open: &OpenTurn) -> Result<(), CliError> {
        self.announce(open);
        match self.decide(open).await? {
            Decision::Current => self.run_recovered(open).await?,
            Decision::Original(model) => self.run_by_original_model(open, model).await?,
            Decision::Unanswered(why) => {
                let error = needs_confirmation(open, &why, &*self.model);
                self.screen.note(&format!(
                    "  it stays open: {}",
                    error.cause.unwrap_or_default()
                ));
                error
                    .tries
                    .iter()
                    .for_each(|way| self.screen.note(&format!("  {way}")));
            }
            Decision::LeaveOpen => self
                .screen
                .note("  it stays open; adjutant turns list shows it"),
            Decision::Dropped => {}
        }
        Ok(())
    }

    fn announce(&self, open: &OpenTurn) {
        self.screen
            .note(&format!("left open: {}", open.line(self.agent.now())));
    }

    /// Decides which model finishes a turn: the original one if it is available, else what the
    /// settings or the user say.
    async fn decide(&mut self, open: &OpenTurn) -> Result<Decision, CliError> {
        let change = open.origin.finished_by(&*self.model);
        if change == Change::Stays {
            return Ok(Decision::Current);
        }
        let id = open.origin.model.as_ref();
        let original = model_choice::open_original(&self.settings, self.screen, id).await;
        let why = match original {
            Ok(model) if open.origin.finished_by(&*model) == Change::Stays => {
                self.screen.note(&format!(
                    "  {} goes on with it, the model it began with",
                    model.id()
                ));
                return Ok(Decision::Original(model));
            }
            Ok(_) => "its server may have had another address".to_owned(),
            Err(why) => why,
        };
        let own = placed(self.model.id(), self.model.capabilities().local);
        if self.settings.finish_with_any_model {
            self.screen.note(&format!(
                "  {own} goes on with it: turns.finish_with_any_model is set"
            ));
            return Ok(Decision::Current);
        }
        if !self.screen.asks() {
            return Ok(Decision::Unanswered(why));
        }
        let began = open.origin.name();
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

    async fn ask(&mut self, open: &OpenTurn, question: &str) -> Result<Decision, CliError> {
        // A live line that is redrawn would overwrite what is typed.
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
            let Some(words) = chosen else {
                return Ok(Decision::LeaveOpen);
            };
            match words.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Decision::Current),
                "" | "n" | "no" => return Ok(Decision::LeaveOpen),
                "d" | "drop" => {
                    self.agent.drop_turn(&open.key).await?;
                    self.screen
                        .note("  it is ended; what was said in it is kept");
                    return Ok(Decision::Dropped);
                }
                _ => self.screen.side_line("  Please answer y, n or d."),
            }
        }
    }

    /// Finishes a turn as [`Session::run_recovered`] does, by its original model.
    async fn run_by_original_model(
        &mut self,
        open: &OpenTurn,
        model: Arc<dyn LanguageModel>,
    ) -> Result<(), CliError> {
        // Only for this turn: the next message goes to the model that the user chose.
        let own = self.swap_model(model)?;
        let ended = self.run_recovered(open).await;
        self.restore(own);
        ended
    }

    /// Runs an open turn to its end and shows it. Where answers are not shown live, a note states
    /// the result.
    async fn run_recovered(&mut self, open: &OpenTurn) -> Result<(), CliError> {
        let shown = self.screen.shows_answers_live();
        let response = self.run_open_turn(&open.key, shown).await?;
        if response.outcome == OutcomeCategory::Cancelled {
            self.screen
                .note("  this turn is ended, and what was said in it is kept");
        } else if !shown {
            let note = match CliError::from_response(&response) {
                Some(error) => format!("could not finish what was left open: {}", error.message),
                None => {
                    let content = clip(&response.content, ANSWER_CHARS);
                    format!("finished what was left open: {content}")
                }
            };
            self.screen.note(&note);
        }
        Ok(())
    }

    /// Waits while another process runs a turn with another model, which must not be taken over
    /// without a confirmation.
    async fn wait_for_others(&mut self) -> Result<(), CliError> {
        self.screen
            .live(&Status::new("waiting for the turn that runs elsewhere"), "");
        let waited = tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => Ok(()),
            () = self.interrupts.next() => {
                let stopped = "not sent: a turn of this conversation runs elsewhere";
                // A chat goes back to its prompt; a single request ends, as after any Ctrl-C.
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

/// Returns the error of a turn that stays open because the user cannot be asked.
fn needs_confirmation(open: &OpenTurn, why: &str, own: &dyn LanguageModel) -> CliError {
    let own = placed(own.id(), own.capabilities().local);
    let mut error = CliError::confirmation_needed("this conversation still has an unfinished turn")
        .because(format!(
            "it began with {}, which cannot go on ({why}); {own} needs your confirmation to finish it",
            open.origin.name()
        ));
    if let Some(model) = &open.origin.model
        && model_choice::is_name(model)
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

/// Returns the error of a message that was not sent because the user left a turn open.
fn not_sent() -> CliError {
    CliError::confirmation_needed("not sent: the open turn of this conversation comes first")
        .or_try("send the message again, and answer y or d")
        .or_try("adjutant …    without -c begins another conversation; /new does in a chat")
}
