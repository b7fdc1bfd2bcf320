//! One person, one agent, one terminal: what `ask`, `chat` and `pending` share.

mod mentioned; // what a message names behind @
mod opening; // before anything can be said

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::{
    AgentResponse, Answer, CancellationToken, ConversationKey, LanguageModel, PendingCall,
    PendingKind, PromptProgress, TurnId, UserId,
};
use adjutant_mcp::client::Servers;
use adjutant_runtime::{Agent, RunContext, RunEvent, RunStream};

use crate::config::{Database, Settings};
use crate::confirm::{Approver, Decided, approves};
use crate::display::{clip, plural};
use crate::error::{CliError, Exit};
use crate::lines::{Endings, Interrupts, Lines};
use crate::memory::{self, Desk, Told};
use crate::notify::{self, Notifier};
use crate::past::PastIndex;
use crate::policy::{Allowed, Permissions};
use crate::render::{Renderer, Spent, context_meter, footer, reading};
use crate::screen::Screen;
use crate::sessions::{self, Folders, Start};
use crate::store::{self, Store, Stores};
use crate::tty::{Ahead, MarkedPastes, Mode, forget_typed};
use crate::{model_choice, servers, wiring};

pub(crate) use opening::Opening;

/// Longest time a turn may take to stop when the process is asked to end. What it leaves open, the
/// next chat finishes.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A running assistant and the person in front of it.
pub(crate) struct Talk<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agent: Agent,
    pub(crate) user: UserId,
    pub(crate) lines: Lines,
    pub(crate) interrupts: Interrupts,
    pub(crate) endings: Endings,
    /// Who reads what is typed while a turn runs.
    pub(crate) ahead: Ahead,
    pub(crate) model: Arc<dyn LanguageModel>,
    /// What the person has in their vault, for commands.
    pub(crate) desk: Desk,
    /// What the model is told anew every turn; none if it is too small for it.
    pub(crate) told: Option<Told>,
    pub(crate) settings: Settings,
    stores: Stores,
    /// Folders whose files may go along, for this run alone.
    allowed: Vec<PathBuf>,
    /// The index of past conversations, filled behind the turns. `None`: nothing is kept of this
    /// conversation.
    index: Option<PastIndex>,
    /// Kept as long as the agent: its tools are among the agent's.
    servers: Option<Servers>,
    yes: Vec<String>,
    /// The permissions that the person gave at questions before.
    pub(crate) permissions: Permissions,
    /// The program that tells the person of questions.
    notifier: Notifier,
    /// The folders in which conversations began.
    folders: Folders,
    /// Tokens, cost and time of the turn so far; the person's own time is not in it.
    spent: Spent,
    /// Whether answers are printed as text.
    prints: bool,
    /// Whether more is said after an answer.
    goes_on: bool,
    /// Whether the person left the last question open with Ctrl-C.
    left_open: bool,
    /// The turn of which it was said last that something of the memory was told with its message.
    reminded: Option<TurnId>,
}

/// Whoever answers.
pub(crate) struct Answering {
    agent: Agent,
    told: Option<Told>,
    model: Arc<dyn LanguageModel>,
}

impl<'a> Talk<'a> {
    /// Opens model and store. `headed`: says which model runs.
    ///
    /// # Errors
    /// Configuration, model, store, or a tool in `--yes` that there is not.
    pub(crate) async fn open(
        screen: &'a Screen,
        settings: &Settings,
        yes: Vec<String>,
        prints: bool,
        headed: bool,
    ) -> Result<Self, CliError> {
        let model = model_choice::open(settings, screen).await?;
        if headed {
            screen.note(&header(&*model));
        }
        if let Database::Postgres(_) = &settings.database {
            screen.note(&format!("store {}", settings.database));
        }
        let stores = store::for_talk(settings).await?;
        let desk = Desk::open(settings, stores.kept.clone()).await?;
        let servers = match settings.bounds.no_tools {
            true => None,
            false => servers::start_for(model.capabilities(), settings, screen).await?,
        };
        let (agent, told) = wiring::diana(
            settings,
            Arc::clone(&model),
            &stores,
            servers.as_ref(),
            &desk,
        )?;
        match &told {
            Some(told) => told
                .unread()
                .await
                .iter()
                .for_each(|unread| screen.note(unread)),
            None if desk.memory().is_some() => screen.note(memory::SMALL),
            None => {}
        }
        for name in &yes {
            wiring::known_tool(name, &wiring::tool_names(&agent)).map_err(|error| CliError {
                exit: Exit::Usage,
                code: "usage",
                ..error.because("in --yes")
            })?;
        }
        agent.prepare();
        let index = (!settings.bounds.temp).then(|| PastIndex::keep(stores.conversation.clone()));
        index.iter().for_each(|index| index.listen(&agent));
        let interrupts = Interrupts::new()?;
        let endings = Endings::new()?;
        let user = UserId::local();
        Ok(Self {
            screen,
            store: stores.conversation.clone(),
            settings: settings.clone(),
            stores,
            allowed: Vec::new(),
            index,
            desk,
            told,
            agent,
            user,
            lines: Lines::new(),
            interrupts,
            endings,
            ahead: Ahead::Lines,
            model,
            servers,
            yes,
            permissions: Permissions::new(settings),
            notifier: Notifier::new(settings.notify.clone()),
            folders: Folders::new(settings),
            spent: Spent::default(),
            prints,
            goes_on: !headed,
            reminded: None,
            left_open: false,
        })
    }

