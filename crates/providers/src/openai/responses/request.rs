//! Core to wire. Pure; the same request gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use adjutant_core::{
    CallId, Content, GenerateRequest, Message, ModelError, ModelId, Part, Role, ToolCall,
    ToolChoice, ToolDefinition,
};
use serde_json::{Value, json};

use super::item;
use super::wire::{self, Item};
use crate::encode::{Encoded, Encoder, Image, State};
use crate::openai::family::Family;
use crate::openai::schema;
use crate::per_tools::PerTools;

/// Bytes a call's id may have. Source: the published request schema.
const CALL_ID_MAX: usize = 64;
/// The least `max_output_tokens` may be. Source: the published request schema.
const OUTPUT_TOKENS_MIN: u32 = 16;
/// What a model thought, encrypted, so that it can be sent back although the vendor keeps nothing.
const REASONING: &str = "reasoning.encrypted_content";

/// Tools as they are sent.
pub(super) type Tools = PerTools<Vec<wire::Tool>>;

/// Fails with [`ModelError::BadRequest`] where the model would refuse the request anyway.
pub(super) fn encode(
    request: &GenerateRequest,
    streamed: bool,
    (model, family): (&ModelId, &Family),
    tools: &Tools,
) -> Result<Encoded, ModelError> {
    if request.response_schema.is_some() && !family.common.schema.covers(!request.tools.is_empty())
    {
        let common = Encoder::new(model, &family.common, request);
        return Err(
            common.refuse("this model keeps to no response schema: ask for the form in words")
        );
    }
    let mut encoder = ResponsesEncoder {
        common: Encoder::new(model, &family.common, request),
        call_ids: BTreeMap::new(),
        taken_ids: BTreeSet::new(),
        answered: answered(&request.messages, model),
    };
    let (instructions, input) = encoder.transcript(&request.messages)?;
    encoder.common.something_to_answer(input.len())?;
    let mut settings = encoder.common.settings()?;
    if let Some(tokens) = settings
        .max_tokens
        .filter(|tokens| *tokens < OUTPUT_TOKENS_MIN)
        && !request.config.verbatim
    {
        encoder.common.lose(format!(
            "max_tokens {tokens} was sent as {OUTPUT_TOKENS_MIN}, the least the vendor takes"
        ));
        settings.max_tokens = Some(OUTPUT_TOKENS_MIN);
    }
    let Ok(tools) = tools.get(&request.tools, || {
        Ok::<_, Infallible>(request.tools.iter().map(tool).collect())
    });
    let wire = wire::Request {
        model: &model.name,
        store: false,
        include: family.reasons.then_some([REASONING]),
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_output_tokens: settings.max_tokens,
        stream: streamed,
        text: encoder.text(request)?,
        tools: &tools,
        tool_choice: tool_choice(request),
        instructions,
        input,
    };
    encoder.common.finish(&wire)
}

/// `None`: the model may call tools or not, as it does if nothing is said.
fn tool_choice(request: &GenerateRequest) -> Option<Value> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn tool(tool: &ToolDefinition) -> wire::Tool {
    wire::Tool {
        r#type: "function",
        name: tool.name.to_string(),
        description: tool.description.clone(),
        // Nothing is lost by what it leaves out: the arguments are checked against all of the
        // schema before the tool is called.
        parameters: schema::parameters(&tool.parameters, &mut BTreeSet::new()),
        strict: false,
    }
}

struct ResponsesEncoder<'a> {
    common: Encoder<'a>,
    /// The wire's ids of the calls, to be repeated with their results.
    call_ids: BTreeMap<&'a CallId, String>,
    taken_ids: BTreeSet<String>,
    /// Calls of tools the vendor ran, or had run, that have their answer in the transcript.
    answered: BTreeSet<&'a str>,
}

/// The items of one message of the model.
#[derive(Default)]
struct Said {
    items: Vec<Item>,
    /// The last item came from this very model.
    own: bool,
    /// Some reasoning could not go back. What followed it may not look as if it had.
    lost_reasoning: bool,
}

