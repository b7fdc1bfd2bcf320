//! The journaled steps of one turn: what was recorded is never done again, what is done is recorded
//! first or at once.

mod answers; // what a person says to what waits
mod budget; // what a step may spend
mod call; // what is known of a call before it runs
mod calls; // one call, from its intent to its end
mod early_end; // time and cancellation
mod in_store; // a call that is one transaction
mod model; // one call of the model
mod others; // words of others
mod prepared; // a request before it is sent
mod round; // the calls of one answer
mod summarise; // room for a request

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{CallEnd, StopReason};
use adjutant_core::{
    CallId, CancellationToken, ConversationKey, Event, GateVerdict, GenerateResponse,
    IdempotencyKey, InputId, ModelError, OutcomeCategory, Past, ProgressListener, ToolChoice,
    ToolContext, TraceContext, TurnEnd, TurnId,
};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::RunError;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::heart::Hold;
use crate::inner::Inner;
use crate::log::Log;
use crate::stream::Emitter;
use crate::turn_tools::TurnTools;
use early_end::EarlyEnd;

/// Time after which a look that failed is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// What a step gave, or that the turn has to stop.
pub(crate) enum Step<T> {
    /// It gave this.
    Done(T),
    /// Nobody waits any more, or time is up; calls that ended until then.
    Stopped(StopReason, Vec<(CallId, CallEnd)>),
}

/// What became of a model call.
pub(crate) enum Replied {
    /// It was sent, and answered or failed.
    Sent(Result<GenerateResponse, ModelError>),
    /// It cannot be made to fit.
    TooLong(ModelError),
}

/// What a human's answers led to.
pub(crate) enum Answered {
    /// Everything was answered; approved calls ran. With results that others brought comes what the
    /// model may call next.
    Ends(Vec<(CallId, CallEnd)>, Option<ToolChoice>),
    /// Something still waits.
    Parked,
    /// The turn has to stop; calls that ended until then.
    Stopped(StopReason, Vec<(CallId, CallEnd)>),
}

/// The steps of one turn of one conversation.
pub(crate) struct Steps<'a> {
    inner: &'a Inner,
    key: &'a ConversationKey,
    turn: TurnId,
    /// The words of the person that it answers.
    message: Arc<str>,
    /// The trace that it belongs to.
    trace: Option<TraceContext>,
    /// The part of the conversation that the turn was given, for whoever shows it.
    past: Past,
    emitter: &'a Emitter,
    hold: &'a Hold,
    tools: TurnTools<'a>,
    early_end: EarlyEnd,
    model_calls: AtomicU32,
    log: Mutex<Log>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        key: &'a ConversationKey,
        (turn, past, trace): (TurnId, Past, Option<TraceContext>),
        tools: TurnTools<'a>,
        log: Log,
        (emitter, cancelled, hold): (&'a Emitter, &CancellationToken, &'a Hold),
        time: Option<Duration>,
    ) -> Self {
        let message = log
            .conversation()
            .current()
            .map(CurrentTurn::message)
            .unwrap_or_default()
            .into();
        Self {
            inner,
            key,
            turn,
            message,
            trace,
            past,
            emitter,
            hold,
            tools,
            early_end: EarlyEnd::new(cancelled, time),
            model_calls: AtomicU32::new(0),
            log: Mutex::new(log),
        }
    }

    /// Gives the conversation back, as it is after what was done.
    pub(crate) fn into_log(self) -> Log {
        self.log.into_inner()
    }

    /// Stops the turn, because this input says so.
    pub(crate) fn stop(&self, input: InputId) {
        self.early_end.stop(input);
    }

    /// Looks at each input whether the person, maybe through another process, has stopped the turn.
    pub(crate) async fn watch(&self) -> Infallible {
        loop {
            self.hold.waiter.input().await;
            let stops = loop {
                match self.inner.journal.cancellation(self.key).await {
                    Ok(stops) => break stops,
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            };
            if let Some(input) = stops {
                self.stop(input);
                std::future::pending::<()>().await;
            }
        }
    }

    /// Writes the end, which takes the cancellation that led to it, and gives the conversation
    /// back.
    pub(crate) async fn finish(&self, end: TurnEnd) -> Result<(), RunError> {
        let input = self
            .early_end
            .stopped_by()
            .filter(|_| end.outcome == OutcomeCategory::Cancelled)
            .cloned();
        for notice in &end.notices {
            self.emitter
                .emit(|| RunEvent::Noticed(notice.clone()))
                .await;
        }
        let finished = Event::TurnFinished {
            turn: self.turn,
            input,
            end,
        };
        self.log
            .lock()
            .await
            .finish(self.inner, self.key, Some(finished))
            .await?;
        Ok(())
    }

    /// Returns the trace with a new operation in it, for whoever is asked next.
    fn operation(&self) -> Option<TraceContext> {
        self.trace
            .as_ref()
            .map(|trace| trace.child(Uuid::now_v7().as_u64_pair().1))
    }

    fn tool_context(&self, call: &CallId) -> ToolContext {
        ToolContext {
            agent: self.inner.name.clone(),
            user: self.key.user.clone(),
            conversation: self.key.conversation,
            turn: self.turn,
            call: call.clone(),
            message: self.message.clone(),
            key: IdempotencyKey::of(self.key.conversation, self.turn, call),
            cancelled: self.early_end.cancelled().clone(),
            trace: self.operation(),
            progress: ProgressListener::default(),
        }
    }

    /// Records what is lost without harm: it is written with what comes next.
    async fn record(&self, event: Event) {
        self.log.lock().await.record(self.inner.now(), event);
    }

    async fn append(&self, events: Vec<Event>) -> Result<(), RunError> {
        let mut log = self.log.lock().await;
        boundary("before an append");
        log.append(self.inner, self.key, events).await?;
        boundary("after an append");
        Ok(())
    }

    /// Reads something of the turn. `None`: it has not begun, which does not happen.
    async fn look<T>(&self, read: impl FnOnce(&CurrentTurn) -> T) -> Option<T> {
        self.log.lock().await.conversation().current().map(read)
    }

    async fn recorded_verdict(&self, wanted: &CallId) -> Option<GateVerdict> {
        self.look(|turn| turn.verdict(wanted).cloned())
            .await
            .flatten()
    }
}
