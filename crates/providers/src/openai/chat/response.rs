//! Decodes answers. Pure; a chunk of a streamed answer has the shape of a whole one with less in
//! it, so both are decoded here.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use adjutant_core::{Delta, FinishReason, GenerateResponse, ModelError, ToolSet};
use serde_json::{Value, json};

use super::super::dialect::{Dialect, InText};
use super::super::error;
use super::chunk_template::{ChunkTemplate, NewContent};
use super::thinking::Thinking;
use super::usage::Counts;
use super::wire::{self, LooseValue, is_set};
use crate::assembly::{Assembly, CallFragment};
use crate::decode::{AnswerFold, Progress, check_content};
use crate::error::Vendor;
use crate::text_calls::TextCalls;

/// An answer whose chunks are still arriving.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    vendor: Arc<Vendor>,
    dialect: &'static Dialect,
    losses: Vec<String>,
    assembly: Assembly,
    thinking: Thinking,
    /// Finds thinking and calls in the text. Only for servers that may leave them there.
    text: Option<TextCalls>,
    counts: Counts,
    /// The indices of the calls so far.
    calls: BTreeSet<u64>,
    /// The choice whose calls are read: the first that has any.
    calling_choice: Option<u64>,
    /// A choice arrived, perhaps only with its role.
    answered: bool,
    /// Content arrived.
    has_content: bool,
    /// The server marked the end of the answer, or it came as one body.
    is_whole: bool,
    finish: Option<String>,
    /// The finish reason of the calling choice, if that is not the first one.
    finish_of_calls: Option<String>,
    model: Option<String>,
    /// The last chunk.
    last: String,
    /// The template of the last chunk, if the next one may match it.
    template: Option<ChunkTemplate>,
}

impl PartialAnswer {
    pub(super) fn new(
        vendor: Arc<Vendor>,
        dialect: &'static Dialect,
        tools: &ToolSet,
        losses: Vec<String>,
    ) -> Self {
        let tools = match dialect.in_text {
            InText::Nothing => None,
            InText::Thinking => Some(ToolSet::default()),
            InText::ThinkingAndCalls => Some(tools.clone()),
        };
        Self {
            text: tools.map(TextCalls::new),
            vendor,
            dialect,
            losses,
            assembly: Assembly::default(),
            thinking: Thinking::default(),
            counts: Counts::default(),
            calls: BTreeSet::new(),
            calling_choice: None,
            answered: false,
            has_content: false,
            is_whole: false,
            finish: None,
            finish_of_calls: None,
            model: None,
            last: String::new(),
            template: None,
        }
    }
}

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(template) = &mut self.template
            && let Some(new) = template.decode(&self.last, json)
        {
            json.clone_into(&mut self.last);
            match new {
                NewContent::Text(text) => self.text(&text, deltas),
                NewContent::Message(message) => self.message(message, true, deltas),
            }
            return Ok(());
        }
        self.add(json, false, deltas)
    }

    fn done(&mut self) {
        self.is_whole = true;
    }

    /// Counts come after the finish reason, and not every server sends an end mark.
    fn progress(&self) -> Progress {
        if self.finish.is_some() {
            Progress::Complete
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        // An error, or the whole answer of a server that does not stream.
        if let Some(body) = error::parse_stray(stray)
            && (!self.answered || body.get("choices").is_none())
        {
            self.add(&body.to_string(), true, deltas)?;
            self.is_whole |= self.answered;
        }
        self.flush(deltas);
        let finish = self.finish_reason()?;
        let requested = &self.vendor.model;
        let mut parts = std::mem::take(&mut self.assembly).finish(requested);
        std::mem::take(&mut self.thinking).record_in(&mut parts, requested);
        let response = GenerateResponse {
            parts,
            finish,
            usage: self.counts.usage(),
            counters: self.counts.counters(),
            cost: self.counts.cost(self.dialect.costs_in_dollars),
            model: self.vendor.answered_by(self.model.take()),
            losses: std::mem::take(&mut self.losses),
            certainty: None,
        };
        check_content(response, &self.vendor)
    }

    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let unseen = &mut VecDeque::new();
        self.add(body, true, unseen)?;
        if !self.answered {
            return Err(self.vendor.invalid("no choices", body));
        }
        self.is_whole = true;
        self.finish("", unseen)
    }
}

