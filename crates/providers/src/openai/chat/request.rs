//! Core to wire. Pure; the same request gives the same bytes.
//!
//! Writes requests as bytes. Most of a request was sent before: it is written as it goes out, and
//! the tools are written once for all requests with the same ones.

use std::collections::BTreeSet;

use adjutant_core::{
    Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolChoice, ToolSet,
};
use serde_json::{Map, Value, json};

use super::super::family::{Family, Functions};
use super::super::schema;
use super::super::vendors::{Address, Dialect, OutputBound};
use super::ids::Ids;
use super::thinking;
use super::wire;
use crate::encode::{Encoded, Encoder, Image, State};
use crate::json::{push, push_escaped, push_text};
use crate::per_tools::PerTools;

/// Tools as they are sent: a JSON list.
pub(super) type Tools = PerTools<Vec<u8>>;

/// Fails with [`ModelError::BadRequest`] where the server would refuse the request anyway.
pub(super) fn encode(
    request: &GenerateRequest,
    (model, family): (&ModelId, &Family),
    dialect: &Dialect,
    tools: &Tools,
    streamed: bool,
) -> Result<Encoded, ModelError> {
    let mut encoder = ChatEncoder {
        common: Encoder::new(model, &family.common, request),
        dialect,
        insists_on_thinking: dialect.insists_on_thinking && family.reasons,
        ids: Ids::new(dialect.call_ids),
        messages: Vec::with_capacity(room(&request.messages)),
        number: 0,
    };
    encoder.add_messages(&request.messages)?;
    encoder.common.something_to_answer(encoder.number)?;
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
    let head = wire::Head {
        model: &model.name,
        max_completion_tokens,
        max_tokens,
        temperature: settings.temperature,
        top_p: settings.top_p,
        top_k: settings.top_k,
        reasoning_effort: silent.then_some("none"),
        stream: streamed,
        stream_options: (streamed && dialect.counts_streams_if_asked).then_some(
            wire::StreamOptions {
                include_usage: true,
            },
        ),
        response_format: encoder.response_format(request, family)?,
        // Not every server that speaks this takes more; a call that has to be made is asked for
        // again where it is not.
        tool_choice: (request.tool_choice == ToolChoice::None && !request.tools.is_empty())
            .then_some("none"),
    };
    let ChatEncoder {
        common, messages, ..
    } = encoder;
    let not_json = |error: serde_json::Error| common.refuse(error.to_string());
    let tools = match request.tools.is_empty() {
        true => None,
        false => Some(
            tools
                .get(&request.tools, || list(&request.tools))
                .map_err(not_json)?,
        ),
    };
    let mut front = Vec::with_capacity(512 + tools.as_ref().map_or(0, |tools| tools.len()));
    push(&mut front, &head).map_err(not_json)?;
    // The head has a model at least, so that the rest goes on behind a comma.
    front.pop();
    if let Some(tools) = tools {
        front.extend_from_slice(b",\"tools\":");
        front.extend_from_slice(&tools);
    }
    // The messages come last, so that a longer conversation begins with the bytes of the shorter
    // one.
    front.extend_from_slice(b",\"messages\":[");
    // They may be long, and are moved rather than copied.
    let mut body = messages;
    body.extend_from_slice(&front);
    body.rotate_right(front.len());
    body.extend_from_slice(b"]}");
    Ok(common.encoded(body))
}

/// Returns about how many bytes a request with these messages has: one that grew while it is
/// written would be moved again and again, and leave holes in memory behind.
fn room(messages: &[Message]) -> usize {
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
    let said: usize = messages
        .iter()
        .map(|message| MESSAGE + parts(message))
        .sum();
    // What has to be escaped takes more.
    said + said / 16 + SETTINGS
}

/// The tools as a JSON list.
fn list(tools: &ToolSet) -> Result<Vec<u8>, serde_json::Error> {
    let lowered = tools.iter().map(|tool| wire::Tool {
        kind: "function",
        function: wire::FunctionDefinition {
            name: tool.name.as_str(),
            description: &tool.description,
            // Nothing is lost by what it leaves out: the arguments are checked against all of the
            // schema before the tool is called.
            parameters: schema::parameters(&tool.parameters, &mut BTreeSet::new()),
        },
    });
    serde_json::to_vec(&lowered.collect::<Vec<_>>())
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
    format!(
        "Chat Completions takes no functions of {name}; use the Responses API: openai/{name}{address}"
    )
}

struct ChatEncoder<'a> {
    common: Encoder<'a>,
    dialect: &'a Dialect,
    insists_on_thinking: bool,
    ids: Ids<'a>,
    /// The messages so far, as JSON with commas between them.
    messages: Vec<u8>,
    number: usize,
}

/// A model's own message, on its way back to it.
#[derive(Default)]
struct Said<'a> {
    pieces: Vec<Piece<'a>>,
    /// Thinking is among the pieces, which go out as parts then.
    has_thoughts: bool,
    refusal: Option<String>,
    /// Thinking, under the name the server itself gave it.
    thinking: Map<String, Value>,
    calls: Vec<Call<'a>>,
}

enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

struct Call<'a> {
    id: String,
    name: &'a str,
    /// JSON text.
    arguments: &'a str,
    /// State that the server wants back with the call.
    state: Option<&'a Map<String, Value>>,
}

impl<'a> ChatEncoder<'a> {
    fn add_messages(&mut self, messages: &'a [Message]) -> Result<(), ModelError> {
        for message in messages {
            match message.role() {
                Role::System => self.said("system", message)?,
                Role::User => self.said("user", message)?,
                Role::Assistant => self.assistant(message)?,
                Role::Tool => (0..message.parts().len()).for_each(|at| self.result(message, at)),
            }
        }
        Ok(())
    }

