//! Encodes requests. Pure; the same request gives the same bytes.

use std::collections::BTreeMap;

use adjutant_core::{
    CallId, Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolChoice,
    ToolDefinition,
};
use serde_json::{Map, Value, json};

use super::family::{Family, OllamaOptions};
use super::wire;
use crate::encode::{Encoded, Encoder, Forcing, FunctionTool, Image, describe};
use crate::transcript::alternating;

/// Encodes a request. `window` is the context window of a server that can be asked not to cut a
/// prompt; `None` for other servers.
///
/// # Errors
/// [`ModelError::BadRequest`] if the server would refuse the request.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
    options: &OllamaOptions,
    window: Option<u64>,
    streamed: bool,
) -> Result<Encoded, ModelError> {
    // The server fills templates in, of which some refuse neighbours of one role.
    let transcript = alternating(request);
    let mut encoder = OllamaEncoder {
        common: Encoder::new(model, &family.common, request),
        provider_ids: BTreeMap::new(),
    };
    encoder.common.require_schema_support(
        "a response schema keeps a model of Ollama from calling tools: send one of them only",
    )?;
    // The API has no tool choice: tools that may not be called are not sent.
    let (offered, choice) = encoder.common.offer(Forcing::Never);
    let offered: &[ToolDefinition] = if choice == ToolChoice::None {
        &[]
    } else {
        &offered
    };
    let tools = encoder.tools(offered, family.tools)?;
    let mut messages = Vec::new();
    for message in &*transcript {
        messages.extend(encoder.message(message)?);
    }
    encoder.common.require_messages(messages.len())?;
    let settings = encoder.common.settings()?;
    let may_be_cut = window.is_some_and(|tokens| tokens_max(&tools, &messages) > tokens);
    encoder.common.finish(&wire::Request {
        model: &model.name,
        tools,
        stream: streamed,
        truncate: may_be_cut.then_some(false),
        think: options.think.map(|think| think.to_json()),
        format: request.response_schema.as_ref(),
        keep_alive: options.keep_alive.as_deref().map(keep_alive),
        options: wire::Options {
            num_ctx: options.num_ctx,
            num_predict: settings.max_tokens,
            temperature: settings.temperature,
            top_p: settings.top_p,
            top_k: settings.top_k,
        },
        messages,
    })
}

/// Tokens that a template adds per message, at most.
const TEMPLATE_TOKENS: usize = 16;

/// Returns an upper bound of a prompt's tokens: no tokenizer makes more than one of a byte.
fn tokens_max(tools: &[FunctionTool<'_>], messages: &[wire::Message<'_>]) -> u64 {
    let of_tool = |tool: &FunctionTool<'_>| {
        let function = &tool.function;
        function.name.len()
            + function.description.len()
            + function.parameters.to_string().len()
            + TEMPLATE_TOKENS
    };
    let of_message = |message: &wire::Message<'_>| {
        let call = |call: &wire::ToolCall<'_>| {
            let arguments: usize = call
                .function
                .arguments
                .values()
                .map(|value| value.to_string().len())
                .sum();
            call.function.name.len() + arguments + TEMPLATE_TOKENS
        };
        // The tokens of an image depend on the model, but are fewer than its bytes.
        let images: usize = message.images.iter().map(|image| image.len()).sum();
        let calls: usize = message.tool_calls.iter().map(call).sum();
        message.content.len() + message.thinking.len() + images + calls + TEMPLATE_TOKENS
    };
    let tools: usize = tools.iter().map(of_tool).sum();
    let messages: usize = messages.iter().map(of_message).sum();
    (tools + messages) as u64
}

/// Encodes a keep-alive time. The server parses text as a Go duration, and a number as seconds.
fn keep_alive(text: &str) -> Value {
    text.trim()
        .parse::<i64>()
        .map_or_else(|_| json!(text.trim()), |seconds| json!(seconds))
}

struct OllamaEncoder<'a> {
    common: Encoder<'a>,
    /// The server's own ids of its calls, to be repeated with their results.
    provider_ids: BTreeMap<&'a CallId, &'a str>,
}

impl<'a> OllamaEncoder<'a> {
    fn tools<'t>(
        &mut self,
        tools: &'t [ToolDefinition],
        supported: bool,
    ) -> Result<Vec<FunctionTool<'t>>, ModelError> {
        if !tools.is_empty() && !supported {
            let instead = "choose a model that lists `tools` under `ollama show MODEL`, such as qwen3:8b (ollama pull qwen3:8b)";
            let none = self.common.unsupported("tools", instead)?;
            return Ok(none.unwrap_or_default());
        }
        let tool = |tool| FunctionTool::new(tool, parameters(&tool.parameters));
        Ok(tools.iter().map(tool).collect())
    }

    /// Encodes a message; `None` if nothing of it can be sent.
    fn message(&mut self, message: &'a Message) -> Result<Option<wire::Message<'a>>, ModelError> {
        let role = match message.role() {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let mut wire = wire::Message {
            role,
            ..wire::Message::default()
        };
        for part in message.parts() {
            self.part(part, &mut wire)?;
        }
        let is_empty = wire.content.is_empty()
            && wire.thinking.is_empty()
            && wire.images.is_empty()
            && wire.tool_calls.is_empty();
        // A tool may return nothing, but its call must not be left without a result.
        Ok((!is_empty || message.role() == Role::Tool).then_some(wire))
    }

    fn part(&mut self, part: &'a Part, wire: &mut wire::Message<'a>) -> Result<(), ModelError> {
        let own = self.common.state(part).is_some();
        match &part.content {
            Content::Text { text } | Content::Refusal { text } => wire.content.push_str(text),
            Content::Thinking { text } if own => wire.thinking.push_str(text),
            Content::Image { source } => match self.common.picture(source)? {
                Some(Image::Bytes { data, .. }) => wire.images.push(data),
                Some(Image::Url(_)) | None => {}
            },
            Content::ToolCall(call) => {
                let id = call.provider_id.as_deref().filter(|_| own);
                if let Some(id) = id {
                    self.provider_ids.insert(&call.id, id);
                }
                let arguments = self.common.arguments(call);
                let function = wire::CalledFunction {
                    name: &call.name,
                    arguments,
                };
                wire.tool_calls.push(wire::ToolCall { id, function });
            }
            Content::ToolResult {
                call_id,
                name,
                result,
            } => {
                wire.content.push_str(&result.to_text());
                wire.tool_name = Some(name);
                wire.tool_call_id = self.provider_ids.get(call_id).copied();
            }
            // Traces, thinking of other models, and kinds of content added later.
            other => self.common.record_loss(format!(
                "{} was left out: Ollama has no place for it",
                describe(other)
            )),
        }
        Ok(())
    }
}

/// Adapts a schema to the types that the server's JSON parser expects: it refuses a request in
/// which a property is `true` instead of an object, or the schema is no object.
fn parameters(schema: &Value) -> Value {
    let Value::Object(schema) = schema else {
        return json!({ "type": "object", "properties": {} });
    };
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    match properties.as_object_mut() {
        Some(properties) => {
            for property in properties
                .values_mut()
                .filter(|property| !property.is_object())
            {
                *property = Value::Object(Map::new());
            }
        }
        None => *properties = json!({}),
    }
    Value::Object(schema)
}