impl PartialAnswer {
    /// Adds a chunk, or a body that is no stream.
    fn add(
        &mut self,
        json: &str,
        is_body: bool,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let reply: wire::Reply<'_> =
            serde_json::from_str(json).map_err(|error| self.vendor.not_json(error, json))?;
        json.clone_into(&mut self.last);
        // Before anything is moved out of the reply, whose texts it looks up in the JSON.
        self.template = ChunkTemplate::new(json, &reply);
        if let Some(error) = reply.error.as_deref().filter(|error| is_set(error)) {
            return Err(error::in_answer(&self.vendor, error));
        }
        let Some(choices) = reply.choices else {
            return self.add_without_choices(json);
        };
        update(&mut self.model, reply.model.as_ref());
        let groq = reply.x_groq.as_deref();
        if let Some(error) = groq
            .and_then(|groq| groq.get("error"))
            .filter(|error| is_set(error))
        {
            return Err(error::in_answer(&self.vendor, error));
        }
        for usage in reply
            .usage
            .as_deref()
            .into_iter()
            .chain(groq.and_then(|groq| groq.get("usage")))
        {
            self.counts.add(usage);
        }
        let first = choices.iter().position(wire::Choice::is_first);
        for (position, choice) in choices.into_iter().enumerate() {
            if Some(position) == first {
                self.first_choice(choice, is_body, deltas)?;
            } else {
                self.other_choice(position, choice, is_body, deltas);
            }
        }
        Ok(())
    }

    fn first_choice(
        &mut self,
        mut choice: wire::Choice<'_>,
        is_body: bool,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.answered = true;
        if let Some(usage) = &choice.usage {
            self.counts.add(usage);
        }
        match choice.take_content(is_body) {
            // A few servers repeat the whole message after its chunks. Its calls may be new.
            Some((mut message, false)) if self.has_content => {
                self.add_calls(0, message.take_calls(), false, deltas);
            }
            Some((message, is_piece)) => self.message(message, is_piece, deltas),
            None => {}
        }
        if let Some(error) = choice.error.as_deref().filter(|error| is_set(error)) {
            return Err(error::in_answer(&self.vendor, error));
        }
        update(&mut self.finish, choice.finish_reason.as_ref());
        Ok(())
    }

    /// Reads the calls of a choice that is not the first. One choice is requested, so a second one
    /// is no alternative: a few servers put the text into one and the call into the next.
    fn other_choice(
        &mut self,
        position: usize,
        mut choice: wire::Choice<'_>,
        is_body: bool,
        deltas: &mut VecDeque<Delta>,
    ) {
        let number = choice.index().unwrap_or(position as u64);
        if let Some((mut message, is_piece)) = choice.take_content(is_body) {
            self.add_calls(number, message.take_calls(), is_piece, deltas);
        }
        if self.calling_choice == Some(number) {
            self.answered = true;
            update(&mut self.finish_of_calls, choice.finish_reason.as_ref());
        }
    }

    /// Adds JSON without choices: token counts, or an error in an unusual place.
    fn add_without_choices(&mut self, json: &str) -> Result<(), ModelError> {
        let body: Value = serde_json::from_str(json).unwrap_or_default();
        let has_error = ["message", "msg", "detail", "error_message", "errors"]
            .iter()
            .any(|name| body.get(name).is_some_and(is_set));
        if has_error
            || body.get("object") == Some(&json!("error"))
            || body.get("type") == Some(&json!("error"))
        {
            return Err(error::in_answer(&self.vendor, &body));
        }
        if let Some(usage) = body.get("usage") {
            self.counts.add(usage);
        }
        Ok(())
    }

    fn message(
        &mut self,
        mut message: wire::Message<'_>,
        is_piece: bool,
        deltas: &mut VecDeque<Delta>,
    ) {
        let calls = message.take_calls();
        if let Some(text) = self.thinking.extract(&message, is_piece) {
            self.has_content = true;
            self.flush(deltas);
            deltas.extend(self.assembly.thinking(&text, None));
        }
        match message.content {
            Some(LooseValue::Text(text)) => self.text(&text, deltas),
            Some(LooseValue::Count(count)) => self.content(count.into(), deltas),
            Some(LooseValue::Other(content)) => self.content(*content, deltas),
            None => {}
        }
        if let Some(text) = message
            .refusal
            .as_ref()
            .and_then(LooseValue::to_nonempty_text)
        {
            self.has_content = true;
            self.assembly.refusal(&text, None);
        }
        for (kind, trace) in [
            ("images", message.images),
            ("executed_tools", message.executed_tools),
        ] {
            if let Some(trace) = trace.filter(|trace| is_set(trace)) {
                self.has_content = true;
                self.assembly.opaque(kind, json!({ kind: *trace }));
            }
        }
        self.add_calls(0, calls, is_piece, deltas);
    }

    /// Adds calls of a choice, or fragments of them. Whole calls behind other calls repeat those.
    fn add_calls(
        &mut self,
        choice: u64,
        calls: Vec<wire::Call<'_>>,
        is_piece: bool,
        deltas: &mut VecDeque<Delta>,
    ) {
        let is_known = |calling| !is_piece || calling != choice;
        if self.calling_choice.is_some_and(is_known) {
            return;
        }
        for (position, call) in calls.into_iter().enumerate() {
            // The calls of a whole answer are in order; some servers number them wrongly.
            let index = if is_piece {
                call.index.as_ref().and_then(LooseValue::as_u64)
            } else {
                Some(position as u64)
            };
            self.flush(deltas);
            if let Some(delta) = self.call(index, call) {
                self.calling_choice = Some(choice);
                deltas.push_back(delta);
            }
        }
    }

