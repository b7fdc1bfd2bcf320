//! Wire to core. Pure; a chunk of a streamed answer is a whole answer with less in it, so both read
//! the same.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use adjutant_core::{Delta, FinishReason, GenerateResponse, ModelError, ToolSet};
use serde_json::{Value, json};

use super::super::error;
use super::super::vendors::Dialect;
use super::form::{Beyond, Form};
use super::thinking::Thinking;
use super::usage::Counts;
use super::wire::{self, Loose};
use crate::assembly::{Assembly, CallFragment};
use crate::error::Vendor;
use crate::text_calls::{Piece, TextCalls};

/// Calls that came as text are numbered from here, beyond what any server counts to.
const TEXT_CALLS: u64 = 1 << 32;

/// Reads a whole answer.
pub(super) fn decode(body: &str, mut reading: Reading) -> Result<GenerateResponse, ModelError> {
    reading.add(body, &mut VecDeque::new())?;
    if !reading.answered {
        return Err(reading.vendor.unreadable("no choices", body));
    }
    reading.is_whole = true;
    reading.end(&mut VecDeque::new())
}

/// An answer taking shape.
#[derive(Debug)]
pub(super) struct Reading {
    vendor: Arc<Vendor>,
    dialect: &'static Dialect,
    losses: Vec<String>,
    assembly: Assembly,
    thinking: Thinking,
    /// Where a server may leave calls in the text, and tools were on offer.
    text: Option<TextCalls>,
    text_calls: u64,
    counts: Counts,
    /// The numbers of the calls so far.
    calls: BTreeSet<u64>,
    /// Something of an answer came, if only its role.
    answered: bool,
    said: bool,
    /// The server said that this was all, whatever the reason.
    is_whole: bool,
    finish: Option<String>,
    model: Option<String>,
    /// The last piece.
    last: String,
    /// Its form, if the next one may have the same.
    form: Option<Form>,
}

impl Reading {
    pub(super) fn new(
        vendor: Arc<Vendor>,
        dialect: &'static Dialect,
        tools: &ToolSet,
        losses: Vec<String>,
    ) -> Self {
        let reads_text = dialect.leaves_calls_in_text && !tools.is_empty();
        Self {
            text: reads_text.then(|| TextCalls::new(tools.clone())),
            text_calls: TEXT_CALLS,
            vendor,
            dialect,
            losses,
            assembly: Assembly::default(),
            thinking: Thinking::default(),
            counts: Counts::default(),
            calls: BTreeSet::new(),
            answered: false,
            said: false,
            is_whole: false,
            finish: None,
            model: None,
            last: String::new(),
            form: None,
        }
    }

    /// Adds a piece: one event's data, or a whole body.
    pub(super) fn add(
        &mut self,
        json: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if let Some(form) = &mut self.form
            && let Some(beyond) = form.read(&self.last, json)
        {
            json.clone_into(&mut self.last);
            match beyond {
                Beyond::Words(words) => self.words(&words, deltas),
                Beyond::Message(message) => self.message(message, true, deltas),
            }
            return Ok(());
        }
        let reply: wire::Reply<'_> =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(&error, json))?;
        json.clone_into(&mut self.last);
        self.form = Form::of(json, &reply);
        if let Some(error) = reply.error.as_deref().filter(|error| says_something(error)) {
            return Err(error::inside(&self.vendor, error));
        }
        let Some(choices) = reply.choices else {
            return self.without_choices(json);
        };
        hear(&mut self.model, reply.model.as_ref());
        let groq = reply.x_groq.as_deref();
        if let Some(error) = groq
            .and_then(|groq| groq.get("error"))
            .filter(|error| says_something(error))
        {
            return Err(error::inside(&self.vendor, error));
        }
        for usage in reply
            .usage
            .as_deref()
            .into_iter()
            .chain(groq.and_then(|groq| groq.get("usage")))
        {
            self.counts.add(usage);
        }
        let Some(choice) = choices.first else {
            return Ok(());
        };
        self.answered = true;
        if let Some(usage) = &choice.usage {
            self.counts.add(usage);
        }
        match (choice.delta, choice.message) {
            (Some(piece), _) => self.message(piece, true, deltas),
            // A few servers repeat the whole message behind its pieces.
            (None, Some(message)) if !self.said => self.message(*message, false, deltas),
            (None, _) => {}
        }
        if let Some(error) = choice
            .error
            .as_deref()
            .filter(|error| says_something(error))
        {
            return Err(error::inside(&self.vendor, error));
        }
        hear(&mut self.finish, choice.finish_reason.as_ref());
        Ok(())
    }

