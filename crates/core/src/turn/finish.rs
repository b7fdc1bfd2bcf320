//! The end of a turn: its outcome, its text, and what it adds to the history.

use std::borrow::Cow;

use serde_json::Value;

use super::decide::Ending;
use super::{Action, CallEnd, CallSummary, State, StopReason, Turn};
use crate::decision::{AgentDecision, DecisionKind, OutcomeCategory, TurnError, UserIntent};
use crate::error::ModelError;
use crate::event::TurnEnd;
use crate::id::CallId;
use crate::limit_name::LimitName;
use crate::message::{Content, Message, Part};
use crate::tool::{ToolCall, ToolDefinition};
use crate::trim::cut;
use crate::words;

/// Characters of an unusable answer that are kept for the log.
const RAW_CHARS_MAX: usize = 64 * 1024;

impl Turn {
    /// Stops the turn from outside. `ends` are the calls that ended before; the others get a result
    /// that says why they did not run.
    pub fn stop(&mut self, reason: StopReason, ends: Vec<(CallId, CallEnd)>) -> Action {
        let (outcome, text, error) = match reason {
            StopReason::Cancelled => (OutcomeCategory::Cancelled, words::STOPPED, None),
            StopReason::Deadline => {
                let deadline = self.setup.limits.turn_deadline;
                let value = deadline
                    .map(|time| format!("{} s", time.as_secs_f64()))
                    .unwrap_or_default();
                let error = limit(LimitName::TurnDeadline, value);
                (OutcomeCategory::DeadlineLimit, words::DEADLINE, Some(error))
            }
            StopReason::Budget(exceeded) => (
                OutcomeCategory::BudgetLimit,
                words::budget(&exceeded),
                Some(exceeded.into()),
            ),
        };
        if let State::AwaitingTools(mut round) | State::AwaitingUser(mut round) =
            std::mem::replace(&mut self.state, State::Finished)
        {
            round.take(ends);
            // Calls that did not run get a result too: providers reject a history with a call that
            // has none.
            self.record_results(round, "it was stopped before it ran");
        }
        let text = self.with_summaries(text);
        self.finish(self.plain_kind(), outcome, text, error)
    }

    /// Finishes with a question or a refusal of the model.
    pub(super) fn end(&mut self, ending: Ending) -> Action {
        let (kind, outcome, text) = match ending {
            Ending::Ask(text) => (
                DecisionKind::AskClarification,
                OutcomeCategory::UnclearIntent,
                text,
            ),
            Ending::Decline(text) => (self.plain_kind(), OutcomeCategory::OutOfScope, text),
        };
        let text = if text.is_empty() {
            words::SAY_MORE.to_owned()
        } else {
            text
        };
        let text = self.with_summaries(&text);
        self.finish(kind, outcome, text, None)
    }

    /// Finishes with an answer.
    pub(super) fn conclude(&mut self, text: String, output: Option<Value>) -> Action {
        if self.setup.output.is_some() && output.is_none() {
            // One round of constrained tool calls leaves no text of the model that could fit the
            // schema.
            let reason =
                "it was given one round of actions, and the answer has to fit a JSON Schema";
            return self.fail_unusable(reason.to_owned(), text);
        }
        let error = self.failures.last().map(|failure| TurnError::Tool {
            tool: failure.tool.clone(),
            message: failure.message.clone(),
        });
        // The order is a ranking: an effect that may or may not have happened outweighs a failure,
        // a failure a success, and all of them what the person answered.
        let outcome = if self.in_doubt {
            OutcomeCategory::InDoubt
        } else if error.is_some() {
            OutcomeCategory::ToolFailure
        } else if self.succeeded {
            OutcomeCategory::TaskCompleted
        } else if !self.denied.is_empty() {
            OutcomeCategory::ConfirmationDenied
        } else if self.expired {
            OutcomeCategory::ConfirmationExpired
        } else {
            OutcomeCategory::ResponseGiven
        };
        self.output = output;
        self.finish(self.plain_kind(), outcome, text, error)
    }

    /// Finishes because the answer cannot be used. `raw` is the answer, for the log.
    pub(super) fn fail_unusable(&mut self, reason: String, raw: String) -> Action {
        self.fail(ModelError::InvalidResponse {
            provider: self.setup.model.provider.clone(),
            reason,
            raw: cut(&raw, RAW_CHARS_MAX).unwrap_or(raw),
            source: None,
        })
    }

    /// Finishes at a bound that shows that the request is too complex for one turn.
    pub(super) fn finish_at(
        &mut self,
        bound: LimitName,
        value: u32,
        outcome: OutcomeCategory,
    ) -> Action {
        let text = self.with_summaries(words::TOO_COMPLEX);
        let error = limit(bound, value.to_string());
        self.finish(self.plain_kind(), outcome, text, Some(error))
    }

