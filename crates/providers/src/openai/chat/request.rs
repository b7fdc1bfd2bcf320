//! Core to wire. Pure; the same request gives the same bytes.

use std::collections::BTreeSet;

use adjutant_core::{Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolDefinition};
use serde_json::{Map, Value, json};

use super::super::family::{Family, Functions};
use super::super::schema;
use super::super::vendors::{Address, Dialect, OutputBound};
use super::ids::Ids;
use super::thinking;
use super::wire;
use crate::encode::{Encoded, Encoder, Image, State};

/// Fails with [`ModelError::BadRequest`] where the server would refuse the request anyway.
pub(super) fn encode(
    request: &GenerateRequest,
    model: &ModelId,
    family: &Family,
    dialect: &Dialect,
    streamed: bool,
) -> Result<Encoded, ModelError> {
    let mut encoder = ChatEncoder {
        common: Encoder::new(model, &family.common, request),
        dialect,
        insists_on_thinking: dialect.insists_on_thinking && family.reasons,
        ids: Ids::new(dialect.call_ids),
    };
    let messages = encoder.messages(&request.messages)?;
    encoder.common.something_to_answer(&messages)?;
    let settings = encoder.common.settings()?;
    let (max_completion_tokens, max_tokens) = match dialect.output_bound {
        OutputBound::MaxCompletionTokens => (settings.max_tokens, None),
        OutputBound::MaxTokens => (None, settings.max_tokens),
    };
    let has_functions = !request.tools.is_empty() && !request.config.verbatim;
    if has_functions && family.functions == Functions::Refused {
        return Err(encoder.common.refuse(elsewhere(model, dialect)));
    }
    let silent = has_functions && family.functions == Functions::WithoutEffort;
    if silent {
        encoder.common.lose(
            "thinking was switched off: this model takes functions in Chat Completions only without (Responses has both)",
        );
    }
    let wire = wire::Request {
        model: model.name.clone(),
        max_completion_tokens,
        max_tokens,
        temperature: settings.temperature,
        top_p: settings.top_p,
        top_k: settings.top_k,
        reasoning_effort: silent.then_some("none"),
        stream: streamed,
        stream_options: (streamed && dialect.counts_streams_if_asked)
            .then_some(wire::StreamOptions { include_usage: true }),
        response_format: encoder.response_format(request, family)?,
        tools: request.tools.iter().map(|tool| encoder.tool(tool)).collect(),
        messages,
    };
    encoder.common.finish(&wire)
}

/// Where functions of a model are taken that Chat Completions takes none of.
fn elsewhere(model: &ModelId, dialect: &Dialect) -> String {
    let name = &model.name;
    let address = match dialect.address {
        Address::Version(_) => "",
        Address::Azure => {
            ", with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1 and the resource's key as OPENAI_API_KEY"
        }
    };
    format!("Chat Completions takes no functions of {name}; use the Responses API: openai/{name}{address}")
}

struct ChatEncoder<'a> {
    common: Encoder<'a>,
    dialect: &'a Dialect,
    insists_on_thinking: bool,
    ids: Ids<'a>,
}

impl<'a> ChatEncoder<'a> {
    fn messages(&mut self, messages: &'a [Message]) -> Result<Vec<wire::RequestMessage>, ModelError> {
        let mut out = Vec::new();
        for message in messages {
            match message.role() {
                Role::System => out.push(self.said("system", message)?),
                Role::User => out.push(self.said("user", message)?),
                Role::Assistant => out.extend(self.assistant(message)),
                Role::Tool => {
                    let results = message.parts().iter().map(|part| self.result(part));
                    out.extend(results.collect::<Vec<_>>().into_iter().flatten());
                }
            }
        }
        Ok(out)
    }

    /// What the instruction or the person says.
    fn said(&mut self, role: &'static str, message: &'a Message) -> Result<wire::RequestMessage, ModelError> {
        let mut parts = Vec::new();
        for part in message.parts() {
            match &part.content {
                Content::Text { text } => parts.push(text_part(text)),
                Content::Image { source } => {
                    let Some(image) = self.common.picture(source)? else { continue };
                    let url = match image {
                        Image::Bytes { media_type, data } => format!("data:{media_type};base64,{data}"),
                        Image::Url(url) => url.to_owned(),
                    };
                    parts.push(json!({ "type": "image_url", "image_url": { "url": url } }));
                }
                other => self.cannot_send(other),
            }
        }
        Ok(wire::RequestMessage { role, content: content(parts), ..wire::RequestMessage::default() })
    }

