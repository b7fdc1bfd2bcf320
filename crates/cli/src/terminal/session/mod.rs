//! A session of one user at a terminal: submits messages, shows their turns and asks for
//! confirmations. `ask`, `chat` and `pending` share it.

mod mentions; // notes and files mentioned after @
mod startup; // startup that Ctrl-C can stop

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::{
    AgentResponse, Answer, CancellationToken, ConversationId, ConversationKey, Disposition,
    LanguageModel, PendingCall, PendingKind, PromptProgress, TurnId, UserId,
};
use adjutant_mcp::client::Servers;
use adjutant_runtime::{Agent, RunContext, RunEvent, RunStream};
use futures::FutureExt as _;
use jiff::tz::TimeZone;

use crate::command::sessions::{self, Folders, LastAnswer, Start};
use crate::config::{Database, Settings};
use crate::error::{CliError, Exit};
use crate::mcp_servers;
use crate::mcp_servers::cost;
use crate::memory::{self, UserInstruction, UserMemory};
use crate::model_choice;
use crate::policy::{Allowed, Permissions};
use crate::search_index::SearchIndexer;
use crate::store::{self, Store, Stores};
use crate::terminal::confirm::{Approver, NoAnswer, approves, preview};
use crate::terminal::display::plural;
use crate::terminal::lines::Lines;
use crate::terminal::notify::{self, Notifier};
use crate::terminal::render::{Renderer, Spent, context_meter, footer, prompt_progress};
use crate::terminal::screen::Screen;
use crate::terminal::signals::{Interrupts, Terminations};
use crate::terminal::tty::{BracketedPaste, Mode, TypeAhead, forget_typed};
use crate::wiring;

pub(crate) use startup::Startup;

/// Time a running turn gets to stop when the process is asked to end. A turn that does not stop is
/// left open, and the next chat recovers it.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// An agent, its conversation partner at the terminal, and the resources of both.
pub(crate) struct Session<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agent: Agent,
    pub(crate) user: UserId,
    pub(crate) lines: Lines,
    pub(crate) interrupts: Interrupts,
    pub(crate) endings: Terminations,
    /// Mode in which keys are kept that are typed during a turn.
    pub(crate) ahead: TypeAhead,
    pub(crate) model: Arc<dyn LanguageModel>,
    /// The user's facts and notes, for commands.
    pub(crate) user_memory: UserMemory,
    /// Parts of the instruction that are made anew for every turn; `None` for weak models.
    pub(crate) instruction: Option<UserInstruction>,
    pub(crate) settings: Settings,
    stores: Stores,
    /// Folders whose files may be attached, in this run only.
    allowed: Vec<PathBuf>,
    /// Fills the index for conversation search in the background. `None` with `--temp`, where
    /// nothing is kept.
    index: Option<SearchIndexer>,
    /// The MCP servers, if the model gets their tools. Kept alive as long as the agent.
    pub(crate) servers: Option<Servers>,
    yes: Vec<String>,
    /// Permissions that the user gave at earlier confirmations.
    pub(crate) permissions: Permissions,
    /// The program that notifies the user of waiting calls.
    notifier: Notifier,
    /// Folders in which conversations began.
    folders: Folders,
    /// Tokens, cost and time of the last turn, from the message to its answer; time spent waiting
    /// for the user does not count.
    pub(crate) spent: Spent,
    /// True if answers are printed as text; false with `--json`.
    prints: bool,
    /// True if the process stays after the answer (`chat`).
    interactive: bool,
    /// True if the user left the last confirmation open with Ctrl-C.
    left_open: bool,
    /// True if the last message was no answer to the question that waits, and was not sent.
    pub(crate) dropped: bool,
    /// True once a termination signal has stopped a turn: nothing is waited for any more.
    is_terminated: bool,
    /// The last turn for which attached facts were announced; each is announced once.
    recall_noted_for: Option<TurnId>,
}

/// An agent with its model, as [`Session::swap_model`] returns it.
pub(crate) struct ActiveModel {
    agent: Agent,
    instruction: Option<UserInstruction>,
    model: Arc<dyn LanguageModel>,
}

