//! The end of a turn: its outcome, its text, and what it adds to the history.

use std::borrow::Cow;

use serde_json::Value;

use super::decide::Ending;
use super::{Action, CallEnd, CallSummary, Failure, State, StopReason, ToolStyle, Turn};
use crate::decision::{
    AgentDecision, DecisionKind, FailedCall, Notice, OutcomeCategory, TurnError, UserIntent,
};
use crate::error::ModelError;
use crate::event::TurnEnd;
use crate::id::CallId;
use crate::limit_name::LimitName;
use crate::message::{Content, Message, Part};
use crate::tool::{ToolCall, ToolDefinition};
use crate::trim::cut;
use crate::{unanswered, words};

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
        let text = self.with_partial_answer(text);
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
        if self.claims_falsely(&text) {
            self.note_false_claim();
        }
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
        // Without an answer of the model, the calls are all that the turn can be judged by.
        let is_judged_by_calls = self.setup.reports_failed_calls
            || self.setup.style == ToolStyle::OneRound
            || self.setup.call.is_some();
        let failure = self
            .failures
            .last()
            .filter(|_| is_judged_by_calls && !self.succeeded);
        let error = failure.map(Failure::error);
        // The order is a ranking: an effect that may or may not have happened outweighs a success,
        // a success a failure, and all of them what the person answered.
        let outcome = if self.in_doubt {
            OutcomeCategory::InDoubt
        } else if self.succeeded {
            OutcomeCategory::TaskCompleted
        } else if error.is_some() {
            OutcomeCategory::ToolFailure
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

    /// Finishes with the words of failed calls, in the place of an answer that says they succeeded.
    /// Calls that only read do not make the turn a success.
    pub(super) fn conclude_failed(&mut self, failure: TurnError) -> Action {
        let said: Vec<&str> = self.unsaid_failures("");
        let text = said.join("\n");
        self.finish(
            self.plain_kind(),
            OutcomeCategory::ToolFailure,
            text,
            Some(failure),
        )
    }

    /// Finishes because the answer cannot be used. `raw` is the answer, for the log.
    pub(super) fn fail_unusable(&mut self, reason: String, raw: String) -> Action {
        let error = self.unusable(reason, raw);
        self.fail(error)
    }

    /// Returns the error for an answer that cannot be used.
    pub(super) fn unusable(&self, reason: String, raw: String) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.setup.model.provider.clone(),
            reason,
            raw: cut(&raw, RAW_CHARS_MAX).unwrap_or(raw),
            source: None,
        }
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
            | ModelError::NotPermitted { .. }
            | ModelError::BadRequest { .. }
            | ModelError::NotFound { .. }
            | ModelError::InvalidResponse { .. }
            | ModelError::Truncated { .. } => OutcomeCategory::LlmFailure,
        };
        let text = self.with_partial_answer(&words::for_model_error(&error));
        self.finish(
            self.plain_kind(),
            outcome,
            text,
            Some(TurnError::Model { error }),
        )
    }

    /// Keeps the question or refusal of a control function as words of the model.
    pub(super) fn keep_words(&mut self, ending: &Ending) {
        let (Ending::Ask(text) | Ending::Decline(text)) = ending;
        // With constrained tool calls the end of the turn adds the whole text.
        if self.setup.style == ToolStyle::Native
            && self.messages.last().is_none_or(|last| last.text() != *text)
        {
            let part = Part::ours(Content::Text { text: text.clone() });
            self.messages.extend(Message::assistant(vec![part]).ok());
        }
    }

    /// Puts the outcomes of calls and the beginning of an answer that broke off in front of the
    /// words that end the turn. The beginning is kept in the history.
    fn with_partial_answer(&mut self, text: &str) -> String {
        let partial = std::mem::take(&mut self.partial_answer);
        if partial.trim().is_empty() {
            return self.with_summaries(text);
        }
        let text = self.with_summaries(&format!("{}\n{text}", partial.trim_end()));
        let part = Part::ours(Content::Text { text: partial });
        self.messages.extend(Message::assistant(vec![part]).ok());
        text
    }

    /// Puts the outcomes of calls in front of a text that ends the turn early: an effect is never
    /// left unsaid.
    pub(super) fn with_summaries(&self, text: &str) -> String {
        let done: Vec<Cow<'_, str>> = self
            .summaries
            .iter()
            .filter(|done| !done.is_empty())
            .map(CallSummary::mention)
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
        // With constrained tool calls the model chooses actions only, and their descriptions are
        // the assistant's words. Otherwise words that no model wrote are not part of the history.
        if self.setup.style == ToolStyle::OneRound && unanswered::note(outcome).is_none() {
            let is_last = self.messages.last().is_some_and(|last| last.text() == text);
            if !is_last {
                let part = Part::ours(Content::Text { text: text.clone() });
                self.messages.extend(Message::assistant(vec![part]).ok());
            }
        } else {
            unanswered::add_note(&mut self.messages, outcome);
        }
        let failed_calls = self.failures.iter().map(|failure| FailedCall {
            tool: failure.tool.clone(),
            message: failure.user_message.clone(),
        });
        let failed_calls = failed_calls.collect();
        // With constrained tool calls the model reads the last messages only, in every conversation.
        let left_out = self.setup.recalled.left_out();
        if left_out > 0 && self.setup.style == ToolStyle::Native && self.setup.call.is_none() {
            self.add_notice(Notice::new(
                "history_trimmed",
                words::history_trimmed(left_out),
            ));
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
            failed_calls,
            messages: std::mem::take(&mut self.messages),
            // Filled in by the conversation that the turn belongs to.
            from_others: false,
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