    /// What the model said. `None`: nothing of it can be said again.
    fn assistant(&mut self, message: &'a Message) -> Option<wire::RequestMessage> {
        let mut out = wire::RequestMessage { role: "assistant", ..wire::RequestMessage::default() };
        let (mut parts, mut has_thoughts) = (Vec::new(), false);
        for part in message.parts() {
            match &part.content {
                Content::Text { text } if text.is_empty() => {}
                Content::Text { text } => parts.push(text_part(text)),
                Content::Refusal { text } if self.dialect.takes_refusals => {
                    out.refusal.get_or_insert_default().push_str(text);
                }
                Content::Refusal { text } => parts.push(text_part(text)),
                Content::Thinking { text } => {
                    has_thoughts |= self.thinking(part, text, &mut parts, &mut out.thinking)
                }
                Content::ToolCall(_) => out.tool_calls.extend(self.call(part, &out.tool_calls)),
                other => self.cannot_send(other),
            }
        }
        out.content = if has_thoughts {
            Value::Array(parts)
        } else {
            // One text: what servers' templates can be relied on to understand.
            let text: String = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            match (text.is_empty(), out.thinking.is_empty()) {
                (false, _) => Value::String(text),
                (true, false) if out.tool_calls.is_empty() => Value::String(text),
                (true, _) => Value::Null,
            }
        };
        if out.content.is_null() && out.refusal.is_none() && out.tool_calls.is_empty() {
            return None;
        }
        if self.insists_on_thinking && out.thinking.is_empty() {
            self.common
                .lose("an answer without thinking was sent with blank thinking: the model insists on some");
            // An empty one counts as missing (`earendil-works/pi#4179`).
            out.thinking.insert("reasoning_content".to_owned(), json!(" "));
        }
        Some(out)
    }

    /// Thinking goes back to the model it came from, in the form it came in. Whether it went among the parts.
    fn thinking(
        &mut self,
        part: &'a Part,
        text: &str,
        parts: &mut Vec<Value>,
        fields: &mut Map<String, Value>,
    ) -> bool {
        match self.common.state(part) {
            State::Own(state) if self.dialect.takes_thinking => {
                if thinking::field(state) == Some(thinking::IN_CONTENT) {
                    parts.push(json!({ "type": "thinking", "thinking": [text_part(text)] }));
                    return true;
                }
                thinking::send_back(fields, text, state);
            }
            State::Own(_) => self.common.lose("thinking was left out: this server does not take it back"),
            State::None => self.common.lose("thinking of another model was left out"),
        }
        false
    }

    fn call(&mut self, part: &'a Part, beside: &[wire::RequestCall]) -> Option<wire::RequestCall> {
        let Content::ToolCall(call) = &part.content else { return None };
        let is_foreign =
            part.state.as_ref().is_some_and(|state| state.origin.provider != self.common.model.provider);
        let beside: Vec<String> = beside.iter().map(|call| call.id.clone()).collect();
        let arguments = Value::Object(self.common.arguments(call).clone()).to_string();
        let state = match self.common.state(part) {
            State::Own(Value::Object(state)) => state.clone(),
            State::Own(_) | State::None => Map::new(),
        };
        Some(wire::RequestCall {
            id: self.ids.call(call, is_foreign, &beside),
            kind: "function",
            function: wire::RequestFunction { name: call.name.clone(), arguments },
            state,
        })
    }

    fn result(&mut self, part: &'a Part) -> Option<wire::RequestMessage> {
        let Content::ToolResult { call_id, result, .. } = &part.content else {
            self.cannot_send(&part.content);
            return None;
        };
        Some(wire::RequestMessage {
            role: "tool",
            content: Value::String(result.to_text()),
            tool_call_id: Some(self.ids.result(call_id)),
            ..wire::RequestMessage::default()
        })
    }

    fn cannot_send(&mut self, content: &Content) {
        self.common.lose(match content {
            Content::Opaque { kind } => {
                format!("{kind} was left out: Chat Completions does not take it back")
            }
            other => format!(
                "{} was left out: Chat Completions has no place for it there",
                crate::encode::kind(other)
            ),
        });
    }

    fn tool(&mut self, tool: &ToolDefinition) -> wire::Tool {
        // Nothing is lost by what it leaves out: the arguments are checked against all of the schema before the tool is called.
        let mut dropped = BTreeSet::new();
        let parameters = schema::parameters(&tool.parameters, &mut dropped);
        wire::Tool {
            kind: "function",
            function: wire::FunctionDefinition {
                name: tool.name.to_string(),
                description: tool.description.clone(),
                parameters,
            },
        }
    }

    fn response_format(
        &mut self,
        request: &GenerateRequest,
        family: &Family,
    ) -> Result<Option<wire::ResponseFormat>, ModelError> {
        let Some(schema) = &request.response_schema else { return Ok(None) };
        if !family.common.schema.covers(!request.tools.is_empty()) {
            let why =
                "this model keeps to no response schema of its own in such a request; ask for it in words";
            return Err(self.common.refuse(why));
        }
        let Some(answer) = schema::answer(schema) else {
            return Err(self
                .common
                .refuse("a response schema must be that of an object; put the value into one"));
        };
        answer.losses.into_iter().for_each(|loss| self.common.lose(loss));
        let json_schema = wire::JsonSchema { name: "answer", strict: answer.strict, schema: answer.schema };
        Ok(Some(wire::ResponseFormat { kind: "json_schema", json_schema }))
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// One text as text, anything else as parts.
fn content(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [Value::Object(part)] if part.contains_key("text") => part.remove("text").unwrap_or_default(),
        _ => Value::Array(parts),
    }
}