impl<'a> Session<'a> {
    /// Opens model, store, memory and MCP servers. `headed` prints the model's name first.
    ///
    /// # Errors
    /// Settings, model or store cannot be used, or `--yes` names a tool that does not exist.
    pub(crate) async fn open(
        screen: &'a Screen,
        settings: &Settings,
        yes: Vec<String>,
        prints: bool,
        headed: bool,
    ) -> Result<Self, CliError> {
        let model = model_choice::open(settings, screen).await?;
        // Before the store is opened: the model's name is the first line of output (README).
        if headed {
            screen.note_parts(&header(&*model));
        }
        if let Database::Postgres(_) = &settings.database {
            screen.note(&format!("store {}", settings.database));
        }
        let stores = store::open_for_session(settings).await?;
        let user_memory = UserMemory::open(settings, stores.kept.clone()).await?;
        let servers = match settings.bounds.no_tools {
            true => None,
            false => Some(mcp_servers::start_for(&*model, settings, screen).await?),
        };
        let (agent, instruction) = wiring::diana(
            settings,
            Arc::clone(&model),
            &stores,
            servers.as_ref(),
            &user_memory,
        )?;
        match &instruction {
            Some(instruction) => instruction
                .unread()
                .await
                .iter()
                .for_each(|unread| screen.note(unread)),
            None if user_memory.vault().is_some() => screen.note(memory::SMALL),
            None if user_memory.memory().is_some() => screen.note(memory::SMALL_WITHOUT_VAULT),
            None => {}
        }
        for name in &yes {
            wiring::known_tool(name, &wiring::tool_names(&agent)).map_err(|error| CliError {
                exit: Exit::Usage,
                code: "usage",
                ..error.because("in --yes")
            })?;
        }
        // The model reads its instruction while the user types the first message.
        agent.prepare();
        let index =
            (!settings.bounds.temp).then(|| SearchIndexer::keep(stores.conversation.clone()));
        index.iter().for_each(|index| index.listen(&agent));
        if screen.shows_progress() {
            screen.suspend_on_signal().map_err(|error| {
                CliError::failed("signals cannot be listened for").because(error.to_string())
            })?;
        }
        let interrupts = Interrupts::new()?;
        let endings = Terminations::new()?;
        let user = UserId::local();
        Ok(Self {
            screen,
            store: stores.conversation.clone(),
            settings: settings.clone(),
            stores,
            allowed: Vec::new(),
            index,
            user_memory,
            instruction,
            agent,
            user,
            lines: Lines::new(),
            interrupts,
            endings,
            ahead: TypeAhead::Lines,
            model,
            servers,
            yes,
            permissions: Permissions::new(settings),
            notifier: Notifier::new(settings.notify.clone()),
            folders: Folders::new(settings),
            spent: Spent::default(),
            prints,
            interactive: !headed,
            recall_noted_for: None,
            left_open: false,
            dropped: false,
            is_terminated: false,
        })
    }

    /// Switches the conversation to another model.
    ///
    /// # Errors
    /// The model cannot be opened; the previous one stays in use.
    pub(crate) async fn use_model(&mut self, settings: &Settings) -> Result<(), CliError> {
        let model = model_choice::open(settings, self.screen).await?;
        self.settings = settings.clone();
        self.swap_model(model).map(drop)
    }

    /// Switches to a model and returns the previous one, for [`Session::restore`].
    ///
    /// # Errors
    /// No agent can be built with it; the previous one stays in use.
    pub(crate) fn swap_model(
        &mut self,
        model: Arc<dyn LanguageModel>,
    ) -> Result<ActiveModel, CliError> {
        let (agent, instruction) = wiring::diana(
            &self.settings,
            Arc::clone(&model),
            &self.stores,
            self.servers.as_ref(),
            &self.user_memory,
        )?;
        agent.prepare();
        self.index.iter().for_each(|index| index.listen(&agent));
        Ok(ActiveModel {
            agent: std::mem::replace(&mut self.agent, agent),
            instruction: std::mem::replace(&mut self.instruction, instruction),
            model: std::mem::replace(&mut self.model, model),
        })
    }

    /// Switches back to the model that [`Session::swap_model`] returned.
    pub(crate) fn restore(&mut self, previous: ActiveModel) {
        self.agent = previous.agent;
        self.instruction = previous.instruction;
        self.model = previous.model;
    }

    /// Waits for calls that go on after their turns were stopped, so that none is left in doubt.
    /// Ctrl-C or a termination signal ends the wait.
    pub(crate) async fn wait_for_calls(&mut self) {
        let agent = self.agent.clone();
        let ended = agent.calls_ended();
        tokio::pin!(ended);
        if self.is_terminated || (&mut ended).now_or_never().is_some() {
            return;
        }
        self.screen
            .note("waiting for a tool that is still running; Ctrl-C leaves it in doubt");
        tokio::select! {
            () = &mut ended => {}
            () = self.interrupts.next() => {}
            () = self.endings.next() => {}
        }
    }

