//! Dispatch: handing the run of a conversation to another process, such as a Restate worker.

mod breaker; // circuit breaker: suspends a dispatch that fails
mod watch; // liveness of the worker that runs a dispatched turn

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::Change;
use adjutant_core::{BoxFuture, ConversationKey, Input, InputBody, InputId, Recorded};
use futures::future::{FusedFuture as _, FutureExt as _, OptionFuture};
use tokio::time::{Instant, sleep_until, timeout};

use crate::inner::Inner;
use crate::input_outcome::InputOutcome;
use crate::lease::{POLL_INTERVAL, POLL_INTERVAL_DISPATCHED, Submission, WaitOptions, acquire};
use crate::run::{Caller, run_leased};
use crate::stream::Emitter;
use crate::turn_listeners::{TurnMessage, TurnState, TurnSubscription};
use crate::{RunError, warning};
use breaker::{Breaker, Permit};
use watch::{STARTS_WITHIN, Watch};

/// Time to wait for the last messages of another process after its call has returned.
const LAST_MESSAGES: Duration = Duration::from_millis(500);

/// Time that a call may take to return after its turn has ended.
const CALL_RETURNS_WITHIN: Duration = Duration::from_secs(5);

/// Chooses the process that runs a conversation: it calls
/// [`Agent::run_dispatched`](crate::Agent::run_dispatched) somewhere, for one input of a
/// conversation at a time. Set with [`Agent::with_dispatch`](crate::Agent::with_dispatch).
///
/// Correctness does not depend on it: accepted inputs are in the journal, leases exclude a second
/// worker, and a turn that is not started runs in the process that accepted its input, or with the
/// next [`Agent::recover`](crate::Agent::recover).
pub trait Dispatch: Send + Sync + 'static {
    /// Runs the conversation because of an input, and returns when no input is left or it waits for
    /// a person. The same input again is the same call. The caller runs the conversation itself if
    /// no worker has started within a second.
    ///
    /// # Errors
    /// [`DispatchError`] if no process took the call, or it failed there.
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), DispatchError>>;

    /// Requests a run of the conversation without waiting for it. Returns within a second.
    ///
    /// # Errors
    /// [`DispatchError`] if the request was not accepted.
    fn send<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<SendResult, DispatchError>>;

    /// Returns true if this process is registered as a worker that is called. `None`: not known.
    fn is_registered(&self) -> Option<bool> {
        None
    }
}

/// The conversation and input of one [`Dispatch::call`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DispatchCall<'a> {
    /// The conversation to run.
    pub key: &'a ConversationKey,
    /// The input that was accepted.
    pub input: &'a InputId,
    /// The address of the caller's subscription to events of the turn, for
    /// [`Agent::run_dispatched`](crate::Agent::run_dispatched). `None`: the store has no relay.
    pub reply_to: Option<&'a str>,
}

/// The way in which [`Dispatch::send`] accepted a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    /// The request was accepted, and a run will follow.
    Accepted,
    /// The same request was accepted a moment ago, and has led to no run yet.
    Duplicate,
}

/// A call that no process took, or that failed there. The caller runs the conversation itself, or
/// calls again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conversation was not handed over: {0}")]
pub struct DispatchError(pub String);

/// Counts of dispatched calls by result since the start, from
/// [`Agent::dispatch_figures`](crate::Agent::dispatch_figures).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchFigures {
    /// True while dispatch is suspended because it failed several times.
    pub suspended: bool,
    /// The value of [`Dispatch::is_registered`]. `None`: not known.
    pub registered: Option<bool>,
    /// Calls and requests that were accepted.
    pub taken: u64,
    /// Calls and requests that failed or were refused.
    pub refused: u64,
    /// Calls for which no worker had started after a second, and requests that were not answered in
    /// that time.
    pub late: u64,
    /// Calls and requests that were not made because dispatch was suspended.
    pub skipped: u64,
    /// Times from the call to the start of the turn, since these figures were last taken.
    pub start_delays: Vec<Duration>,
}

/// Start delays that are kept until they are taken; further ones are dropped.
const TIMES_MAX: usize = 1024;

/// A [`Dispatch`] with its circuit breaker and figures.
pub(crate) struct Dispatcher {
    dispatch: Arc<dyn Dispatch>,
    breaker: Breaker,
    figures: Mutex<DispatchFigures>,
    /// Conversations for which recovery has requested a run that has not been done yet.
    requested: Mutex<HashMap<ConversationKey, Backoff>>,
}

/// The time of the next request for a conversation.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    next: Instant,
    pause: Duration,
}

/// Pause before recovery requests the same conversation again. It doubles each time, so that a
/// conversation that cannot continue costs ever less.
const REQUEST_AGAIN: Duration = Duration::from_secs(5);
const REQUEST_AGAIN_MAX: Duration = Duration::from_secs(10 * 60);

/// The reason why a call failed.
enum Failed {
    Refused(String),
    Late(&'static str),
}

impl Dispatcher {
    pub(crate) fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Self {
            dispatch,
            breaker: Breaker::default(),
            figures: Mutex::default(),
            requested: Mutex::default(),
        }
    }