    /// An error that is not where errors are, or something that is no part of an answer.
    fn without_choices(&mut self, json: &str) -> Result<(), ModelError> {
        let body: Value = serde_json::from_str(json).unwrap_or_default();
        let complains = ["message", "msg", "detail", "error_message", "errors"]
            .iter()
            .any(|name| body.get(name).is_some_and(says_something));
        if complains
            || body.get("object") == Some(&json!("error"))
            || body.get("type") == Some(&json!("error"))
        {
            return Err(error::inside(&self.vendor, &body));
        }
        if let Some(usage) = body.get("usage") {
            self.counts.add(usage);
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: wire::Message<'_>,
        is_piece: bool,
        deltas: &mut VecDeque<Delta>,
    ) {
        if let Some(words) = self.thinking.hear(&message, is_piece) {
            self.said = true;
            self.flush(deltas);
            deltas.extend(self.assembly.thinking(&words, None));
        }
        match message.content {
            Some(Loose::Text(words)) => self.words(&words, deltas),
            Some(Loose::Count(count)) => self.content(count.into(), deltas),
            Some(Loose::Other(content)) => self.content(*content, deltas),
            None => {}
        }
        if let Some(words) = message.refusal.as_ref().and_then(Loose::said) {
            self.said = true;
            self.assembly.refusal(&words, None);
        }
        for (kind, trace) in [
            ("images", message.images),
            ("executed_tools", message.executed_tools),
        ] {
            if let Some(trace) = trace.filter(|trace| says_something(trace)) {
                self.said = true;
                self.assembly.opaque(kind, json!({ kind: *trace }));
            }
        }
        for (position, call) in message.tool_calls.into_iter().flatten().enumerate() {
            // A whole answer's calls are in order, whatever number they have.
            let index = if is_piece {
                call.index.as_ref().and_then(Loose::as_u64)
            } else {
                Some(position as u64)
            };
            self.flush(deltas);
            deltas.extend(self.call(index, call));
        }
        if let Some(function) = message.function_call {
            let call = wire::Call {
                index: None,
                id: None,
                function: Some(*function),
                custom: None,
                extra_content: None,
            };
            self.flush(deltas);
            deltas.extend(self.call(Some(0), call));
        }
    }

    fn content(&mut self, content: Value, deltas: &mut VecDeque<Delta>) {
        match content {
            Value::Null => {}
            Value::String(words) => self.words(&words, deltas),
            Value::Array(parts) => parts
                .into_iter()
                .for_each(|part| self.content(part, deltas)),
            part => self.part(part, deltas),
        }
    }

    fn words(&mut self, words: &str, deltas: &mut VecDeque<Delta>) {
        self.said |= !words.is_empty();
        self.say(words, deltas);
    }

    fn say(&mut self, words: &str, deltas: &mut VecDeque<Delta>) {
        match &mut self.text {
            None => deltas.extend(self.assembly.text(words, None)),
            Some(text) => {
                let mut pieces = Vec::new();
                text.push(words, &mut pieces);
                self.place(pieces, deltas);
            }
        }
    }

    /// Something other than words comes, or nothing more.
    fn flush(&mut self, deltas: &mut VecDeque<Delta>) {
        if let Some(text) = &mut self.text {
            let mut pieces = Vec::new();
            text.flush(&mut pieces);
            self.place(pieces, deltas);
        }
    }

    fn place(&mut self, pieces: Vec<Piece>, deltas: &mut VecDeque<Delta>) {
        for piece in pieces {
            piece.place(
                self.text_calls,
                &mut self.assembly,
                &mut self.losses,
                deltas,
            );
            self.text_calls += 1;
        }
    }

    /// A part of content that has parts.
    fn part(&mut self, part: Value, deltas: &mut VecDeque<Delta>) {
        let kind = part
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("text")
            .to_owned();
        self.said = true;
        match kind.as_str() {
            "thinking" => {
                self.thinking.heard_in_content();
                deltas.extend(self.assembly.thinking(&words(part.get("thinking")), None));
            }
            "refusal" => self.assembly.refusal(&words(part.get("refusal")), None),
            _ if part.get("text").is_some() => self.say(&words(part.get("text")), deltas),
            // References and citations annotate the words beside them.
            "reference" | "citation" => {}
            kind => self.assembly.opaque(kind, part),
        }
    }

    /// A call or a piece of one. `None`: nothing was said of any.
    fn call(&mut self, index: Option<u64>, call: wire::Call<'_>) -> Option<Delta> {
        let (name, arguments) = match (call.function, call.custom) {
            (Some(function), _) => (function.name, function.arguments),
            (None, Some(custom)) => (custom.name, custom.input),
            (None, None) => (None, None),
        };
        let arguments = match arguments {
            None => Cow::Borrowed(""),
            Some(Loose::Text(text)) => text,
            Some(Loose::Count(count)) => Cow::Owned(count.to_string()),
            Some(Loose::Other(object)) => Cow::Owned(object.to_string()),
        };
        let name = name.as_ref().and_then(Loose::said);
        let id = call.id.as_ref().and_then(Loose::said);
        if name.is_none() && id.is_none() && arguments.trim().is_empty() {
            return None;
        }
        self.said = true;
        // Some servers make up a new id for every piece; a call that goes on has no name.
        let goes_on = name.is_none() && index.is_some_and(|index| self.calls.contains(&index));
        self.calls.extend(index);
        let fragment = CallFragment {
            index,
            provider_id: id.as_deref().filter(|_| !goes_on),
            name: name.as_deref(),
            arguments: &arguments,
        };
        let state = call.extra_content.filter(|extra| !extra.is_null());
        Some(self.assembly.call(
            fragment,
            state.map(|extra| json!({ "extra_content": *extra })),
        ))
    }

    /// Reads the next piece as if none had come before.
    #[cfg(test)]
    pub(super) fn forget(&mut self) {
        self.form = None;
    }

    /// `[DONE]` came.
    pub(super) fn done(&mut self) {
        self.is_whole = true;
    }

    /// What was in the stream besides events: an error, or the whole answer of a server that does
    /// not stream.
    pub(super) fn stray(
        &mut self,
        lines: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        match error::stray(lines) {
            Some(body) if !self.answered || body.get("choices").is_none() => {
                self.add(&body.to_string(), deltas)?;
                self.is_whole |= self.answered;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a reason to stop was given.
    pub(super) fn has_reason_to_stop(&self) -> bool {
        self.finish.is_some()
    }

    /// The whole answer, if it is one.
    pub(super) fn end(
        &mut self,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        self.flush(deltas);
        let finish = self.reason()?;
        let requested = &self.vendor.model;
        let mut parts = std::mem::take(&mut self.assembly).finish(requested);
        std::mem::take(&mut self.thinking).settle(&mut parts, requested);
        Ok(GenerateResponse {
            parts,
            finish,
            usage: self.counts.usage(),
            counters: self.counts.counters(),
            cost: self.counts.cost(self.dialect.costs_in_dollars),
            model: self.vendor.answered_by(self.model.take()),
            losses: std::mem::take(&mut self.losses),
        })
    }

    /// Source: `finish_reason` in OpenAI's reference, and in those of the servers in `vendors.rs`.
    /// What is listed nowhere fails closed.
    fn reason(&self) -> Result<FinishReason, ModelError> {
        let has_calls = self.assembly.has_calls();
        let Some(reason) = &self.finish else {
            // A few servers give no reason; then the answer is complete if they say so.
            return match (self.is_whole && self.said, has_calls) {
                (true, true) => Ok(FinishReason::ToolCalls),
                (true, false) => Ok(FinishReason::Stop),
                (false, _) => Err(self.vendor.truncated("it ended without a finish_reason")),
            };
        };
        let failed = |words: &str| ModelError::Server {
            provider: self.vendor.model.provider.clone(),
            status: 200,
            retry_after: None,
            message: format!("finish_reason {reason}: {words}"),
        };
        Ok(match reason.to_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" if has_calls => {
                FinishReason::ToolCalls
            }
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
            "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
            // Mistral's and Z.ai's names of a full window are the second and the last.
            "length" | "model_length" | "max_tokens" | "model_context_window_exceeded" => {
                FinishReason::MaxTokens
            }
            "content_filter" | "sensitive" => FinishReason::ContentFilter,
            "insufficient_system_resource" => {
                return Err(failed("the server ran out of resources"));
            }
            "error" | "network_error" => return Err(failed("the server could not go on")),
            "abort" | "aborted" | "cancelled" => {
                return Err(self.vendor.truncated(format!("finish_reason {reason}")));
            }
            _ => {
                let words = format!("finish_reason {reason}, which is no end of an answer we know");
                return Err(self.vendor.unreadable(words, &self.last));
            }
        })
    }
}

/// Whether something is said there; servers that have no error may still send the field.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(words) => !words.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Keeps a text that says something. Most pieces of an answer say the same again.
fn hear(known: &mut Option<String>, said: Option<&Loose<'_>>) {
    if let Some(said) = said.and_then(Loose::said)
        && known.as_deref() != Some(&*said)
    {
        *known = Some(said.into_owned());
    }
}

/// The words of a text, of a part with text, or of a list of those.
fn words(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| words(Some(part))).collect(),
        Some(Value::Object(part)) => words(part.get("text")),
        _ => String::new(),
    }
}
