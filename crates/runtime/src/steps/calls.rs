//! One tool call, from its intent to its end: executed once, and in doubt if a crash hid its end.
//!
//! ```text
//! started -> finished
//!        '-> (crash, or unknown to the tool) -> probe -> finished
//!        |                                           |--> started again, with the same key
//!        |                                           '--> in doubt -> a person: done | retry | leave it
//!        '-> (panic, timeout) -> probe -> finished; if unknown to the tool, as an error that says so
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::CurrentTurn;
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
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::execute::{Execution, execute, preview, probe};
use crate::faults::boundary;

/// The least time between two reports of a call's progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

/// A tool call that the gate has passed.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) id: &'c CallId,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c Arguments,
    /// True if another call of the same answer comes next, and nothing else: an end whose loss is
    /// harmless is then written with that call's intent.
    pub(super) is_followed: bool,
}

impl<'c> Call<'c> {
    /// Returns a pending call with the arguments that were approved.
    pub(super) fn of_pending(pending: &'c PendingCall, arguments: &'c Arguments) -> Self {
        Self {
            id: &pending.call_id,
            tool: &pending.tool,
            arguments,
            is_followed: false,
        }
    }

    /// Returns the tool's name and the arguments, for calls that have no description.
    pub(super) fn line(self) -> String {
        visible(&format!(
            "{} {}",
            self.tool,
            Value::Object(self.arguments.clone())
        ))
    }

    /// Returns the call as events show it.
    pub(super) fn to_tool_call(self) -> ToolCall {
        ToolCall {
            id: self.id.clone(),
            provider_id: None,
            name: self.tool.to_owned(),
            arguments: self.arguments.clone(),
            malformed: None,
        }
    }
}

/// The end of one execution.
enum Outcome {
    /// The tool returned a result or an error.
    Known(Result<Value, ToolError>),
    /// The tool reported that it does not know whether it took effect.
    Lost(ToolError),
    /// The tool panicked or ran out of time, and may have taken effect.
    BrokeOff(ToolError),
}

/// Returns true if a result is text of others.
pub(super) fn is_from_others(tool: &dyn Tool, result: &ToolResult) -> bool {
    let data = result.data.as_deref().filter(|_| result.success);
    tool.reads_from_others() || data.is_some_and(|data| tool.holds_text_of_others(data))
}

/// A tool's answer about a call whose end is unknown.
enum Probed {
    /// The call took effect; its end is recorded.
    Done(Box<CallEnd>),
    NotDone,
    Unknown,
}