    /// Returns a permit for one call. `None`: dispatch is suspended.
    pub(crate) fn permit(&self) -> Option<Permit<'_>> {
        let permit = self.breaker.permit();
        if permit.is_none() {
            self.figures().skipped += 1;
        }
        permit
    }

    /// Returns true while dispatch is suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns the figures, and resets the start delays.
    pub(crate) fn take_figures(&self) -> DispatchFigures {
        let (suspended, registered) = (self.breaker.is_open(), self.dispatch.is_registered());
        let mut figures = self.figures();
        let start_delays = std::mem::take(&mut figures.start_delays);
        DispatchFigures {
            suspended,
            registered,
            start_delays,
            ..figures.clone()
        }
    }

    /// Records the time from a call to the start of its turn.
    pub(crate) fn record_start_delay(&self, time: Duration) {
        let mut figures = self.figures();
        if figures.start_delays.len() < TIMES_MAX {
            figures.start_delays.push(time);
        }
    }

    fn succeeded(&self, permit: Permit<'_>) {
        self.figures().taken += 1;
        if permit.succeeded() {
            warning::dispatched_again();
        }
    }

    fn failed(&self, permit: Permit<'_>, failed: Failed) {
        let why = match failed {
            Failed::Refused(why) => {
                self.figures().refused += 1;
                why
            }
            Failed::Late(why) => {
                self.figures().late += 1;
                why.to_owned()
            }
        };
        if permit.failed() {
            warning::not_dispatched(&why);
        }
    }

    fn figures(&self) -> MutexGuard<'_, DispatchFigures> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the conversations whose run is to be requested now, and forgets those that are not
    /// open any more.
    pub(crate) fn due(&self, mut open: Vec<ConversationKey>) -> Vec<ConversationKey> {
        let now = Instant::now();
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        let mut requested = self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let still: HashSet<&ConversationKey> = open.iter().collect();
        requested.retain(|key, _| still.contains(key));
        open.retain(|key| {
            let pause = match requested.get(key) {
                Some(backoff) if now < backoff.next => return false,
                Some(backoff) => (backoff.pause * 2).min(REQUEST_AGAIN_MAX),
                None => REQUEST_AGAIN,
            };
            let next = now + pause;
            requested.insert(key.clone(), Backoff { next, pause });
            true
        });
        open
    }

    /// Requests a run of a conversation. Returns `false` if the caller should run it: the request
    /// failed, or an earlier one has led to no run.
    pub(crate) async fn request_run(&self, key: &ConversationKey) -> bool {
        let Some(permit) = self.permit() else {
            return false;
        };
        match timeout(STARTS_WITHIN, self.dispatch.send(key)).await {
            Ok(Ok(sent)) => {
                self.succeeded(permit);
                sent == SendResult::Accepted
            }
            Ok(Err(DispatchError(why))) => {
                self.failed(permit, Failed::Refused(why));
                false
            }
            Err(_) => {
                self.failed(permit, Failed::Late("there was no answer within a second"));
                false
            }
        }
    }

    /// Dispatches an accepted input, and passes on the events of its turn. If no worker starts, or
    /// the worker shows no sign of life any more, the conversation is run here. That is safe even
    /// if the worker is still alive: it has the lease, and the journal refuses a second writer.
    /// `None`: the outcome is in the journal.
    ///
    /// # Errors
    /// [`RunError`] as [`acquire`] and [`run_leased`].
    pub(crate) async fn dispatch_input<'d>(
        &'d self,
        inner: &Inner,
        permit: Permit<'d>,
        key: &ConversationKey,
        input: &Input,
        caller: Caller<'_>,
        read: impl FnOnce(&Conversation) -> Option<InputOutcome>,
    ) -> Result<Option<InputOutcome>, RunError> {
        let Caller {
            emitter, cancelled, ..
        } = caller;
        let asked = Instant::now();
        // Subscribed before the call, so that no event of the turn is missed.
        let mut subscription = inner.listeners.subscribe(key, emitter.is_silent());
        let reply_to = subscription.reply_to(&*inner.journal.relay());
        let mut call = self.start_call(key, &input.id, reply_to.as_deref()).fuse();
        let mut permit = Some(permit);
        let mut watch = Watch::new(asked);
        // Moved out by the first run here, so that there is at most one; `here` is polled only
        // after that.
        let mut run_here = Some(|permit: Option<Permit<'d>>| {
            self.run_here(inner, permit, key, input, caller, read)
        });
        let mut here = OptionFuture::from(None);
        loop {
            let starts = tokio::select! {
                // In this order: messages from before the end are passed on before it.
                biased;
                message = subscription.next() => {
                    if watch.observe(&message) {
                        self.record_start_delay(asked.elapsed());
                    }
                    match message {
                        TurnMessage::Event(event) if watch.accepts_messages() => emitter.emit(|| event).await,
                        TurnMessage::State(turn) => if let Some(outcome) = outcome_of(key, &turn, input) {
                            permit.take().into_iter().for_each(|permit| self.succeeded(permit));
                            if !call.is_terminated() {
                                // The response is on its way. Reading it lets the connection be
                                // reused.
                                tokio::spawn(timeout(CALL_RETURNS_WITHIN, call));
                            }
                            return Ok(Some(outcome));
                        },
                        TurnMessage::Event(_) | TurnMessage::WorkerStarted(_) | TurnMessage::End => {}
                    }
                    false
                }
                called = &mut call, if !call.is_terminated() => match called {
                    // The call has returned and no run was started here: the turn has ended
                    // elsewhere.
                    Ok(()) if run_here.is_some() => {
                        permit.take().into_iter().for_each(|permit| self.succeeded(permit));
                        return Ok(last_messages(key, input, subscription, emitter, reply_to.is_some()).await);
                    }
                    Ok(()) => {
                        // The other process may have released the lease unnoticed.
                        inner.notifier.notify(&Change::Free(key.clone()));
                        false
                    }
                    Err(DispatchError(why)) => {
                        if let Some(permit) = permit.take_if(|_| watch.has_no_worker()) {
                            self.failed(permit, Failed::Refused(why));
                        }
                        true
                    }
                },
                () = cancelled.cancelled(), if run_here.is_some() => true,
                Some(ended) = &mut here, if run_here.is_none() => return ended,
                () = sleep_until(watch.until) => watch.check(inner, key).await,
            };
            if starts && let Some(run_here) = run_here.take() {
                watch.set_waiting();
                here = OptionFuture::from(Some(Box::pin(run_here(permit.take()))));
            }
        }
    }

    /// Returns the call as a future that borrows nothing, so that it can outlive the run.
    fn start_call(
        &self,
        key: &ConversationKey,
        input: &InputId,
        reply_to: Option<&str>,
    ) -> BoxFuture<'static, Result<(), DispatchError>> {
        let dispatch = self.dispatch.clone();
        let (key, input, reply_to) = (key.clone(), input.clone(), reply_to.map(str::to_owned));
        Box::pin(async move {
            let reply_to = reply_to.as_deref();
            dispatch
                .call(DispatchCall {
                    key: &key,
                    input: &input,
                    reply_to,
                })
                .await
        })
    }

    /// Acquires the conversation and runs it in this process.
    async fn run_here(
        &self,
        inner: &Inner,
        permit: Option<Permit<'_>>,
        key: &ConversationKey,
        input: &Input,
        caller: Caller<'_>,
        read: impl FnOnce(&Conversation) -> Option<InputOutcome>,
    ) -> Result<Option<InputOutcome>, RunError> {
        let submission = Submission {
            input,
            turn: None,
            first: None,
            trace: None,
        };
        // With a relay, the release of the lease is reported, so polling may be rarer.
        let poll_interval = if inner.journal.relay().name().is_some() {
            POLL_INTERVAL_DISPATCHED
        } else {
            POLL_INTERVAL
        };
        let waits = WaitOptions {
            cancelled: caller.cancelled,
            input: &input.id,
            is_cancellation: input.body == InputBody::Cancel,
            emitter: None,
            poll_interval,
        };
        let Some(open) = acquire(inner, key, Some(submission), Some(waits)).await? else {
            return Ok(None);
        };
        if let Some(permit) = permit {
            match open.log.has_work() && !caller.cancelled.is_cancelled() {
                true => self.failed(
                    permit,
                    Failed::Late("nobody had begun with a turn after a second"),
                ),
                false => self.succeeded(permit),
            }
        }
        let caller = Caller {
            input: Some(&input.id),
            ..caller
        };
        run_leased(inner, key, open, None, caller, read).await
    }
}

