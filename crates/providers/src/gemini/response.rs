//! Wire to core. Pure; a whole answer is a stream of one piece, so both read the same.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Counters, Delta, FinishReason, GenerateResponse, ModelError, Part, Usage};
use serde_json::{Map, Value};

use super::error;
use super::partial::OpenCall;
use super::wire;
use crate::assembly::{Assembly, CallFragment};
use crate::error::Vendor;

/// Reads a whole answer.
pub(super) fn decode(
    body: &str,
    vendor: Arc<Vendor>,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let mut reading = Reading::new(vendor, losses);
    let unseen = &mut VecDeque::new();
    match serde_json::from_str::<Vec<Value>>(body) {
        // A stream that was asked for without `alt=sse` is a list of its pieces (recorded).
        Ok(pieces) => pieces
            .iter()
            .try_for_each(|piece| reading.add(&piece.to_string(), unseen))?,
        Err(_) => {
            reading.add(body, unseen)?;
            reading.is_whole = true;
        }
    }
    reading.end()
}

/// An answer taking shape.
#[derive(Debug)]
pub(super) struct Reading {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    assembly: Assembly,
    calls: u64,
    /// The call whose arguments are still coming.
    open_call: Option<OpenCall>,
    began: bool,
    answered: bool,
    finish: Option<Finish>,
    /// Nothing was said behind the reason to stop.
    ended: bool,
    /// It came in one piece.
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

impl Reading {
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

    /// Whether the last that was said is a reason to stop.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn vendor(&self) -> &Vendor {
        &self.vendor
    }

