//! One call, from its intent to its end: executed once, and in doubt where nobody saw the end.
//!
//! ```text
//! started -> finished
//!        '-> (crash, or the tool does not know) -> probe -> finished
//!        |                                              |--> started again, with the same key
//!        |                                              '--> in doubt -> the person: done | try again | leave it
//!        '-> (breakdown, time-out) -> probe -> finished; if the tool does not know, as an error that says so
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::turn::{CallEnd, Turn};
use adjutant_core::{
    Arguments, CallId, Doubt, Effect, Event, GateVerdict, IdempotencyKey, PendingCall, Probe,
    ProgressListener, ResolvedBy, Tool, ToolCall, ToolContext, ToolError, ToolProgress, ToolResult,
    Verdict, doubt_digest, visible, words,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Steps;
use super::call::Call;
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::execute::{Execution, execute, preview, probe};
use crate::faults::boundary;

/// The least time between two reports of a call's progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

/// What one execution gave.
enum Outcome {
    /// How it ended is known.
    Known(Result<Value, ToolError>),
    /// The tool says that it does not know.
    Lost(ToolError),
    /// The tool broke down or ran out of time, and may have taken effect.
    BrokeOff(ToolError),
}

/// What a tool knows of a call whose end nobody saw.
enum Probed {
    /// It was done; that is recorded.
    Done(Box<CallEnd>),
    NotDone,
    Unknown,
}

impl Steps<'_> {
    /// Executes one call that may run, unless how it ended is recorded. `seen`: the last start of
    /// it whose doubt the turn knows of. `begun`: this process has just written the intent, so
    /// nobody can have begun it before.
    pub(super) async fn run(
        &self,
        turn: &Turn,
        call: Call<'_>,
        seen: u32,
        begun: bool,
    ) -> Result<CallEnd, RunError> {
        if let Some(doubt) = self.recorded_doubt(call.id, seen).await {
            return Ok(CallEnd::Waiting(doubt));
        }
        if let Some(end) = self.recorded_end(call.id).await {
            return Ok(end);
        }
        let Some(tool) = self.tools.gate().registry.get(call.tool).cloned() else {
            return self.end_without_tool(turn, call).await;
        };
        let effect = self.effect(call.id, &tool).await;
        let mut attempt = self.times_started(call.id).await;
        if !begun {
            let free = attempt == 0
                || effect != Effect::Once
                || self.is_to_be_repeated(call.id, attempt).await;
            if attempt == 0
                && let Some(end) = self.run_in_store(&tool, call).await?
            {
                return Ok(end);
            }
            if !free {
                match self.ask_tool(turn, &tool, call, attempt).await? {
                    Probed::Done(end) => return Ok(*end),
                    Probed::NotDone => self.resolve_not_done(call, attempt, true).await?,
                    Probed::Unknown => {
                        return self.ask_person(turn, Some(&tool), call, attempt).await;
                    }
                }
            } else {
                self.append(
                    self.intent(call.id, call.tool, call.arguments)
                        .into_iter()
                        .collect(),
                )
                .await?;
            }
            attempt += 1;
        }
        let first = attempt;
        loop {
            let began = Instant::now();
            let (error, lost) = match self.execute(turn, &tool, call, effect).await? {
                Outcome::Known(Ok(data)) => {
                    let summary = tool.describe(call.arguments, &data);
                    return self
                        .finished(call, ToolResult::ok(data), summary, began, attempt)
                        .await;
                }
                Outcome::Known(Err(error)) => {
                    let told = self.told(turn, &tool, call, &error, false).await;
                    let result = ToolResult::failed(error.to_string());
                    return self.finished(call, result, told, began, attempt).await;
                }
                Outcome::Lost(error) => (error, true),
                Outcome::BrokeOff(error) => (error, false),
            };
            // The receiver of a keyed call absorbs a repeat, so trying once more is how its end is
            // learnt.
            let again = lost && attempt == first && self.early_end.reason().is_none();
            if effect == Effect::Keyed && again {
                self.append(
                    self.intent(call.id, call.tool, call.arguments)
                        .into_iter()
                        .collect(),
                )
                .await?;
            } else {
                match self.ask_tool(turn, &tool, call, attempt).await? {
                    Probed::Done(end) => return Ok(*end),
                    Probed::NotDone if again => self.resolve_not_done(call, attempt, true).await?,
                    Probed::NotDone => {
                        self.resolve_not_done(call, attempt, false).await?;
                        let told = self.told(turn, &tool, call, &error, false).await;
                        let result = ToolResult::failed(error.to_string());
                        return self.finished(call, result, told, began, attempt).await;
                    }
                    Probed::Unknown if lost => {
                        return self.ask_person(turn, Some(&tool), call, attempt).await;
                    }
                    // The model goes on with an error; that the call may have been done is in it.
                    Probed::Unknown => {
                        let told = self.told(turn, &tool, call, &error, true).await;
                        return self
                            .finished(call, ToolResult::broke_off(error), told, began, attempt)
                            .await;
                    }
                }
            }
            attempt += 1;
        }
    }

    /// Ends a call whose tool is not there: its server does not run, or the agent was changed. What
    /// was not begun is not done; of what may have had an effect, only a person can say what became
    /// of it.
    async fn end_without_tool(&self, turn: &Turn, call: Call<'_>) -> Result<CallEnd, RunError> {
        let attempt = self.times_started(call.id).await;
        let effect = self.look(|turn| turn.effect(call.id)).await.flatten();
        let may_be_done = effect.is_some_and(|effect| effect != Effect::None);
        if may_be_done && !self.is_to_be_repeated(call.id, attempt).await {
            return self.ask_person(turn, None, call, attempt).await;
        }
        let result = ToolResult::failed(format!(
            "{} is not available at the moment, so it was not done: its server may not be running",
            call.tool
        ));
        let told = Some(words::TOOL_AWAY.to_owned());
        self.finished(call, result, told, Instant::now(), attempt.max(1))
            .await
    }

    /// Ends a call that a person agreed to, of a tool that is another by now. Nothing is executed.
    /// `None`: it is the same tool, or the call began before.
    pub(super) async fn end_with_changed_tool(
        &self,
        shown: &PendingCall,
        call: Call<'_>,
    ) -> Result<Option<CallEnd>, RunError> {
        let now = self
            .tools
            .gate()
            .registry
            .get(call.tool)
            .map(|tool| tool.definition().fingerprint());
        let is_same = now.is_none() || shown.definition.is_none() || now == shown.definition;
        if is_same
            || self.has_begun_since(shown).await
            || self.recorded_end(call.id).await.is_some()
        {
            return Ok(None);
        }
        let result = ToolResult::failed(format!(
            "{} is defined in another way than when the person agreed, so it was not done",
            call.tool
        ));
        let told = Some(words::tool_changed(&shown.preview));
        let attempt = self.times_started(call.id).await.max(1);
        self.finished(call, result, told, Instant::now(), attempt)
            .await
            .map(Some)
    }

    /// What the person reads of a call that broke off, where the words of the error are not for
    /// them.
    async fn told(
        &self,
        turn: &Turn,
        tool: &Arc<dyn Tool>,
        call: Call<'_>,
        error: &ToolError,
        unknown: bool,
    ) -> Option<String> {
        if !matches!(error, ToolError::TimedOut { .. } | ToolError::BrokeDown) {
            return None;
        }
        let preview = self
            .known_preview(turn, Some(tool), &self.tool_context(call.id), call)
            .await;
        words::broke_off(error, preview.as_deref(), unknown)
    }

    /// Whether something of the call has begun that has no end yet.
    pub(super) async fn is_under_way(&self, call: &CallId) -> bool {
        match self.times_started(call).await {
            0 => false,
            attempt => !self.is_to_be_repeated(call, attempt).await,
        }
    }

    async fn execute(
        &self,
        turn: &Turn,
        tool: &Arc<dyn Tool>,
        call: Call<'_>,
        effect: Effect,
    ) -> Result<Outcome, RunError> {
        boundary("intent recorded, tool not begun");
        if effect == Effect::Once {
            // Whoever stood still since the intent was written may have been taken for dead, and
            // the call for one in doubt.
            self.hold.confirm().await?;
        }
        let shown = || ToolCall {
            id: call.id.clone(),
            provider_id: None,
            name: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            malformed: None,
        };
        self.emitter
            .emit(|| RunEvent::ToolStarted { call: shown() })
            .await;
        let (hear, heard) = watch::channel(None);
        let progress =
            ProgressListener::new(move |progress| drop(hear.send_replace(Some(progress))));
        let context = ToolContext {
            progress,
            ..self.tool_context(call.id)
        };
        let execution = execute(
            tool,
            &context,
            call.arguments.clone(),
            turn.limits().tool_timeout,
        );
        let execution = self.telling_progress(call, heard, execution).await;
        boundary("tool done, not recorded");
        Ok(match execution {
            Execution {
                outcome: Err(error),
                broke_off: true,
            } if effect != Effect::None => Outcome::BrokeOff(error),
            Execution {
                outcome: Err(error @ ToolError::Unknown { .. }),
                ..
            } if effect != Effect::None => Outcome::Lost(error),
            Execution { outcome, .. } => Outcome::Known(outcome),
        })
    }

    /// Waits for the end of an execution, and tells meanwhile how far it is.
    async fn telling_progress(
        &self,
        call: Call<'_>,
        mut heard: watch::Receiver<Option<ToolProgress>>,
        execution: impl Future<Output = Execution>,
    ) -> Execution {
        let mut execution = pin!(execution);
        loop {
            let told = async {
                // Who tells it may be gone before the call has ended.
                if heard.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                let progress = heard.borrow_and_update().clone();
                if let Some(progress) = progress {
                    let (call, tool) = (call.id.clone(), call.tool.to_owned());
                    self.emitter
                        .emit(|| RunEvent::ToolProgress {
                            call,
                            tool,
                            progress,
                        })
                        .await;
                    tokio::time::sleep(PROGRESS_PAUSE).await;
                }
            };
            tokio::select! {
                biased;
                execution = &mut execution => return execution,
                () = told => {}
            }
        }
    }

    /// Records how a call ended.
    async fn finished(
        &self,
        call: Call<'_>,
        result: ToolResult,
        summary: Option<String>,
        began: Instant,
        attempt: u32,
    ) -> Result<CallEnd, RunError> {
        let ms = millis(began);
        let ended = self.end_of(call, &result, summary.clone(), ms, attempt);
        // What changed nothing is done again after a crash; it need not be written now.
        match self.look(|turn| turn.effect(call.id)).await.flatten() {
            Some(Effect::None) => self.record(ended).await,
            // A repeat is absorbed until the next call's intent is written, and this with it.
            Some(Effect::Keyed) if call.is_followed => self.record(ended).await,
            Some(Effect::Keyed | Effect::Once) | None => self.append(vec![ended]).await?,
        }
        self.emit_finished(call, &result, summary.as_deref(), ms)
            .await;
        Ok(CallEnd::Executed {
            arguments: call.arguments.clone(),
            result,
            summary,
        })
    }

    /// Nobody saw the end of the call: the tool is asked.
    async fn ask_tool(
        &self,
        turn: &Turn,
        tool: &Arc<dyn Tool>,
        call: Call<'_>,
        attempt: u32,
    ) -> Result<Probed, RunError> {
        let context = self.tool_context(call.id);
        boundary("before the tool is asked what became of a call");
        match probe(tool, &context, call.arguments, turn.limits().tool_timeout).await {
            Probe::NotDone => Ok(Probed::NotDone),
            Probe::Unknown => Ok(Probed::Unknown),
            Probe::Done(data) => {
                let summary = tool.describe(call.arguments, &data);
                let result = ToolResult::ok(data);
                let resolved =
                    self.resolved(call.id, attempt, ResolvedBy::Probe, None, Verdict::Done);
                let end = self.end_of(call, &result, summary.clone(), 0, attempt);
                self.append(vec![resolved, end]).await?;
                self.emit_finished(call, &result, summary.as_deref(), 0)
                    .await;
                let arguments = call.arguments.clone();
                Ok(Probed::Done(Box::new(CallEnd::Executed {
                    arguments,
                    result,
                    summary,
                })))
            }
        }
    }

    /// Nor does the tool know, if it is there: the person is asked.
    async fn ask_person(
        &self,
        turn: &Turn,
        tool: Option<&Arc<dyn Tool>>,
        call: Call<'_>,
        attempt: u32,
    ) -> Result<CallEnd, RunError> {
        let doubt = self
            .doubt(turn, tool, &self.tool_context(call.id), call, attempt)
            .await;
        self.append(vec![Event::CallInDoubt {
            turn: self.turn,
            call: call.id.clone(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            doubt: Some(doubt.clone()),
        }])
        .await?;
        Ok(CallEnd::Waiting(doubt))
    }

    /// The tool says that the call was not done; it is started again, or not.
    async fn resolve_not_done(
        &self,
        call: Call<'_>,
        attempt: u32,
        again: bool,
    ) -> Result<(), RunError> {
        let mut events =
            vec![self.resolved(call.id, attempt, ResolvedBy::Probe, None, Verdict::Retry)];
        if again {
            events.extend(self.intent(call.id, call.tool, call.arguments));
        }
        self.append(events).await
    }

    /// What the person is asked about a call in doubt.
    async fn doubt(
        &self,
        turn: &Turn,
        tool: Option<&Arc<dyn Tool>>,
        context: &ToolContext,
        call: Call<'_>,
        attempt: u32,
    ) -> PendingCall {
        let now = self.inner.now();
        let expiry = SignedDuration::try_from(turn.limits().confirmation_expiry)
            .unwrap_or(SignedDuration::MAX);
        PendingCall {
            call_id: call.id.clone(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            preview: self.preview(turn, tool, context, call).await,
            digest: doubt_digest(self.turn, call.id, call.tool, call.arguments, attempt),
            definition: tool.map(|tool| tool.definition().fingerprint()),
            requested_at: now,
            expires_at: now.checked_add(expiry).unwrap_or(Timestamp::MAX),
            doubt: Some(Doubt {
                attempt,
                since: self.last_started(call.id).await.unwrap_or(now),
            }),
            awaits: None,
        }
    }

    /// What the call touches, in the person's words; of a tool without such words, its name and the
    /// arguments.
    async fn preview(
        &self,
        turn: &Turn,
        tool: Option<&Arc<dyn Tool>>,
        context: &ToolContext,
        call: Call<'_>,
    ) -> String {
        let known = self.known_preview(turn, tool, context, call).await;
        known.unwrap_or_else(|| {
            visible(&format!(
                "{} {}",
                call.tool,
                Value::Object(call.arguments.clone())
            ))
        })
    }

    /// What the call touches, in the person's words: as it was confirmed, else as the tool has it
    /// now.
    async fn known_preview(
        &self,
        turn: &Turn,
        tool: Option<&Arc<dyn Tool>>,
        context: &ToolContext,
        call: Call<'_>,
    ) -> Option<String> {
        let confirmed = self
            .recorded_verdict(call.id)
            .await
            .and_then(|verdict| match verdict {
                GateVerdict::Confirm { pending } if pending.arguments == *call.arguments => {
                    Some(pending.preview)
                }
                _ => None,
            });
        match (confirmed, tool) {
            (Some(preview), _) => Some(preview),
            (None, Some(tool)) => {
                preview(tool, context, call.arguments, turn.limits().tool_timeout).await
            }
            (None, None) => None,
        }
    }

    pub(super) fn intent(&self, call: &CallId, tool: &str, arguments: &Arguments) -> Option<Event> {
        let effect = self
            .tools
            .gate()
            .registry
            .get(tool)?
            .definition()
            .annotations
            .effect();
        Some(Event::CallStarted {
            turn: self.turn,
            call: call.clone(),
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            key: IdempotencyKey::of(self.key.conversation, self.turn, call),
            effect,
        })
    }

    pub(super) fn end_of(
        &self,
        call: Call<'_>,
        result: &ToolResult,
        summary: Option<String>,
        ms: u64,
        attempt: u32,
    ) -> Event {
        Event::CallFinished {
            turn: self.turn,
            call: call.id.clone(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            result: result.clone(),
            summary,
            ms,
            attempt,
        }
    }

    pub(super) fn resolved(
        &self,
        call: &CallId,
        attempt: u32,
        by: ResolvedBy,
        input: Option<&adjutant_core::InputId>,
        verdict: Verdict,
    ) -> Event {
        let (call, input) = (call.clone(), input.cloned());
        Event::DoubtResolved {
            turn: self.turn,
            call,
            attempt,
            by,
            input,
            verdict,
        }
    }

    pub(super) async fn emit_finished(
        &self,
        call: Call<'_>,
        result: &ToolResult,
        summary: Option<&str>,
        ms: u64,
    ) {
        self.emitter
            .emit(|| RunEvent::ToolFinished {
                call: call.id.clone(),
                tool: call.tool.to_owned(),
                result: result.clone(),
                summary: summary.map(str::to_owned),
                ms,
            })
            .await;
    }

    /// The first doubt about the call that is younger than `seen`, resolved or not: every doubt
    /// passes through the turn.
    async fn recorded_doubt(&self, wanted: &CallId, seen: u32) -> Option<PendingCall> {
        self.look(|turn| turn.doubt_after(wanted, seen).cloned())
            .await
            .flatten()
    }

    pub(super) async fn recorded_end(&self, wanted: &CallId) -> Option<CallEnd> {
        self.look(|turn| turn.end(wanted)).await.flatten()
    }

    /// Whether the call was started after the person was asked about it.
    pub(super) async fn has_begun_since(&self, shown: &PendingCall) -> bool {
        let seen = shown.doubt.as_ref().map_or(0, |doubt| doubt.attempt);
        self.times_started(&shown.call_id).await > seen
    }

    /// Whether it was said that this start of the call led to nothing, and it is to be started
    /// again.
    pub(super) async fn is_to_be_repeated(&self, call: &CallId, attempt: u32) -> bool {
        let last = self.look(|turn| turn.resolution(call)).await.flatten();
        matches!(last, Some((last, _, Verdict::Retry)) if last == attempt)
    }

    /// What a repeat may do. A call that was begun as one that must not be repeated stays one,
    /// whatever the tool says of itself by now.
    async fn effect(&self, wanted: &CallId, tool: &Arc<dyn Tool>) -> Effect {
        match self.look(|turn| turn.effect(wanted)).await.flatten() {
            Some(Effect::Once) => Effect::Once,
            Some(Effect::None | Effect::Keyed) | None => tool.definition().annotations.effect(),
        }
    }

    async fn times_started(&self, wanted: &CallId) -> u32 {
        self.look(|turn| turn.times_started(wanted))
            .await
            .unwrap_or_default()
    }

    async fn last_started(&self, wanted: &CallId) -> Option<Timestamp> {
        self.look(|turn| turn.last_started(wanted)).await.flatten()
    }
}