/// Reads the outcome of an input from the state of a turn. `None`: the turn did not take it.
fn outcome_of(key: &ConversationKey, turn: &TurnState, input: &Input) -> Option<InputOutcome> {
    let took = |recorded: &Recorded| recorded.event.takes_input() == Some(&input.id);
    let of_turn = || InputOutcome::from_turn(key, &turn.events, &turn.pending, input);
    turn.events.iter().any(took).then(of_turn).flatten()
}

/// Passes on events that are still on their way, up to the end of the turn. `None`: the end did not
/// arrive.
async fn last_messages(
    key: &ConversationKey,
    input: &Input,
    mut subscription: TurnSubscription,
    emitter: &Emitter,
    is_remote: bool,
) -> Option<InputOutcome> {
    let rest = async {
        loop {
            match subscription.next().await {
                TurnMessage::Event(event) => emitter.emit(|| event).await,
                TurnMessage::State(turn) => {
                    if let Some(outcome) = outcome_of(key, &turn, input) {
                        return Some(outcome);
                    }
                }
                TurnMessage::WorkerStarted(_) => {}
                TurnMessage::End => return None,
            }
        }
    };
    match is_remote {
        true => timeout(LAST_MESSAGES, rest).await.ok().flatten(),
        // Within one process all messages are in the queue already.
        false => rest.now_or_never().flatten(),
    }
}
