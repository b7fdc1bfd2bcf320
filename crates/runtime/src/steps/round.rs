//! A round: the tool calls of one answer pass the gate, their intents are written, and they run in
//! order; neighbouring harmless calls run concurrently.

use adjutant_core::turn::{CallEnd, StopReason, Turn};
use adjutant_core::{
    Arguments, CallId, Event, GateCheck, GateVerdict, GenerateRequest, Message, Refusal, Role,
    ToolCall,
};
use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::calls::Call;
use super::{Step, Steps};
use crate::clock::millis;
use crate::event::RunEvent;
use crate::{RunError, warning};

/// Returns true if a call was left to the caller to execute.
fn is_handed_over(end: &CallEnd) -> bool {
    matches!(end, CallEnd::Waiting(shown) if shown.awaits_result())
}

fn is_waiting(end: &CallEnd) -> bool {
    matches!(end, CallEnd::Waiting(_))
}

/// Returns the end of a call that a stopped turn does not begin any more.
fn stopped_before_it_ran() -> CallEnd {
    CallEnd::Refused {
        // A call in doubt comes before it, and decides how the turn ends.
        refusal: Refusal::InDoubt,
        message: "it was stopped before it ran".to_owned(),
    }
}

/// The earlier calls that the gate considers when it checks a group.
#[derive(Clone, Copy)]
struct Before<'b> {
    /// Calls of this turn that may have taken effect although their end is unknown.
    interrupted: &'b [(String, Arguments)],
    /// True if a call of the same answer was left to the caller.
    handed_over: bool,
}

