//! One person, one agent, one terminal: what `ask`, `chat` and `pending` share.

use std::sync::Arc;
use std::time::Instant;

use adjutant_core::port::{ConversationFilter, ConversationStore};
use adjutant_core::{AgentResponse, Answer, CancellationToken, ConversationKey, LanguageModel, UserId};
use adjutant_mcp::client::Servers;
use adjutant_runtime::{Agent, RunContext, RunStream};

use crate::config::{Database, Settings};
use crate::confirm::{Approver, Decided, approves, short_id};
use crate::display::clip;
use crate::error::{CliError, Exit};
use crate::lines::{Interrupts, Lines};
use crate::render::{Renderer, footer};
use crate::screen::Screen;
use crate::store::{self, Store};
use crate::{model_choice, servers, wiring};

/// A running assistant and the person in front of it.
pub(crate) struct Talk<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agent: Agent,
    pub(crate) user: UserId,
    pub(crate) lines: Lines,
    pub(crate) interrupts: Interrupts,
    /// Kept as long as the agent: its tools are among the agent's.
    servers: Option<Servers>,
    yes: Vec<String>,
    /// Whether answers are printed as text.
    prints: bool,
    /// Whether the person left the last question open with Ctrl-C.
    left_open: bool,
}

impl<'a> Talk<'a> {
    /// Opens model and store, says which model runs, and finishes what a crash left open.
    ///
    /// # Errors
    /// Configuration, model, store, or a tool in `--yes` that there is not.
    pub(crate) async fn start(
        screen: &'a Screen,
        settings: &Settings,
        yes: Vec<String>,
        prints: bool,
    ) -> Result<Self, CliError> {
        let model = model_choice::open(settings, screen).await?;
        screen.note(&header(&*model));
        if let Database::Postgres(_) = &settings.database {
            screen.note(&format!("store {}", settings.database));
        }
        let store = store::open(settings).await?;
        let servers = servers::start_for(model.capabilities(), settings, screen).await?;
        let agent = wiring::agent_with(settings, model, store.clone(), servers.as_ref())?;
        for name in &yes {
            wiring::known_tool(name, &wiring::tool_names(&agent)).map_err(|error| CliError {
                exit: Exit::Usage,
                code: "usage",
                ..error.because("in --yes")
            })?;
        }
        let interrupts = Interrupts::new()?;
        let user = UserId::local();
        let mut talk = Self {
            screen,
            store,
            agent,
            user,
            lines: Lines::new(),
            interrupts,
            servers,
            yes,
            prints,
            left_open: false,
        };
        talk.resume().await?;
        Ok(talk)
    }

    /// Lets other people's servers end in good order.
    pub(crate) async fn leave(self) {
        if let Some(servers) = self.servers {
            servers.stop().await;
        }
    }

    /// The conversation with the newest message, or a new one.
    pub(crate) async fn context(&self, continues: bool) -> Result<RunContext, CliError> {
        if continues {
            if let Some(newest) =
                ConversationStore::list(&*self.store, &self.user, &ConversationFilter::newest(1))
                    .await?
                    .into_iter()
                    .next()
            {
                let key = ConversationKey { user: self.user.clone(), conversation: newest.id };
                return Ok(self.agent.context(&key).await?);
            }
            self.screen.note("there is no conversation yet; this is the first");
        }
        Ok(RunContext::new(self.user.clone()))
    }

    /// Says something and sees it through, confirmations included.
    pub(crate) async fn say(
        &mut self,
        context: &mut RunContext,
        text: &str,
    ) -> Result<AgentResponse, CliError> {
        context.cancelled = CancellationToken::new();
        let stream = self.agent.stream(context, text);
        let response = self.follow(stream, context).await?;
        self.settle(context, response).await
    }

    /// Answers what waits and sees it through, further confirmations included.
    pub(crate) async fn answer(
        &mut self,
        context: &mut RunContext,
        answers: Vec<Answer>,
    ) -> Result<AgentResponse, CliError> {
        context.cancelled = CancellationToken::new();
        let stream = self.agent.stream_answer(context, answers);
        let response = self.follow(stream, context).await?;
        self.settle(context, response).await
    }

    /// How a command that ends with this response ends.
    pub(crate) fn exit(&self, response: &AgentResponse) -> Exit {
        if self.left_open { Exit::Interrupted } else { Exit::of(response) }
    }

