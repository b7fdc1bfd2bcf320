//! Encodes requests. Pure; the same request gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::{
    Arguments, CallId, Content, GenerateRequest, Message, ModelError, ModelId, Part, Role,
    ToolCall, ToolChoice, ToolDefinition,
};
use serde_json::{Map, Value, json};

use super::family::Family;
use super::schema;
use super::wire;
use crate::encode::{Encoded, Encoder, Image, object};

/// Replaces the signature of a call that another model made. Source: "Thought signatures",
/// transferring history from other models.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes a request. `stores_unless_told`: the service keeps requests and answers unless a request
/// forbids it.
///
/// # Errors
/// [`ModelError::BadRequest`] if the vendor would refuse the request.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
    stores_unless_told: bool,
) -> Result<Encoded, ModelError> {
    let mut encoder = GeminiEncoder {
        common: Encoder::new(model, &family.common, request),
        checks_signatures: family.checks_signatures,
        provider_ids: BTreeMap::new(),
    };
    encoder.common.require_schema_support(
        "this model takes a response schema or tools, not both in one request",
    )?;
    let (system_instruction, contents) = encoder.transcript(&request.messages)?;
    encoder.common.require_messages(contents.len())?;
    let declarations: Vec<_> = request
        .tools
        .iter()
        .map(|tool| encoder.declaration(tool))
        .collect();
    let tool_config = wire::ToolConfig {
        function_calling_config: function_calling(&request.tool_choice),
    };
    let wire = wire::Request {
        system_instruction,
        tool_config: (!declarations.is_empty()).then_some(tool_config),
        tools: if declarations.is_empty() {
            Vec::new()
        } else {
            vec![wire::Tool {
                function_declarations: declarations,
            }]
        },
        generation_config: encoder.generation_config(request)?,
        store: stores_unless_told.then_some(false),
        contents,
    };
    encoder.common.finish(&wire)
}

fn function_calling(choice: &ToolChoice) -> wire::FunctionCallingConfig {
    let (mode, name) = match choice {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some(name.clone())),
    };
    wire::FunctionCallingConfig {
        mode,
        allowed_function_names: name.into_iter().collect(),
    }
}

struct GeminiEncoder<'a> {
    common: Encoder<'a>,
    checks_signatures: bool,
    /// Gemini's own ids of its calls, to be repeated with their results.
    provider_ids: BTreeMap<&'a CallId, &'a str>,
}

type JsonObject = Map<String, Value>;

impl<'a> GeminiEncoder<'a> {
    fn transcript(
        &mut self,
        messages: &'a [Message],
    ) -> Result<(Option<wire::Content>, Vec<wire::Content>), ModelError> {
        let mut instruction = Vec::new();
        let mut contents: Vec<wire::Content> = Vec::new();
        let mut after_result = false;
        for message in messages {
            let is_result = message.role() == Role::Tool;
            let parts: Vec<JsonObject> = message
                .parts()
                .iter()
                .filter_map(|part| self.part(part).transpose())
                .collect::<Result<_, _>>()?;
            let role = match message.role() {
                Role::System => {
                    if !contents.is_empty() && !parts.is_empty() {
                        self.common.record_loss(
                            "a system message in the middle was moved to the instruction at the beginning",
                        );
                    }
                    instruction.extend(parts);
                    continue;
                }
                Role::Assistant => {
                    let mut parts = parts;
                    // A message with a call of this model has the signature that the vendor checks.
                    if !message.parts().iter().any(|part| self.is_own_call(part)) {
                        self.sign_foreign_calls(&mut parts);
                    }
                    if !parts.is_empty() {
                        contents.push(wire::Content {
                            role: Some("model"),
                            parts,
                        });
                    }
                    after_result = false;
                    continue;
                }
                Role::User | Role::Tool => "user",
            };
            // The vendor wants the results of one model turn together in one content.
            match contents.last_mut() {
                Some(results) if after_result && is_result => results.parts.extend(parts),
                _ => contents.push(wire::Content {
                    role: Some(role),
                    parts,
                }),
            }
            after_result = is_result;
        }
        let instruction = (!instruction.is_empty()).then_some(wire::Content {
            role: None,
            parts: instruction,
        });
        Ok((instruction, contents))
    }

