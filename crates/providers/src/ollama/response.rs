//! Wire to core. Pure; a whole answer is a stream of one line, so both read the same.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Counters, Delta, FinishReason, GenerateResponse, ModelError, Usage};
use serde_json::{Value, json};

use super::window::{self, Window};
use super::{error, wire};
use crate::assembly::{Assembly, CallFragment};
use crate::decode::{Asked, Length};
use crate::error::Vendor;
use crate::text_calls::{Piece, TextCalls};

/// Reads a whole answer. A server that streams although it was not asked to is read all the same.
pub(super) fn decode(body: &str, mut reading: Reading) -> Result<GenerateResponse, ModelError> {
    let body = body.trim_start_matches('\u{feff}');
    for reply in serde_json::Deserializer::from_str(body).into_iter() {
        let reply = reply.map_err(|error| reading.vendor.not_json(&error, body))?;
        reading.add(reply, &mut VecDeque::new())?;
    }
    reading.end(&mut VecDeque::new())
}

/// An answer taking shape.
#[derive(Debug)]
pub(super) struct Reading {
    vendor: Arc<Vendor>,
    losses: Vec<String>,
    prompt: Length,
    window: Window,
    assembly: Assembly,
    text: TextCalls,
    calls: u64,
    model: Option<String>,
    began: bool,
    done: bool,
    reason: Option<String>,
    counters: Counters,
}

impl Reading {
    pub(super) fn new(
        vendor: Arc<Vendor>,
        asked: &Asked,
        window: Window,
        losses: Vec<String>,
    ) -> Self {
        Self {
            vendor,
            losses,
            prompt: asked.prompt,
            window,
            assembly: Assembly::default(),
            text: TextCalls::new(asked.tools.clone()),
            calls: 0,
            model: None,
            began: false,
            done: false,
            reason: None,
            counters: Counters::default(),
        }
    }

    /// Adds a line, or a whole body.
    pub(super) fn line(
        &mut self,
        json: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let reply =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(&error, json))?;
        self.add(reply, deltas)
    }

    fn add(&mut self, reply: wire::Reply, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(error) = reply.error.filter(|error| !error.is_null()) {
            return Err(error::inside(&self.vendor, &error));
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
        if let Some(thoughts) = message.thinking.filter(|thoughts| !thoughts.is_empty()) {
            self.flush(deltas);
            deltas.extend(self.assembly.thinking(&thoughts, None));
        }
        if let Some(words) = message.content {
            let mut pieces = Vec::new();
            self.text.push(&words, &mut pieces);
            self.place(pieces, deltas);
        }
        for call in message.tool_calls.unwrap_or_default() {
            self.flush(deltas);
            let arguments = match call.function.arguments {
                None => String::new(),
                // Arguments that are text are JSON text, if the model got it right.
                Some(Value::String(text)) => text,
                Some(arguments) => arguments.to_string(),
            };
            self.call(
                call.id.as_deref(),
                call.function.name.as_deref(),
                &arguments,
                deltas,
            );
        }
        if let Some(images) = message.images.filter(|images| !images.is_empty()) {
            self.assembly.opaque("images", json!({ "images": images }));
        }
        Ok(())
    }

    /// Whether the server said that this was all.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The whole answer, if it is one.
    pub(super) fn end(
        &mut self,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        if !self.began {
            return Err(self.vendor.truncated("it ended before it began"));
        }
        if !self.done {
            return Err(self.vendor.truncated("it ended without \"done\": true"));
        }
        self.flush(deltas);
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
        Ok(GenerateResponse {
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
        })
    }

    /// Something other than words comes, or nothing more.
    fn flush(&mut self, deltas: &mut VecDeque<Delta>) {
        let mut pieces = Vec::new();
        self.text.flush(&mut pieces);
        self.place(pieces, deltas);
    }

    fn place(&mut self, pieces: Vec<Piece>, deltas: &mut VecDeque<Delta>) {
        for piece in pieces {
            piece.place(self.calls, &mut self.assembly, &mut self.losses, deltas);
            self.calls += 1;
        }
    }

    /// Calls come whole; the number keeps two of the same name apart.
    fn call(
        &mut self,
        provider_id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
        deltas: &mut VecDeque<Delta>,
    ) {
        let fragment = CallFragment {
            index: Some(self.calls),
            provider_id,
            name,
            arguments,
        };
        self.calls += 1;
        deltas.push_back(self.assembly.call(fragment, None));
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

    /// Source: `DoneReason` in the vendor's server (`stop`, `length`, `load`, `unload`). What is
    /// not listed fails closed.
    fn finish_reason(&self) -> Result<FinishReason, ModelError> {
        Ok(match self.reason.as_deref().unwrap_or_default() {
            "length" => FinishReason::MaxTokens,
            "content_filter" => FinishReason::ContentFilter,
            "stop" | "" | "load" | "unload" | "tool_calls" if self.assembly.has_calls() => {
                FinishReason::ToolCalls
            }
            // Older servers give no reason. Loading and unloading a model is what an empty request
            // does.
            "stop" | "" | "load" | "unload" => FinishReason::Stop,
            other => {
                let words = format!("done_reason {other}, which is no end of an answer we know");
                return Err(self.vendor.unreadable(words, other));
            }
        })
    }
}
