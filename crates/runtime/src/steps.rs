//! The journaled steps of one turn. A step that is recorded is not executed again; a call is
//! recorded before it is executed.

mod answers; // answers of people and results of client-side tools
mod budget; // budget reservations
mod calls; // one tool call, from its intent to its end
mod lost_commits; // calls after the database has lost commits
mod model; // one model call
mod prepare; // fits a request into the context window, by compaction if needed
mod round; // the tool calls of one answer
mod stop; // deadline and cancellation
mod stopped_calls; // calls that outlive the stop of their turn
mod transactional; // calls whose effect is one transaction with the journal
mod untrusted; // whether a model has read text of others

use std::convert::Infallible;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{CallEnd, StopReason};
use adjutant_core::{
    CallId, CancellationToken, ConversationKey, Event, GateVerdict, GenerateResponse, GivenHistory,
    IdempotencyKey, InputId, ModelError, OutcomeCategory, ProgressListener, ToolChoice,
    ToolContext, TraceContext, TurnEnd, TurnId, Verdict,
};
use tokio::sync::{Mutex, Notify};
use uuid::Uuid;

use crate::RunError;
use crate::event::RunEvent;
use crate::faults::boundary;
use crate::heartbeat::Lease;
use crate::inner::Inner;
use crate::log::Log;
use crate::outliving::Outliving;
use crate::stream::Emitter;
use crate::turn_tools::TurnTools;
use stop::StopConditions;

/// Pause before a failed query of the journal is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The result of a step that a stop of the turn may interrupt.
pub(crate) enum Step<T> {
    /// The step ended with this value.
    Done(T),
    /// The turn has to stop; with the calls that ended until then.
    Stopped(StopReason, Vec<(CallId, CallEnd)>),
}

/// The end of a model call.
pub(crate) enum ModelReply {
    /// The request was sent, and answered or failed.
    Sent(Result<GenerateResponse, ModelError>),
    /// The request does not fit the context window and was not sent.
    TooLong(ModelError),
}

/// The result of reading the answers to pending calls.
pub(crate) enum AnswersOutcome {
    /// Every call was answered, and approved ones ran. Results of client-side tools may come with a
    /// choice of what the model may call next.
    Ends(Vec<(CallId, CallEnd)>, Option<ToolChoice>),
    /// A call still waits, and the lease was released.
    Parked,
    /// The turn has to stop; calls that ended until then.
    Stopped(StopReason, Vec<(CallId, CallEnd)>),
}

/// The parts of [`Steps`].
pub(crate) struct StepsSetup<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) key: &'a ConversationKey,
    pub(crate) turn: TurnId,
    /// The history that the turn was given, recorded with its first model call.
    pub(crate) past: GivenHistory,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) tools: TurnTools<'a>,
    pub(crate) log: Log,
    pub(crate) emitter: &'a Emitter,
    pub(crate) cancelled: &'a CancellationToken,
    pub(crate) lease: &'a Lease,
    /// Time from now in which the turn must end. `None`: it has no deadline.
    pub(crate) deadline: Option<Duration>,
    /// Notified if the turn is stopped while its calls go on. `None`: its caller is not here.
    pub(crate) stopped: Option<&'a Notify>,
}