impl<'a> ResponsesEncoder<'a> {
    /// The instruction goes where the vendor has a field for it, in front of everything: together
    /// with the tools it is the prefix that stays the same and is cached. A system message later in
    /// the transcript keeps its place.
    fn transcript(
        &mut self,
        messages: &'a [Message],
    ) -> Result<(Option<String>, Vec<Item>), ModelError> {
        let mut instructions = Vec::new();
        let mut input = Vec::new();
        for message in messages {
            match message.role() {
                Role::System if input.is_empty() => instructions.push(message.text()),
                Role::System => input.push(words("system", "input_text", &message.text())),
                Role::User => input.extend(self.user(message)?),
                Role::Assistant => input.extend(self.assistant(message)),
                Role::Tool => input.extend(self.result(message)),
            }
        }
        Ok((
            (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            input,
        ))
    }

    fn user(&mut self, message: &'a Message) -> Result<Option<Item>, ModelError> {
        let mut content = Vec::new();
        for part in message.parts() {
            match &part.content {
                Content::Text { text } => {
                    content.push(json!({ "type": "input_text", "text": text }))
                }
                Content::Image { source } => {
                    if let Some(image) = self.common.picture(source)? {
                        content.push(picture(image));
                    }
                }
                other => self
                    .common
                    .lose(format!("a part cannot be sent to OpenAI: {other:?}")),
            }
        }
        Ok((!content.is_empty()).then(|| said_by("user", content)))
    }

    fn assistant(&mut self, message: &'a Message) -> Vec<Item> {
        let mut said = Said::default();
        for part in message.parts() {
            let own = match self.common.state(part) {
                State::Own(state) => Some(state),
                State::None => None,
            };
            match (&part.content, own) {
                (Content::Text { .. } | Content::Refusal { .. }, Some(state)) => {
                    said.message(item::message(state, &part.content, &mut self.common));
                }
                (Content::Text { text } | Content::Refusal { text }, None) if text.is_empty() => {}
                (Content::Text { text } | Content::Refusal { text }, None) => {
                    self.leave_thought_without_deed(&mut said);
                    said.foreign(text);
                }
                (Content::Thinking { .. }, Some(state)) => match item::reasoning(state) {
                    Some(item) => said.own(item),
                    None => {
                        said.lost_reasoning = true;
                        self.common
                            .lose("reasoning without its encrypted content was left out");
                    }
                },
                (Content::Thinking { .. }, None) => {
                    self.common.lose("thinking of another model was left out")
                }
                (Content::Opaque { kind }, Some(state)) => match self.trace(state) {
                    Ok(item) => said.own(item),
                    Err(why) => {
                        self.leave_thought_without_deed(&mut said);
                        self.common.lose(format!("{kind} was left out: {why}"));
                    }
                },
                (Content::Opaque { kind }, None) => {
                    self.common
                        .lose(format!("{kind} of another model was left out"));
                }
                (Content::ToolCall(call), own) => {
                    if own.is_none() {
                        self.leave_thought_without_deed(&mut said);
                    }
                    let call_id = self.call_id(call, own.is_some() || part.state.is_none());
                    let item = item::call(own, call, &call_id);
                    self.call_ids.insert(&call.id, call_id);
                    said.items.push(item);
                    said.own = own.is_some();
                }
                // Content may grow; what we do not know is reported, not guessed.
                (other, _) => self
                    .common
                    .lose(format!("a part cannot be sent to OpenAI: {other:?}")),
            }
        }
        self.leave_thought_without_deed(&mut said);
        said.finish()
    }

    /// What the vendor did itself, if it takes that back.
    fn trace(&mut self, state: &Value) -> Result<Item, &'static str> {
        let mut item = item::opaque(state).ok_or("a request does not take it")?;
        if item::awaits_answer(&item).is_some_and(|id| !self.answered.contains(id)) {
            return Err("it waits for an answer that is not there");
        }
        item::trim(&mut item, &mut self.common);
        Ok(item)
    }

    /// The vendor refuses reasoning that nothing follows.
    fn leave_thought_without_deed(&mut self, said: &mut Said) {
        while said
            .items
            .pop_if(|item| item::kind(item) == "reasoning")
            .is_some()
        {
            said.lost_reasoning = true;
            self.common
                .lose("reasoning that nothing of its model follows was left out");
        }
    }

