//! Decodes answers. Pure; a whole answer is treated as a stream of one line.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Counters, Delta, FinishReason, GenerateResponse, ModelError, Usage};
use serde_json::{Value, json};

use super::window::{self, Window};
use super::{error, wire};
use crate::assembly::{Assembly, CallFragment};
use crate::decode::{AnswerFold, Progress, PromptLength, RequestContext, check_content};
use crate::error::Vendor;
use crate::text_calls::TextCalls;

/// An answer whose lines are still arriving.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    prompt: PromptLength,
    window: Window,
    assembly: Assembly,
    text: TextCalls,
    model: Option<String>,
    began: bool,
    done: bool,
    reason: Option<String>,
    counters: Counters,
}

impl PartialAnswer {
    pub(super) fn new(
        vendor: Arc<Vendor>,
        context: &RequestContext,
        window: Window,
        losses: Vec<String>,
    ) -> Self {
        Self {
            vendor,
            losses,
            prompt: context.prompt,
            window,
            assembly: Assembly::default(),
            text: TextCalls::new(context.tools.clone()),
            model: None,
            began: false,
            done: false,
            reason: None,
            counters: Counters::default(),
        }
    }
}

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let reply =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(error, json))?;
        self.add(reply, deltas)
    }

    fn progress(&self) -> Progress {
        if self.done {
            Progress::Over
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        _: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        if !self.began {
            return Err(self.vendor.truncated("it ended before it began"));
        }
        if !self.done {
            return Err(self.vendor.truncated("it ended without \"done\": true"));
        }
        self.flush(deltas);
        // An answer to a prompt without its beginning looks like any other, so it has to be an
        // error.
        self.check_window()?;
        let counted = self.counters.input.zip(self.counters.output);
        if counted.is_some_and(|(read, written)| window::was_outgrown(read, written, self.window)) {
            self.losses.push(format!(
                "the answer went on beyond the window of {} tokens, and the server dropped the beginning of the conversation \
                 while it was written: raise num_ctx (ollama.context_size)",
                self.window.tokens
            ));
        }
        let finish = self.finish_reason()?;
        let response = GenerateResponse {
            parts: std::mem::take(&mut self.assembly).finish(&self.vendor.model),
            finish,
            usage: Usage {
                input_tokens: self.counters.input,
                output_tokens: self.counters.output,
                ..Usage::default()
            },
            counters: self.counters,
            cost: None,
            model: self.vendor.answered_by(self.model.take()),
            losses: std::mem::take(&mut self.losses),
            certainty: None,
        };
        check_content(response, &self.vendor)
    }

    /// Decodes an answer that was not streamed. Some servers stream it anyway, as several values.
    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let unseen = &mut VecDeque::new();
        for reply in serde_json::Deserializer::from_str(body).into_iter() {
            let reply = reply.map_err(|error| self.vendor.not_json(error, body))?;
            self.add(reply, unseen)?;
        }
        self.finish("", unseen)
    }
}

impl PartialAnswer {
    fn add(&mut self, reply: wire::Reply, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(error) = reply.error.filter(|error| !error.is_null()) {
            return Err(error::in_answer(&self.vendor, &error));
        }
        self.began = true;
        self.model = reply.model.or(self.model.take());
        self.counters.input = reply.prompt_eval_count.or(self.counters.input);
        self.counters.output = reply.eval_count.or(self.counters.output);
        self.done |= reply.done.unwrap_or(false);
        self.reason = reply.done_reason.or(self.reason.take());
        let Some(message) = reply.message else {
            return Ok(());
        };
        // Thinking ends the text before it, of which some may be held back as the beginning of a
        // call.
        if let Some(text) = message.thinking.filter(|text| !text.is_empty()) {
            self.flush(deltas);
            deltas.extend(self.assembly.thinking(&text, None));
        }
        if let Some(text) = message.content {
            self.text
                .push_to(&text, &mut self.assembly, &mut self.losses, deltas);
        }
        for call in message.tool_calls.unwrap_or_default() {
            self.flush(deltas);
            let arguments = match call.function.arguments {
                None => String::new(),
                // Text is the JSON text itself, written by the model, so it may be malformed.
                Some(Value::String(text)) => text,
                Some(arguments) => arguments.to_string(),
            };
            let fragment = CallFragment {
                index: None,
                provider_id: call.id.as_deref(),
                name: call.function.name.as_deref(),
                arguments: &arguments,
            };
            // Calls are never sent in pieces, so none continues another.
            deltas.push_back(self.assembly.begin_call(fragment, None));
        }
        if let Some(images) = message.images.filter(|images| !images.is_empty()) {
            self.assembly.opaque("images", json!({ "images": images }));
        }
        Ok(())
    }

    /// Decides on text that was held back, because other content or the end follows.
    fn flush(&mut self, deltas: &mut VecDeque<Delta>) {
        self.text
            .flush_to(&mut self.assembly, &mut self.losses, deltas);
    }

    fn check_window(&self) -> Result<(), ModelError> {
        let Some(read) = self
            .counters
            .input
            .filter(|read| window::was_cut(self.prompt, *read, self.window))
        else {
            return Ok(());
        };
        Err(ModelError::ContextTooLong {
            provider: self.vendor.model.provider.clone(),
            message: format!(
                "the server read {read} tokens of a prompt of about {} and dropped its beginning; num_ctx is {}: raise \
                 it (OllamaOptions::num_ctx, ollama.context_size), check the server's own limit, or send less",
                (self.prompt.chars / 4).max(self.prompt.tokens_min),
                self.window.tokens
            ),
        })
    }

    /// Returns the finish reason. Source: `DoneReason` in the vendor's server (`stop`, `length`,
    /// `load`, `unload`). An unknown reason is an error, so that a cut-off call is never run.
    fn finish_reason(&self) -> Result<FinishReason, ModelError> {
        Ok(match self.reason.as_deref().unwrap_or_default() {
            "length" => FinishReason::MaxTokens,
            "content_filter" => FinishReason::ContentFilter,
            // Older servers give no reason. An empty request loads or unloads the model.
            "stop" | "" | "load" | "unload" => self.assembly.natural_end(),
            "tool_calls" => FinishReason::ToolCalls,
            other => {
                let reason = format!("done_reason {other}, which is no end of an answer we know");
                return Err(self.vendor.invalid(reason, other));
            }
        })
    }
}
