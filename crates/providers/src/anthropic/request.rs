//! Encodes requests. Pure; the same request gives the same bytes.
//!
//! Caching: one mark after the tools, one after the instruction, and the request's own
//! `cache_control`, which the vendor puts on the last block that can be cached and moves as the
//! conversation grows ("Prompt caching", automatic caching, checked 2026-11-22). So no byte of an
//! earlier message changes from one request to the next.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::{
    CallId, Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolCall,
    ToolChoice, ToolDefinition,
};
use serde_json::{Value, json};

use super::family::Family;
use super::schema;
use super::wire::{self, Block, CacheControl};
use crate::encode::{Encoded, Encoder, Image, Settings, object};
use crate::text_calls::is_from_text;

/// Media types of images that the vendor takes.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Traces of the vendor's own tools that any request may carry. Source: the published schema of a
/// request.
const TRACES: &[&str] = &[
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
];

/// Traces that need a beta header, with that header. Source: the published schema of a beta
/// request, and the page of each in the vendor's guide (checked 2026-11-22).
const BETA_TRACES: &[(&str, &str)] = &[
    ("mcp_tool_use", "mcp-client-2025-11-20"),
    ("mcp_tool_result", "mcp-client-2025-11-20"),
    ("mcp_tool_listing", "mcp-client-2025-11-20"),
    ("advisor_tool_result", ADVISOR_BETA),
    ("compaction", "compact-2026-01-12"),
    ("fallback", "server-side-fallback-2026-07-01"),
];

/// The beta header of the advisor tool, whose calls look like those of other server tools.
const ADVISOR_BETA: &str = "advisor-tool-2026-03-01";

/// The beta header for requests that say what to do with thinking whose transcript has changed.
/// Source: "Preserved thinking".
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Encodes a request.
///
/// # Errors
/// [`ModelError::BadRequest`] if the vendor would refuse the request.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
    streamed: bool,
) -> Result<Encoded, ModelError> {
    let verbatim = request.config.verbatim;
    let mut encoder = AnthropicEncoder {
        common: Encoder::new(model, &family.common, request),
        ids: BTreeMap::new(),
        takes_system_messages: family.takes_system_messages,
    };
    let (mut system, messages) = encoder.transcript(&request.messages)?;
    encoder.common.require_messages(messages.len())?;
    let output_config = encoder.output_config(request, &mut system)?;
    let (offered, choice) = encoder.common.offer(family.forcing);
    let mut tools: Vec<_> = offered.iter().map(tool).collect();
    // The vendor caches only what a mark ends. Tools, instruction and messages change at different
    // times, so each has one.
    let mark = (!verbatim).then_some(CacheControl { kind: "ephemeral" });
    if let Some(tool) = tools.last_mut() {
        tool.cache_control = mark;
    }
    if let (Some(block), Some(mark)) = (system.last_mut(), mark) {
        block.insert("cache_control".to_owned(), json!(mark));
    }
    let settings = encoder.settings(request)?;
    let drop_block = json!({ "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": "drop_block" } });
    let wire = wire::Request {
        model: &model.name,
        max_tokens: settings.max_tokens.unwrap_or(OUTPUT_TOKENS_MAX),
        temperature: settings.temperature,
        top_p: settings.top_p,
        top_k: settings.top_k,
        stream: streamed,
        cache_control: mark,
        // These families think adaptively anyway. The history is trimmed and cut in places, and the
        // conversation must survive that.
        thinking: sends_bound_thinking(request, model, family).then_some(drop_block),
        output_config,
        tool_choice: tool_choice(&choice).filter(|_| !tools.is_empty()),
        tools,
        system,
        messages,
    };
    encoder.common.finish(&wire)
}

