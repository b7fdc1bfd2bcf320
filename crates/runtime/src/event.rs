//! What a listener sees of a running turn.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use adjutant_core::{
    AgentResponse, CallId, CancellationToken, InputId, Message, ModelId, Notice, PendingCall, PromptProgress,
    ToolCall, ToolResult, TurnId, Usage,
};
use futures::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::DropGuard;

use crate::audience::Telling;
use crate::{RunContext, RunError};

/// How many events wait for a slow listener before the turn waits with them.
const QUEUE: usize = 256;

/// Something that happened in a running turn. The terminal, AG-UI, OpenAI chunks and NDJSON are encoders of this. As JSON it goes from
/// one process to another of the same version, and is kept nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RunEvent {
    /// A turn started, or goes on after an answer or a crash.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// The input it took. A run that was asked for something may have to see to what was asked before first.
        input: InputId,
        /// The model it asks.
        model: ModelId,
    },
    /// The conversation is long: its older part is being put into few words, by a model call of its own.
    SummaryStarted {
        /// How many messages, beside what an earlier summary stands for.
        messages: usize,
        /// What they take of a request, in tokens.
        tokens: u32,
    },
    /// A summary stands for the older part of the conversation from now on.
    SummaryFinished {
        /// How many messages it stands for, from the beginning of the conversation.
        messages: usize,
        /// What they took of a request, in tokens.
        before: u32,
        /// What the summary takes.
        after: u32,
        /// Tokens of the model call that wrote it.
        usage: Usage,
    },
    /// The older part could not be put into few words. If the conversation does not fit, its oldest messages are left out.
    SummaryFailed {
        /// Why, for the log.
        reason: String,
    },
    /// The model is asked. Text that was streamed for an earlier, interrupted try of this call is void.
    ModelStarted {
        /// Which model call of the turn, from 1.
        number: u32,
    },
    /// The model reads the prompt, and is this far. Only models that compute in this process say so, about once a second.
    Reading(PromptProgress),
    /// More of the answer. Provisional until the turn has finished.
    Text(String),
    /// More of the model's thinking.
    Thinking(String),
    /// The adapter waits and asks again.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// The model answered.
    ModelFinished {
        /// Which model call of the turn.
        number: u32,
        /// Its tokens.
        usage: Usage,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The call, references resolved.
        call: ToolCall,
    },
    /// A tool ended.
    ToolFinished {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What came out.
        result: ToolResult,
        /// Words for the person, if there are some: the tool's own, or those in the place of the error of a call that broke off.
        summary: Option<String>,
        /// How long it took, in milliseconds.
        ms: u64,
    },
    /// The gate refused a call; the model is told.
    ToolRefused {
        /// The tool's name as the model wrote it.
        tool: String,
        /// The words for the model.
        message: String,
    },
    /// A round of tools ended, and the model is asked again: its answer with its calls, and the result of each as the model reads
    /// it. Of those that were refused, denied, too late or in doubt there is no other event with a result.
    RoundEnded {
        /// The assistant's message, and those of its tools, in order.
        messages: Vec<Message>,
    },
    /// The turn waits for a human.
    ConfirmationRequested {
        /// What waits.
        pending: Vec<PendingCall>,
    },
    /// Something the person should know.
    Noticed(Notice),
    /// The turn ended or waits. The last event.
    Finished(Box<AgentResponse>),
}

/// Sends events to whoever listens, if anybody does.
#[derive(Default)]
pub(crate) enum Emitter {
    /// Nobody does.
    #[default]
    Nobody,
    /// The one who began the run.
    One(mpsc::Sender<RunEvent>),
    /// Those who wait for it elsewhere.
    Audience(Telling),
}

impl Emitter {
    /// Sends an event, which is made only if somebody listens.
    pub(crate) async fn emit(&self, event: impl FnOnce() -> RunEvent) {
        match self {
            Self::Nobody => {}
            // A listener that has gone away stops nothing by that alone; dropping the stream cancels.
            Self::One(sender) => drop(sender.send(event()).await),
            Self::Audience(telling) => telling.tell(event).await,
        }
    }

    /// Returns whether nobody listens.
    pub(crate) fn is_nobody(&self) -> bool {
        matches!(self, Self::Nobody)
    }
}

/// The events of one run, and its result. Dropping it stops the turn as [`RunContext::cancelled`] does, unless it is
/// [`RunStream::detached`].
#[derive(Debug)]
pub struct RunStream {
    events: mpsc::Receiver<RunEvent>,
    task: JoinHandle<Result<(AgentResponse, RunContext), RunError>>,
    stop_on_drop: Option<DropGuard>,
}

impl RunStream {
    pub(crate) fn start<F>(
        cancelled: &CancellationToken,
        run: impl FnOnce(Emitter, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(AgentResponse, RunContext), RunError>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(QUEUE);
        let stop = cancelled.child_token();
        let task = tokio::spawn(run(Emitter::One(sender), stop.clone()));
        Self { events, task, stop_on_drop: Some(stop.drop_guard()) }
    }

    /// The same events, of a turn that goes on to its end also when nobody holds the stream any more.
    #[must_use]
    pub fn detached(mut self) -> Self {
        if let Some(guard) = self.stop_on_drop.take() {
            guard.disarm();
        }
        self
    }

    /// Runs something whose events nobody reads, in a task as [`RunStream::start`] does: a caller that goes away stops it, and
    /// it comes to an end of its own.
    pub(crate) async fn unheard<F>(
        cancelled: &CancellationToken,
        run: impl FnOnce(Emitter, CancellationToken) -> F,
    ) -> Result<(AgentResponse, RunContext), RunError>
    where
        F: Future<Output = Result<(AgentResponse, RunContext), RunError>> + Send + 'static,
    {
        let stop = cancelled.child_token();
        let _stop_on_drop = stop.clone().drop_guard();
        ended(tokio::spawn(run(Emitter::default(), stop)).await)
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.events.recv().await
    }

    /// Waits for the end: the response, and the context with both messages in it.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written.
    pub async fn finish(mut self) -> Result<(AgentResponse, RunContext), RunError> {
        while self.events.recv().await.is_some() {}
        ended((&mut self.task).await)
    }
}

/// Returns what a task ended with.
fn ended<T>(joined: Result<Result<T, RunError>, JoinError>) -> Result<T, RunError> {
    joined.unwrap_or_else(|error| Err(RunError::CannotContinue(format!("its task died: {error}"))))
}

impl Stream for RunStream {
    type Item = RunEvent;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.events.poll_recv(context)
    }
}
