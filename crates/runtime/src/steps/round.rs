//! The calls of one answer: through the gate, their intents written, and run in order, neighbouring
//! harmless ones together.

use adjutant_core::turn::{CallEnd, StopReason, Turn};
use adjutant_core::{
    Arguments, CallId, Event, GateCheck, GateVerdict, GenerateRequest, Message, Refusal, Role,
    ToolCall,
};
use tokio::time::Instant;

use super::call::Call;
use super::{Step, Steps};
use crate::clock::millis;
use crate::event::RunEvent;
use crate::{RunError, warning};

/// Returns whether a call was left to the caller to execute.
fn is_handed_over(end: &CallEnd) -> bool {
    matches!(end, CallEnd::Waiting(shown) if shown.awaits_result())
}

impl Steps<'_> {
    /// Takes calls through the gate and executes what may run, if there is a budget for all of
    /// them.
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
                rest.iter()
                    .take_while(|call| self.is_harmless(call))
                    .count()
            } else {
                1
            };
            let (group, after) = rest.split_at(together.max(1).min(rest.len()));
            rest = after;
            // A call that runs beside others may wait for them long after its end.
            let is_followed = group.len() == 1 && !rest.is_empty();
            // What was begun before a crash has an end, which has to be known.
            if let Some(reason) = self.early_end.reason()
                && self.recorded_verdict(&first.id).await.is_none()
            {
                return Ok(Step::Stopped(reason, ends));
            }
            let before = (
                interrupted.as_slice(),
                ends.iter().any(|(_, end)| is_handed_over(end)),
            );
            let ended = self.call_group(turn, group, before, is_followed).await?;
            let begun = |(call, (_, end)): (&ToolCall, &(CallId, CallEnd))| {
                end.interrupted()
                    .map(|arguments| (call.name.clone(), arguments.clone()))
            };
            interrupted.extend(group.iter().zip(&ended).filter_map(begun));
            ends.extend(ended);
        }
        match self.early_end.reason() {
            // What waits may have been answered, and run: whoever reads the answers stops the turn.
            Some(reason)
                if !ends
                    .iter()
                    .any(|(_, end)| matches!(end, CallEnd::Waiting(_))) =>
            {
                Ok(Step::Stopped(reason, ends))
            }
            Some(_) | None => Ok(Step::Done(ends)),
        }
    }

    /// Gate for all of a group, one commit for all intents, then the executions side by side.
    /// `interrupted`: what may have been carried out before them in this turn. `handed_over`: a
    /// call of the same answer was left to the caller. `is_followed`: the group is one call, and
    /// another comes after it.
    async fn call_group(
        &self,
        turn: &Turn,
        group: &[ToolCall],
        (interrupted, handed_over): (&[(String, Arguments)], bool),
        is_followed: bool,
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
                        client: self.tools.client(),
                        choice: turn.choice(),
                    };
                    let verdict = self
                        .tools
                        .gate()
                        .check(&self.tool_context(&call.id), call, &check)
                        .await;
                    let verdict = self.one_at_a_time(verdict, handed_over);
                    let (turn, call_id) = (self.turn, call.id.clone());
                    let checked = Event::CallChecked {
                        turn,
                        call: call_id,
                        verdict: verdict.clone(),
                    };
                    match &verdict {
                        // Written with its intent and its change, or with the event that the turn
                        // waits.
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
            verdicts.push((call, verdict, begun));
        }
        if !intents.is_empty() {
            self.append(intents).await?;
        }
        Self::warn_of_unknown(&verdicts);
        let runs = verdicts
            .into_iter()
            .map(|(call, verdict, begun)| async move {
                let end = match verdict {
                    GateVerdict::Run { arguments } => {
                        let call = Call {
                            id: &call.id,
                            tool: &call.name,
                            arguments: &arguments,
                            is_followed,
                        };
                        self.run(turn, call, 0, begun).await?
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
            });
        futures::future::join_all(runs).await.into_iter().collect()
    }

    /// Reports the first call of a tool that there is not, of those that were checked just now: a
    /// model that makes many must not fill anybody's log.
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

    /// Refuses a call of the caller's where it takes one at a time and has one already.
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

    /// A call that may run beside others.
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

    /// Tells the round of tools that a request ends with, if it does.
    pub(crate) async fn tell_round(&self, request: &GenerateRequest) {
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