    /// Gets answers for what waits, as long as somebody gives them.
    async fn settle(
        &mut self,
        context: &mut RunContext,
        mut response: AgentResponse,
    ) -> Result<AgentResponse, CliError> {
        while !response.decision.pending.is_empty() {
            let mut approver = Approver {
                screen: self.screen,
                lines: &mut self.lines,
                interrupts: &mut self.interrupts,
                yes: &self.yes,
            };
            match approver.decide(&response.decision.pending).await {
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
        Ok(response)
    }

    /// Shows a run to its end. Ctrl-C stops it; a second one does not wait for that.
    async fn follow(
        &mut self,
        mut stream: RunStream,
        context: &mut RunContext,
    ) -> Result<AgentResponse, CliError> {
        let began = Instant::now();
        let mut renderer = Renderer::new(self.screen, self.prints);
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(event) => renderer.event(&event),
                    None => break,
                },
                () = self.interrupts.next() => {
                    if context.cancelled.is_cancelled() {
                        renderer.end_lines();
                        return Err(CliError::interrupted("stopped before the running tool was done")
                            .or_try("adjutant -c …    finishes what is open first"));
                    }
                    context.cancelled.cancel();
                }
            }
        }
        let (response, after) = stream.finish().await?;
        context.history = after.history;
        context.pending = after.pending;
        if self.prints {
            renderer.finish(&response, self.will_be_decided(&response));
        } else {
            renderer.end_lines();
        }
        self.after(&response, began);
        Ok(response)
    }

    /// What is told about a turn beside its answer.
    fn after(&self, response: &AgentResponse, began: Instant) {
        if self.prints
            && let Some(error) = CliError::of_response(response)
        {
            self.screen.error(&error);
        }
        // A question follows; the figures come with the answer.
        if self.screen.shows_work() && !self.will_be_decided(response) {
            let figures = footer(&response.usage, response.cost, began.elapsed());
            self.screen.note(&format!("  {figures}"));
        }
        if self.screen.verbose() {
            let (kind, outcome) = (response.decision.kind, response.outcome);
            self.screen.note(&format!("  turn {} · {kind} · {outcome}", response.turn));
        }
    }

    /// Whether every call that waits is going to be answered by an option or at the terminal.
    fn will_be_decided(&self, response: &AgentResponse) -> bool {
        let pending = &response.decision.pending;
        !pending.is_empty() && (self.screen.asks() || pending.iter().all(|call| approves(&self.yes, call)))
    }

    fn how_to_answer(&self, response: &AgentResponse) {
        if !self.prints {
            return;
        }
        for call in &response.decision.pending {
            let id = short_id(call);
            let preview = clip(&call.preview, 200);
            if call.doubt.is_some() {
                self.screen.side_line(&format!("Was it done? {preview}"));
                self.screen.side_line(&format!("  adjutant pending resolve {id} done|retry|leave"));
            } else {
                self.screen.side_line(&format!("Waiting for a yes: {preview}"));
                self.screen.side_line(&format!("  adjutant pending approve {id}"));
                self.screen.side_line(&format!("  adjutant pending deny {id}"));
            }
        }
        if response.decision.pending.iter().all(|call| call.doubt.is_none()) {
            self.screen.side_line("  adjutant -c yes");
        }
    }

    async fn resume(&mut self) -> Result<(), CliError> {
        let never = CancellationToken::new();
        let swept = tokio::select! {
            swept = self.agent.sweep(Some(&self.user), &never) => swept?,
            () = self.interrupts.next() => {
                return Err(CliError::interrupted("stopped while finishing what an earlier run left open"));
            }
        };
        for response in swept.responses {
            self.screen.note(&format!("finished what was left open: {}", clip(&response.content, 300)));
        }
        // Nothing of it is lost, and nothing else has to wait for it.
        for (key, error) in swept.left {
            let error = clip(&error.to_string(), 300);
            self.screen.note(&format!("conversation {} cannot go on now: {error}", key.conversation));
        }
        Ok(())
    }
}

/// `adjutant 0.1.0 · embedded/qwen2.5-coder-1.5b`.
pub(crate) fn header(model: &dyn LanguageModel) -> String {
    format!("adjutant {} · {}", env!("CARGO_PKG_VERSION"), model.id())
}