/// Returns the beta features that a request uses, sorted.
pub(super) fn betas(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
) -> Vec<&'static str> {
    let parts = request.messages.iter().flat_map(Message::parts);
    let traces = parts
        .filter(|part| is_from(part, model))
        .filter_map(beta_of_trace);
    let binding = sends_bound_thinking(request, model, family).then_some(BINDING_BETA);
    traces
        .chain(binding)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn beta_of_trace(part: &Part) -> Option<&'static str> {
    let Content::Opaque { kind } = &part.content else {
        return None;
    };
    let named = |name: &str| {
        part.state
            .as_ref()
            .is_some_and(|state| state.data["name"] == name)
    };
    if kind == "server_tool_use" && named("advisor") {
        return Some(ADVISOR_BETA);
    }
    BETA_TRACES
        .iter()
        .find(|(trace, _)| trace == kind)
        .map(|(_, beta)| *beta)
}

fn sends_bound_thinking(request: &GenerateRequest, model: &ModelId, family: &Family) -> bool {
    let mut parts = request.messages.iter().flat_map(Message::parts);
    family.binds_thinking
        && parts
            .any(|part| matches!(part.content, Content::Thinking { .. }) && is_from(part, model))
}

fn is_from(part: &Part, model: &ModelId) -> bool {
    part.state
        .as_ref()
        .is_some_and(|state| state.origin == *model)
}

/// The loss of a system message whose place the model or the vendor refuses.
const MOVED_TO_THE_BEGINNING: &str =
    "a system message in the middle was moved to the instruction at the beginning";

/// Appends a system message that waits, if its place is behind a user's turn.
fn place(waiting: &mut Vec<Block>, turns: &mut Vec<wire::Message>) {
    if !waiting.is_empty() && turns.last().is_some_and(|turn| turn.role == "user") {
        turns.push(wire::Message {
            role: "system",
            content: std::mem::take(waiting),
        });
    }
}

/// Returns the tool choice; `None` for the vendor's default, which is that the model may choose.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Named(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

fn tool(tool: &ToolDefinition) -> wire::Tool<'_> {
    wire::Tool {
        name: tool.name.as_str(),
        description: &tool.description,
        // Dropped keywords are no loss: the runtime checks the arguments against the whole schema
        // before it calls the tool.
        input_schema: schema::parameters(&tool.parameters, &mut BTreeSet::new()),
        cache_control: None,
    }
}

struct AnthropicEncoder<'a> {
    common: Encoder<'a>,
    /// The id that each call has in this request.
    ids: BTreeMap<&'a CallId, String>,
    takes_system_messages: bool,
}

impl<'a> AnthropicEncoder<'a> {
    /// Encodes the instruction and the messages. Neighbours of one role become one message, so that
    /// all results of a turn are together and before the user's next text.
    ///
    /// A system message in the middle stays there if the model takes it. The vendor wants it right
    /// behind a user's turn, and the assistant's or nothing behind it.
    fn transcript(
        &mut self,
        messages: &'a [Message],
    ) -> Result<(Vec<Block>, Vec<wire::Message>), ModelError> {
        let mut system = Vec::new();
        let mut turns: Vec<wire::Message> = Vec::new();
        // A system message that waits for the end of a user's turn.
        let mut waiting = Vec::new();
        for message in messages {
            let parts = message.parts().iter();
            let mut blocks: Vec<Block> = parts
                .filter_map(|part| self.part(part).transpose())
                .collect::<Result<_, _>>()?;
            let role = match message.role() {
                Role::System => {
                    if turns.is_empty() {
                        system.extend(blocks);
                    } else if self.takes_system_messages {
                        waiting.extend(blocks);
                    } else {
                        self.common.record_loss(MOVED_TO_THE_BEGINNING);
                        system.extend(blocks);
                    }
                    continue;
                }
                Role::Assistant => {
                    self.drop_trailing_thinking(&mut blocks);
                    if !blocks.is_empty() {
                        place(&mut waiting, &mut turns);
                    }
                    "assistant"
                }
                Role::User | Role::Tool => {
                    if !waiting.is_empty() && !blocks.is_empty() {
                        self.common.record_loss(
                            "a system message in the middle was moved behind the user's message after it",
                        );
                    }
                    "user"
                }
            };
            match turns.last_mut() {
                Some(turn) if turn.role == role => turn.content.extend(blocks),
                _ if blocks.is_empty() => {}
                _ => turns.push(wire::Message {
                    role,
                    content: blocks,
                }),
            }
        }
        place(&mut waiting, &mut turns);
        if !waiting.is_empty() {
            self.common.record_loss(MOVED_TO_THE_BEGINNING);
            system.extend(waiting);
        }
        if let Some(wire::Message {
            role: "assistant",
            content,
        }) = turns.last_mut()
            && let Some(Value::String(text)) =
                content.last_mut().and_then(|block| block.get_mut("text"))
        {
            // The vendor refuses trailing white space in a final assistant message.
            text.truncate(text.trim_end().len());
        }
        Ok((system, turns))
    }