    /// Another model answers from now on, in the same conversation.
    ///
    /// # Errors
    /// It cannot be opened; then the one before goes on answering.
    pub(crate) async fn use_model(&mut self, settings: &Settings) -> Result<(), CliError> {
        let model = model_choice::open(settings, self.screen).await?;
        if self.servers.is_none() && !settings.bounds.no_tools {
            // Those of a model that was too small for them.
            self.servers = servers::start_for(model.capabilities(), settings, self.screen).await?;
        }
        self.settings = settings.clone();
        self.swap_model(model).map(drop)
    }

    /// Has a model answer from now on, and returns who did before, for [`Talk::restore`].
    ///
    /// # Errors
    /// No assistant can be made of it; then the one before goes on answering.
    pub(crate) fn swap_model(
        &mut self,
        model: Arc<dyn LanguageModel>,
    ) -> Result<Answering, CliError> {
        let servers = self
            .servers
            .as_ref()
            .filter(|_| !model.capabilities().weak_tools);
        let (agent, told) = wiring::diana(
            &self.settings,
            Arc::clone(&model),
            &self.stores,
            servers,
            &self.desk,
        )?;
        agent.prepare();
        self.index.iter().for_each(|index| index.listen(&agent));
        Ok(Answering {
            agent: std::mem::replace(&mut self.agent, agent),
            told: std::mem::replace(&mut self.told, told),
            model: std::mem::replace(&mut self.model, model),
        })
    }

    /// Has the one answer again who did before [`Talk::swap_model`].
    pub(crate) fn restore(&mut self, Answering { agent, told, model }: Answering) {
        (self.agent, self.told, self.model) = (agent, told, model);
    }

    /// The tools of other programs, if the model gets any.
    pub(crate) fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// Lets other people's servers end in good order.
    pub(crate) async fn leave(mut self) {
        self.notifier.settle(self.screen).await;
        if let Some(servers) = self.servers {
            servers.stop().await;
        }
    }

    /// The conversation a talk begins in.
    pub(crate) async fn context(&self, start: Start) -> Result<RunContext, CliError> {
        if let Start::In(conversation) = start {
            let key = store::key_of(&self.user, conversation);
            return Ok(self.agent.context(&key).await?);
        }
        if start == Start::Newest {
            let within = self.folders.within_scope();
            let newest =
                sessions::list_of(&*self.store, &self.user, None, within.as_ref(), 1).await?;
            if let Some(newest) = newest.first() {
                let key = store::key_of(&self.user, newest.id);
                return Ok(self.agent.context(&key).await?);
            }
            self.screen.note(match within {
                None => "there are no conversations yet; this is the first",
                Some(_) => {
                    "no conversation has begun in this folder yet; this is the first (sessions.continue)"
                }
            });
        }
        Ok(RunContext::new(self.user.clone()))
    }

    /// Says something and sees it through, confirmations included.
    pub(crate) async fn say(
        &mut self,
        context: &mut RunContext,
        text: &str,
    ) -> Result<AgentResponse, CliError> {
        let own = self.make_way(context).await?;
        if context.history.is_empty()
            && context.pending.is_empty()
            && let Err(reason) = self.folders.note(context.conversation)
        {
            self.screen.note(&reason);
        }
        let said = self
            .see_through(context, |agent, context| agent.stream(context, text))
            .await;
        own.into_iter().for_each(|own| self.restore(own));
        said
    }