impl Steps<'_> {
    /// Passes calls through the gate and executes those that may run, if the budgets allow all.
    pub(crate) async fn call_tools(
        &self,
        turn: &Turn,
        calls: Vec<ToolCall>,
    ) -> Result<Step<Vec<(CallId, CallEnd)>>, RunError> {
        let reservation = match self.reserve_for_tools(&calls).await {
            Ok(reservation) => reservation,
            Err(error) => {
                let reason = StopReason::Budget(error.into_exceeded()?);
                return Ok(Step::Stopped(reason, Vec::new()));
            }
        };
        let began = Instant::now();
        let ends = self.call_in_order(turn, &calls).await?;
        reservation.settle_tools(&mut *self.log.lock().await, millis(began));
        Ok(ends)
    }

    /// Calls in order; neighbouring harmless calls form a group that runs concurrently.
    async fn call_in_order(
        &self,
        turn: &Turn,
        calls: &[ToolCall],
    ) -> Result<Step<Vec<(CallId, CallEnd)>>, RunError> {
        let mut ends = Vec::new();
        // Calls that broke off in this round count too, so that the model cannot repeat one in the
        // same answer.
        let mut interrupted = turn.interrupted().to_vec();
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let together = if self.is_harmless(first) {
                rest.iter()
                    .take_while(|call| self.is_harmless(call))
                    .count()
            } else {
                1
            };
            let (group, after) = rest.split_at(together.max(1).min(rest.len()));
            rest = after;
            // In a group, a call may wait long after its end for the others, so its end is written
            // at once.
            let is_followed = group.len() == 1 && !rest.is_empty();
            // A call that was started before a crash must get its end even if the turn is stopped.
            if let Some(reason) = self.early_end.reason()
                && self.recorded_verdict(&first.id).await.is_none()
            {
                if self.early_end.only_settles() && ends.iter().any(|(_, end)| is_waiting(end)) {
                    // The question about a call in doubt is asked before the turn ends, and every
                    // call of the round needs an end then.
                    let unrun = group.iter().chain(after);
                    ends.extend(unrun.map(|call| (call.id.clone(), stopped_before_it_ran())));
                    return Ok(Step::Done(ends));
                }
                return Ok(Step::Stopped(reason, ends));
            }
            let before = Before {
                interrupted: &interrupted,
                handed_over: ends.iter().any(|(_, end)| is_handed_over(end)),
            };
            let ended = self.call_group(turn, group, before, is_followed).await?;
            let begun = |(call, (_, end)): (&ToolCall, &(CallId, CallEnd))| {
                end.interrupted()
                    .map(|arguments| (call.name.clone(), arguments.clone()))
            };
            interrupted.extend(group.iter().zip(&ended).filter_map(begun));
            ends.extend(ended);
        }
        match self.early_end.reason() {
            // Pending calls may have been answered already: the turn is stopped where the answers
            // are read.
            Some(reason) if !ends.iter().any(|(_, end)| is_waiting(end)) => {
                Ok(Step::Stopped(reason, ends))
            }
            Some(_) | None => Ok(Step::Done(ends)),
        }
    }

    /// Checks a group at the gate, writes all intents in one commit, and runs the calls
    /// concurrently. `is_followed`: the group is one call, and another comes after it.
    async fn call_group(
        &self,
        turn: &Turn,
        group: &[ToolCall],
        before: Before<'_>,
        is_followed: bool,
    ) -> Result<Vec<(CallId, CallEnd)>, RunError> {
        let provenance = self.provenance(turn, group).await;
        let allowed_tools = self.allowed_tools(group).await;
        let mut verdicts = Vec::with_capacity(group.len());
        let mut intents = Vec::with_capacity(2 * group.len());
        for call in group {
            let (verdict, is_new) = match self.recorded_verdict(&call.id).await {
                // A recorded verdict holds: the policy or the tool may have changed since.
                Some(verdict) => (verdict, false),
                None => {
                    let check = GateCheck {
                        now: self.inner.now(),
                        confirmation_expiry: turn.limits().confirmation_expiry,
                        denied: turn.denied(),
                        interrupted: before.interrupted,
                        provenance: provenance.as_ref(),
                        allowed_tools: allowed_tools.as_ref(),
                        client: self.tools.client(),
                        choice: turn.choice(),
                    };
                    let checked = self
                        .tools
                        .gate()
                        .check(&self.tool_context(&call.id), call, &check)
                        .await;
                    let verdict = self.one_at_a_time(checked.verdict, before.handed_over);
                    let verdict = self.ask_after_loss(verdict, call, &check).await;
                    let (turn, call_id) = (self.turn, call.id.clone());
                    let checked = Event::CallChecked {
                        turn,
                        call: call_id,
                        verdict: verdict.clone(),
                        corrections: checked.corrections,
                    };
                    match &verdict {
                        // Recorded only: written in the transaction of the call, or with the event
                        // that the turn waits.
                        GateVerdict::Await { .. } => {
                            self.record(checked).await;
                            (verdict, false)
                        }
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
            verdicts.push((call, verdict, is_new));
        }
        if !intents.is_empty() {
            self.append(intents).await?;
        }
        Self::warn_of_unknown(&verdicts);
        let runs: Vec<_> = verdicts
            .into_iter()
            .map(|(call, verdict, is_new)| async move {
                let end = match verdict {
                    GateVerdict::Run { arguments } => {
                        let call = Call {
                            id: &call.id,
                            tool: &call.name,
                            arguments: &arguments,
                            is_followed,
                        };
                        self.run(turn, call, 0, is_new).await?
                    }
                    GateVerdict::Confirm { pending } | GateVerdict::Await { pending } => {
                        CallEnd::Waiting(pending)
                    }
                    GateVerdict::Ask { question } => CallEnd::Asked { question },
                    GateVerdict::Refuse { refusal, message } => {
                        let event = || RunEvent::ToolRefused {
                            tool: call.name.clone(),
                            message: message.clone(),
                        };
                        self.emitter.emit(event).await;
                        CallEnd::Refused { refusal, message }
                    }
                };
                Ok((call.id.clone(), end))
            })
            .collect();
        let at_once = turn.limits().parallel_tools_max.get();
        let ends: Vec<Result<_, RunError>> = stream::iter(runs)
            .buffered(usize::try_from(at_once).unwrap_or(usize::MAX))
            .collect()
            .await;
        ends.into_iter().collect()
    }

    /// Warns about the first call of an unknown tool, of those that were checked just now. One
    /// warning per group: a model that makes many such calls must not flood the log.
    fn warn_of_unknown(verdicts: &[(&ToolCall, GateVerdict, bool)]) {
        let unknown = verdicts.iter().find(|(_, verdict, is_new)| {
            *is_new
                && matches!(
                    verdict,
                    GateVerdict::Refuse {
                        refusal: Refusal::UnknownTool,
                        ..
                    }
                )
        });
        if let Some((call, ..)) = unknown {
            warning::unknown_tool(&call.name);
        }
    }

    /// Refuses a second call of a client-side tool if the client takes one at a time.
    fn one_at_a_time(&self, verdict: GateVerdict, handed_over: bool) -> GateVerdict {
        match verdict {
            GateVerdict::Await { pending }
                if handed_over && self.tools.client().one_at_a_time() =>
            {
                let message = format!(
                    "{} was not called: call one tool at a time, and this one again when the other has answered",
                    pending.tool
                );
                GateVerdict::Refuse {
                    refusal: Refusal::OneAtATime,
                    message,
                }
            }
            verdict => verdict,
        }
    }

    /// Returns true if a call may run concurrently with others.
    fn is_harmless(&self, call: &ToolCall) -> bool {
        if self.tools.client().has(&call.name) {
            return !self.tools.client().one_at_a_time();
        }
        self.tools
            .gate()
            .registry
            .get(&call.name)
            .is_some_and(|tool| {
                let annotations = tool.definition().annotations;
                annotations.read_only || annotations.parallel
            })
    }

    /// Emits the round that a request ends with, if it ends with one.
    pub(crate) async fn emit_round_end(&self, request: &GenerateRequest) {
        let is_tool = |message: &Message| message.role() == Role::Tool;
        if request.messages.last().is_some_and(is_tool) {
            let answer = request
                .messages
                .iter()
                .rposition(|message| !is_tool(message))
                .unwrap_or_default();
            let round = || request.messages.get(answer..).unwrap_or_default().to_vec();
            self.emitter
                .emit(|| RunEvent::RoundEnded { messages: round() })
                .await;
        }
    }
}