    /// Drops thinking at the end of a message: "The final block in an assistant message cannot be
    /// `thinking`". An answer that was cut off may end so.
    fn drop_trailing_thinking(&mut self, blocks: &mut Vec<Block>) {
        let thinks = |block: &Block| {
            matches!(
                block["type"].as_str(),
                Some("thinking" | "redacted_thinking")
            )
        };
        while blocks.pop_if(|block| thinks(block)).is_some() {
            self.common
                .record_loss("thinking that led to nothing was left out");
        }
    }

    fn part(&mut self, part: &'a Part) -> Result<Option<Block>, ModelError> {
        let own = self.common.state(part).and_then(Value::as_object);
        let mut block = match &part.content {
            // The vendor refuses blank text.
            Content::Text { text } | Content::Refusal { text } if text.trim().is_empty() => {
                return Ok(None);
            }
            Content::Text { text } | Content::Refusal { text } => {
                object([("type", "text".into()), ("text", json!(text))])
            }
            Content::Thinking { .. }
                if part
                    .state
                    .as_ref()
                    .is_some_and(|state| is_from_text(&state.data)) =>
            {
                return Ok(None);
            }
            Content::Thinking { .. } if own.is_some_and(|state| state.contains_key("data")) => {
                object([("type", "redacted_thinking".into())])
            }
            Content::Thinking { text }
                if own.is_some_and(|state| state.contains_key("signature")) =>
            {
                object([("type", "thinking".into()), ("thinking", json!(text))])
            }
            Content::Thinking { .. } => {
                self.common.record_loss(match own {
                    Some(_) => "thinking without its signature was left out",
                    None => "thinking of another model was left out",
                });
                return Ok(None);
            }
            Content::Opaque { kind } => {
                match own {
                    Some(state)
                        if TRACES.contains(&kind.as_str()) || beta_of_trace(part).is_some() =>
                    {
                        return Ok(Some(state.clone()));
                    }
                    Some(_) => self
                        .common
                        .record_loss(format!("{kind} was left out: a request cannot carry it")),
                    None => self
                        .common
                        .record_loss(format!("{kind} of another model was left out")),
                }
                return Ok(None);
            }
            Content::Image { source } => match self.common.image(source)? {
                Some(Image::Bytes { media_type, .. }) if !IMAGES.contains(&media_type) => {
                    let what = format!("{media_type} images");
                    return self
                        .common
                        .unsupported(&what, "make it a JPEG, PNG, GIF or WebP");
                }
                Some(image) => object([("type", "image".into()), ("source", image_source(image))]),
                None => return Ok(None),
            },
            Content::ToolCall(call) => self.call(call),
            Content::ToolResult {
                call_id, result, ..
            } => {
                let id = self
                    .ids
                    .get(call_id)
                    .cloned()
                    .unwrap_or_else(|| sanitize(call_id.as_str()));
                let mut block =
                    object([("type", "tool_result".into()), ("tool_use_id", id.into())]);
                let text = result.to_text();
                if !text.trim().is_empty() {
                    block.insert("content".to_owned(), text.into());
                }
                if !result.success {
                    block.insert("is_error".to_owned(), true.into());
                }
                block
            }
            // `Content` is non-exhaustive: an unknown part is reported, not guessed.
            other => {
                self.common
                    .record_loss(format!("a part cannot be sent to Anthropic: {other:?}"));
                return Ok(None);
            }
        };
        // Signatures, citations and callers, exactly as the vendor sent them.
        block.extend(own.cloned().into_iter().flatten());
        Ok(Some(block))
    }

