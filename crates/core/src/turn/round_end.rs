//! The end of a round of calls: each call gets its one result, and the turn goes on or ends.

use super::decide::{Ending, is_control};
use super::round::Round;
use super::{Action, CallEnd, CallSummary, Failure, ToolStyle, Turn};
use crate::call_words::{call_in_words, name_in_words};
use crate::confirmation::PendingCall;
use crate::decision::{Notice, OutcomeCategory};
use crate::event::Refusal;
use crate::limit_name::LimitName;
use crate::message::Message;
use crate::tool::{Arguments, ToolCall, ToolInvocation, ToolResult};
use crate::tool_choice::ToolChoice;
use crate::trim::cut;
use crate::words;

/// Characters of a call in a message about its failure.
const STEP_CHARS_MAX: usize = 200;

impl Turn {
    pub(super) fn after_round(&mut self, round: Round) -> Action {
        // Each round with a call of the caller's tools is one that the caller asked for by bringing
        // the result of the last, so it does not count.
        self.iterations += u32::from(!round.was_handed_over());
        // Read before the round is taken apart.
        let ending = round.ending.clone();
        let question = round.question();
        let was_left = round.has_no_result();
        // No call of a complete round is without an end, so the text for one is never used.
        self.record_results(round, "");
        if was_left {
            // The caller that would read the answer has left, so the model is not asked for one.
            let text = self.with_summaries(words::NO_RESULT);
            return self.finish(self.plain_kind(), OutcomeCategory::NoResult, text, None);
        }
        if question.is_none()
            && let Some(ending) = &ending
        {
            self.keep_words(ending);
        }
        match question.map(Ending::Ask).or(ending) {
            Some(ending) => self.end(ending),
            None if self.setup.style == ToolStyle::OneRound || self.setup.call.is_some() => {
                let text = match self.setup.call {
                    Some(_) => CallSummary::text_for_program,
                    None => CallSummary::text,
                };
                let done: Vec<_> = self.summaries.iter().map(text).collect();
                self.conclude(done.join("\n"), None)
            }
            None if self.iterations >= self.setup.limits.tool_iterations_max => self.finish_at(
                LimitName::ToolIterations,
                self.setup.limits.tool_iterations_max,
                OutcomeCategory::IterationsLimit,
            ),
            None => self.call_model(),
        }
    }

    /// Gives every call of a round its one result, and records what the rest of the turn needs of
    /// it.
    pub(super) fn record_results(&mut self, round: Round, unrun: &str) {
        for (call, end) in round.calls {
            if let Some(arguments) = end.as_ref().and_then(CallEnd::interrupted) {
                // The gate refuses the same call in the rest of the turn: it may have had its
                // effect.
                self.interrupted
                    .push((call.name.clone(), arguments.clone()));
            }
            let result = match end {
                None if is_control(&call) => ToolResult::ok("shown to the person".into()),
                Some(CallEnd::InDoubt { arguments }) => {
                    let preview = round.doubted.iter().find(|(id, _)| *id == call.id);
                    self.note_in_doubt(
                        &call.name,
                        arguments,
                        preview.map(|(_, preview)| preview.as_str()),
                    )
                }
                Some(CallEnd::Waiting(PendingCall {
                    arguments,
                    preview,
                    doubt: Some(_),
                    ..
                })) => self.note_in_doubt(&call.name, arguments, Some(&preview)),
                Some(CallEnd::Waiting(PendingCall {
                    awaits: Some(_), ..
                })) => ToolResult::failed(
                    "it was stopped before the program that was to do this brought a result; it is not known whether it was done",
                ),
                None | Some(CallEnd::Waiting(_)) => ToolResult::failed(unrun),
                Some(CallEnd::Executed {
                    arguments,
                    result,
                    summary,
                }) => {
                    self.note_executed(&call.name, &result, summary);
                    let shown = if round.edited.contains(&call.id) {
                        result.clone().of_edited(&arguments)
                    } else {
                        result.clone()
                    };
                    self.note_used(&call.name, arguments, result);
                    shown
                }
                Some(CallEnd::TakenAsDone { arguments }) => {
                    let result = ToolResult::taken_as_done();
                    self.note_executed(&call.name, &result, Some(words::CONFIRMED_DONE.to_owned()));
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::Refused { refusal, message }) => {
                    self.note_refused(&call, refusal, message)
                }
                Some(CallEnd::Asked { question }) => ToolResult::asked(&question),
                Some(CallEnd::Denied { arguments }) => {
                    // The gate refuses the same call in the rest of the turn, so that the person is
                    // not asked again.
                    self.denied.push((call.name.clone(), arguments.clone()));
                    self.add_summary(words::NOTHING_CHANGED);
                    let result = ToolResult::failed("the person refused this; it was not done");
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::Expired { arguments }) => {
                    self.expired = true;
                    self.add_summary(words::EXPIRED);
                    let result =
                        ToolResult::failed("nobody confirmed this in time; it was not done");
                    self.note_used(&call.name, arguments, result)
                }
                Some(CallEnd::NoResult { arguments }) => {
                    let result = ToolResult::failed(
                        "the program that was to do this brought no result in time; it is not known whether it was done",
                    );
                    self.note_used(&call.name, arguments, result)
                }
            };
            self.messages
                .extend(Message::tool(call.id, call.name, result).ok());
        }
    }