    /// Waits for running calls and notifications, and stops the MCP servers.
    pub(crate) async fn leave(mut self) {
        self.wait_for_calls().await;
        self.notifier.wait(self.screen).await;
        if let Some(servers) = self.servers {
            servers.stop().await;
        }
    }

    /// Returns the context of the conversation to start with.
    pub(crate) async fn context(&self, start: Start) -> Result<RunContext, CliError> {
        let conversation = match start {
            Start::New => None,
            Start::In(conversation) => Some(conversation),
            Start::Newest => self.newest_conversation().await?,
        };
        let Some(conversation) = conversation else {
            return Ok(RunContext::new(self.user.clone()));
        };
        let key = store::key_of(&self.user, conversation);
        Ok(self.agent.context(&key).await?)
    }

    /// Returns the newest conversation that `-c` may continue, or prints that there is none.
    async fn newest_conversation(&self) -> Result<Option<ConversationId>, CliError> {
        let within = self.folders.within_scope();
        let newest =
            sessions::list_filtered(&*self.store, &self.user, None, within.as_ref(), 1).await?;
        if newest.is_empty() {
            self.screen.note(match within {
                None => "there are no conversations yet; this is the first",
                Some(_) => {
                    "no conversation has begun in this folder yet; this is the first (sessions.continue)"
                }
            });
        }
        Ok(newest.first().map(|newest| newest.id))
    }

    /// Prints the end of a conversation that is continued, and returns its last answer.
    pub(crate) async fn print_resumed(
        &self,
        context: &RunContext,
    ) -> Result<Option<LastAnswer>, CliError> {
        sessions::print_resumed(self.screen, &*self.store, context, self.user_memory.vault()).await
    }

    /// Submits a message and shows its turn to the end, confirmations included.
    pub(crate) async fn submit(
        &mut self,
        context: &mut RunContext,
        text: &str,
    ) -> Result<AgentResponse, CliError> {
        self.close_and_run(context, |agent, context| agent.stream(context, text))
            .await
    }

    /// Submits answers to pending calls and shows their turn to the end, further confirmations
    /// included.
    pub(crate) async fn submit_answers(
        &mut self,
        context: &mut RunContext,
        answers: Vec<Answer>,
    ) -> Result<AgentResponse, CliError> {
        self.close_and_run(context, |agent, context| {
            agent.stream_answer(context, answers)
        })
        .await
    }

    /// Recovers what is open in the conversation, then runs what `begin` submits. If the open turn
    /// has to be finished by another model, that one is used for this run only.
    async fn close_and_run(
        &mut self,
        context: &mut RunContext,
        begin: impl FnOnce(&Agent, &RunContext) -> RunStream,
    ) -> Result<AgentResponse, CliError> {
        let previous = match self.close_open_turn(context).await? {
            Some(model) => Some(self.swap_model(model)?),
            None => None,
        };
        if context.history.is_empty()
            && context.pending.is_empty()
            && let Err(reason) = self.folders.note(context.conversation)
        {
            self.screen.note(&reason);
        }
        // After an error too, the next message goes to the model that the user chose.
        let response = self.run_to_end(context, begin).await;
        if let Some(previous) = previous {
            self.restore(previous);
        }
        response
    }

    /// Runs an open turn of a conversation to its end. With `prints` unset its answer is not
    /// printed.
    pub(crate) async fn run_open_turn(
        &mut self,
        key: &ConversationKey,
        prints: bool,
    ) -> Result<AgentResponse, CliError> {
        let mut context = self.agent.context(key).await?;
        let printed = self.prints;
        self.prints = printed && prints;
        let ended = self
            .run_to_end(&mut context, |agent, context| {
                agent.stream_recovery(context)
            })
            .await;
        // Ctrl-C at a question of this turn does not decide the exit code of the command.
        (self.prints, self.left_open) = (printed, false);
        ended
    }

    async fn run_to_end(
        &mut self,
        context: &mut RunContext,
        begin: impl FnOnce(&Agent, &RunContext) -> RunStream,
    ) -> Result<AgentResponse, CliError> {
        let _modes = (Mode::turn(self.ahead), BracketedPaste::during(self.ahead));
        // The token of the last run may be cancelled, and a cancelled one stays so.
        context.cancelled = CancellationToken::new();
        context.time_zone = Some(TimeZone::system());
        self.spent = Spent::default();
        let stream = begin(&self.agent, context);
        let response = self.show_run(stream, context).await?;
        self.dropped = response.disposition == Disposition::Dropped;
        self.ask_for_confirmations(context, response).await
    }

