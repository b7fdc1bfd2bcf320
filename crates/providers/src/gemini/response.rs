//! Wire to core. Pure; a whole answer is a stream of one piece, so both read the same.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Delta, FinishReason, GenerateResponse, ModelError, ModelId, Usage};
use serde_json::{Map, Value};

use super::error;
use super::wire;
use crate::assembly::{Assembly, CallFragment};
use crate::error::Vendor;

/// Reads a whole answer.
pub(super) fn decode(
    body: &str,
    vendor: Arc<Vendor>,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let mut answer = Answer::new(vendor, losses);
    answer.add(body, &mut VecDeque::new())?;
    answer.finish()
}

/// An answer taking shape.
#[derive(Debug)]
pub(super) struct Answer {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    assembly: Assembly,
    calls: u64,
    began: bool,
    answered: bool,
    finish: Option<Finish>,
    usage: wire::UsageMetadata,
    model: Option<String>,
    last: String,
}

#[derive(Debug)]
struct Finish {
    reason: String,
    message: String,
}

impl Answer {
    pub(super) fn new(vendor: Arc<Vendor>, losses: Vec<String>) -> Self {
        Self {
            vendor,
            losses,
            assembly: Assembly::default(),
            calls: 0,
            began: false,
            answered: false,
            finish: None,
            usage: wire::UsageMetadata::default(),
            model: None,
            last: String::new(),
        }
    }

    pub(super) fn vendor(&self) -> &Vendor {
        &self.vendor
    }

    /// Adds a piece: one event's data, or a whole body.
    pub(super) fn add(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
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
            && let Some(reason) = feedback.block_reason
        {
            let message = match feedback.block_reason_message {
                Some(words) => format!("the prompt was blocked: {reason}: {words}"),
                None => format!("the prompt was blocked: {reason}"),
            };
            return Err(ModelError::Refused { provider: self.vendor.model.provider.clone(), message });
        }
        // One answer is asked for; a second candidate would be somebody else's idea.
        let mut candidates = reply.candidates.unwrap_or_default().into_iter();
        let Some(candidate) = candidates.find(|candidate| candidate.index.unwrap_or(0) == 0) else {
            return Ok(());
        };
        self.answered = true;
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            deltas.extend(self.part(part));
        }
        // Some models give a reason in the middle, after code they ran themselves; the last one counts.
        if let Some(reason) = candidate.finish_reason {
            self.finish = Some(Finish { reason, message: candidate.finish_message.unwrap_or_default() });
        }
        Ok(())
    }

    /// The whole answer, if it is one.
    pub(super) fn finish(&mut self) -> Result<GenerateResponse, ModelError> {
        if !self.began {
            return Err(self.vendor.truncated("it ended before its first event"));
        }
        if !self.answered {
            return Err(self.vendor.unreadable("no candidates", &self.last));
        }
        let Some(finish) = self.finish.take() else {
            return Err(self.vendor.truncated("it ended without a finishReason"));
        };
        let finish = self.reason(&finish)?;
        let assembly = std::mem::take(&mut self.assembly);
        let requested = &self.vendor.model;
        Ok(GenerateResponse {
            parts: assembly.finish(requested),
            finish,
            usage: self.usage(),
            model: ModelId {
                provider: requested.provider.clone(),
                name: self
                    .model
                    .take()
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| requested.name.clone()),
            },
            losses: std::mem::take(&mut self.losses),
        })
    }

    fn part(&mut self, part: wire::Part) -> Option<Delta> {
        let mut rest = part.rest;
        rest.retain(|_, value| !value.is_null());
        let foreign =
            rest.keys().find(|name| !matches!(name.as_str(), "thoughtSignature" | "partMetadata")).cloned();
        let state = |rest: Map<String, Value>| (!rest.is_empty()).then_some(Value::Object(rest));
        match (part.function_call, part.text, foreign) {
            (Some(call), _, _) => {
                let arguments = match &call.args {
                    None => String::new(),
                    // Arguments that are text are JSON text, if the model got it right.
                    Some(Value::String(text)) => text.clone(),
                    Some(args) => args.to_string(),
                };
                let fragment = CallFragment {
                    index: Some(self.calls),
                    provider_id: call.id.as_deref(),
                    name: call.name.as_deref(),
                    arguments: &arguments,
                };
                self.calls += 1;
                Some(self.assembly.call(fragment, state(rest)))
            }
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
        }
    }

    /// Counts are totals so far: the last report of each holds.
    fn count(&mut self, report: &wire::UsageMetadata) {
        let usage = &mut self.usage;
        usage.prompt_token_count = report.prompt_token_count.or(usage.prompt_token_count);
        usage.candidates_token_count = report.candidates_token_count.or(usage.candidates_token_count);
        usage.thoughts_token_count = report.thoughts_token_count.or(usage.thoughts_token_count);
        usage.cached_content_token_count =
            report.cached_content_token_count.or(usage.cached_content_token_count);
    }

    /// The vendor counts the answer without its thinking, and leaves zeros out.
    fn usage(&self) -> Usage {
        let (answer, thinking) = (self.usage.candidates_token_count, self.usage.thoughts_token_count);
        let written = answer.unwrap_or(0) + thinking.unwrap_or(0);
        Usage {
            input_tokens: self.usage.prompt_token_count,
            output_tokens: answer.or(thinking).map(|_| written),
            cached_tokens: self.usage.cached_content_token_count,
            thinking_tokens: thinking,
        }
    }

    /// Source: `FinishReason` in the vendor's published types. What is not listed there fails closed.
    fn reason(&self, finish: &Finish) -> Result<FinishReason, ModelError> {
        let Finish { reason, message } = finish;
        Ok(match reason.as_str() {
            "STOP" if self.assembly.has_calls() => FinishReason::ToolCalls,
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => FinishReason::ContentFilter,
            // A call where none was possible is asked for again like one that cannot be parsed.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::MalformedCall,
            "MISSING_THOUGHT_SIGNATURE" => {
                return Err(ModelError::BadRequest {
                    provider: self.vendor.model.provider.clone(),
                    message: format!("the transcript lacks a thought signature: {message}"),
                });
            }
            other => {
                let words = format!("finishReason {other}, which is no end of an answer we know {message}");
                return Err(self.vendor.unreadable(words.trim_end(), &self.last));
            }
        })
    }
}
