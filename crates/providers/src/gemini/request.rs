//! Core to wire. Pure; the same request gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::limits::{OUTPUT_TOKENS_MAX, TEMPERATURE};
use adjutant_core::{
    CallId, Content, GenerateRequest, ImageSource, Message, ModelError, ModelId, Part, Role, ToolCall,
    ToolDefinition,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::family::Family;
use super::schema;
use super::wire;

/// Stands in for the signature of a call that another model made. Source: "Thought signatures", transferring history from
/// other models.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// A request as bytes, and what could not be said in it.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) body: Bytes,
    pub(super) losses: Vec<String>,
}

/// Fails with [`ModelError::BadRequest`] where the model would refuse the request anyway.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
) -> Result<Encoded, ModelError> {
    let impossible = |message: &str| ModelError::BadRequest {
        provider: model.provider.clone(),
        message: message.to_owned(),
    };
    if request.response_schema.is_some() && !request.tools.is_empty() && !family.schema_with_tools {
        return Err(impossible("this model takes a response schema or tools, not both in one request"));
    }
    let mut encoder = Encoder { model, family, losses: Vec::new(), provider_ids: BTreeMap::new() };
    let (system_instruction, contents) = encoder.transcript(&request.messages);
    if contents.is_empty() {
        return Err(impossible(
            "there is nothing to answer: the transcript has no message besides the instruction",
        ));
    }
    let declarations: Vec<_> = request.tools.iter().map(|tool| encoder.declaration(tool)).collect();
    let calling = wire::ToolConfig { function_calling_config: wire::FunctionCallingConfig { mode: "AUTO" } };
    let wire = wire::Request {
        system_instruction,
        tool_config: (!declarations.is_empty()).then_some(calling),
        tools: if declarations.is_empty() {
            Vec::new()
        } else {
            vec![wire::Tool { function_declarations: declarations }]
        },
        generation_config: encoder.generation_config(request),
        contents,
    };
    let body = serde_json::to_vec(&wire).map_err(|error| impossible(&error.to_string()))?;
    Ok(Encoded { body: body.into(), losses: encoder.losses })
}

struct Encoder<'a> {
    model: &'a ModelId,
    family: &'a Family,
    losses: Vec<String>,
    /// Gemini's own ids of the calls it made, to be repeated with their results.
    provider_ids: BTreeMap<&'a CallId, &'a str>,
}

type JsonObject = Map<String, Value>;

impl<'a> Encoder<'a> {
    fn transcript(&mut self, messages: &'a [Message]) -> (Option<wire::Content>, Vec<wire::Content>) {
        let mut instruction = Vec::new();
        let mut contents: Vec<wire::Content> = Vec::new();
        let mut after_result = false;
        for message in messages {
            let is_result = message.role() == Role::Tool;
            let parts: Vec<JsonObject> = message.parts().iter().filter_map(|part| self.part(part)).collect();
            let role = match message.role() {
                Role::System => {
                    if !contents.is_empty() && !parts.is_empty() {
                        self.lose(
                            "a system message in the middle was moved to the instruction at the beginning",
                        );
                    }
                    instruction.extend(parts);
                    continue;
                }
                Role::Assistant => {
                    let mut parts = parts;
                    if !message.parts().iter().any(|part| self.is_own_call(part)) {
                        self.sign_foreign_calls(&mut parts);
                    }
                    if !parts.is_empty() {
                        contents.push(wire::Content { role: Some("model"), parts });
                    }
                    after_result = false;
                    continue;
                }
                Role::User | Role::Tool => "user",
            };
            // The results of one model turn must be together in one content.
            match contents.last_mut() {
                Some(results) if after_result && is_result => results.parts.extend(parts),
                _ => contents.push(wire::Content { role: Some(role), parts }),
            }
            after_result = is_result;
        }
        let instruction =
            (!instruction.is_empty()).then_some(wire::Content { role: None, parts: instruction });
        (instruction, contents)
    }

    fn part(&mut self, part: &'a Part) -> Option<JsonObject> {
        // Only what this very model sent may be sent back to it as it was.
        let own = part.state.as_ref().filter(|state| state.origin == *self.model);
        let foreign = part.state.as_ref().filter(|state| state.origin != *self.model);
        if let Some(state) =
            foreign.filter(|state| state.data.as_object().is_none_or(|data| !data.is_empty()))
        {
            self.lose(format!("state of {} on {} was left out", state.origin, kind(&part.content)));
        }
        let mut wire = match &part.content {
            Content::Text { text } | Content::Refusal { text } => {
                if text.is_empty() && own.is_none() {
                    return None;
                }
                object([("text", json!(text))])
            }
            Content::Thinking { text } if own.is_some() => {
                object([("text", json!(text)), ("thought", json!(true))])
            }
            Content::Thinking { .. } => {
                self.lose("thinking of another model was left out");
                return None;
            }
            Content::Opaque { .. } if own.is_some() => JsonObject::new(),
            Content::Opaque { kind } => {
                self.lose(format!("{kind} of another model was left out"));
                return None;
            }
            Content::Image { source } => image(source),
            Content::ToolCall(call) => {
                let id = call.provider_id.as_deref().filter(|_| own.is_some());
                if let Some(id) = id {
                    self.provider_ids.insert(&call.id, id);
                }
                object([("functionCall", function_call(call, id))])
            }
            Content::ToolResult { call_id, name, result } => {
                let mut response = object([("name", json!(name)), ("response", result.to_json())]);
                if let Some(id) = self.provider_ids.get(call_id) {
                    response.insert("id".to_owned(), json!(id));
                }
                object([("functionResponse", Value::Object(response))])
            }
            // Content may grow; what we do not know is reported, not guessed.
            other => {
                self.lose(format!("a part cannot be sent to Gemini: {other:?}"));
                return None;
            }
        };
        if let Some(Value::Object(state)) = own.map(|state| &state.data) {
            wire.extend(state.clone());
        }
        Some(wire)
    }