    fn content(&mut self, content: Value, deltas: &mut VecDeque<Delta>) {
        match content {
            Value::Null => {}
            Value::String(text) => self.text(&text, deltas),
            Value::Array(parts) => parts
                .into_iter()
                .for_each(|part| self.content(part, deltas)),
            part => self.part(part, deltas),
        }
    }

    fn text(&mut self, text: &str, deltas: &mut VecDeque<Delta>) {
        self.has_content |= !text.is_empty();
        match &mut self.text {
            None => deltas.extend(self.assembly.text(text, None)),
            Some(calls) => {
                calls.push_to(text, &mut self.assembly, &mut self.losses, deltas);
            }
        }
    }

    /// Decides on text that was held back, because other content or the end follows.
    fn flush(&mut self, deltas: &mut VecDeque<Delta>) {
        if let Some(calls) = &mut self.text {
            calls.flush_to(&mut self.assembly, &mut self.losses, deltas);
        }
    }

    /// Adds a part of content that consists of parts.
    fn part(&mut self, part: Value, deltas: &mut VecDeque<Delta>) {
        let kind = part["type"].as_str().unwrap_or("text").to_owned();
        self.has_content = true;
        match kind.as_str() {
            "thinking" => {
                self.thinking.found_in_content();
                let text = text_of(part.get("thinking"));
                deltas.extend(self.assembly.thinking(&text, None));
            }
            "refusal" => self.assembly.refusal(&text_of(part.get("refusal")), None),
            _ if part.get("text").is_some() => self.text(&text_of(part.get("text")), deltas),
            // References and citations annotate the text beside them.
            "reference" | "citation" => {}
            kind => self.assembly.opaque(kind, part),
        }
    }

    /// Adds a call, or a fragment of one; `None` if it is empty.
    fn call(&mut self, index: Option<u64>, call: wire::Call<'_>) -> Option<Delta> {
        let (name, arguments) = match (call.function, call.custom) {
            (Some(function), _) => (function.name, function.arguments),
            (None, Some(custom)) => (custom.name, custom.input),
            (None, None) => (None, None),
        };
        let arguments = match arguments {
            None => Cow::Borrowed(""),
            Some(LooseValue::Text(text)) => text,
            Some(LooseValue::Count(count)) => Cow::Owned(count.to_string()),
            Some(LooseValue::Other(object)) => Cow::Owned(object.to_string()),
        };
        let name = name.as_ref().and_then(LooseValue::to_nonempty_text);
        let id = call.id.as_ref().and_then(LooseValue::to_nonempty_text);
        if name.is_none() && id.is_none() && arguments.is_empty() {
            return None;
        }
        self.has_content = true;
        // Some servers send a new id with every fragment; only the first fragment has a name.
        let continues = name.is_none() && index.is_some_and(|index| self.calls.contains(&index));
        self.calls.extend(index);
        let fragment = CallFragment {
            index,
            provider_id: id.as_deref().filter(|_| !continues),
            name: name.as_deref(),
            arguments: &arguments,
        };
        let state = call.extra_content.filter(|extra| !extra.is_null());
        Some(self.assembly.call(
            fragment,
            state.map(|extra| json!({ "extra_content": *extra })),
        ))
    }

    /// Forgets the template, so that the next chunk is parsed as JSON.
    #[cfg(test)]
    pub(super) fn forget_template(&mut self) {
        self.template = None;
    }

    /// Returns the finish reason. Source: `finish_reason` in OpenAI's reference, and in those of
    /// the servers in `vendors.rs`. An unknown reason is an error, so that a cut-off call is never
    /// run.
    fn finish_reason(&self) -> Result<FinishReason, ModelError> {
        let Some(reason) = self.finish_of_calls.as_ref().or(self.finish.as_ref()) else {
            // A few servers send no reason; the answer is then complete if they marked its end.
            return match self.is_whole && self.has_content {
                true => Ok(self.assembly.natural_end()),
                false => Err(self.vendor.truncated("it ended without a finish_reason")),
            };
        };
        let failed = |what: &str| {
            self.vendor
                .failed(format!("finish_reason {reason}: {what}"))
        };
        Ok(match reason.to_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => {
                self.assembly.natural_end()
            }
            "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
            // The second and the last are Mistral's and Z.ai's names for a full context window.
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
                let reason =
                    format!("finish_reason {reason}, which is no end of an answer we know");
                return Err(self.vendor.invalid(reason, &self.last));
            }
        })
    }
}

/// Replaces a text by a newer one that is not empty. Compares first, because most chunks repeat it.
fn update(known: &mut Option<String>, new: Option<&LooseValue<'_>>) {
    if let Some(new) = new.and_then(LooseValue::to_nonempty_text)
        && known.as_deref() != Some(&*new)
    {
        *known = Some(new.into_owned());
    }
}

/// Joins the text of a string, of a part with text, or of a list of those.
fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text_of(Some(part))).collect(),
        Some(Value::Object(part)) => text_of(part.get("text")),
        _ => String::new(),
    }
}
