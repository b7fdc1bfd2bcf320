//! The journaled steps of one turn: what was recorded is never done again, what is done is recorded first or at once.

mod answers; // what a person says to what waits
mod budget; // what a step may spend
mod call; // what is known of a call before it runs
mod calls; // one call, from its intent to its end
mod in_store; // a call that is one transaction
mod others; // words of others
mod prepared; // a request before it is sent
mod summarise; // room for a request

use std::convert::Infallible;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::{CallEnd, DoesNotFit, Fitted, StopReason, ToolStyle, Turn};
use adjutant_core::{
    Arguments, CallId, CancellationToken, ConversationKey, Delta, Event, GateCheck, GateVerdict,
    GenerateRequest, GenerateResponse, IdempotencyKey, InputId, Message, ModelError, Notice, OutcomeCategory,
    Past, Refusal, Role, ToolCall, ToolContext, TurnEnd, TurnId,
};
use futures::StreamExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock::millis;
use crate::event::{Emitter, RunEvent};
use crate::faults::boundary;
use crate::heart::Hold;
use crate::inner::Inner;
use crate::log::Log;
use crate::{RunError, Warning};
use call::Call;
use prepared::Prepared;

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
    /// Everything was answered; approved calls ran.
    Ends(Vec<(CallId, CallEnd)>),
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
    /// The part of the conversation that the turn was given, for whoever shows it.
    past: Past,
    emitter: &'a Emitter,
    hold: &'a Hold,
    /// Fires when nobody waits any more.
    cancelled: CancellationToken,
    /// The input that stopped the turn, if one did; the end of the turn takes it.
    stopped_by: OnceLock<InputId>,
    /// `None`: the turn takes the time it takes.
    deadline: Option<Instant>,
    /// How much longer that is, in milliseconds: for what is no part of the turn's time.
    not_counted_ms: AtomicU64,
    model_calls: AtomicU32,
    log: Mutex<Log>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        key: &'a ConversationKey,
        (turn, past): (TurnId, Past),
        log: Log,
        (emitter, cancelled, hold): (&'a Emitter, &CancellationToken, &'a Hold),
        time: Option<Duration>,
    ) -> Self {
        Self {
            inner,
            key,
            turn,
            past,
            emitter,
            hold,
            cancelled: cancelled.child_token(),
            stopped_by: OnceLock::new(),
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            not_counted_ms: AtomicU64::new(0),
            model_calls: AtomicU32::new(0),
            log: Mutex::new(log),
        }
    }

    /// Gives the conversation back, as it is after what was done.
    pub(crate) fn into_log(self) -> Log {
        self.log.into_inner()
    }

    /// Asks the model, unless its answer is recorded. Before that, room is made for the request.
    pub(crate) async fn generate(
        &self,
        turn: &mut Turn,
        request: GenerateRequest,
    ) -> Result<Step<Replied>, RunError> {
        let number = self.model_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let summarised = self.take_recorded_summary(turn, number).await;
        if let Some((replied, notices)) = self.recorded_reply(number).await {
            notices.into_iter().for_each(|notice| turn.add_notice(notice));
            return Ok(Step::Done(replied));
        }
        if let Some(reason) = self.must_stop() {
            return Ok(Step::Stopped(reason, Vec::new()));
        }
        let request = if summarised { turn.request() } else { request };
        let mut prepared = self.prepare(turn, request).await;
        if !summarised && let Some(plan) = self.wants_summary(turn, &prepared).await {
            if let Some(reason) = Box::pin(self.summarise(turn, number, &plan, &prepared)).await? {
                return Ok(Step::Stopped(reason, Vec::new()));
            }
            prepared = self.prepare(turn, turn.request()).await;
        }
        let Prepared { native, references, fitted, .. } = prepared;
        let Fitted { mut request, notices, counted, .. } = match fitted {
            Ok(fitted) => fitted,
            Err(error) => return Box::pin(self.too_long(number, &error)).await.map(Step::Done),
        };
        let set_aside = match self.set_aside_for_model(&request, self.time_left()).await? {
            Ok(set_aside) => set_aside,
            Err(exceeded) => return Ok(Step::Stopped(StopReason::Budget(exceeded), Vec::new())),
        };
        self.emitter.emit(|| RunEvent::ModelStarted { number }).await;
        boundary("before the model is asked");
        let began = Instant::now();
        request.time_left = self.time_left();
        let mut attempts = 1;
        let weak = turn.style() == ToolStyle::OneRound;
        let reply = tokio::select! {
            // In this order: an adapter that was given what is left of the turn runs out of time together with it.
            biased;
            () = self.cancelled.cancelled() => Err(StopReason::Cancelled),
            () = self.out_of_time() => Err(StopReason::Deadline),
            reply = self.drain(&request, !weak, &mut attempts) => Ok(reply),
        };
        let ms = millis(began);
        let reply = match reply {
            Ok(Ok(reply)) => {
                let weak = weak.then_some(&self.inner.weak_tools);
                let reply = match weak {
                    Some(weak) => weak.decode(reply, &native, &references),
                    None => reply,
                };
                Ok(GenerateResponse { cost: self.inner.cost_of(&reply), ..reply })
            }
            Ok(Err(error)) => Err(error),
            Err(reason) => {
                set_aside.settle_dropped(&mut *self.log.lock().await, ms);
                return Ok(Step::Stopped(reason, Vec::new()));
            }
        };
        boundary("the model answered, not recorded");
        set_aside.settle_reply(&mut *self.log.lock().await, &reply, ms);
        self.record(Event::ModelReplied {
            turn: self.turn,
            number,
            reply: reply.clone(),
            ms,
            attempts,
            counted: Some(counted),
            notices: notices.clone(),
            past: self.past_before(number),
        })
        .await;
        notices.into_iter().for_each(|notice| turn.add_notice(notice));
        if let Ok(reply) = &reply {
            self.emitter.emit(|| RunEvent::ModelFinished { number, usage: reply.usage }).await;
        }
        Ok(Step::Done(Replied::Sent(reply)))
    }

    /// Records that a request cannot be made to fit: nobody is asked.
    async fn too_long(&self, number: u32, error: &DoesNotFit) -> Result<Replied, RunError> {
        let before = number.saturating_sub(1);
        let said = self.look(|turn| match (1..=before).rev().find_map(|number| turn.reply(number)) {
            Some(Event::ModelReplied { reply: Err(error @ ModelError::ContextTooLong { .. }), .. }) => {
                Some(error.clone())
            }
            _ => None,
        });
        // The provider's words, if it was asked before: there is no way to send less.
        let error = said.await.flatten().unwrap_or_else(|| ModelError::ContextTooLong {
            provider: self.inner.model.id().provider.clone(),
            message: error.to_string(),
        });
        self.record(Event::ModelReplied {
            turn: self.turn,
            number,
            reply: Err(error.clone()),
            ms: 0,
            attempts: 0,
            counted: None,
            notices: Vec::new(),
            past: self.past_before(number),
        })
        .await;
        Ok(Replied::TooLong(error))
    }

    /// Returns what is recorded of the past with a model call: that the turn was given it, with the first.
    fn past_before(&self, number: u32) -> Option<Box<Past>> {
        (number == 1).then(|| Box::new(self.past.clone()))
    }

    /// When the turn's time is up.
    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline? + Duration::from_millis(self.not_counted_ms.load(Ordering::Relaxed)))
    }

    fn time_left(&self) -> Option<Duration> {
        self.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits until the turn's time is up.
    async fn out_of_time(&self) {
        match self.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Takes calls through the gate and executes what may run, if there is a budget for all of them.
    pub(crate) async fn call_tools(
        &self,
        turn: &Turn,
        calls: Vec<ToolCall>,
    ) -> Result<Step<Vec<(CallId, CallEnd)>>, RunError> {
        let set_aside = match self.set_aside_for_tools(&calls).await? {
            Ok(set_aside) => set_aside,
            Err(exceeded) => return Ok(Step::Stopped(StopReason::Budget(exceeded), Vec::new())),
        };
        let began = Instant::now();
        let ends = self.call_in_order(turn, &calls).await?;
        set_aside.settle_tools(&mut *self.log.lock().await, millis(began));
        Ok(ends)
    }

    /// In order, neighbouring harmless ones together.
    async fn call_in_order(
        &self,
        turn: &Turn,
        calls: &[ToolCall],
    ) -> Result<Step<Vec<(CallId, CallEnd)>>, RunError> {
        let mut ends = Vec::new();
        let mut interrupted = turn.interrupted().to_vec();
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let together = if self.is_harmless(first) {
                rest.iter().take_while(|call| self.is_harmless(call)).count()
            } else {
                1
            };
            let (group, after) = rest.split_at(together.max(1).min(rest.len()));
            rest = after;
            // What was begun before a crash has an end, which has to be known.
            if let Some(reason) = self.must_stop()
                && self.recorded_verdict(&first.id).await.is_none()
            {
                return Ok(Step::Stopped(reason, ends));
            }
            let ended = self.call_group(turn, group, &interrupted).await?;
            let begun = |(call, (_, end)): (&ToolCall, &(CallId, CallEnd))| {
                end.interrupted().map(|arguments| (call.name.clone(), arguments.clone()))
            };
            interrupted.extend(group.iter().zip(&ended).filter_map(begun));
            ends.extend(ended);
        }
        match self.must_stop() {
            // What waits may have been answered, and run: whoever reads the answers stops the turn.
            Some(reason) if !ends.iter().any(|(_, end)| matches!(end, CallEnd::Waiting(_))) => {
                Ok(Step::Stopped(reason, ends))
            }
            Some(_) | None => Ok(Step::Done(ends)),
        }
    }

    /// Stops the turn, because this input says so.
    pub(crate) fn stop(&self, input: InputId) {
        // The first one counts; another finds nothing to stop.
        let _ = self.stopped_by.set(input);
        self.cancelled.cancel();
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

    /// Tells the round of tools that a request ends with, if it does.
    pub(crate) async fn tell_round(&self, request: &GenerateRequest) {
        let is_tool = |message: &Message| message.role() == Role::Tool;
        if request.messages.last().is_some_and(is_tool) {
            let answer = request.messages.iter().rposition(|message| !is_tool(message)).unwrap_or_default();
            let round = || request.messages.get(answer..).unwrap_or_default().to_vec();
            self.emitter.emit(|| RunEvent::RoundEnded { messages: round() }).await;
        }
    }

    /// Writes the end, which takes the cancellation that led to it, and gives the conversation back.
    pub(crate) async fn finish(&self, end: TurnEnd) -> Result<(), RunError> {
        let input = self.stopped_by.get().filter(|_| end.outcome == OutcomeCategory::Cancelled).cloned();
        for notice in &end.notices {
            self.emitter.emit(|| RunEvent::Noticed(notice.clone())).await;
        }
        let finished = Event::TurnFinished { turn: self.turn, input, end };
        self.log.lock().await.finish(self.inner, self.key, Some(finished)).await?;
        Ok(())
    }

    /// Reads a model's stream to its end, showing what a person can read of it.
    async fn drain(
        &self,
        request: &GenerateRequest,
        show: bool,
        attempts: &mut u32,
    ) -> Result<GenerateResponse, ModelError> {
        let mut stream = self.inner.model.stream(request).await?;
        while let Some(delta) = stream.next().await {
            match delta? {
                Delta::Finished(reply) => return Ok(reply),
                Delta::Reading(progress) => self.emitter.emit(|| RunEvent::Reading(progress)).await,
                Delta::Text(text) if show => self.emitter.emit(|| RunEvent::Text(text)).await,
                Delta::Thinking(text) if show => self.emitter.emit(|| RunEvent::Thinking(text)).await,
                Delta::Retrying { attempt, wait, reason } => {
                    *attempts = attempt + 1;
                    self.emitter.emit(|| RunEvent::Retrying { attempt, wait, reason }).await;
                }
                _ => {}
            }
        }
        Err(ModelError::Truncated {
            provider: self.inner.model.id().provider.clone(),
            reason: "its stream ended without a last event".to_owned(),
        })
    }

    /// Gate for all of a group, one commit for all intents, then the executions side by side.
    /// `interrupted`: what may have been carried out before them in this turn.
    async fn call_group(
        &self,
        turn: &Turn,
        group: &[ToolCall],
        interrupted: &[(String, Arguments)],
    ) -> Result<Vec<(CallId, CallEnd)>, RunError> {
        let said = self.said_before_others().await;
        let mut verdicts = Vec::with_capacity(group.len());
        let mut intents = Vec::with_capacity(2 * group.len());
        for call in group {
            let (verdict, begun) = match self.recorded_verdict(&call.id).await {
                Some(verdict) => (verdict, false),
                None => {
                    let check = GateCheck {
                        now: self.inner.now(),
                        confirmation_expiry: turn.limits().confirmation_expiry,
                        denied: turn.denied(),
                        interrupted,
                        said_before_others: said.as_deref(),
                    };
                    let verdict = self.inner.gate.check(&self.tool_context(&call.id), call, &check).await;
                    let (turn, call_id) = (self.turn, call.id.clone());
                    let checked = Event::CallChecked { turn, call: call_id, verdict: verdict.clone() };
                    match &verdict {
                        // Written with its intent and its change.
                        GateVerdict::Run { .. } if self.is_in_store(&call.name) => {
                            self.record(checked).await;
                            (verdict, false)
                        }
                        GateVerdict::Run { arguments } => {
                            intents.push(checked);
                            intents.extend(self.intent(&call.id, &call.name, arguments));
                            (verdict, true)
                        }
                        _ => {
                            intents.push(checked);
                            (verdict, true)
                        }
                    }
                }
            };
            verdicts.push((call, verdict, begun));
        }
        if !intents.is_empty() {
            self.append(intents).await?;
        }
        self.warn_of_unknown(&verdicts);
        let runs = verdicts.into_iter().map(|(call, verdict, begun)| async move {
            let end = match verdict {
                GateVerdict::Run { arguments } => {
                    let call = Call { id: &call.id, tool: &call.name, arguments: &arguments };
                    self.run(turn, call, 0, begun).await?
                }
                GateVerdict::Confirm { pending } => CallEnd::Waiting(pending),
                GateVerdict::Ask { question } => CallEnd::Asked { question },
                GateVerdict::Refuse { refusal, message } => {
                    let event =
                        || RunEvent::ToolRefused { tool: call.name.clone(), message: message.clone() };
                    self.emitter.emit(event).await;
                    CallEnd::Refused { refusal, message }
                }
            };
            Ok((call.id.clone(), end))
        });
        futures::future::join_all(runs).await.into_iter().collect()
    }

    /// Reports the first call of a tool that there is not, of those that were checked just now: a model that makes many must not
    /// fill anybody's log.
    fn warn_of_unknown(&self, verdicts: &[(&ToolCall, GateVerdict, bool)]) {
        let unknown = verdicts.iter().find(|(_, verdict, is_new)| {
            *is_new && matches!(verdict, GateVerdict::Refuse { refusal: Refusal::UnknownTool, .. })
        });
        if let Some((call, ..)) = unknown {
            self.inner.warn(&Warning::UnknownTool {
                user: self.key.user.clone(),
                conversation: self.key.conversation,
                turn: self.turn,
                tool: call.name.clone(),
            });
        }
    }

    fn tool_context(&self, call: &CallId) -> ToolContext {
        ToolContext {
            agent: self.inner.name.clone(),
            user: self.key.user.clone(),
            conversation: self.key.conversation,
            turn: self.turn,
            call: call.clone(),
            key: IdempotencyKey::of(self.key.conversation, self.turn, call),
            cancelled: self.cancelled.clone(),
        }
    }

    /// A call that may run beside others.
    fn is_harmless(&self, call: &ToolCall) -> bool {
        self.inner.gate.registry.get(&call.name).is_some_and(|tool| {
            let annotations = tool.definition().annotations;
            annotations.read_only || annotations.parallel
        })
    }

    fn must_stop(&self) -> Option<StopReason> {
        if self.cancelled.is_cancelled() {
            Some(StopReason::Cancelled)
        } else if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            Some(StopReason::Deadline)
        } else {
            None
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

    async fn recorded_reply(&self, wanted: u32) -> Option<(Replied, Vec<Notice>)> {
        let read = |turn: &CurrentTurn| match turn.reply(wanted)? {
            Event::ModelReplied { reply: Err(error), attempts: 0, .. } => {
                Some((Replied::TooLong(error.clone()), Vec::new()))
            }
            Event::ModelReplied { reply, notices, .. } => {
                Some((Replied::Sent(reply.clone()), notices.clone()))
            }
            _ => None,
        };
        self.look(read).await.flatten()
    }

    async fn recorded_verdict(&self, wanted: &CallId) -> Option<GateVerdict> {
        self.look(|turn| turn.verdict(wanted).cloned()).await.flatten()
    }
}
