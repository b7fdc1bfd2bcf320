//! A run as a stream of events, and the receivers of events.

use std::pin::Pin;
use std::task::{Context, Poll};

use adjutant_core::conversation::Conversation;
use adjutant_core::port::Worker;
use adjutant_core::{AgentResponse, CancellationToken};
use futures::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;
use tracing::Instrument as _;

use crate::event::RunEvent;
use crate::turn_listeners::TurnPublisher;
use crate::{RunContext, RunError};

/// Events buffered for a slow reader before the turn waits for it.
pub(crate) const QUEUE: usize = 256;

/// Sends the response of a turn that was stopped while its calls go on.
pub(crate) type StoppedSender = oneshot::Sender<(AgentResponse, RunContext)>;

/// The receiver of a turn's events.
#[derive(Default)]
pub(crate) enum Emitter {
    /// Discards all events.
    #[default]
    Silent,
    /// The stream that started the run.
    Stream(mpsc::Sender<RunEvent>),
    /// Listeners in other tasks and processes.
    Listeners(TurnPublisher),
}

impl Emitter {
    /// Sends an event, which is built only if there is a receiver.
    pub(crate) async fn emit(&self, event: impl FnOnce() -> RunEvent) {
        match self {
            Self::Silent => {}
            // A closed channel does not stop the turn; dropping the stream cancels it by its token.
            Self::Stream(sender) => drop(sender.send(event()).await),
            Self::Listeners(publisher) => publisher.publish(event).await,
        }
    }

    /// Sends the event that a worker starts or continues a turn, also to listeners that want the
    /// end of the turn only.
    pub(crate) async fn emit_turn_started(
        &self,
        worker: Worker<'_>,
        event: impl FnOnce() -> RunEvent,
    ) {
        match self {
            Self::Listeners(publisher) => publisher.publish_turn_started(worker, event).await,
            Self::Silent | Self::Stream(_) => self.emit(event).await,
        }
    }

    /// Sends the state of a turn that ended or waits for a person to listeners elsewhere.
    pub(crate) async fn emit_turn_state(&self, conversation: &Conversation) {
        if let Self::Listeners(publisher) = self {
            publisher.publish_turn_state(conversation).await;
        }
    }

    /// Returns true if all events are discarded.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Silent)
    }
}

/// The events of one run, and its result. Dropping the stream stops the turn as
/// [`RunContext::cancelled`] does, unless it is [`detached`](RunStream::detached).
///
/// It is also a [`Stream`] of [`RunEvent`]s.
///
/// # Examples
///
/// ```
/// use adjutant_providers::scripted::{ScriptedModel, text};
/// use adjutant_runtime::{Agent, RunContext, RunEvent};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let agent = Agent::builder("helper")
///     .model(ScriptedModel::new([text("It is noon.").in_pieces(3)]))
///     .instruction("Be brief.")
///     .build()?;
/// let mut stream = agent.stream(&RunContext::default(), "What time is it?");
/// let mut streamed = String::new();
/// while let Some(event) = stream.next().await {
///     if let RunEvent::Text(piece) = event {
///         streamed += &piece;
///     }
/// }
/// let (response, _context) = stream.finish().await?;
/// assert_eq!(response.content, streamed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RunStream {
    events: mpsc::Receiver<RunEvent>,
    /// True once the response was among the events: what a stopped turn's calls do afterwards is
    /// not for this reader.
    is_over: bool,
    /// Gets the response of a turn that was stopped while its calls go on.
    stopped: oneshot::Receiver<(AgentResponse, RunContext)>,
    task: JoinHandle<Result<(AgentResponse, RunContext), RunError>>,
    stop_on_drop: Option<DropGuard>,
}

impl RunStream {
    /// Spawns a run, with its events or without. A task of its own, so that the run ends orderly
    /// when its caller is dropped.
    pub(crate) fn spawn<F>(
        cancelled: &CancellationToken,
        is_streamed: bool,
        run: impl FnOnce(Emitter, CancellationToken, StoppedSender) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(AgentResponse, RunContext), RunError>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(QUEUE);
        let emitter = match is_streamed {
            true => Emitter::Stream(sender),
            false => Emitter::Silent,
        };
        // A child token: dropping the stream must not cancel the caller's own token, which other
        // runs may share.
        let stop = cancelled.child_token();
        // In the caller's span, so that log lines of the turn name its HTTP request.
        let (on_stopped, stopped) = oneshot::channel();
        let task = tokio::spawn(run(emitter, stop.clone(), on_stopped).in_current_span());
        Self {
            events,
            is_over: false,
            stopped,
            task,
            stop_on_drop: Some(stop.drop_guard()),
        }
    }

    /// Returns the stream of a turn that runs to its end even if the stream is dropped.
    #[must_use]
    pub fn detached(mut self) -> Self {
        if let Some(guard) = self.stop_on_drop.take() {
            guard.disarm();
        }
        self
    }

    /// Returns the next event, or `None` after the last one.
    pub async fn next(&mut self) -> Option<RunEvent> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let event = std::task::ready!(self.events.poll_recv(context));
        self.is_over = matches!(event, None | Some(RunEvent::Finished(_)));
        Poll::Ready(event)
    }

    /// Waits for the end of the run. Returns the response, and the context with both messages in
    /// it. Events that were not read are discarded.
    ///
    /// # Errors
    /// [`RunError`] if no turn could start or be written.
    pub async fn finish(mut self) -> Result<(AgentResponse, RunContext), RunError> {
        while self.next().await.is_some() {}
        tokio::select! {
            biased;
            Ok(stopped) = &mut self.stopped => Ok(stopped),
            ended = &mut self.task => ended.unwrap_or_else(|error| {
                tracing::error!(%error, "the task of a run died");
                Err(RunError::CannotContinue(format!("its task died: {error}")))
            }),
        }
    }
}

impl Stream for RunStream {
    type Item = RunEvent;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.poll_event(context)
    }
}