    /// The vendor's own id of the call, else ours, else its number, whichever fits and is not
    /// taken: servers exist that count from 0 in every answer.
    fn call_id(&mut self, call: &ToolCall, keep: bool) -> String {
        let known = call
            .provider_id
            .as_deref()
            .filter(|_| keep)
            .into_iter()
            .chain([call.id.as_str()]);
        let numbered = (self.taken_ids.len()..).map(|number| format!("call_{number}"));
        let id = known
            .map(str::to_owned)
            .chain(numbered)
            .find(|id| id.len() <= CALL_ID_MAX && !self.taken_ids.contains(id))
            .unwrap_or_default();
        self.taken_ids.insert(id.clone());
        id
    }

    fn result(&mut self, message: &Message) -> Option<Item> {
        let (id, _, result) = message.tool_result()?;
        let id = self.call_ids.get(id).map_or(id.as_str(), String::as_str);
        Some(object([
            ("type", json!("function_call_output")),
            ("call_id", json!(id)),
            ("output", json!(result.to_text())),
        ]))
    }

    fn text(&mut self, request: &GenerateRequest) -> Result<Option<wire::Text>, ModelError> {
        let Some(schema) = &request.response_schema else {
            return Ok(None);
        };
        let Some(answer) = schema::answer(schema) else {
            self.common.unsupported(
                "a response schema that is not an object's",
                "put it inside an object",
            )?;
            return Ok(None);
        };
        answer
            .losses
            .into_iter()
            .for_each(|loss| self.common.lose(loss));
        let (schema, strict) = (answer.schema, answer.strict);
        Ok(Some(wire::Text {
            format: wire::Format {
                r#type: "json_schema",
                name: "answer",
                schema,
                strict,
            },
        }))
    }
}

impl Said {
    fn own(&mut self, item: Item) {
        self.items.push(item);
        self.own = true;
    }

    /// Pieces of one message's content were parts of their own.
    fn message(&mut self, mut item: Item) {
        let same = |last: &&mut Item| {
            let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
            !id.is_empty() && item::kind(last) == "message" && last.get("id") == item.get("id")
        };
        let last = self
            .items
            .last_mut()
            .filter(same)
            .and_then(|last| last.get_mut("content")?.as_array_mut());
        match (last, item.get_mut("content").and_then(Value::as_array_mut)) {
            (Some(content), Some(more)) => content.append(more),
            _ => self.own(item),
        }
    }

    /// Words of another model, or of none: without the ids and annotations of an answer.
    fn foreign(&mut self, text: &str) {
        let last = self
            .items
            .last_mut()
            .filter(|_| !self.own)
            .and_then(|last| last.get_mut("content"));
        match last {
            Some(Value::String(words)) => words.push_str(text),
            _ => self.items.push(said_by("assistant", json!(text))),
        }
        self.own = false;
    }

    /// An id says which answer an item is from, and the vendor misses the reasoning it had there.
    fn finish(mut self) -> Vec<Item> {
        if self.lost_reasoning {
            let loose = |item: &&mut Item| matches!(item::kind(item), "message" | "function_call");
            self.items
                .iter_mut()
                .filter(loose)
                .for_each(|item| drop(item.shift_remove("id")));
        }
        self.items
    }
}

/// The calls that have an answer among what this model's vendor ran itself.
fn answered<'a>(messages: &'a [Message], model: &ModelId) -> BTreeSet<&'a str> {
    let parts = messages.iter().flat_map(Message::parts);
    let own = |part: &'a Part| match (&part.content, &part.state) {
        (Content::Opaque { .. }, Some(state)) if state.origin == *model => state.data.as_object(),
        _ => None,
    };
    parts.filter_map(own).filter_map(item::answers).collect()
}

fn said_by(role: &str, content: impl Into<Value>) -> Item {
    object([
        ("type", json!("message")),
        ("role", json!(role)),
        ("content", content.into()),
    ])
}

fn words(role: &str, kind: &str, text: &str) -> Item {
    said_by(role, json!([{ "type": kind, "text": text }]))
}

fn picture(image: Image<'_>) -> Value {
    let url = match image {
        Image::Bytes { media_type, data } => format!("data:{media_type};base64,{data}"),
        Image::Url(url) => url.to_owned(),
    };
    json!({ "type": "input_image", "image_url": url, "detail": "auto" })
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Item {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