    /// Returns the exit code of a command that ends with this response.
    pub(crate) fn exit(&self, response: &AgentResponse) -> Exit {
        if self.left_open {
            Exit::Interrupted
        } else {
            Exit::for_response(response)
        }
    }

    /// Asks for confirmations and submits the answers until the turn waits for none, or no one
    /// answers.
    async fn ask_for_confirmations(
        &mut self,
        context: &mut RunContext,
        mut response: AgentResponse,
    ) -> Result<AgentResponse, CliError> {
        while !response.decision.pending.is_empty() {
            self.notify(context, &response);
            let mut approver = Approver {
                screen: self.screen,
                lines: &mut self.lines,
                interrupts: &mut self.interrupts,
                yes: &self.yes,
                permissions: &mut self.permissions,
            };
            let decided = tokio::select! {
                decided = approver.decide(&response.decision.pending) => decided,
                () = self.endings.next() => {
                    self.screen.side("\n");
                    return Err(CliError::terminated());
                }
            };
            match decided {
                Ok(answers) => {
                    context.cancelled = CancellationToken::new();
                    let stream = self.agent.stream_answer(context, answers);
                    response = self.show_run(stream, context).await?;
                }
                Err(none) => {
                    self.left_open = none == NoAnswer::Interrupted;
                    self.print_how_to_answer(&response);
                    break;
                }
            }
        }
        // Servers that started in parallel with the model have reported their state by now.
        if let Some(servers) = &self.servers {
            mcp_servers::print_news(servers, self.screen);
        }
        Ok(response)
    }