/// The steps of one turn of one conversation.
pub(crate) struct Steps<'a> {
    inner: &'a Inner,
    key: &'a ConversationKey,
    turn: TurnId,
    /// The user's message that the turn answers.
    message: Arc<str>,
    /// True if a program wrote it that may not answer in the user's place.
    from_others: bool,
    /// The distributed trace that the turn belongs to.
    trace: Option<TraceContext>,
    /// The history that the turn was given, for its trace.
    past: GivenHistory,
    emitter: &'a Emitter,
    lease: &'a Lease,
    tools: TurnTools<'a>,
    early_end: StopConditions,
    model_calls: AtomicU32,
    stopped: Option<&'a Notify>,
    /// Set while calls outlive the stop of the turn.
    outliving: OnceLock<Outliving>,
    log: Mutex<Log>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(setup: StepsSetup<'a>) -> Self {
        let StepsSetup {
            inner,
            key,
            turn,
            past,
            trace,
            tools,
            log,
            emitter,
            cancelled,
            lease,
            deadline,
            stopped,
        } = setup;
        let stopped_before = log
            .conversation()
            .current()
            .is_some_and(CurrentTurn::is_stopped);
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
            from_others: log.conversation().others_wrote_message(),
            trace,
            past,
            emitter,
            lease,
            tools,
            early_end: StopConditions::new(cancelled, deadline, stopped_before),
            model_calls: AtomicU32::new(0),
            stopped,
            outliving: OnceLock::new(),
            log: Mutex::new(log),
        }
    }

    /// Returns the conversation with everything that the steps recorded.
    pub(crate) fn into_log(self) -> Log {
        self.log.into_inner()
    }

    /// Stops the turn on behalf of a cancelling input.
    pub(crate) fn stop(&self, input: InputId) {
        self.early_end.stop(input);
    }

    /// Stops the turn once a cancellation is accepted, perhaps by another process. Never returns.
    pub(crate) async fn watch(&self) -> Infallible {
        loop {
            self.lease.changes.input_accepted().await;
            let stops = loop {
                match self.inner.journal.cancellation(self.key).await {
                    Ok(stops) => break stops,
                    // A store that cannot be asked for a while must not end the turn, and a
                    // cancellation must not be missed because of it.
                    Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
                }
            };
            if let Some(input) = stops {
                self.stop(input);
                std::future::pending::<()>().await;
            }
        }
    }

    /// Writes the end of the turn, which takes the cancellation that led to it, and releases the
    /// lease.
    pub(crate) async fn finish(&self, mut end: TurnEnd) -> Result<(), RunError> {
        // A turn that ended in another way leaves the cancellation in the inbox, where it is
        // recorded as ignored.
        let input = self
            .early_end
            .stopped_by()
            .filter(|_| end.outcome == OutcomeCategory::Cancelled)
            // Its calls outlived the stop, and the record of that took the cancellation.
            .filter(|_| self.outliving.get().is_none())
            .cloned();
        for notice in &end.notices {
            self.emitter
                .emit(|| RunEvent::Noticed(notice.clone()))
                .await;
        }
        let mut log = self.log.lock().await;
        end.from_others = log.conversation().turn_is_from_others();
        let finished = Event::TurnFinished {
            turn: self.turn,
            input,
            end,
        };
        log.finish(self.inner, self.key, Some(finished)).await?;
        Ok(())
    }

    /// Returns the trace context of a new operation, for a model or an MCP server.
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
            from_others: self.from_others,
            key: IdempotencyKey::for_call(self.key.conversation, self.turn, call),
            cancelled: self.early_end.cancelled().clone(),
            trace: self.operation(),
            progress: ProgressListener::default(),
        }
    }

    /// Returns the context of a call that is about to run.
    async fn context_to_run(&self, call: &CallId) -> ToolContext {
        let is_approved =
            |turn: &CurrentTurn| matches!(turn.answer(call), Some(Some((Verdict::Approved, _))));
        let context = self.tool_context(call);
        ToolContext {
            from_others: context.from_others && !self.with_turn(is_approved).await.unwrap_or(false),
            ..context
        }
    }

    /// Records an event whose loss in a crash is harmless; it is written with the next append.
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

    /// Reads from the state of the turn. `None` only if no turn has started, which cannot happen
    /// here.
    async fn with_turn<T>(&self, read: impl FnOnce(&CurrentTurn) -> T) -> Option<T> {
        self.log.lock().await.conversation().current().map(read)
    }

    /// Searches the state of the turn.
    async fn find<T>(&self, search: impl FnOnce(&CurrentTurn) -> Option<T>) -> Option<T> {
        self.with_turn(search).await.flatten()
    }

    async fn recorded_verdict(&self, wanted: &CallId) -> Option<GateVerdict> {
        self.find(|turn| turn.verdict(wanted).cloned()).await
    }
}