    /// Adds a piece: one event's data, or a whole body.
    pub(super) fn add(
        &mut self,
        json: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let reply: wire::Reply =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(&error, json))?;
        self.began = true;
        json.clone_into(&mut self.last);
        if let Some(status) = &reply.error {
            return Err(error::inside(&self.vendor, status));
        }
        if let Some(usage) = &reply.usage_metadata {
            self.count(usage);
        }
        self.model = reply.model_version.or(self.model.take());
        if let Some(feedback) = reply.prompt_feedback
            && let Some(reason) = said(feedback.block_reason)
        {
            let message = match feedback.block_reason_message {
                Some(words) => format!("the prompt was blocked: {reason}: {words}"),
                None => format!("the prompt was blocked: {reason}"),
            };
            return Err(self.vendor.blocked(message));
        }
        // One answer is asked for; a second candidate would be somebody else's idea.
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
            self.ended = false;
            deltas.extend(self.part(part)?);
        }
        // Some models give a reason in the middle, after code they ran themselves; the last one
        // counts.
        if let Some(reason) = said(candidate.finish_reason) {
            self.ended = true;
            self.finish = Some(Finish {
                reason,
                message: candidate.finish_message.unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// The whole answer, if it is one.
    pub(super) fn end(&mut self) -> Result<GenerateResponse, ModelError> {
        if !self.began {
            return Err(self.vendor.truncated("it ended before its first event"));
        }
        if !self.answered {
            return Err(self.vendor.unreadable("no candidates", &self.last));
        }
        let words = self
            .finish
            .as_ref()
            .map(|finish| finish.message.trim().to_owned())
            .unwrap_or_default();
        let finish = match self.finish.take() {
            Some(finish) => self.reason(&finish)?,
            // A server in between leaves it out; a body that is JSON has its end.
            None if self.is_whole && self.assembly.has_calls() => FinishReason::ToolCalls,
            None if self.is_whole && self.assembly.has_text() => FinishReason::Stop,
            None => return Err(self.vendor.truncated("it ended without a finishReason")),
        };
        if let Some(call) = self.open_call.take() {
            if finish != FinishReason::MaxTokens {
                return Err(self.vendor.truncated("it ended inside a call"));
            }
            self.more_of_call(call.index, &call.cut_off(), None);
        }
        let assembly = std::mem::take(&mut self.assembly);
        let requested = &self.vendor.model;
        let mut parts = assembly.finish(requested);
        // What the vendor could not read is in its words only.
        if finish == FinishReason::MalformedCall && !words.is_empty() {
            parts.push(Part::explanation(words, requested.clone()));
        }
        Ok(GenerateResponse {
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
        })
    }

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
            (None, Some(words), _) if part.thought == Some(true) => {
                self.assembly.thinking(&words, state(rest))
            }
            (None, Some(words), _) => self.assembly.text(&words, state(rest)),
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
            // What ends a call whose arguments came value by value may come once more.
            None if call.is_empty() && state.is_none() => return Ok(None),
            None => {}
        }
        let index = self.calls;
        self.calls += 1;
        let arguments = match &call.args {
            _ if call.is_open() => String::new(),
            None => String::new(),
            // Arguments that are text are JSON text, if the model got it right.
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
                .unreadable(format!("the argument at {path:?} has no place"), &self.last)
        })?;
        let more = call.will_continue == Some(true);
        let arguments = if more { String::new() } else { open.whole() };
        let delta = self.more_of_call(open.index, &arguments, state);
        self.open_call = more.then_some(open);
        Ok(Some(delta))
    }

    fn more_of_call(&mut self, index: u64, arguments: &str, state: Option<Value>) -> Delta {
        let fragment = CallFragment {
            index: Some(index),
            arguments,
            ..CallFragment::default()
        };
        self.assembly.call(fragment, state)
    }

    /// Counts are totals so far: the last report holds. One that leaves something out is filled up
    /// from those before it; one that adds up is not, or rounds of the vendor's own tools would be
    /// mixed.
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

    /// The vendor counts the answer without its thinking and the prompt without what its own tools
    /// found, and leaves zeros out.
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

    /// Source: `FinishReason` in the vendor's published types.
    fn reason(&mut self, finish: &Finish) -> Result<FinishReason, ModelError> {
        let Finish { reason, message } = finish;
        let has_calls = self.assembly.has_calls();
        let ended = if has_calls {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        };
        Ok(match reason.as_str() {
            "STOP" => ended,
            // The second is a pause, which only a token of the vendor's own resumes: the answer is
            // cut like another.
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
            // Its own tools went round in circles, or a picture nobody asked for was not made: what
            // was said stays.
            "TOO_MANY_TOOL_CALLS" | "NO_IMAGE" | "IMAGE_OTHER" => {
                self.lose_the_rest(reason, message);
                ended
            }
            // "Model failed to generate content due to internal error" (recorded), and an answer it
            // could not read itself.
            "OTHER" | "MALFORMED_RESPONSE" => {
                return Err(ModelError::Server {
                    provider: self.vendor.model.provider.clone(),
                    status: 200,
                    retry_after: None,
                    message: format!("finishReason {reason} {message}")
                        .trim_end()
                        .to_owned(),
                });
            }
            // A call where none was possible is asked for again like one that cannot be parsed.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::MalformedCall,
            "MISSING_THOUGHT_SIGNATURE" => {
                return Err(ModelError::BadRequest {
                    provider: self.vendor.model.provider.clone(),
                    message: format!("the transcript lacks a thought signature: {message}"),
                });
            }
            // A call is made only for a reason that is known.
            _ if !has_calls && self.assembly.has_text() => {
                self.lose_the_rest(reason, message);
                ended
            }
            other => {
                let words =
                    format!("finishReason {other}, which is no end of an answer we know {message}");
                return Err(self.vendor.unreadable(words.trim_end(), &self.last));
            }
        })
    }

    fn lose_the_rest(&mut self, reason: &str, message: &str) {
        let words = format!("the vendor stopped ({reason} {message}");
        self.losses.push(format!(
            "{}): the answer may not be whole",
            words.trim_end()
        ));
    }
}

/// Without the values that say nothing was said, which servers send that write out every field.
fn said(reason: Option<String>) -> Option<String> {
    reason.filter(|reason| !reason.is_empty() && !reason.ends_with("_UNSPECIFIED"))
}
