//! The journaled steps of one turn: what was recorded is never done again, what is done is recorded first or at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use adjutant_core::turn::{CallEnd, StopReason, ToolStyle, Turn, estimate_tokens, fit};
use adjutant_core::{
    Arguments, CallId, CancellationToken, ConversationKey, Delta, Effect, Event, GateCheck, GateVerdict,
    GenerateRequest, GenerateResponse, IdempotencyKey, Input, InputBody, InputId, ModelError, PendingCall,
    Reading, Recorded, ToolCall, ToolContext, ToolError, ToolResult, TurnEnd, TurnId, Verdict, read_words,
};
use futures::StreamExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::RunError;
use crate::agent::Inner;
use crate::event::{Emitter, RunEvent};
use crate::execute::execute;
use crate::faults::boundary;

/// What a step gave, or that the turn has to stop.
pub(crate) enum Step<T> {
    /// It gave this.
    Done(T),
    /// Nobody waits any more, or time is up; calls that ended until then.
    Stopped(StopReason, Vec<(CallId, CallEnd)>),
}

/// What a human's answers led to.
pub(crate) enum Answered {
    /// Everything was answered; approved calls ran.
    Ends(Vec<(CallId, CallEnd)>),
    /// Something still waits.
    Parked,
    /// The person stopped the turn with this input, which the end of the turn takes.
    Stopped(InputId),
}

/// The steps of one turn of one conversation.
pub(crate) struct Steps<'a> {
    inner: &'a Inner,
    key: &'a ConversationKey,
    turn: TurnId,
    emitter: &'a Emitter,
    cancelled: CancellationToken,
    deadline: Instant,
    model_calls: AtomicU32,
    log: Mutex<Log>,
}

/// The conversation as this process knows it. Only this turn writes to it meanwhile; the journal refuses anybody else.
pub(crate) struct Log {
    pub(crate) events: Vec<Recorded>,
    pub(crate) inbox: Vec<Input>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        key: &'a ConversationKey,
        turn: TurnId,
        log: Log,
        (emitter, cancelled): (&'a Emitter, CancellationToken),
        time: Duration,
    ) -> Self {
        Self {
            inner,
            key,
            turn,
            emitter,
            cancelled,
            deadline: Instant::now() + time,
            model_calls: AtomicU32::new(0),
            log: Mutex::new(log),
        }
    }

    /// Asks the model, unless its answer is recorded.
    pub(crate) async fn generate(
        &self,
        turn: &mut Turn,
        mut request: GenerateRequest,
    ) -> Result<Step<Result<GenerateResponse, ModelError>>, RunError> {
        let number = self.model_calls.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(reply) = self.recorded_reply(number).await {
            return Ok(Step::Done(reply));
        }
        if let Some(reason) = self.must_stop() {
            return Ok(Step::Stopped(reason, Vec::new()));
        }
        self.emitter.emit(RunEvent::ModelStarted { number }).await;
        boundary("before the model is asked");
        let began = Instant::now();
        request.time_left = Some(self.deadline.saturating_duration_since(began));
        let mut attempts = 1;
        let reply = tokio::select! {
            // In this order: an adapter that was given what is left of the turn runs out of time together with it.
            biased;
            () = self.cancelled.cancelled() => return Ok(Step::Stopped(StopReason::Cancelled, Vec::new())),
            () = tokio::time::sleep_until(self.deadline) => {
                return Ok(Step::Stopped(StopReason::Deadline, Vec::new()));
            }
            reply = self.ask_model(turn, request, &mut attempts) => reply,
        };
        boundary("the model answered, not recorded");
        let ms = millis(began);
        self.append(vec![Event::ModelReplied {
            turn: self.turn,
            number,
            reply: reply.clone(),
            ms,
            attempts,
        }])
        .await?;
        if let Ok(reply) = &reply {
            self.emitter.emit(RunEvent::ModelFinished { number, usage: reply.usage }).await;
        }
        Ok(Step::Done(reply))
    }