    fn part(&mut self, part: &'a Part) -> Result<Option<JsonObject>, ModelError> {
        let own = self.common.state(part);
        let mut wire = match &part.content {
            Content::Text { text } | Content::Refusal { text } => {
                if text.is_empty() && own.is_none() {
                    return Ok(None);
                }
                object([("text", json!(text))])
            }
            Content::Thinking { text } if own.is_some() => {
                object([("text", json!(text)), ("thought", json!(true))])
            }
            Content::Thinking { .. } => {
                self.common
                    .record_loss("thinking of another model was left out");
                return Ok(None);
            }
            Content::Opaque { .. } if own.is_some() => JsonObject::new(),
            Content::Opaque { kind } => {
                self.common
                    .record_loss(format!("{kind} of another model was left out"));
                return Ok(None);
            }
            Content::Image { source } => match self.common.image(source)? {
                Some(source) => image(source),
                None => return Ok(None),
            },
            Content::ToolCall(call) => {
                let id = call.provider_id.as_deref().filter(|_| own.is_some());
                if let Some(id) = id {
                    self.provider_ids.insert(&call.id, id);
                }
                object([(
                    "functionCall",
                    function_call(call, self.common.arguments(call), id),
                )])
            }
            Content::ToolResult {
                call_id,
                name,
                result,
            } => {
                // The vendor takes an object; another value becomes one under the documented name.
                let answer = match result.to_json() {
                    object @ Value::Object(_) => object,
                    other => json!({ "result": other }),
                };
                let mut response = object([("name", json!(name)), ("response", answer)]);
                if let Some(id) = self.provider_ids.get(call_id) {
                    response.insert("id".to_owned(), json!(id));
                }
                object([("functionResponse", Value::Object(response))])
            }
            // `Content` is non-exhaustive: an unknown part is reported, not guessed.
            other => {
                self.common
                    .record_loss(format!("a part cannot be sent to Gemini: {other:?}"));
                return Ok(None);
            }
        };
        if let Some(Value::Object(state)) = own {
            wire.extend(state.clone());
        }
        Ok(Some(wire))
    }

    fn is_own_call(&self, part: &Part) -> bool {
        matches!(part.content, Content::ToolCall(_))
            && part
                .state
                .as_ref()
                .is_some_and(|state| state.origin == *self.common.model)
    }

    /// Adds a placeholder signature to the first call of another model's message, where calls need
    /// signatures. The vendor checks only the first call.
    fn sign_foreign_calls(&mut self, parts: &mut [JsonObject]) {
        let first = parts
            .iter_mut()
            .find(|part| part.contains_key("functionCall"));
        if let Some(first) = first.filter(|_| self.checks_signatures) {
            first.insert("thoughtSignature".to_owned(), json!(FOREIGN_SIGNATURE));
        }
    }

    fn declaration(&mut self, tool: &ToolDefinition) -> wire::FunctionDeclaration {
        // Dropped keywords are no loss: the runtime checks the arguments against the whole schema
        // before it calls the tool.
        let mut dropped = BTreeSet::new();
        let parameters = schema::lower(&tool.parameters, &mut dropped);
        // The vendor refuses an object without properties; a function without parameters has none.
        let has_any = parameters.as_object().is_some_and(|schema| {
            schema
                .iter()
                .any(|(keyword, value)| match keyword.as_str() {
                    "properties" => value
                        .as_object()
                        .is_some_and(|properties| !properties.is_empty()),
                    keyword => matches!(keyword, "$ref" | "anyOf" | "oneOf"),
                })
        });
        wire::FunctionDeclaration {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            parameters_json_schema: has_any.then_some(parameters),
        }
    }

    fn generation_config(
        &mut self,
        request: &GenerateRequest,
    ) -> Result<wire::GenerationConfig, ModelError> {
        let settings = self.common.settings()?;
        let response_json_schema = request.response_schema.as_ref().map(|schema| {
            let mut dropped = BTreeSet::new();
            let lowered = schema::lower(schema, &mut dropped);
            self.common
                .record_dropped_keywords("the response schema", &dropped);
            lowered
        });
        Ok(wire::GenerationConfig {
            temperature: settings.temperature,
            top_p: settings.top_p,
            top_k: settings.top_k,
            max_output_tokens: settings.max_tokens,
            response_mime_type: response_json_schema.is_some().then_some("application/json"),
            response_json_schema,
        })
    }
}

fn function_call(call: &ToolCall, arguments: &Arguments, id: Option<&str>) -> Value {
    let mut wire = JsonObject::new();
    if let Some(id) = id {
        wire.insert("id".to_owned(), json!(id));
    }
    wire.insert("name".to_owned(), json!(call.name));
    wire.insert("args".to_owned(), Value::Object(arguments.clone()));
    Value::Object(wire)
}

fn image(image: Image<'_>) -> JsonObject {
    match image {
        Image::Bytes { media_type, data } => object([(
            "inlineData",
            json!({ "mimeType": media_type, "data": data }),
        )]),
        Image::Url(url) => match media_type(url) {
            Some(media_type) => object([(
                "fileData",
                json!({ "mimeType": media_type, "fileUri": url }),
            )]),
            None => object([("fileData", json!({ "fileUri": url }))]),
        },
    }
}

/// Guesses the media type by the ending of a URL's path. If there is none, the vendor finds out
/// itself.
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
