//! The way to an answer: who is told, and the stream of what they are told.

use std::pin::Pin;
use std::task::{Context, Poll};

use adjutant_core::conversation::Conversation;
use adjutant_core::port::Worker;
use adjutant_core::{AgentResponse, CancellationToken};
use futures::Stream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::DropGuard;
use tracing::Instrument as _;

use crate::audience::Telling;
use crate::event::RunEvent;
use crate::{RunContext, RunError};

/// How many events wait for a slow listener before the turn waits with them.
pub(crate) const QUEUE: usize = 256;

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
            // A listener that has gone away stops nothing by that alone; dropping the stream
            // cancels.
            Self::One(sender) => drop(sender.send(event()).await),
            Self::Audience(telling) => telling.tell(event).await,
        }
    }

    /// Says that a worker begins with a turn or goes on with it, also to those who want to know the
    /// end only.
    pub(crate) async fn emit_begun(&self, worker: Worker<'_>, event: impl FnOnce() -> RunEvent) {
        match self {
            Self::Audience(telling) => telling.tell_begun(worker, event).await,
            Self::Nobody | Self::One(_) => self.emit(event).await,
        }
    }

    /// Tells those who wait elsewhere how a turn ended, or that it waits for a person.
    pub(crate) async fn emit_turn(&self, conversation: &Conversation) {
        if let Self::Audience(telling) = self {
            telling.tell_turn(conversation).await;
        }
    }

    /// Returns whether nobody listens.
    pub(crate) fn is_nobody(&self) -> bool {
        matches!(self, Self::Nobody)
    }
}

/// The events of one run, and its result. Dropping it stops the turn as [`RunContext::cancelled`]
/// does, unless it is [`RunStream::detached`].
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
        let task = tokio::spawn(run(Emitter::One(sender), stop.clone()).in_current_span());
        Self {
            events,
            task,
            stop_on_drop: Some(stop.drop_guard()),
        }
    }

    /// The same events, of a turn that goes on to its end also when nobody holds the stream any
    /// more.
    #[must_use]
    pub fn detached(mut self) -> Self {
        if let Some(guard) = self.stop_on_drop.take() {
            guard.disarm();
        }
        self
    }

    /// Runs something whose events nobody reads, in a task as [`RunStream::start`] does: a caller
    /// that goes away stops it, and it comes to an end of its own.
    pub(crate) async fn unheard<F>(
        cancelled: &CancellationToken,
        run: impl FnOnce(Emitter, CancellationToken) -> F,
    ) -> Result<(AgentResponse, RunContext), RunError>
    where
        F: Future<Output = Result<(AgentResponse, RunContext), RunError>> + Send + 'static,
    {
        let stop = cancelled.child_token();
        let _stop_on_drop = stop.clone().drop_guard();
        ended(tokio::spawn(run(Emitter::default(), stop).in_current_span()).await)
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
