//! Encodes requests. Pure; the same request gives the same bytes.
//!
//! Requests are written as bytes, without JSON values in between, because most of a request was
//! sent before and is long. The tools are encoded once for all requests with the same set.

use std::borrow::Cow;
use std::collections::BTreeSet;

use adjutant_core::{
    Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolChoice, ToolSet,
};
use serde_json::{Map, Value, json};

use super::super::dialect::{Address, Dialect, OutputBound};
use super::super::family::{Family, Functions};
use super::super::schema;
use super::ids::Ids;
use super::thinking;
use super::wire;
use crate::encode::{Encoded, Encoder, Forcing, FunctionTool, describe};
use crate::json::{push, push_escaped, push_text};
use crate::tools_cache::ToolsCache;
use crate::transcript::alternating;

/// The encoded tools of recent requests: a JSON list each.
pub(super) type Tools = ToolsCache<Vec<u8>>;

/// Encodes a request. `stores_unless_told`: the server keeps answers unless a request forbids it.
///
/// # Errors
/// [`ModelError::BadRequest`] if the server would refuse the request.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
    dialect: &Dialect,
    tools: &Tools,
    stores_unless_told: bool,
    streamed: bool,
) -> Result<Encoded, ModelError> {
    let messages = match dialect.wants_alternation {
        true => alternating(request),
        false => Cow::Borrowed(&*request.messages),
    };
    let mut encoder = ChatEncoder {
        common: Encoder::new(model, &family.common, request),
        dialect,
        insists_on_thinking: dialect.insists_on_thinking && family.reasons,
        ids: Ids::new(dialect.call_ids),
        messages: Vec::with_capacity(estimated_size(&messages)),
        number: 0,
    };
    encoder.add_messages(&messages)?;
    encoder.common.require_messages(encoder.number)?;
    let settings = encoder.common.settings()?;
    let (max_completion_tokens, max_tokens) = match dialect.output_bound {
        OutputBound::MaxCompletionTokens => (settings.max_tokens, None),
        OutputBound::MaxTokens => (None, settings.max_tokens),
    };
    let has_functions = !request.tools.is_empty() && !request.config.verbatim;
    if has_functions && family.functions == Functions::Refused {
        return Err(encoder.common.bad_request(no_functions(model, dialect)));
    }
    let without_effort = has_functions && family.functions == Functions::WithoutEffort;
    if without_effort {
        encoder.common.record_loss(
            "thinking was switched off: this model takes functions in Chat Completions only without (Responses has both)",
        );
    }
    let (offered, choice) = encoder.common.offer(match encoder.insists_on_thinking {
        true => Forcing::Never,
        false => dialect.forcing,
    });
    let head = wire::Head {
        model: &model.name,
        max_completion_tokens,
        max_tokens,
        temperature: settings.temperature,
        top_p: settings.top_p,
        top_k: settings.top_k,
        reasoning_effort: without_effort.then_some("none"),
        stream: streamed,
        stream_options: (streamed && dialect.counts_streams_on_request).then_some(
            wire::StreamOptions {
                include_usage: true,
            },
        ),
        response_format: encoder.response_format(request)?,
        store: stores_unless_told.then_some(false),
        tool_choice: tool_choice(&choice).filter(|_| !offered.is_empty()),
    };
    let ChatEncoder {
        common, messages, ..
    } = encoder;
    let not_json = |error: serde_json::Error| common.bad_request(error.to_string());
    let tools = match offered.is_empty() {
        true => None,
        false => Some(
            tools
                .get_or_make(&offered, || encode_tools(&offered))
                .map_err(not_json)?,
        ),
    };
    let mut front = Vec::with_capacity(512 + tools.as_ref().map_or(0, |tools| tools.len()));
    push(&mut front, &head).map_err(not_json)?;
    // The head has a model at least, so that a comma can follow.
    front.pop();
    if let Some(tools) = tools {
        front.extend_from_slice(b",\"tools\":");
        front.extend_from_slice(&tools);
    }
    // The messages come last, so that a longer conversation begins with the bytes of the shorter
    // one and the vendor's cache matches.
    front.extend_from_slice(b",\"messages\":[");
    // Appended and rotated, because the messages' buffer is large enough for all and copying them
    // would cost more.
    let mut body = messages;
    body.extend_from_slice(&front);
    body.rotate_right(front.len());
    body.extend_from_slice(b"]}");
    Ok(common.encoded(body))
}

