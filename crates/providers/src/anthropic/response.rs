//! Decodes answers. Pure; a stream is folded into the blocks of a whole answer first, so both are
//! decoded here.

use std::sync::Arc;

use adjutant_core::{
    Content, Cost, Counters, FinishReason, GenerateResponse, ModelError, ModelId, Part,
    ProviderState, ToolCall, Usage,
};
use serde_json::{Map, Value};

use super::wire;
use crate::decode::check_content;
use crate::encode::{object, str_field};
use crate::error::Vendor;

/// An answer whose blocks are still arriving.
#[derive(Debug)]
pub(super) struct PartialAnswer {
    pub(super) vendor: Arc<Vendor>,
    losses: Vec<String>,
    pub(super) blocks: Vec<Block>,
    /// `message_stop` was read.
    pub(super) over: bool,
    stop: wire::Stop,
    usage: wire::Usage,
    /// The input count of the first report; later ones include tokens read by the vendor's own
    /// tools.
    first_input: Option<u64>,
    /// Thinking blocks of the transcript that the vendor dropped.
    thinking_dropped: usize,
    model: Option<String>,
}

/// A content block, perhaps incomplete.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The vendor's index of the block.
    pub(super) index: Option<u64>,
    /// True while more of it may arrive.
    pub(super) open: bool,
    pub(super) fields: wire::Block,
    /// The JSON text of its `input`, if that is streamed.
    pub(super) input: String,
}

impl PartialAnswer {
    pub(super) fn new(vendor: Arc<Vendor>, losses: Vec<String>) -> Self {
        Self {
            vendor,
            losses,
            blocks: Vec::new(),
            over: false,
            stop: wire::Stop::default(),
            usage: wire::Usage::default(),
            first_input: None,
            thinking_dropped: 0,
            model: None,
        }
    }

    /// Adds a whole answer, or the beginning of a streamed one.
    pub(super) fn begin(&mut self, answer: wire::Answer) {
        let blocks = match answer.content {
            Some(wire::Content::Blocks(blocks)) => blocks,
            Some(wire::Content::Text(text)) => {
                vec![object([("type", "text".into()), ("text", text.into())])]
            }
            None => Vec::new(),
        };
        self.blocks.extend(blocks.into_iter().map(|fields| Block {
            fields,
            ..Block::default()
        }));
        self.model = answer.model.or(self.model.take());
        self.stop = answer.stop;
        self.count(answer.usage.as_ref());
        self.record_transformations(answer.input_transformations.as_deref());
    }

    /// Adds the fields of a stop report that are set.
    pub(super) fn merge_stop(&mut self, stop: wire::Stop) {
        self.stop = wire::Stop {
            stop_reason: stop.stop_reason.or(self.stop.stop_reason.take()),
            stop_details: stop.stop_details.or(self.stop.stop_details.take()),
        };
    }

    /// Adds a report of token counts. They are totals so far, so the last report of each count is
    /// valid.
    pub(super) fn count(&mut self, report: Option<&wire::Usage>) {
        let Some(report) = report else { return };
        let usage = &mut self.usage;
        usage.input_tokens = report.input_tokens.or(usage.input_tokens);
        usage.output_tokens = report.output_tokens.or(usage.output_tokens);
        usage.cache_read_input_tokens = report
            .cache_read_input_tokens
            .or(usage.cache_read_input_tokens);
        usage.cache_creation_input_tokens = report
            .cache_creation_input_tokens
            .or(usage.cache_creation_input_tokens);
        usage.output_tokens_details = report.output_tokens_details.or(usage.output_tokens_details);
        usage.cost = report.cost.or(usage.cost);
        // Some proxies begin with a meaningless zero.
        self.first_input = self
            .first_input
            .filter(|count| *count > 0)
            .or(usage.input_tokens);
    }

    /// Records thinking that the vendor dropped because its transcript has changed, as `request.rs`
    /// allows. The last report is valid.
    pub(super) fn record_transformations(&mut self, transformations: Option<&[Value]>) {
        self.thinking_dropped = transformations.map_or(self.thinking_dropped, <[Value]>::len);
    }

    /// Returns the whole answer.
    ///
    /// # Errors
    /// [`ModelError::Truncated`] without a stop reason, or if the content is missing.
    pub(super) fn end(&mut self) -> Result<GenerateResponse, ModelError> {
        let Some(reason) = self.stop.stop_reason.take() else {
            return Err(self.vendor.truncated("it ended without a stop_reason"));
        };
        let requested = &self.vendor.model;
        let mut parts = Vec::new();
        let mut calls = 0;
        for block in std::mem::take(&mut self.blocks) {
            let part = block.part(requested, calls);
            calls += usize::from(
                part.as_ref()
                    .is_some_and(|part| matches!(part.content, Content::ToolCall(_))),
            );
            parts.extend(part);
        }
        let finish = self.reason(&reason, calls > 0)?;
        if finish == FinishReason::ContentFilter {
            // A refusal without an explanation is one by the model, not by a filter.
            parts.push(match self.refusal() {
                Some(text) => Part::explanation(text, self.vendor.model.clone()),
                None => Part::from_provider(
                    Content::Refusal {
                        text: String::new(),
                    },
                    None,
                ),
            });
        }
        if self.thinking_dropped > 0 {
            let count = self.thinking_dropped;
            self.losses.push(format!(
                "{count} thinking block(s) were left out by the vendor: what they followed is another by now"
            ));
        }
        let response = GenerateResponse {
            parts,
            finish,
            usage: self.usage(),
            counters: Counters {
                input: self.first_input,
                output: self.usage.output_tokens,
            },
            cost: self.usage.cost.and_then(Cost::from_usd),
            model: self.vendor.answered_by(self.model.take()),
            losses: std::mem::take(&mut self.losses),
            certainty: None,
        };
        check_content(response, &self.vendor)
    }