    /// Adds a text for the user, who reads it once in a turn, however many calls it is about.
    fn add_summary(&mut self, text: impl Into<String>) {
        let text = text.into();
        let is_same =
            |known: &CallSummary| matches!(known, CallSummary::Text(known) if *known == text);
        if !self.summaries.iter().any(is_same) {
            self.summaries.push(CallSummary::Text(text));
        }
    }

    pub(super) fn note_in_doubt(
        &mut self,
        tool: &str,
        arguments: Arguments,
        preview: Option<&str>,
    ) -> ToolResult {
        self.in_doubt = true;
        let text = words::in_doubt(preview);
        self.add_summary(text.clone());
        self.add_notice(Notice::new("in_doubt", text));
        self.note_used(tool, arguments, ToolResult::left_open())
    }

    /// Adds a call to those that the response lists, and returns its result.
    pub(super) fn note_used(
        &mut self,
        tool: &str,
        arguments: Arguments,
        result: ToolResult,
    ) -> ToolResult {
        self.invocations.push(ToolInvocation {
            tool: tool.to_owned(),
            arguments,
            result: result.clone(),
        });
        result
    }

    pub(super) fn note_refused(
        &mut self,
        call: &ToolCall,
        refusal: Refusal,
        message: String,
    ) -> ToolResult {
        let user_message = match refusal {
            // The tool's message is for the user too; the others are for the model.
            Refusal::Failed => Some(message.clone()),
            // Where no tool may be called the user has not asked for a step.
            Refusal::UnknownTool if !self.may_call() => None,
            Refusal::UnknownTool => Some(words::unknown_call(&name_in_words(&call.name))),
            Refusal::InvalidArguments => Some(words::unusable_call(&step_in_words(call))),
            Refusal::Forbidden => Some(words::NOT_ALLOWED.to_owned()),
            // The earlier call decides how the turn ends.
            Refusal::DeniedBefore | Refusal::InDoubt => None,
            // The call is made again, one by one.
            Refusal::OneAtATime => None,
        };
        if let Some(user_message) = user_message {
            self.add_summary(user_message.clone());
            self.note_failure(
                &call.name,
                message.clone(),
                user_message,
                refusal == Refusal::UnknownTool,
            );
        }
        let result = ToolResult::failed(message);
        if matches!(
            refusal,
            Refusal::Forbidden | Refusal::DeniedBefore | Refusal::Failed
        ) {
            return self.note_used(&call.name, call.arguments.clone(), result);
        }
        result
    }

    /// Returns true if tools may be called: not if the limits or the tool choice allow text only.
    pub(super) fn may_call(&self) -> bool {
        !self.setup.limits.words_only && self.setup.choice != ToolChoice::None
    }

    pub(super) fn note_failure(
        &mut self,
        tool: &str,
        message: String,
        user_message: String,
        is_unknown: bool,
    ) {
        self.failures.push(Failure {
            tool: tool.to_owned(),
            message,
            user_message,
            round: self.iterations,
            is_unknown,
        });
    }

    /// Removes the failures that a success of this tool replaces: those of earlier rounds, of this
    /// tool, or of tools that only read. Another change does not replace one that failed.
    pub(super) fn clear_failures(&mut self, tool: &str) {
        let round = self.iterations;
        // Taken out, because the rule below reads the tools of the turn.
        let mut failures = std::mem::take(&mut self.failures);
        failures.retain(|failure| {
            failure.round == round || (failure.tool != tool && self.changes(&failure.tool))
        });
        self.failures = failures;
    }

    pub(super) fn note_executed(
        &mut self,
        tool: &str,
        result: &ToolResult,
        summary: Option<String>,
    ) {
        if result.success {
            self.succeeded = true;
            self.clear_failures(tool);
            self.summaries.push(match (summary, &result.data) {
                (None, Some(data)) => CallSummary::Data {
                    tool: tool.to_owned(),
                    data: data.clone(),
                },
                (summary, _) => CallSummary::Text(summary.unwrap_or_default()),
            });
        } else {
            let message = result.error.clone().unwrap_or_default();
            let user_message = summary.unwrap_or_else(|| message.clone());
            self.add_summary(user_message.clone());
            self.note_failure(tool, message, user_message, false);
        }
    }
}

/// Returns the name and the arguments of a call in words, cut to a length that fits a message.
fn step_in_words(call: &ToolCall) -> String {
    let step = call_in_words(&name_in_words(&call.name), &call.arguments);
    match cut(&step, STEP_CHARS_MAX) {
        Some(start) => format!("{start}…"),
        None => step,
    }
}