    fn is_own_call(&self, part: &Part) -> bool {
        matches!(part.content, Content::ToolCall(_))
            && part.state.as_ref().is_some_and(|state| state.origin == *self.model)
    }

    /// Where calls need signatures, the first call of a message carries it; one of another model has none.
    fn sign_foreign_calls(&mut self, parts: &mut [JsonObject]) {
        let first = parts.iter_mut().find(|part| part.contains_key("functionCall"));
        if let Some(first) = first.filter(|_| self.family.checks_signatures) {
            first.insert("thoughtSignature".to_owned(), json!(FOREIGN_SIGNATURE));
        }
    }

    fn declaration(&mut self, tool: &ToolDefinition) -> wire::FunctionDeclaration {
        let mut dropped = BTreeSet::new();
        let parameters = schema::lower(&tool.parameters, &mut dropped);
        self.report(&format!("the schema of tool {}", tool.name), &dropped);
        // An object without properties is refused; a function without parameters has none.
        let has_any = parameters.as_object().is_some_and(|schema| {
            schema.iter().any(|(keyword, value)| match keyword.as_str() {
                "properties" => value.as_object().is_some_and(|properties| !properties.is_empty()),
                keyword => matches!(keyword, "$ref" | "anyOf" | "oneOf"),
            })
        });
        wire::FunctionDeclaration {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            parameters_json_schema: has_any.then_some(parameters),
        }
    }

    fn generation_config(&mut self, request: &GenerateRequest) -> wire::GenerationConfig {
        let config = &request.config;
        let temperature = match config.temperature {
            Some(temperature) => Some(temperature.get()),
            None if self.family.own_temperature => {
                self.lose(format!(
                    "temperature {TEMPERATURE} was left out: the vendor advises against setting it for this model"
                ));
                None
            }
            None => Some(TEMPERATURE),
        };
        let visible = config.max_tokens.map_or(OUTPUT_TOKENS_MAX, |tokens| tokens.get());
        let allowance = self.family.thinking_allowance.min(self.family.output_max.saturating_sub(visible));
        if allowance > 0 {
            self.lose(format!(
                "max_tokens {visible} was sent as {}: the vendor counts thinking inside it",
                visible + allowance
            ));
        }
        let response_json_schema = request.response_schema.as_ref().map(|schema| {
            let mut dropped = BTreeSet::new();
            let lowered = schema::lower(schema, &mut dropped);
            self.report("the response schema", &dropped);
            lowered
        });
        wire::GenerationConfig {
            temperature,
            top_p: config.top_p.map(|top_p| top_p.get()),
            top_k: config.top_k.map(|top_k| top_k.get()),
            max_output_tokens: visible + allowance,
            response_mime_type: response_json_schema.is_some().then_some("application/json"),
            response_json_schema,
        }
    }

    fn report(&mut self, what: &str, dropped: &BTreeSet<String>) {
        if !dropped.is_empty() {
            let keywords: Vec<&str> = dropped.iter().map(String::as_str).collect();
            self.lose(format!("{what} was sent without {}", keywords.join(", ")));
        }
    }

    fn lose(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.losses.contains(&what) {
            self.losses.push(what);
        }
    }
}

fn function_call(call: &ToolCall, id: Option<&str>) -> Value {
    let mut wire = JsonObject::new();
    if let Some(id) = id {
        wire.insert("id".to_owned(), json!(id));
    }
    wire.insert("name".to_owned(), json!(call.name));
    wire.insert("args".to_owned(), Value::Object(call.arguments.clone()));
    Value::Object(wire)
}

fn image(source: &ImageSource) -> JsonObject {
    match source {
        ImageSource::Base64 { media_type, data } => {
            object([("inlineData", json!({ "mimeType": media_type, "data": data }))])
        }
        ImageSource::Url(url) => match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        {
            Some((media_type, data)) => {
                object([("inlineData", json!({ "mimeType": media_type, "data": data }))])
            }
            None => match media_type(url) {
                Some(media_type) => object([("fileData", json!({ "mimeType": media_type, "fileUri": url }))]),
                None => object([("fileData", json!({ "fileUri": url }))]),
            },
        },
    }
}

/// By the ending of the path; the vendor looks for itself where there is none.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or(url).to_lowercase();
    Some(match path.rsplit_once('.')?.1 {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => return None,
    })
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> JsonObject {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn kind(content: &Content) -> &'static str {
    match content {
        Content::Thinking { .. } => "thinking",
        Content::ToolCall(_) => "a tool call",
        Content::Opaque { .. } => "a trace of its own tools",
        _ => "text",
    }
}