    pub(super) fn fail(&mut self, error: ModelError) -> Action {
        let outcome = match &error {
            ModelError::RateLimited { .. } | ModelError::Quota { .. } => {
                OutcomeCategory::RateLimited
            }
            ModelError::ContextTooLong { .. } => OutcomeCategory::ContextLimit,
            ModelError::Refused { .. } => OutcomeCategory::ContentFilter,
            ModelError::Timeout { .. }
            | ModelError::Network { .. }
            | ModelError::Server { .. }
            | ModelError::Authentication { .. }
            | ModelError::BadRequest { .. }
            | ModelError::NotFound { .. }
            | ModelError::InvalidResponse { .. }
            | ModelError::Truncated { .. } => OutcomeCategory::LlmFailure,
        };
        let text = self.with_summaries(&words::for_model_error(&error));
        self.finish(
            self.plain_kind(),
            outcome,
            text,
            Some(TurnError::Model { error }),
        )
    }

    /// Puts the outcomes of calls in front of a text that ends the turn early: an effect is never
    /// left unsaid.
    pub(super) fn with_summaries(&self, text: &str) -> String {
        let done: Vec<Cow<'_, str>> = self
            .summaries
            .iter()
            .filter(|done| !done.is_empty())
            .map(CallSummary::text)
            .collect();
        if done.is_empty() {
            text.to_owned()
        } else {
            format!("{}\n{text}", done.join("\n"))
        }
    }

    /// Returns the kind of a turn that ends neither waiting nor asking.
    pub(super) fn plain_kind(&self) -> DecisionKind {
        if self.approved {
            DecisionKind::ExecutePending
        } else if !self.denied.is_empty() || self.expired || self.in_doubt {
            DecisionKind::CancelPending
        } else if self.succeeded || !self.invocations.is_empty() {
            DecisionKind::InvokeTool
        } else {
            DecisionKind::RespondOnly
        }
    }

    pub(super) fn intent(&self, kind: DecisionKind, outcome: OutcomeCategory) -> UserIntent {
        match (kind, outcome) {
            (DecisionKind::ExecutePending, _) => UserIntent::ConfirmYes,
            (DecisionKind::CancelPending, _) => UserIntent::ConfirmNo,
            (DecisionKind::AskClarification, _) => UserIntent::Ambiguous,
            (_, OutcomeCategory::OutOfScope) => UserIntent::OutOfScope,
            (
                DecisionKind::RespondOnly
                | DecisionKind::InvokeTool
                | DecisionKind::RequestConfirmation
                | DecisionKind::AwaitResult,
                _,
            ) => {
                // A tool that the model invented is nothing that the user wanted.
                let is_known =
                    |call: &&ToolCall| self.setup.call.is_some() || self.tool(&call.name).is_some();
                let used = self.invocations.first().map(|used| &used.tool);
                let requested = || Some(&self.requested_calls.iter().find(is_known)?.name);
                used.or_else(requested)
                    .map_or(UserIntent::GeneralChat, |tool| self.intent_of_tool(tool))
            }
        }
    }

    /// Returns the intent that a call of a tool shows. A tool that is gone by now has its name.
    pub(super) fn intent_of_tool(&self, tool: &str) -> UserIntent {
        let intent = self.tool(tool).map_or(tool, ToolDefinition::intent);
        UserIntent::Tool(intent.to_owned())
    }

    pub(super) fn finish(
        &mut self,
        kind: DecisionKind,
        outcome: OutcomeCategory,
        text: String,
        error: Option<TurnError>,
    ) -> Action {
        self.state = State::Finished;
        // A response always has text, also where a model called tools and then said nothing.
        let text = if text.trim().is_empty() {
            words::DONE.to_owned()
        } else {
            text
        };
        // The next turn's model has to know the answer of this one, also where no model wrote it.
        let has_text = |last: &Message| last.text() == text || self.output.is_some();
        let is_last = self.messages.last().is_some_and(has_text);
        if !is_last {
            self.messages.extend(
                Message::assistant(vec![Part::ours(Content::Text { text: text.clone() })]).ok(),
            );
        }
        Action::Finish(Box::new(TurnEnd {
            decision: AgentDecision {
                kind,
                intent: self.intent(kind, outcome),
                text,
                tool_calls: std::mem::take(&mut self.requested_calls),
                pending: Vec::new(),
            },
            outcome,
            output: self.output.take(),
            usage: self.usage,
            cost: self.cost,
            iterations: self.iterations,
            error,
            notices: std::mem::take(&mut self.notices),
            tools_used: std::mem::take(&mut self.invocations),
            messages: std::mem::take(&mut self.messages),
        }))
    }
}

/// Returns the error of a turn that a bound ended.
pub(super) fn limit(limit: LimitName, value: String) -> TurnError {
    TurnError::Limit {
        limit,
        value,
        stored_setting: None,
    }
}