/// Returns the tool choice; `None` for the default, which is that the model may choose.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => {
            Some(json!({ "type": "function", "function": { "name": name } }))
        }
    }
}

/// Estimates the bytes of a request with these messages. A buffer that grows while it is written
/// would be moved again and again, and would fragment memory.
fn estimated_size(messages: &[Message]) -> usize {
    const MESSAGE: usize = 64;
    const SETTINGS: usize = 512;
    let part = |message: &Message, at: usize, part: &Part| match &part.content {
        Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => {
            text.len()
        }
        _ => message.json_text(at).len(),
    };
    let parts = |message: &Message| {
        message
            .parts()
            .iter()
            .enumerate()
            .map(|(at, it)| part(message, at, it))
            .sum::<usize>()
    };
    let size: usize = messages
        .iter()
        .map(|message| MESSAGE + parts(message))
        .sum();
    // Escaped characters take more.
    size + size / 16 + SETTINGS
}

/// Encodes the tools as a JSON list.
fn encode_tools(tools: &ToolSet) -> Result<Vec<u8>, serde_json::Error> {
    let lowered = tools.iter().map(|tool| {
        // Dropped keywords are no loss: the runtime checks the arguments against the whole schema
        // before it calls the tool.
        let parameters = schema::parameters(&tool.parameters, &mut BTreeSet::new());
        FunctionTool::new(tool, parameters)
    });
    serde_json::to_vec(&lowered.collect::<Vec<_>>())
}

/// Returns the error message for a model whose functions only the Responses API takes.
fn no_functions(model: &ModelId, dialect: &Dialect) -> String {
    let name = &model.name;
    let address = match dialect.address {
        Address::Version(_) => "",
        Address::Azure => {
            ", with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1 and the resource's key as OPENAI_API_KEY"
        }
    };
    format!(
        "Chat Completions takes no functions of {name}; use the Responses API: openai/{name}{address}"
    )
}

struct ChatEncoder<'a> {
    common: Encoder<'a>,
    dialect: &'a Dialect,
    insists_on_thinking: bool,
    ids: Ids<'a>,
    /// The encoded messages, with commas between them.
    messages: Vec<u8>,
    number: usize,
}

/// An assistant's message, sorted by the fields of its encoded form.
#[derive(Default)]
struct AssistantMessage<'a> {
    content: Vec<ContentPart<'a>>,
    /// True if thinking is in the content, which is then sent as parts.
    has_thinking_parts: bool,
    refusal: Option<String>,
    /// Thinking, under the names that the server itself used.
    thinking: Map<String, Value>,
    calls: Vec<Call<'a>>,
}

enum ContentPart<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

struct Call<'a> {
    id: String,
    name: &'a str,
    /// The arguments as JSON text.
    arguments: &'a str,
    /// State that the server wants back with the call.
    state: Option<&'a Map<String, Value>>,
}

impl<'a> ChatEncoder<'a> {
    fn add_messages(&mut self, messages: &'a [Message]) -> Result<(), ModelError> {
        for message in messages {
            match message.role() {
                Role::System => self.system_or_user("system", message)?,
                Role::User => self.system_or_user("user", message)?,
                Role::Assistant => self.assistant(message)?,
                Role::Tool => (0..message.parts().len()).for_each(|at| self.result(message, at)),
            }
        }
        Ok(())
    }

    /// Writes the beginning of a message, up to its content.
    fn begin(&mut self, role: &str) {
        if self.number > 0 {
            self.messages.push(b',');
        }
        self.number += 1;
        self.messages.extend_from_slice(b"{\"role\":\"");
        self.messages.extend_from_slice(role.as_bytes());
        self.messages.extend_from_slice(b"\",\"content\":");
    }