    /// Answers what waits and sees it through, further confirmations included.
    pub(crate) async fn answer(
        &mut self,
        context: &mut RunContext,
        answers: Vec<Answer>,
    ) -> Result<AgentResponse, CliError> {
        let own = self.make_way(context).await?;
        let said = self
            .see_through(context, |agent, context| {
                agent.stream_answer(context, answers)
            })
            .await;
        own.into_iter().for_each(|own| self.restore(own));
        said
    }

    /// Goes on with what was left open in a conversation and sees it through. `prints`: whether its
    /// answer is printed.
    pub(crate) async fn go_on(
        &mut self,
        key: &ConversationKey,
        prints: bool,
    ) -> Result<AgentResponse, CliError> {
        let mut context = self.agent.context(key).await?;
        let printed = self.prints;
        self.prints = printed && prints;
        let ended = self
            .see_through(&mut context, |agent, context| agent.stream_open(context))
            .await;
        (self.prints, self.left_open) = (printed, false);
        ended
    }

    /// Sees to what is open in the conversation. Returns who answers otherwise, if another model
    /// has to do it this time.
    async fn make_way(&mut self, context: &mut RunContext) -> Result<Option<Answering>, CliError> {
        match self.clear_way(context).await? {
            Some(model) => self.swap_model(model).map(Some),
            None => Ok(None),
        }
    }

    async fn see_through(
        &mut self,
        context: &mut RunContext,
        begin: impl FnOnce(&Agent, &RunContext) -> RunStream,
    ) -> Result<AgentResponse, CliError> {
        let _modes = (Mode::turn(self.ahead), MarkedPastes::during(self.ahead));
        context.cancelled = CancellationToken::new();
        self.spent = Spent::default();
        let stream = begin(&self.agent, context);
        let response = self.follow(stream, context).await?;
        self.settle(context, response).await
    }

    /// How a command that ends with this response ends.
    pub(crate) fn exit(&self, response: &AgentResponse) -> Exit {
        if self.left_open {
            Exit::Interrupted
        } else {
            Exit::of(response)
        }
    }