    /// Returns the finish reason. Source: "Stop reasons and fallback" in the vendor's guide. An
    /// unknown reason is an error, so that a cut-off call is never run.
    fn reason(&mut self, reason: &str, has_calls: bool) -> Result<FinishReason, ModelError> {
        Ok(match reason {
            "end_turn" | "stop_sequence" if has_calls => FinishReason::ToolCalls,
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            // The context window was full before max_tokens were generated; the guide says to treat
            // that as truncated.
            "max_tokens" | "model_context_window_exceeded" => FinishReason::MaxTokens,
            "refusal" => FinishReason::ContentFilter,
            // The vendor's own tools reached their bound, or it compacted its context. We ask for
            // neither; the answer so far is valid, and continues when it is sent back.
            "pause_turn" | "compaction" => {
                self.losses.push(format!(
                    "the vendor paused ({reason}): the answer may not be whole"
                ));
                if has_calls {
                    FinishReason::ToolCalls
                } else {
                    FinishReason::Stop
                }
            }
            other => {
                let reason = format!("stop_reason {other}, which is no end of an answer we know");
                return Err(self.vendor.invalid(reason, ""));
            }
        })
    }

    /// Returns the vendor's explanation of a refusal, if there is one.
    fn refusal(&self) -> Option<String> {
        let details = self.stop.stop_details.as_ref()?;
        let text = details.explanation.clone().filter(|text| !text.is_empty());
        text.or_else(|| Some(format!("refused ({})", details.category.as_deref()?)))
    }

    /// Returns the token counts. The vendor counts tokens of its cache apart from the input.
    fn usage(&self) -> Usage {
        let usage = &self.usage;
        let cache = usage
            .cache_read_input_tokens
            .unwrap_or(0)
            .saturating_add(usage.cache_creation_input_tokens.unwrap_or(0));
        Usage {
            input_tokens: usage.input_tokens.map(|input| input.saturating_add(cache)),
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cache_read_input_tokens,
            cache_written_tokens: usage.cache_creation_input_tokens,
            thinking_tokens: usage
                .output_tokens_details
                .and_then(|details| details.thinking_tokens),
        }
    }
}

impl Block {
    pub(super) fn kind(&self) -> &str {
        str_field(&self.fields, "type").unwrap_or_default()
    }

    pub(super) fn is_call(&self) -> bool {
        self.kind() == "tool_use"
    }

    pub(super) fn name(&self) -> String {
        str_field(&self.fields, "name")
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the JSON text of a call's arguments.
    pub(super) fn arguments(&self) -> String {
        match self.fields.get("input") {
            _ if !self.input.is_empty() => self.input.clone(),
            None | Some(Value::Null) => String::new(),
            // Text is the JSON text itself, written by the model, so it may be malformed.
            Some(Value::String(text)) => text.clone(),
            Some(input) => input.to_string(),
        }
    }

    /// Returns the block as a part; `None` for empty text. `calls` is the number of calls before
    /// it.
    fn part(mut self, origin: &ModelId, calls: usize) -> Option<Part> {
        let state = |data: Map<String, Value>| ProviderState {
            origin: origin.clone(),
            data: Value::Object(data),
        };
        let content = match self.kind() {
            "text" => {
                let text = self.take("text");
                let rest = self.rest();
                let state = (!rest.is_empty()).then(|| state(rest));
                let is_empty = text.is_empty() && state.is_none();
                return (!is_empty).then(|| Part::from_provider(Content::Text { text }, state));
            }
            "thinking" => Content::Thinking {
                text: self.take("thinking"),
            },
            // Encrypted as a whole: the state keeps it, and there is no text to show.
            "redacted_thinking" => Content::Thinking {
                text: String::new(),
            },
            "tool_use" => {
                let (arguments, name) = (self.arguments(), self.name());
                let id = Some(self.take("id")).filter(|id| !id.is_empty());
                self.fields
                    .retain(|name, _| name != "name" && name != "input");
                Content::ToolCall(ToolCall::from_json_text(calls, id, name, &arguments))
            }
            // Kept unchanged, except that a streamed input is put in its place.
            kind => {
                let kind = kind.to_owned();
                if !self.input.is_empty() {
                    let input = serde_json::from_str(&self.input)
                        .unwrap_or_else(|_| Value::Object(Map::new()));
                    self.fields.insert("input".to_owned(), input);
                }
                return Some(Part::from_provider(
                    Content::Opaque { kind },
                    Some(state(self.fields)),
                ));
            }
        };
        Some(Part::from_provider(content, Some(state(self.rest()))))
    }

    fn take(&mut self, name: &str) -> String {
        match self.fields.shift_remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        }
    }

    /// Returns the fields that the vendor wants back with the content: signatures, citations,
    /// callers.
    fn rest(mut self) -> Map<String, Value> {
        let is_blank =
            |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        self.fields
            .retain(|name, value| name != "type" && !is_blank(value));
        self.fields
    }
}