    /// Begins a message, up to its content.
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
        push(&mut self.messages, value).map_err(|error| self.common.refuse(error.to_string()))
    }

    /// What the instruction or the person says.
    fn said(&mut self, role: &'static str, message: &'a Message) -> Result<(), ModelError> {
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
                    let url = match image {
                        Image::Bytes { media_type, data } => {
                            format!("data:{media_type};base64,{data}")
                        }
                        Image::Url(url) => url.to_owned(),
                    };
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

    /// Writes the model's words, unless nothing of them can be sent again.
    fn assistant(&mut self, message: &'a Message) -> Result<(), ModelError> {
        let mut said = Said::default();
        for (at, part) in message.parts().iter().enumerate() {
            match &part.content {
                Content::Text { text } if text.is_empty() => {}
                Content::Text { text } => said.pieces.push(Piece::Text(text)),
                Content::Refusal { text } if self.dialect.takes_refusals => {
                    said.refusal.get_or_insert_default().push_str(text);
                }
                Content::Refusal { text } => said.pieces.push(Piece::Text(text)),
                Content::Thinking { text } => self.thinking(part, text, &mut said),
                Content::ToolCall(_) => self.call(message, at, &mut said),
                other => self.cannot_send(other),
            }
        }
        let is_blank = said
            .pieces
            .iter()
            .all(|piece| matches!(piece, Piece::Text("")));
        let is_null =
            !said.has_thoughts && is_blank && (said.thinking.is_empty() || !said.calls.is_empty());
        if is_null && said.refusal.is_none() && said.calls.is_empty() {
            return Ok(());
        }
        if self.insists_on_thinking && said.thinking.is_empty() {
            self.common
                .lose("an answer without thinking was sent with blank thinking: the model insists on some");
            // An empty one counts as missing (`earendil-works/pi#4179`).
            said.thinking
                .insert("reasoning_content".to_owned(), json!(" "));
        }
        self.begin("assistant");
        if said.has_thoughts {
            let parts = said.pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text_part(text),
                Piece::Thinking(text) => {
                    json!({ "type": "thinking", "thinking": [text_part(text)] })
                }
            });
            self.value(&Value::Array(parts.collect()))?;
        } else if is_null {
            self.messages.extend_from_slice(b"null");
        } else {
            // One text: what servers' templates can be relied on to understand.
            self.messages.push(b'"');
            for piece in &said.pieces {
                let (Piece::Text(text) | Piece::Thinking(text)) = piece;
                push_escaped(&mut self.messages, text);
            }
            self.messages.push(b'"');
        }
        self.answered(said)
    }

    /// Fields behind the content of an answer.
    fn answered(&mut self, said: Said<'a>) -> Result<(), ModelError> {
        if let Some(refusal) = &said.refusal {
            self.field("refusal");
            push_text(&mut self.messages, refusal);
        }
        for (name, value) in &said.thinking {
            self.field(name);
            self.value(value)?;
        }
        for (at, call) in said.calls.iter().enumerate() {
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
            .extend_from_slice(if said.calls.is_empty() { b"}" } else { b"]}" });
        Ok(())
    }

    /// Thinking goes back to the model it came from, in the form it came in.
    fn thinking(&mut self, part: &'a Part, text: &'a str, said: &mut Said<'a>) {
        match self.common.state(part) {
            State::Own(state) if self.dialect.takes_thinking => {
                if thinking::field(state) == Some(thinking::IN_CONTENT) {
                    said.pieces.push(Piece::Thinking(text));
                    said.has_thoughts = true;
                } else {
                    thinking::send_back(&mut said.thinking, text, state);
                }
            }
            State::Own(_) => self
                .common
                .lose("thinking was left out: this server does not take it back"),
            State::None => self.common.lose("thinking of another model was left out"),
        }
    }

    fn call(&mut self, message: &'a Message, at: usize, said: &mut Said<'a>) {
        let part = &message.parts()[at];
        let Content::ToolCall(call) = &part.content else {
            return;
        };
        let is_foreign = part
            .state
            .as_ref()
            .is_some_and(|state| state.origin.provider != self.common.model.provider);
        self.common.arguments(call);
        let state = match self.common.state(part) {
            State::Own(Value::Object(state)) => Some(state),
            State::Own(_) | State::None => None,
        };
        let is_taken = |id: &str| said.calls.iter().any(|call| call.id == id);
        let id = self.ids.call(call, is_foreign, is_taken);
        said.calls.push(Call {
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

    fn response_format(
        &mut self,
        request: &GenerateRequest,
        family: &Family,
    ) -> Result<Option<wire::ResponseFormat>, ModelError> {
        let Some(schema) = &request.response_schema else {
            return Ok(None);
        };
        if !family.common.schema.covers(!request.tools.is_empty()) {
            let why = "this model keeps to no response schema of its own in such a request; ask for it in words";
            return Err(self.common.refuse(why));
        }
        let Some(answer) = schema::answer(schema) else {
            return Err(self
                .common
                .refuse("a response schema must be that of an object; put the value into one"));
        };
        answer
            .losses
            .into_iter()
            .for_each(|loss| self.common.lose(loss));
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

/// One text as text, anything else as parts.
fn content(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [Value::Object(part)] if part.contains_key("text") => {
            part.remove("text").unwrap_or_default()
        }
        _ => Value::Array(parts),
    }
}