    fn field(&mut self, name: &str) {
        self.messages.push(b',');
        push_text(&mut self.messages, name);
        self.messages.push(b':');
    }

    fn value(&mut self, value: &Value) -> Result<(), ModelError> {
        push(&mut self.messages, value).map_err(|error| self.common.bad_request(error.to_string()))
    }

    /// Writes a system or user message.
    fn system_or_user(
        &mut self,
        role: &'static str,
        message: &'a Message,
    ) -> Result<(), ModelError> {
        if let [
            Part {
                content: Content::Text { text },
                ..
            },
        ] = message.parts()
        {
            self.begin(role);
            push_text(&mut self.messages, text);
            self.messages.push(b'}');
            return Ok(());
        }
        let mut parts = Vec::new();
        for part in message.parts() {
            match &part.content {
                Content::Text { text } => parts.push(text_part(text)),
                Content::Image { source } => {
                    let Some(image) = self.common.picture(source)? else {
                        continue;
                    };
                    let url = image.to_url();
                    parts.push(json!({ "type": "image_url", "image_url": { "url": url } }));
                }
                other => self.cannot_send(other),
            }
        }
        self.begin(role);
        self.value(&content(parts))?;
        self.messages.push(b'}');
        Ok(())
    }

    /// Writes an assistant's message, unless nothing of it can be sent.
    fn assistant(&mut self, message: &'a Message) -> Result<(), ModelError> {
        let mut sorted = AssistantMessage::default();
        for (at, part) in message.parts().iter().enumerate() {
            match &part.content {
                Content::Text { text } if text.is_empty() => {}
                Content::Refusal { text } if self.dialect.takes_refusals => {
                    sorted.refusal.get_or_insert_default().push_str(text);
                }
                Content::Text { text } | Content::Refusal { text } => {
                    sorted.content.push(ContentPart::Text(text));
                }
                Content::Thinking { text } => self.thinking(part, text, &mut sorted),
                Content::ToolCall(_) => self.call(message, at, &mut sorted),
                other => self.cannot_send(other),
            }
        }
        let is_blank = sorted
            .content
            .iter()
            .all(|part| matches!(part, ContentPart::Text("")));
        let is_null = !sorted.has_thinking_parts
            && is_blank
            && (sorted.thinking.is_empty() || !sorted.calls.is_empty());
        if is_null && sorted.refusal.is_none() && sorted.calls.is_empty() {
            return Ok(());
        }
        if self.insists_on_thinking && sorted.thinking.is_empty() {
            self.common
                .record_loss("an answer without thinking was sent with blank thinking: the model insists on some");
            // An empty string counts as missing (`earendil-works/pi#4179`).
            sorted
                .thinking
                .insert("reasoning_content".to_owned(), json!(" "));
        }
        self.begin("assistant");
        if sorted.has_thinking_parts {
            let parts = sorted.content.iter().map(|part| match part {
                ContentPart::Text(text) => text_part(text),
                ContentPart::Thinking(text) => {
                    json!({ "type": "thinking", "thinking": [text_part(text)] })
                }
            });
            self.value(&Value::Array(parts.collect()))?;
        } else if is_null {
            self.messages.extend_from_slice(b"null");
        } else {
            // A single string, because some servers' templates do not support parts.
            self.messages.push(b'"');
            for part in &sorted.content {
                let (ContentPart::Text(text) | ContentPart::Thinking(text)) = part;
                push_escaped(&mut self.messages, text);
            }
            self.messages.push(b'"');
        }
        self.end_assistant(sorted)
    }