    /// Gets answers for what waits, as long as somebody gives them.
    async fn settle(
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
                Decided::Answers(answers) => {
                    context.cancelled = CancellationToken::new();
                    let stream = self.agent.stream_answer(context, answers);
                    response = self.follow(stream, context).await?;
                }
                decided @ (Decided::Nobody | Decided::Interrupted) => {
                    self.left_open = decided == Decided::Interrupted;
                    self.how_to_answer(&response);
                    break;
                }
            }
        }
        // Servers that started beside the model have something to say by now.
        if let Some(servers) = &self.servers {
            servers::tell_news(servers, self.screen);
        }
        Ok(response)
    }

    /// Shows a run to its end. Ctrl-C stops it; a second one does not wait for that. A process that
    /// is asked to end stops it too.
    async fn follow(
        &mut self,
        mut stream: RunStream,
        context: &mut RunContext,
    ) -> Result<AgentResponse, CliError> {
        let began = Instant::now();
        let mut renderer = Renderer::new(self.screen, self.prints, self.desk.vault().cloned());
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(event) => {
                        renderer.event(&event);
                        if let RunEvent::TurnStarted { turn, memory, .. } = &event {
                            self.tell_memory(*turn, memory, &mut renderer);
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
                    // Whoever stops an answer has something else in mind.
                    forget_typed();
                }
                () = self.endings.next() => {
                    context.cancelled.cancel();
                    let stopped = async { while stream.next().await.is_some() {} };
                    let _ = tokio::time::timeout(STOP_WITHIN, stopped).await;
                    renderer.end_lines();
                    return Err(CliError::terminated());
                }
            }
        }
        let (response, after) = stream.finish().await?;
        self.spent.add(&response, began.elapsed());
        self.permissions.enter(
            context.conversation,
            self.servers
                .as_ref()
                .map(Servers::report)
                .unwrap_or_default(),
        );
        context.history = after.history;
        context.pending = after.pending;
        if self.prints {
            renderer.finish(&response, self.will_be_decided(&response));
        } else {
            renderer.end_lines();
        }
        self.after(&response, context, renderer.unread()).await;
        Ok(response)
    }

    /// Says that the model was told something of the memory, once a turn, to whoever can ask what
    /// it was.
    fn tell_memory(
        &mut self,
        turn: TurnId,
        memory: &[adjutant_core::Told],
        renderer: &mut Renderer<'_>,
    ) {
        if self.goes_on && !memory.is_empty() && self.reminded.replace(turn) != Some(turn) {
            let count = plural(memory.len() as u64, "line", "lines");
            renderer.beside(&format!("◦ {count} from your memory (/memory told)"));
        }
    }

    /// What is told about a turn beside its answer.
    /// `unread`: how far the model had read the prompt, if the turn ended meanwhile.
    async fn after(
        &self,
        response: &AgentResponse,
        context: &RunContext,
        unread: Option<PromptProgress>,
    ) {
        if self.prints {
            match (CliError::of_response(response), unread) {
                (Some(error), Some(unread)) => {
                    self.screen
                        .error(&reading::explained(response, error, unread, self.goes_on));
                }
                (Some(error), None) => self.screen.error(&error),
                (None, Some(unread)) => self.screen.note(&reading::stopped(unread, self.goes_on)),
                (None, None) => {}
            }
        }
        // A question follows; the figures come with the answer.
        if self.screen.shows_work() && !self.will_be_decided(response) {
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

    /// How full the window is, for whoever goes on talking. `None`: nobody does, or it cannot be
    /// told.
    async fn meter(&self, context: &RunContext) -> Option<String> {
        if !self.goes_on {
            return None;
        }
        let used = self
            .agent
            .context_use(&self.agent.key(context))
            .await
            .ok()?;
        context_meter(u64::from(used.total()), u64::from(used.usable()))
    }

    /// Returns tokens, cost and time of the last turn, from the message to its answer.
    pub(crate) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Has the person's program tell them of what waits: if nobody is asked here, or if they may be
    /// looking elsewhere.
    fn notify(&mut self, context: &RunContext, response: &AgentResponse) {
        if self.screen.asks() && self.spent.took < notify::LOOKS_ELSEWHERE {
            return;
        }
        let open: Vec<&PendingCall> = response
            .decision
            .pending
            .iter()
            .filter(|call| !self.approves(call))
            .collect();
        for call in open {
            self.notifier.tell(call, context.conversation);
        }
    }

    /// Whether every call that waits is going to be answered by an option or at the terminal.
    fn will_be_decided(&self, response: &AgentResponse) -> bool {
        let pending = &response.decision.pending;
        !pending.is_empty()
            && (self.screen.asks() || pending.iter().all(|call| self.approves(call)))
    }

    /// Returns whether an option or a permission answers a call.
    fn approves(&self, call: &PendingCall) -> bool {
        approves(&self.yes, call) || matches!(self.permissions.allow(call), Allowed::Yes(_))
    }

    fn how_to_answer(&self, response: &AgentResponse) {
        if !self.prints {
            return;
        }
        for call in &response.decision.pending {
            let id = call.short_id();
            let preview = clip(&call.preview, 200);
            match call.kind() {
                PendingKind::Doubt => {
                    self.screen.side_line(&format!("Was it done? {preview}"));
                    self.screen
                        .side_line(&format!("  adjutant pending resolve {id} done|retry|leave"));
                }
                PendingKind::Result => {
                    self.screen
                        .side_line(&format!("Waiting for the program that asked: {preview}"));
                }
                PendingKind::Confirmation => {
                    self.screen
                        .side_line(&format!("Waiting for a yes: {preview}"));
                    self.screen
                        .side_line(&format!("  adjutant pending approve {id}"));
                    self.screen
                        .side_line(&format!("  adjutant pending deny {id}"));
                }
            }
        }
        if response
            .decision
            .pending
            .iter()
            .all(|call| call.kind() == PendingKind::Confirmation)
        {
            self.screen.side_line("  adjutant -c yes");
        }
    }
}

/// `adjutant 0.1.0 · embedded/qwen2.5-coder-1.5b`.
pub(crate) fn header(model: &dyn LanguageModel) -> String {
    format!("adjutant {} · {}", env!("CARGO_PKG_VERSION"), model.id())
}
