//! Decodes answers. Pure; a whole answer is treated as a stream of one event.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Counters, Delta, FinishReason, GenerateResponse, ModelError, Part, Usage};
use serde_json::{Map, Value};

use super::error;
use super::partial_args::OpenCall;
use super::wire;
use crate::assembly::{Assembly, CallFragment};
use crate::decode::{AnswerFold, Progress, check_content};
use crate::error::Vendor;

/// An answer whose events are still arriving.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    assembly: Assembly,
    calls: u64,
    /// The call whose arguments are still arriving.
    open_call: Option<OpenCall>,
    began: bool,
    answered: bool,
    finish: Option<Finish>,
    /// The finish reason was the last thing that arrived.
    ended: bool,
    /// The answer arrived as one body.
    is_whole: bool,
    usage: wire::UsageMetadata,
    model: Option<String>,
    last: String,
}

#[derive(Debug)]
struct Finish {
    reason: String,
    message: String,
}

impl PartialAnswer {
    pub(super) fn new(vendor: Arc<Vendor>, losses: Vec<String>) -> Self {
        Self {
            vendor,
            losses,
            assembly: Assembly::default(),
            calls: 0,
            open_call: None,
            began: false,
            answered: false,
            finish: None,
            ended: false,
            is_whole: false,
            usage: wire::UsageMetadata::default(),
            model: None,
            last: String::new(),
        }
    }
}

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let reply: wire::Reply =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(error, json))?;
        self.began = true;
        // An error about the end of the answer quotes its last event.
        json.clone_into(&mut self.last);
        if let Some(status) = &reply.error {
            return Err(error::in_answer(&self.vendor, status));
        }
        if let Some(usage) = &reply.usage_metadata {
            self.count(usage);
        }
        self.model = reply.model_version.or(self.model.take());
        if let Some(feedback) = reply.prompt_feedback
            && let Some(reason) = specified(feedback.block_reason)
        {
            let message = match feedback.block_reason_message {
                Some(message) => format!("the prompt was blocked: {reason}: {message}"),
                None => format!("the prompt was blocked: {reason}"),
            };
            return Err(self.vendor.blocked(message));
        }
        // One candidate is requested; a proxy may send more, of which the first is used.
        let mut candidates = reply.candidates.unwrap_or_default().into_iter();
        let Some(candidate) = candidates.find(|candidate| candidate.index.unwrap_or(0) == 0) else {
            return Ok(());
        };
        self.answered = true;
        for part in candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default()
        {
            // Parts after a finish reason show that it was not the last one.
            self.ended = false;
            deltas.extend(self.part(part)?);
        }
        // Some models send a reason in the middle, after code they ran themselves; the last one
        // is valid.
        if let Some(reason) = specified(candidate.finish_reason) {
            self.ended = true;
            self.finish = Some(Finish {
                reason,
                message: candidate.finish_message.unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Gemini sends no end mark, only a finish reason, which may also come in the middle.
    fn progress(&self) -> Progress {
        if self.ended {
            Progress::Complete
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        _: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        // Gemini breaks into a stream with a bare JSON error (recorded), even after a
        // finishReason.
        if let Some(status) = error::parse_stray(stray) {
            return Err(error::in_answer(&self.vendor, &status));
        }
        if !self.began {
            return Err(self.vendor.truncated("it ended before its first event"));
        }
        if !self.answered {
            return Err(self.vendor.invalid("no candidates", &self.last));
        }
        let explanation = self
            .finish
            .as_ref()
            .map(|finish| finish.message.trim().to_owned())
            .unwrap_or_default();
        let finish = match self.finish.take() {
            Some(finish) => self.finish_reason(&finish)?,
            // Some proxies leave it out; a body that parsed as JSON is complete.
            None if self.is_whole && (self.assembly.has_calls() || self.assembly.has_text()) => {
                self.assembly.natural_end()
            }
            None => return Err(self.vendor.truncated("it ended without a finishReason")),
        };
        if let Some(call) = self.open_call.take() {
            // The output limit may end an answer inside of a call; anything else is a broken
            // stream.
            if finish != FinishReason::MaxTokens {
                return Err(self.vendor.truncated("it ended inside a call"));
            }
            self.extend_call(call.index, &call.to_truncated_json(), None);
        }
        let assembly = std::mem::take(&mut self.assembly);
        let requested = &self.vendor.model;
        let mut parts = assembly.finish(requested);
        // The malformed call itself is only quoted in the vendor's explanation. Without one, the
        // event is all that there is for the log.
        if finish == FinishReason::MalformedCall {
            let sent = match explanation.is_empty() {
                true => std::mem::take(&mut self.last),
                false => explanation,
            };
            parts.push(Part::explanation(sent, requested.clone()));
        }
        let response = GenerateResponse {
            parts,
            finish,
            usage: self.usage(),
            counters: Counters {
                input: self.usage.prompt_token_count,
                output: self.usage.candidates_token_count,
            },
            cost: None,
            model: self.vendor.answered_by(self.model.take()),
            losses: std::mem::take(&mut self.losses),
            certainty: None,
        };
        check_content(response, &self.vendor)
    }

    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let unseen = &mut VecDeque::new();
        match serde_json::from_str::<Vec<Value>>(body) {
            // A stream that was requested without `alt=sse` is a list of its events (recorded).
            Ok(pieces) => pieces
                .iter()
                .try_for_each(|piece| self.event(&piece.to_string(), unseen))?,
            Err(_) => {
                self.event(body, unseen)?;
                self.is_whole = true;
            }
        }
        self.finish("", unseen)
    }
}

impl PartialAnswer {
    fn part(&mut self, part: wire::Part) -> Result<Option<Delta>, ModelError> {
        let mut rest = part.rest;
        rest.retain(|_, value| !value.is_null());
        let foreign = rest
            .keys()
            .find(|name| !matches!(name.as_str(), "thoughtSignature" | "partMetadata"))
            .cloned();
        let state = |rest: Map<String, Value>| (!rest.is_empty()).then_some(Value::Object(rest));
        Ok(match (part.function_call, part.text, foreign) {
            (Some(call), _, _) => return self.call(&call, state(rest)),
            (None, Some(text), _) if part.thought == Some(true) => {
                self.assembly.thinking(&text, state(rest))
            }
            (None, Some(text), _) => self.assembly.text(&text, state(rest)),
            (None, None, Some(kind)) => {
                if part.thought == Some(true) {
                    rest.insert("thought".to_owned(), Value::Bool(true));
                }
                self.assembly.opaque(&kind, Value::Object(rest));
                None
            }
            (None, None, None) => self.assembly.text("", state(rest)),
        })
    }

    fn call(
        &mut self,
        call: &wire::FunctionCall,
        state: Option<Value>,
    ) -> Result<Option<Delta>, ModelError> {
        match self.open_call.take() {
            Some(open) if open.continues_with(call) => {
                return self.continue_call(open, call, state);
            }
            Some(_) => return Err(self.vendor.truncated("a call began inside another")),
            // The event that ends a call of partial arguments may be repeated.
            None if call.is_empty() && state.is_none() => return Ok(None),
            None => {}
        }
        let index = self.calls;
        self.calls += 1;
        let arguments = match &call.args {
            _ if call.is_open() => String::new(),
            None => String::new(),
            // Text is the JSON text itself, written by the model, so it may be malformed.
            Some(Value::String(text)) => text.clone(),
            Some(args) => args.to_string(),
        };
        let fragment = CallFragment {
            index: Some(index),
            provider_id: call.id.as_deref(),
            name: call.name.as_deref(),
            arguments: &arguments,
        };
        let begun = self.assembly.call(fragment, state);
        if call.is_open() {
            return self.continue_call(OpenCall::new(index, call), call, None);
        }
        Ok(Some(begun))
    }

    fn continue_call(
        &mut self,
        mut open: OpenCall,
        call: &wire::FunctionCall,
        state: Option<Value>,
    ) -> Result<Option<Delta>, ModelError> {
        open.add(call).map_err(|path| {
            self.vendor
                .invalid(format!("the argument at {path:?} has no place"), &self.last)
        })?;
        let more = call.will_continue == Some(true);
        let arguments = if more {
            String::new()
        } else {
            open.to_json_text()
        };
        let delta = self.extend_call(open.index, &arguments, state);
        self.open_call = more.then_some(open);
        Ok(Some(delta))
    }

    fn extend_call(&mut self, index: u64, arguments: &str, state: Option<Value>) -> Delta {
        let fragment = CallFragment {
            index: Some(index),
            arguments,
            ..CallFragment::default()
        };
        self.assembly.call(fragment, state)
    }

    /// Adds a report of token counts. They are totals so far, so the last report is valid. A report
    /// with missing counts is completed from earlier ones; one that adds up is not, because that
    /// would mix rounds of the vendor's own tools.
    fn count(&mut self, report: &wire::UsageMetadata) {
        if report.adds_up() {
            self.usage = *report;
            return;
        }
        let usage = &mut self.usage;
        usage.prompt_token_count = report.prompt_token_count.or(usage.prompt_token_count);
        usage.candidates_token_count = report
            .candidates_token_count
            .or(usage.candidates_token_count);
        usage.thoughts_token_count = report.thoughts_token_count.or(usage.thoughts_token_count);
        usage.cached_content_token_count = report
            .cached_content_token_count
            .or(usage.cached_content_token_count);
        usage.tool_use_prompt_token_count = report
            .tool_use_prompt_token_count
            .or(usage.tool_use_prompt_token_count);
    }

    /// Returns the token counts. The vendor counts the answer without its thinking and the prompt
    /// without the results of its own tools, and omits zeros.
    fn usage(&self) -> Usage {
        let (prompt, found) = (
            self.usage.prompt_token_count,
            self.usage.tool_use_prompt_token_count,
        );
        let (answer, thinking) = (
            self.usage.candidates_token_count,
            self.usage.thoughts_token_count,
        );
        let written = answer.unwrap_or(0).saturating_add(thinking.unwrap_or(0));
        Usage {
            input_tokens: prompt.map(|prompt| prompt.saturating_add(found.unwrap_or(0))),
            output_tokens: answer.or(thinking).map(|_| written),
            cached_tokens: self.usage.cached_content_token_count,
            thinking_tokens: thinking,
            ..Usage::default()
        }
    }

    /// Returns the finish reason. Source: `FinishReason` in the vendor's published types.
    fn finish_reason(&mut self, finish: &Finish) -> Result<FinishReason, ModelError> {
        let Finish { reason, message } = finish;
        let ended = self.assembly.natural_end();
        Ok(match reason.as_str() {
            "STOP" => ended,
            // The second is a pause that only the vendor's own token resumes, so the answer counts
            // as cut off.
            "MAX_TOKENS" | "CONTINUATION" => FinishReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "ESCALATION"
            | "PUP_LIMITED_DISABLED" => FinishReason::ContentFilter,
            // The vendor's own tools went round in circles, or an image that was not requested was
            // not made: the text so far is valid.
            "TOO_MANY_TOOL_CALLS" | "NO_IMAGE" | "IMAGE_OTHER" => {
                self.record_early_stop(reason, message);
                ended
            }
            // "Model failed to generate content due to internal error" (recorded), and an answer
            // that the vendor could not parse itself.
            "OTHER" | "MALFORMED_RESPONSE" => {
                let failure = format!("finishReason {reason} {message}");
                return Err(self.vendor.failed(failure.trim_end()));
            }
            // The runtime asks again, as for a call that cannot be parsed.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::MalformedCall,
            "MISSING_THOUGHT_SIGNATURE" => {
                return Err(ModelError::BadRequest {
                    provider: self.vendor.model.provider.clone(),
                    message: format!("the transcript lacks a thought signature: {message}"),
                });
            }
            // Calls are only run if the reason is known.
            _ if ended == FinishReason::Stop && self.assembly.has_text() => {
                self.record_early_stop(reason, message);
                ended
            }
            other => {
                let reason =
                    format!("finishReason {other}, which is no end of an answer we know {message}");
                return Err(self.vendor.invalid(reason.trim_end(), &self.last));
            }
        })
    }

    fn record_early_stop(&mut self, reason: &str, message: &str) {
        let stopped = format!("the vendor stopped ({reason} {message}");
        self.losses.push(format!(
            "{}): the answer may not be whole",
            stopped.trim_end()
        ));
    }
}

/// Filters out an unset enum value, as servers send it that write every field.
fn specified(reason: Option<String>) -> Option<String> {
    reason.filter(|reason| !reason.is_empty() && !reason.ends_with("_UNSPECIFIED"))
}