    /// Shows a run to its end. The first Ctrl-C cancels it, a second one returns at once. A
    /// termination signal cancels it too.
    async fn show_run(
        &mut self,
        mut stream: RunStream,
        context: &mut RunContext,
    ) -> Result<AgentResponse, CliError> {
        let began = Instant::now();
        let mut renderer =
            Renderer::new(self.screen, self.prints, self.user_memory.vault().cloned());
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(event) => {
                        renderer.event(&event);
                        if let RunEvent::TurnStarted { turn, memory, .. } = &event {
                            self.note_recalled(*turn, memory, &mut renderer);
                        }
                    }
                    None => break,
                },
                () = self.interrupts.next() => {
                    if context.cancelled.is_cancelled() {
                        renderer.end_lines();
                        return Err(CliError::interrupted("stopped before the running tool was done")
                            .or_try("adjutant -c …    finishes what is open first"));
                    }
                    context.cancelled.cancel();
                    // Text typed for the cancelled answer is not meant for what comes next.
                    forget_typed();
                }
                () = self.endings.next() => {
                    context.cancelled.cancel();
                    let stopped = async {
                        while stream.next().await.is_some() {}
                        self.agent.calls_ended().await;
                    };
                    // A turn that does not stop in time stays open in the journal, and the next
                    // chat recovers it.
                    let _ = tokio::time::timeout(STOP_WITHIN, stopped).await;
                    self.is_terminated = true;
                    renderer.end_lines();
                    return Err(CliError::terminated());
                }
            }
        }
        let (response, after) = stream.finish().await?;
        self.spent.add(&response, began.elapsed());
        // Permissions for tools of servers hold only while these are as they were when allowed.
        self.permissions.set_conversation(
            context.conversation,
            self.servers
                .as_ref()
                .map(Servers::report)
                .unwrap_or_default(),
        );
        context.history = after.history;
        context.history_is_from_others = after.history_is_from_others;
        context.pending = after.pending;
        if self.prints {
            renderer.finish(&response, self.will_be_answered(&response));
        } else {
            renderer.end_lines();
        }
        self.print_summary(&response, context, renderer.unread())
            .await;
        Ok(response)
    }

    /// Prints, once per turn, that facts were attached to the message. Only in `chat`, where
    /// `/memory told` can show them.
    fn note_recalled(
        &mut self,
        turn: TurnId,
        memory: &[adjutant_core::RecalledText],
        renderer: &mut Renderer<'_>,
    ) {
        if self.interactive
            && !memory.is_empty()
            && self.recall_noted_for.replace(turn) != Some(turn)
        {
            let count = plural(memory.len() as u64, "line", "lines");
            renderer.print_note(&format!("◦ {count} from your memory (/memory told)"));
        }
    }

    /// Prints errors and figures of a turn below its answer. `unread` is the progress of the
    /// prompt, if the turn ended before the model had read it.
    async fn print_summary(
        &self,
        response: &AgentResponse,
        context: &RunContext,
        unread: Option<PromptProgress>,
    ) {
        if self.prints {
            match (self.error_of(response), unread) {
                (Some(error), Some(unread)) => {
                    self.screen.error(&prompt_progress::explained(
                        response,
                        error,
                        unread,
                        self.interactive,
                    ));
                }
                (Some(error), None) => self.screen.error(&error),
                (None, Some(unread)) => self
                    .screen
                    .note(&prompt_progress::stopped(unread, self.interactive)),
                (None, None) => {}
            }
        }
        // If a confirmation follows, the figures are printed with the final answer.
        if self.screen.shows_work() && !self.will_be_answered(response) {
            let mut figures = footer(&self.spent);
            if let Some(meter) = self.meter(context).await {
                figures = format!("{figures} · {meter}");
            }
            self.screen.note(&format!("  {figures}"));
        }
        if self.screen.verbose() {
            let (kind, outcome) = (response.decision.kind, response.outcome);
            self.screen
                .note(&format!("  turn {} · {kind} · {outcome}", response.turn));
        }
    }

    /// Returns the error of a turn, if it has one that the answer does not say.
    fn error_of(&self, response: &AgentResponse) -> Option<CliError> {
        let mut error = CliError::from_response(response)?;
        if error.code == "context_too_long"
            && let Some(servers) = &self.servers
        {
            let window = self.model.capabilities().context_window;
            let remedy = cost::remedy(window, &servers.report());
            error.tries.splice(0..0, remedy);
        }
        Some(error)
    }

    /// Returns how full the context window is, in `chat` only.
    async fn meter(&self, context: &RunContext) -> Option<String> {
        if !self.interactive {
            return None;
        }
        let used = self
            .agent
            .context_use(&self.agent.key(context))
            .await
            // The answer is printed already; if the store cannot be read now, only a figure is
            // missing.
            .ok()?;
        context_meter(u64::from(used.total()), u64::from(used.usable()))
    }

    /// Runs the notification command for pending calls that no option answers: if no one can be
    /// asked here, or the turn took so long that the user may be looking elsewhere.
    fn notify(&mut self, context: &RunContext, response: &AgentResponse) {
        if self.screen.asks() && self.spent.took < notify::UNATTENDED_AFTER {
            return;
        }
        for call in &response.decision.pending {
            if !self.approves(call) {
                self.notifier.notify(call, context.conversation);
            }
        }
    }

    /// Returns true if every pending call will be answered by an option or at the terminal.
    fn will_be_answered(&self, response: &AgentResponse) -> bool {
        let pending = &response.decision.pending;
        !pending.is_empty()
            && (self.screen.asks() || pending.iter().all(|call| self.approves(call)))
    }

    /// Returns true if an option or a permission answers the call.
    fn approves(&self, call: &PendingCall) -> bool {
        approves(&self.yes, call) || matches!(self.permissions.allow(call), Allowed::Yes(_))
    }

    /// Prints the commands that answer the pending calls. The question itself is the answer of the
    /// turn, or was asked at the terminal.
    fn print_how_to_answer(&self, response: &AgentResponse) {
        if !self.prints {
            return;
        }
        let pending = &response.decision.pending;
        for call in pending {
            let (id, preview) = (call.short_id(), preview(call));
            let print = |command: &str| {
                self.screen
                    .side_line(&format!("  adjutant pending {command}    {preview}"));
            };
            match call.kind() {
                PendingKind::Doubt => print(&format!("resolve {id} done|retry|leave")),
                PendingKind::Confirmation => {
                    print(&format!("approve {id}"));
                    self.screen
                        .side_line(&format!("  adjutant pending deny {id}"));
                }
                PendingKind::Result => self
                    .screen
                    .side_line(&format!("Waiting for the program that asked: {preview}")),
            }
        }
        if pending
            .iter()
            .all(|call| call.kind() == PendingKind::Confirmation)
        {
            self.screen.side_line("  adjutant -c yes");
        }
    }
}

/// Returns the line that names version and model: `adjutant 0.1.0 · embedded/qwen2.5-coder-1.5b`.
pub(crate) fn header(model: &dyn LanguageModel) -> [String; 2] {
    [
        concat!("adjutant ", env!("CARGO_PKG_VERSION")).to_owned(),
        model.id().to_string(),
    ]
}