    /// Takes calls through the gate and executes what may run: in order, neighbouring harmless ones together.
    pub(crate) async fn call_tools(
        &self,
        turn: &Turn,
        calls: Vec<ToolCall>,
    ) -> Result<Step<Vec<(CallId, CallEnd)>>, RunError> {
        let mut ends = Vec::new();
        let mut rest = calls.as_slice();
        while let Some(first) = rest.first() {
            let together = if self.is_harmless(first) {
                rest.iter().take_while(|call| self.is_harmless(call)).count()
            } else {
                1
            };
            let (group, after) = rest.split_at(together.max(1).min(rest.len()));
            rest = after;
            if let Some(reason) = self.must_stop() {
                return Ok(Step::Stopped(reason, ends));
            }
            ends.extend(self.call_group(turn, group).await?);
        }
        match self.must_stop() {
            Some(reason) => Ok(Step::Stopped(reason, ends)),
            None => Ok(Step::Done(ends)),
        }
    }

    /// Takes what the person answered from the inbox, or parks the turn.
    pub(crate) async fn answers(
        &self,
        turn: &Turn,
        pending: &[PendingCall],
        content: String,
    ) -> Result<Answered, RunError> {
        loop {
            let waiting = self.unanswered(pending).await;
            if waiting.is_empty() {
                break;
            }
            let now = self.inner.now();
            let late: Vec<Event> = waiting
                .iter()
                .filter(|call| call.expires_at <= now)
                .map(|call| self.answered(call, None, None))
                .collect();
            if !late.is_empty() {
                self.append(late).await?;
                continue;
            }
            let input = self.log.lock().await.inbox.first().cloned();
            match input {
                Some(Input { id, body: InputBody::Cancel, .. }) => {
                    return Ok(Answered::Stopped(id));
                }
                Some(input) => self.append(self.read_input(&waiting, input)).await?,
                None => {
                    if !self.is_parked(pending).await {
                        let parked =
                            Event::TurnParked { turn: self.turn, pending: pending.to_vec(), content };
                        self.append(vec![parked]).await?;
                    }
                    self.emitter.emit(RunEvent::ConfirmationRequested { pending: waiting }).await;
                    return Ok(Answered::Parked);
                }
            }
        }
        let mut ends = Vec::new();
        for call in pending {
            let arguments = call.arguments.clone();
            let end = match self.verdict(&call.call_id).await {
                Some(Verdict::Approved) => {
                    self.run(turn, &call.call_id, &call.tool, arguments, false).await?
                }
                Some(Verdict::Denied) => CallEnd::Denied { arguments },
                None => CallEnd::Expired { arguments },
            };
            ends.push((call.call_id.clone(), end));
        }
        Ok(Answered::Ends(ends))
    }

    /// Records the end, which takes `input` if a cancellation led to it.
    pub(crate) async fn finish(&self, input: Option<InputId>, end: TurnEnd) -> Result<(), RunError> {
        for notice in &end.notices {
            self.emitter.emit(RunEvent::Noticed(notice.clone())).await;
        }
        self.append(vec![Event::TurnFinished { turn: self.turn, input, end }]).await
    }