    /// Encodes a call. It keeps the id it came with, from whatever model, unless the vendor would
    /// refuse the id or another call has it.
    fn call(&mut self, call: &'a ToolCall) -> Block {
        let free = |id: &&str| sanitize(id) == **id && !self.ids.values().any(|taken| taken == *id);
        let id = call.provider_id.as_deref().filter(free);
        let id = id.map_or_else(|| sanitize(call.id.as_str()), str::to_owned);
        self.ids.insert(&call.id, id.clone());
        let name = sanitize(&call.name);
        if name != call.name {
            self.common.record_loss(format!(
                "a call of {:?} was sent as {name}: the vendor refuses such a name",
                call.name
            ));
        }
        object([
            ("type", "tool_use".into()),
            ("id", id.into()),
            ("name", name.into()),
            ("input", Value::Object(self.common.arguments(call).clone())),
        ])
    }

    fn settings(&mut self, request: &GenerateRequest) -> Result<Settings, ModelError> {
        let mut settings = self.common.settings()?;
        if request.config.verbatim {
            return Ok(settings);
        }
        if settings
            .temperature
            .is_some_and(|temperature| temperature > 1.0)
        {
            let instead = "set GenerationConfig::temperature (llm.temperature) to 1 or less";
            settings.temperature = self.common.unsupported("a temperature above 1", instead)?;
        }
        if settings.top_p.is_some()
            && request.config.temperature.is_none()
            && settings.temperature.is_some()
        {
            // Since Claude 4.1 both together are an error, and the temperature is only our default.
            settings.temperature = None;
        }
        Ok(settings)
    }

    /// Returns the schema of the answer. A schema that the vendor cannot enforce is asked for in
    /// text after the instruction.
    fn output_config(
        &mut self,
        request: &GenerateRequest,
        system: &mut Vec<Block>,
    ) -> Result<Option<Value>, ModelError> {
        let Some(schema) = &request.response_schema else {
            return Ok(None);
        };
        if !self.common.covers_schema() {
            return self
                .common
                .unsupported("a response schema", "ask for the form in words");
        }
        let mut dropped = BTreeSet::new();
        match schema::answer(schema, &mut dropped) {
            Ok(schema) => {
                self.common
                    .record_dropped_keywords("the response schema", &dropped);
                Ok(Some(
                    json!({ "format": { "type": "json_schema", "schema": schema } }),
                ))
            }
            Err(obstacle) => {
                self.common.record_loss(format!(
                    "the response schema was asked for in words: it {obstacle}"
                ));
                let text = format!(
                    "Answer with one JSON value that fits this JSON Schema, and nothing else:\n{schema}"
                );
                system.push(object([("type", "text".into()), ("text", text.into())]));
                Ok(None)
            }
        }
    }
}

fn image_source(image: Image<'_>) -> Value {
    match image {
        Image::Bytes { media_type, data } => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
        Image::Url(url) => json!({ "type": "url", "url": url }),
    }
}

/// Replaces characters that the vendor refuses in names and ids (`^[a-zA-Z0-9_-]+$`, at most 128).
fn sanitize(name: &str) -> String {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(fits).take(128).collect();
    if name.is_empty() {
        "_".to_owned()
    } else {
        name
    }
}