impl Steps<'_> {
    /// Executes one call, unless its end is recorded. `seen`: the last attempt whose doubt the turn
    /// knows of. `is_new`: this process has just written the intent, so there is no earlier
    /// attempt.
    pub(super) async fn run(
        &self,
        turn: &Turn,
        call: Call<'_>,
        seen: u32,
        is_new: bool,
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
        if !is_new {
            let may_start = attempt == 0
                || effect != Effect::Once
                || self.is_to_be_repeated(call.id, attempt).await;
            if attempt == 0
                && let Some(end) = self.run_in_store(&tool, call).await?
            {
                return Ok(end);
            }
            let mut may_be_done = !may_start;
            if may_start {
                may_be_done = self.may_have_lost_start(call).await;
                let intent = self.intent(call.id, call.tool, call.arguments);
                self.append(intent.into_iter().collect()).await?;
                attempt += 1;
            }
            if may_be_done {
                match self.probe_call(turn, &tool, call, attempt).await? {
                    Probed::Done(end) => return Ok(*end),
                    Probed::NotDone => self.resolve_not_done(call, attempt, true).await?,
                    Probed::Unknown => {
                        return self.record_doubt(turn, Some(&tool), call, attempt).await;
                    }
                }
                attempt += 1;
            }
        } else if self.early_end.reason().is_some() {
            // Of calls that run concurrently, some wait for their turn; they need not begin.
            let result = ToolResult::failed("it was stopped before it ran");
            return self
                .record_end(call, result, None, Instant::now(), attempt)
                .await;
        }
        // At most one more attempt than this, so that a tool that never knows its outcome does not
        // loop.
        let first = attempt;
        loop {
            let began = Instant::now();
            let (error, lost) = match self.execute(turn, &tool, call, effect).await? {
                Outcome::Known(Ok(data)) => {
                    let summary = tool.describe(call.arguments, &data);
                    return self
                        .record_end(call, ToolResult::ok(data), summary, began, attempt)
                        .await;
                }
                Outcome::Known(Err(error)) => {
                    let summary = self.failure_summary(turn, &tool, call, &error, false).await;
                    let result = ToolResult::failed(error.to_string());
                    return self.record_end(call, result, summary, began, attempt).await;
                }
                Outcome::Lost(error) => (error, true),
                Outcome::BrokeOff(error) => (error, false),
            };
            // The receiver of a keyed call ignores a repeat with the same idempotency key, so one
            // more attempt safely learns its end.
            let again = lost && attempt == first && self.early_end.reason().is_none();
            if effect == Effect::Keyed && again {
                let intent = self.intent(call.id, call.tool, call.arguments);
                self.append(intent.into_iter().collect()).await?;
            } else {
                match self.probe_call(turn, &tool, call, attempt).await? {
                    Probed::Done(end) => return Ok(*end),
                    Probed::NotDone if again => self.resolve_not_done(call, attempt, true).await?,
                    Probed::NotDone => {
                        self.resolve_not_done(call, attempt, false).await?;
                        let summary = self.failure_summary(turn, &tool, call, &error, false).await;
                        let result = ToolResult::failed(error.to_string());
                        return self.record_end(call, result, summary, began, attempt).await;
                    }
                    Probed::Unknown if lost => {
                        return self.record_doubt(turn, Some(&tool), call, attempt).await;
                    }
                    // The turn continues with an error, which says that the call may have taken
                    // effect.
                    Probed::Unknown => {
                        let summary = self.failure_summary(turn, &tool, call, &error, true).await;
                        return self
                            .record_end(call, ToolResult::broke_off(error), summary, began, attempt)
                            .await;
                    }
                }
            }
            attempt += 1;
        }
    }

    /// Ends a call whose tool is missing: its MCP server does not run, or the agent was changed. A
    /// call that was not started fails; one that may have taken effect is in doubt.
    async fn end_without_tool(&self, turn: &Turn, call: Call<'_>) -> Result<CallEnd, RunError> {
        let attempt = self.times_started(call.id).await;
        let effect = self.find(|turn| turn.effect(call.id)).await;
        let may_be_done = effect.is_some_and(|effect| effect != Effect::None);
        if may_be_done && !self.is_to_be_repeated(call.id, attempt).await {
            return self.record_doubt(turn, None, call, attempt).await;
        }
        let result = ToolResult::failed(format!(
            "{} is not available at the moment, so it was not done: its server may not be running",
            call.tool
        ));
        let summary = Some(words::TOOL_AWAY.to_owned());
        self.record_end(call, result, summary, Instant::now(), attempt.max(1))
            .await
    }

    /// Ends an approved call without executing it if its tool's definition has changed since the
    /// confirmation. `None`: it has not, or the call was started before.
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
        let summary = Some(words::tool_changed(&shown.preview));
        let attempt = self.times_started(call.id).await.max(1);
        self.record_end(call, result, summary, Instant::now(), attempt)
            .await
            .map(Some)
    }

    /// Returns the sentence for the user about a call that broke off, in place of the error's own
    /// message, which is written for the model.
    async fn failure_summary(
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

    /// Returns true if an attempt of the call was started and has no end yet.
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
            // If this process was suspended since the intent was written, its lease may be lost,
            // and another worker may have put the call in doubt.
            self.lease.ensure_held().await?;
        }
        let started = || RunEvent::ToolStarted {
            call: call.to_tool_call(),
        };
        self.emitter.emit(started).await;
        // A watch channel keeps the latest report only, so that a tool is never slowed down.
        let (sender, reports) = watch::channel(None);
        let progress =
            ProgressListener::new(move |progress| drop(sender.send_replace(Some(progress))));
        let context = ToolContext {
            progress,
            ..self.context_to_run(call.id).await
        };
        let execution = execute(
            tool,
            &context,
            call.arguments.clone(),
            turn.limits().tool_timeout,
        );
        let execution = self.emit_progress(call, reports, execution).await;
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

    /// Waits for the end of an execution, and emits its progress meanwhile.
    async fn emit_progress(
        &self,
        call: Call<'_>,
        mut reports: watch::Receiver<Option<ToolProgress>>,
        execution: impl Future<Output = Execution>,
    ) -> Execution {
        let mut execution = pin!(execution);
        loop {
            let emit = async {
                // The tool may drop its listener before the call has ended.
                if reports.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                let progress = reports.borrow_and_update().clone();
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
                () = emit => {}
            }
        }
    }

    /// Records the end of a call, and emits it.
    async fn record_end(
        &self,
        call: Call<'_>,
        result: ToolResult,
        summary: Option<String>,
        began: Instant,
        attempt: u32,
    ) -> Result<CallEnd, RunError> {
        let ms = millis(began);
        let result = self.with_corrections(call.id, result).await;
        let result = self.with_mark(call.tool, result);
        let ended = self.end_of(call, &result, summary.clone(), ms, attempt);
        // A call without effects may run again after a crash, so its end need not be written now.
        match self.find(|turn| turn.effect(call.id)).await {
            Some(Effect::None) => self.record(ended).await,
            // Until the next call's intent is written, and this end with it, a repeat is harmless.
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

    /// Asks the tool for the outcome of a call whose end is unknown, and records it if it took
    /// effect.
    async fn probe_call(
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
                let result = self.with_corrections(call.id, ToolResult::ok(data)).await;
                let result = self.with_mark(call.tool, result);
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

    /// Adds the note about corrections of the call's arguments to its result, if there were any.
    pub(super) async fn with_corrections(&self, call: &CallId, result: ToolResult) -> ToolResult {
        let read = |turn: &CurrentTurn| turn.corrections(call).map(str::to_owned);
        result.with_note(self.find(read).await)
    }

    /// Marks a result as text of others, if it is.
    fn with_mark(&self, tool: &str, result: ToolResult) -> ToolResult {
        let registry = &self.tools.gate().registry;
        // A tool that is not registered any more was one of an MCP server.
        let from_others = registry
            .get(tool)
            .is_none_or(|tool| is_from_others(&**tool, &result));
        result.marked(from_others)
    }

    /// Puts a call in doubt: neither this process nor the tool knows its end, so a person is asked.
    async fn record_doubt(
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

    /// Records that the call took no effect according to its tool, with a new intent if it is
    /// started `again`.
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

    /// Returns the question about a call in doubt.
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
            intent: tool.and_then(|tool| tool.definition().intent.clone()),
            requested_at: now,
            expires_at: now.checked_add(expiry).unwrap_or(Timestamp::MAX),
            doubt: Some(Doubt {
                attempt,
                since: self.last_started(call.id).await.unwrap_or(now),
            }),
            awaits: None,
            for_conversation: false,
            always: false,
        }
    }

    /// Returns the description of a call for the user; without one, the tool's name and the
    /// arguments.
    pub(super) async fn preview(
        &self,
        turn: &Turn,
        tool: Option<&Arc<dyn Tool>>,
        context: &ToolContext,
        call: Call<'_>,
    ) -> String {
        let known = self.known_preview(turn, tool, context, call).await;
        known.unwrap_or_else(|| call.line())
    }

    /// Returns the description of a call for the user: as it was confirmed, else as the tool
    /// describes it now.
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
            key: IdempotencyKey::for_call(self.key.conversation, self.turn, call),
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

    /// Returns the first doubt about the call after attempt `seen`, resolved or not: the turn
    /// machine sees every doubt.
    async fn recorded_doubt(&self, wanted: &CallId, seen: u32) -> Option<PendingCall> {
        self.find(|turn| turn.doubt_after(wanted, seen).cloned())
            .await
    }

    pub(super) async fn recorded_end(&self, wanted: &CallId) -> Option<CallEnd> {
        self.find(|turn| turn.end(wanted)).await
    }

    /// Returns true if the call was started after its question was shown.
    pub(super) async fn has_begun_since(&self, shown: &PendingCall) -> bool {
        let seen = shown.doubt.as_ref().map_or(0, |doubt| doubt.attempt);
        self.times_started(&shown.call_id).await > seen
    }

    /// Returns true if this attempt is known to have taken no effect, and the call is to be started
    /// again.
    pub(super) async fn is_to_be_repeated(&self, call: &CallId, attempt: u32) -> bool {
        let last = self.find(|turn| turn.resolution(call)).await;
        matches!(last, Some((last, _, Verdict::Retry)) if last == attempt)
    }

    /// Returns the effect class of a call. One that was started as [`Effect::Once`] stays so, even
    /// if the tool's annotations have changed since.
    async fn effect(&self, wanted: &CallId, tool: &Arc<dyn Tool>) -> Effect {
        match self.find(|turn| turn.effect(wanted)).await {
            Some(Effect::Once) => Effect::Once,
            Some(Effect::None | Effect::Keyed) | None => tool.definition().annotations.effect(),
        }
    }

    async fn times_started(&self, wanted: &CallId) -> u32 {
        self.with_turn(|turn| turn.times_started(wanted))
            .await
            .unwrap_or_default()
    }

    async fn last_started(&self, wanted: &CallId) -> Option<Timestamp> {
        self.find(|turn| turn.last_started(wanted)).await
    }
}