    /// Writes the fields after the content of an assistant's message.
    fn end_assistant(&mut self, message: AssistantMessage<'a>) -> Result<(), ModelError> {
        if let Some(refusal) = &message.refusal {
            self.field("refusal");
            push_text(&mut self.messages, refusal);
        }
        for (name, value) in &message.thinking {
            self.field(name);
            self.value(value)?;
        }
        for (at, call) in message.calls.iter().enumerate() {
            self.messages
                .extend_from_slice(if at == 0 { b",\"tool_calls\":[" } else { b"," });
            self.messages.extend_from_slice(b"{\"id\":");
            push_text(&mut self.messages, &call.id);
            self.messages
                .extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
            push_text(&mut self.messages, call.name);
            self.field("arguments");
            push_text(&mut self.messages, call.arguments);
            self.messages.push(b'}');
            for (name, value) in call.state.into_iter().flatten() {
                self.field(name);
                self.value(value)?;
            }
            self.messages.push(b'}');
        }
        self.messages
            .extend_from_slice(if message.calls.is_empty() {
                b"}"
            } else {
                b"]}"
            });
        Ok(())
    }

    /// Adds thinking, which goes back only to the model that generated it, in the form it came in.
    fn thinking(&mut self, part: &'a Part, text: &'a str, message: &mut AssistantMessage<'a>) {
        match self.common.state(part) {
            Some(state) if self.dialect.takes_thinking => {
                if thinking::field(state) == Some(thinking::IN_CONTENT) {
                    message.content.push(ContentPart::Thinking(text));
                    message.has_thinking_parts = true;
                } else {
                    thinking::add_to_message(&mut message.thinking, text, state);
                }
            }
            Some(_) => self
                .common
                .record_loss("thinking was left out: this server does not take it back"),
            None => self
                .common
                .record_loss("thinking of another model was left out"),
        }
    }

    fn call(&mut self, message: &'a Message, at: usize, sorted: &mut AssistantMessage<'a>) {
        let part = &message.parts()[at];
        let Content::ToolCall(call) = &part.content else {
            return;
        };
        // Another vendor may have given several calls of the conversation the same id.
        let is_foreign = part
            .state
            .as_ref()
            .is_some_and(|state| state.origin.provider != self.common.model.provider);
        // Only records the loss of malformed arguments: their text is sent as it is.
        self.common.arguments(call);
        let state = self.common.state(part).and_then(Value::as_object);
        let is_taken = |id: &str| sorted.calls.iter().any(|call| call.id == id);
        let id = self.ids.call(call, is_foreign, is_taken);
        sorted.calls.push(Call {
            id,
            name: &call.name,
            arguments: message.json_text(at),
            state,
        });
    }

    fn result(&mut self, message: &'a Message, at: usize) {
        let Content::ToolResult { call_id, .. } = &message.parts()[at].content else {
            return self.cannot_send(&message.parts()[at].content);
        };
        self.begin("tool");
        push_text(&mut self.messages, message.json_text(at));
        self.field("tool_call_id");
        push_text(&mut self.messages, &self.ids.result(call_id));
        self.messages.push(b'}');
    }

    fn cannot_send(&mut self, content: &Content) {
        self.common.record_loss(match content {
            Content::Opaque { kind } => {
                format!("{kind} was left out: Chat Completions does not take it back")
            }
            other => format!(
                "{} was left out: Chat Completions has no place for it there",
                describe(other)
            ),
        });
    }

    fn response_format(
        &mut self,
        request: &GenerateRequest,
    ) -> Result<Option<wire::ResponseFormat>, ModelError> {
        let Some(schema) = &request.response_schema else {
            return Ok(None);
        };
        self.common.require_schema_support(
            "this model keeps to no response schema of its own in such a request; ask for it in words",
        )?;
        let Some(answer) = schema::answer(schema) else {
            return Err(self.common.bad_request(
                "a response schema must be that of an object; put the value into one",
            ));
        };
        answer
            .losses
            .into_iter()
            .for_each(|loss| self.common.record_loss(loss));
        let json_schema = wire::JsonSchema {
            name: "answer",
            strict: answer.strict,
            schema: answer.schema,
        };
        Ok(Some(wire::ResponseFormat {
            kind: "json_schema",
            json_schema,
        }))
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Simplifies a single text part to a string.
fn content(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [Value::Object(part)] if part.contains_key("text") => {
            part.remove("text").unwrap_or_default()
        }
        _ => Value::Array(parts),
    }
}