    async fn ask_model(
        &self,
        turn: &mut Turn,
        request: GenerateRequest,
        attempts: &mut u32,
    ) -> Result<GenerateResponse, ModelError> {
        let model = &self.inner.model;
        let capabilities = model.capabilities();
        let native = request.clone();
        let weak = (turn.style() == ToolStyle::OneRound).then_some(&self.inner.weak_tools);
        let mut references = Vec::new();
        let request = match weak {
            Some(weak) => {
                // Without the list the model can still add and talk; the gate resolves what it names.
                references = self.inner.gate.registry.references(&self.key.user).await.unwrap_or_default();
                weak.encode(&request, &references)
            }
            None => request,
        };
        let reserve =
            request.config.max_tokens.map_or(adjutant_core::limits::OUTPUT_TOKENS_MAX, |max| max.get());
        let count = |text: &str| model.count_tokens(text).unwrap_or_else(|| estimate_tokens(text));
        let (request, notice) =
            fit(request, capabilities.context_window, reserve, &count).map_err(|error| {
                ModelError::ContextTooLong {
                    provider: model.id().provider.clone(),
                    message: error.to_string(),
                }
            })?;
        if let Some(notice) = notice {
            turn.add_notice(notice);
        }
        let reply = self.drain(&request, weak.is_none(), attempts).await?;
        match weak {
            Some(weak) => Ok(weak.decode(reply, &native, &references)),
            None => Ok(reply),
        }
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
                Delta::Text(text) if show => self.emitter.emit(RunEvent::Text(text)).await,
                Delta::Thinking(text) if show => self.emitter.emit(RunEvent::Thinking(text)).await,
                Delta::Retrying { attempt, wait, reason } => {
                    *attempts = attempt + 1;
                    self.emitter.emit(RunEvent::Retrying { attempt, wait, reason }).await;
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
    async fn call_group(&self, turn: &Turn, group: &[ToolCall]) -> Result<Vec<(CallId, CallEnd)>, RunError> {
        let mut verdicts = Vec::new();
        let mut intents = Vec::new();
        for call in group {
            let verdict = match self.recorded_verdict(&call.id).await {
                Some(verdict) => verdict,
                None => {
                    let check = GateCheck {
                        now: self.inner.now(),
                        confirmation_expiry: turn.limits().confirmation_expiry,
                        denied: turn.denied(),
                    };
                    let verdict = self.inner.gate.check(&self.tool_context(&call.id), call, &check).await;
                    let (turn, call_id) = (self.turn, call.id.clone());
                    intents.push(Event::CallChecked { turn, call: call_id, verdict: verdict.clone() });
                    if let GateVerdict::Run { arguments } = &verdict {
                        intents.extend(self.intent(&call.id, &call.name, arguments));
                    }
                    verdict
                }
            };
            verdicts.push((call, verdict));
        }
        let intents_written = !intents.is_empty();
        if intents_written {
            self.append(intents).await?;
        }
        let runs = verdicts.into_iter().map(|(call, verdict)| async move {
            let end = match verdict {
                GateVerdict::Run { arguments } => {
                    self.run(turn, &call.id, &call.name, arguments, intents_written).await?
                }
                GateVerdict::Confirm { pending } => CallEnd::Waiting(pending),
                GateVerdict::Ask { question } => CallEnd::Asked { question },
                GateVerdict::Refuse { refusal, message } => {
                    let event = RunEvent::ToolRefused { tool: call.name.clone(), message: message.clone() };
                    self.emitter.emit(event).await;
                    CallEnd::Refused { refusal, message }
                }
            };
            Ok((call.id.clone(), end))
        });
        futures::future::join_all(runs).await.into_iter().collect()
    }

    /// Executes one call that may run, unless how it ended is recorded. `intent_written`: just now, by this process.
    async fn run(
        &self,
        turn: &Turn,
        call: &CallId,
        name: &str,
        arguments: Arguments,
        intent_written: bool,
    ) -> Result<CallEnd, RunError> {
        if let Some(end) = self.recorded_end(call).await {
            return Ok(end);
        }
        let Some(tool) = self.inner.gate.registry.get(name).cloned() else {
            return Err(RunError::CannotContinue(format!("this agent has no tool {name}")));
        };
        let started = self.times_started(call).await;
        let repeated = started > u32::from(intent_written);
        let effect = tool.definition().annotations.effect();
        if repeated && effect == Effect::Once {
            return self.in_doubt(call, name, arguments).await;
        }
        if !intent_written || repeated {
            self.append(self.intent(call, name, &arguments).into_iter().collect()).await?;
        }
        boundary("intent recorded, tool not begun");
        let shown = ToolCall {
            id: call.clone(),
            provider_id: None,
            name: name.to_owned(),
            arguments: arguments.clone(),
            malformed: None,
        };
        self.emitter.emit(RunEvent::ToolStarted { call: shown }).await;
        let began = Instant::now();
        let outcome =
            execute(&tool, &self.tool_context(call), arguments.clone(), turn.limits().tool_timeout).await;
        boundary("tool done, not recorded");
        let ms = millis(began);
        let (result, summary) = match outcome {
            Ok(data) => {
                let summary = tool.describe(&arguments, &data);
                (ToolResult::ok(data), summary)
            }
            Err(ToolError::Unknown { .. }) if effect == Effect::Once => {
                return self.in_doubt(call, name, arguments).await;
            }
            Err(error @ ToolError::TimedOut { .. }) if effect != Effect::None => {
                (ToolResult::failed(format!("{error}; it may or may not have taken effect")), None)
            }
            Err(error) => (ToolResult::failed(error.to_string()), None),
        };
        let attempt = if repeated { started + 1 } else { 1 };
        self.append(vec![Event::CallFinished {
            turn: self.turn,
            call: call.clone(),
            tool: name.to_owned(),
            arguments: arguments.clone(),
            result: result.clone(),
            summary: summary.clone(),
            ms,
            attempt,
        }])
        .await?;
        self.emitter
            .emit(RunEvent::ToolFinished {
                call: call.clone(),
                tool: name.to_owned(),
                result: result.clone(),
                summary: summary.clone(),
                ms,
            })
            .await;
        Ok(CallEnd::Executed { arguments, result, summary })
    }

    async fn in_doubt(&self, call: &CallId, name: &str, arguments: Arguments) -> Result<CallEnd, RunError> {
        self.append(vec![Event::CallInDoubt {
            turn: self.turn,
            call: call.clone(),
            tool: name.to_owned(),
            arguments: arguments.clone(),
        }])
        .await?;
        Ok(CallEnd::InDoubt { arguments })
    }

    fn intent(&self, call: &CallId, name: &str, arguments: &Arguments) -> Option<Event> {
        let tool = self.inner.gate.registry.get(name)?;
        Some(Event::CallStarted {
            turn: self.turn,
            call: call.clone(),
            tool: name.to_owned(),
            arguments: arguments.clone(),
            key: IdempotencyKey::of(self.key.conversation, self.turn, call),
            effect: tool.definition().annotations.effect(),
        })
    }

    fn tool_context(&self, call: &CallId) -> ToolContext {
        ToolContext {
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
        } else if Instant::now() >= self.deadline {
            Some(StopReason::Deadline)
        } else {
            None
        }
    }

    /// What an input says while calls wait.
    fn read_input(&self, waiting: &[PendingCall], input: Input) -> Vec<Event> {
        let all = |verdict| {
            waiting.iter().map(|call| self.answered(call, Some(&input), Some(verdict))).collect::<Vec<_>>()
        };
        let events = match &input.body {
            InputBody::Cancel => Vec::new(),
            InputBody::Answers { answers } => answers
                .iter()
                .filter_map(|answer| {
                    let call = waiting
                        .iter()
                        .find(|call| call.call_id == answer.call_id && call.digest == answer.digest)?;
                    Some(self.answered(call, Some(&input), Some(answer.verdict)))
                })
                .collect(),
            InputBody::Message { text } => match read_words(text) {
                Reading::Yes => all(Verdict::Approved),
                Reading::No => all(Verdict::Denied),
                Reading::Unclear => vec![Event::AnswerUnclear {
                    turn: self.turn,
                    input: input.id.clone(),
                    text: text.clone(),
                }],
            },
        };
        if events.is_empty() {
            let reason = match input.body {
                InputBody::Cancel => "stopped the waiting turn",
                InputBody::Answers { .. } | InputBody::Message { .. } => {
                    "answers nothing that waits as it was shown"
                }
            };
            vec![Event::InputIgnored { input: input.id, reason: reason.to_owned() }]
        } else {
            events
        }
    }

    fn answered(&self, call: &PendingCall, input: Option<&Input>, verdict: Option<Verdict>) -> Event {
        let input = input.map(|input| input.id.clone());
        Event::CallAnswered { turn: self.turn, call: call.call_id.clone(), input, verdict }
    }

    async fn append(&self, events: Vec<Event>) -> Result<(), RunError> {
        let mut log = self.log.lock().await;
        boundary("before an append");
        log.append(self.inner, self.key, events).await?;
        boundary("after an append");
        Ok(())
    }

    async fn find<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let log = self.log.lock().await;
        log.events
            .iter()
            .filter(|recorded| recorded.event.turn() == Some(self.turn))
            .find_map(|recorded| pick(&recorded.event))
    }

    async fn recorded_reply(&self, wanted: u32) -> Option<Result<GenerateResponse, ModelError>> {
        self.find(|event| match event {
            Event::ModelReplied { number, reply, .. } if *number == wanted => Some(reply.clone()),
            _ => None,
        })
        .await
    }

    async fn recorded_verdict(&self, wanted: &CallId) -> Option<GateVerdict> {
        self.find(|event| match event {
            Event::CallChecked { call, verdict, .. } if call == wanted => Some(verdict.clone()),
            _ => None,
        })
        .await
    }

    async fn recorded_end(&self, wanted: &CallId) -> Option<CallEnd> {
        self.find(|event| match event {
            Event::CallFinished { call, arguments, result, summary, .. } if call == wanted => {
                Some(CallEnd::Executed {
                    arguments: arguments.clone(),
                    result: result.clone(),
                    summary: summary.clone(),
                })
            }
            Event::CallInDoubt { call, arguments, .. } if call == wanted => {
                Some(CallEnd::InDoubt { arguments: arguments.clone() })
            }
            _ => None,
        })
        .await
    }

    async fn times_started(&self, wanted: &CallId) -> u32 {
        let log = self.log.lock().await;
        let times = log
            .events
            .iter()
            .filter(|recorded| matches!(&recorded.event, Event::CallStarted { call, .. } if call == wanted))
            .count();
        u32::try_from(times).unwrap_or(u32::MAX)
    }

    async fn verdict(&self, wanted: &CallId) -> Option<Verdict> {
        self.find(|event| match event {
            Event::CallAnswered { call, verdict, .. } if call == wanted => Some(*verdict),
            _ => None,
        })
        .await
        .flatten()
    }

    async fn unanswered(&self, pending: &[PendingCall]) -> Vec<PendingCall> {
        let log = self.log.lock().await;
        let answered = |id: &CallId| {
            log.events
                .iter()
                .any(|recorded| matches!(&recorded.event, Event::CallAnswered { call, .. } if call == id))
        };
        pending.iter().filter(|call| !answered(&call.call_id)).cloned().collect()
    }

    async fn is_parked(&self, pending: &[PendingCall]) -> bool {
        self.find(|event| match event {
            Event::TurnParked { pending: parked, .. } => parked.as_slice().eq(pending).then_some(()),
            _ => None,
        })
        .await
        .is_some()
    }
}

impl Log {
    /// Writes events behind what is known. Refused if anybody else wrote meanwhile.
    pub(crate) async fn append(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        events: Vec<Event>,
    ) -> Result<(), RunError> {
        let next = self.events.last().map_or(1, |recorded| recorded.seq + 1);
        let at = inner.now();
        inner.journal.append(key, next, at, &events).await?;
        for (seq, event) in (next..).zip(events) {
            if let Some(taken) = event.takes_input() {
                self.inbox.retain(|input| input.id != *taken);
            }
            self.events.push(Recorded { seq, at, event });
        }
        Ok(())
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
