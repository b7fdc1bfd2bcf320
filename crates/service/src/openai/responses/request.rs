//! Requests to `/v1/responses`, but for their input. Keys that are not here are ignored, as this
//! API's clients expect; what is here and cannot be had is refused, or left out and said so.

use adjutant_core::{ClientSide, Notice, ToolChoice};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::wire::{ResponseChoice, ResponseEcho};
use crate::openai::error::invalid;
use crate::openai::wishes::{self, FunctionOffered, Wishes, whole};
use crate::problem::Problem;

/// The member that says what an answer has to look like.
const FORM: &str = "text.format";

/// A request.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "adjutant",
    "input": "add buy milk",
    "instructions": "Answer in one sentence.",
    "stream": false
}))]
pub(super) struct ResponseRequest {
    /// The agent's name, or that with `-plain`.
    model: String,
    /// The person's words as a string, or items: messages, calls of the client's tools, and their
    /// results. The last is the person's message or a result.
    pub(super) input: ResponseInput,
    /// Words of the application for this answer alone, as background from the person's side.
    #[serde(default)]
    pub(super) instructions: Option<String>,
    /// The answer that this one goes on from. What was said before need not be sent again then.
    #[serde(default)]
    pub(super) previous_response_id: Option<String>,
    /// True if the answer is to come in pieces.
    #[serde(default)]
    pub(super) stream: Option<bool>,
    /// Not used: each answer is in the decision log, for as long as the service keeps that.
    #[serde(default)]
    store: Option<bool>,
    /// The form of the answer.
    #[serde(default)]
    text: Option<ResponseText>,
    /// Tools that the client executes, offered beside the agent's own, which run here. Only
    /// `function`.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Map<String, Value>>>,
    /// The tools that may or have to be called: `auto` (the default), `none`, `required`, or one of
    /// `tools` by its name. With `none` the agent does not call its own either.
    #[serde(default)]
    tool_choice: Option<ResponseChoice>,
    /// True if several of `tools` may be called in one answer. Default: true.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    /// Visible output, in tokens. The service's own bound holds too.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1)]
    max_output_tokens: Option<u64>,
    /// Given back with the answer.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Checked, and otherwise the service's own setting.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Checked, and otherwise the service's own setting.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Not used: how much the model thinks is the service's own setting.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    reasoning: Option<Map<String, Value>>,
    /// Not used: the service bounds what a turn may do.
    #[serde(default)]
    max_tool_calls: Option<u64>,
    /// Only `false`: an answer is waited for.
    #[serde(default)]
    background: Option<bool>,
    /// Only `null`: a conversation goes on from `previous_response_id`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    conversation: Option<Value>,
    /// Only `null`: prompts are not kept here.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    prompt: Option<Value>,
    /// Only 0: how likely a token was is not known.
    #[serde(default)]
    top_logprobs: Option<u64>,
}

/// The person's words, and those before them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "the input has to be a string or a list of items"
)]
pub(super) enum ResponseInput {
    /// The person's words.
    Words(String),
    /// Items in order.
    #[schema(value_type = Vec<Object>)]
    Items(Vec<Value>),
}

/// The manner of an answer in words.
#[derive(Debug, Deserialize, ToSchema)]
struct ResponseText {
    #[serde(default)]
    format: Option<TextFormat>,
}

/// The form of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat {
    /// Words.
    Text,
    /// A JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// JSON Schema.
        #[serde(default)]
        #[schema(value_type = Option<Object>)]
        schema: Option<Value>,
    },
}

impl ResponseRequest {
    /// Returns what it asks beside its input, if that can be had.
    pub(super) fn wishes(&self) -> Result<Wishes, Problem> {
        self.check()?;
        let format = self.text.as_ref().and_then(|text| text.format.as_ref());
        let schema = format.and_then(|format| match format {
            TextFormat::Text => None,
            TextFormat::JsonObject => Some(json!({"type": "object"})),
            TextFormat::JsonSchema { schema } => {
                Some(schema.clone().unwrap_or_else(|| json!({"type": "object"})))
            }
        });
        let max = self
            .max_output_tokens
            .map(|max| wishes::max_tokens("max_output_tokens", max));
        Ok(Wishes {
            output: schema
                .map(|schema| wishes::output(FORM, schema))
                .transpose()?,
            form: FORM,
            max_tokens: max.transpose()?,
            client: self.client()?,
            notices: self.without_effect(),
        })
    }

    /// Returns what the answer says of the request. `body`: the request as it came.
    pub(super) fn echo(&self, body: &Value) -> ResponseEcho {
        let format = body
            .pointer("/text/format")
            .filter(|format| !format.is_null());
        ResponseEcho {
            model: self.model.clone(),
            instructions: self.instructions.clone(),
            max_output_tokens: self.max_output_tokens,
            metadata: self.metadata.clone().unwrap_or_default(),
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(true),
            previous_response_id: self.previous_response_id.clone(),
            store: self.store.unwrap_or(true),
            text: json!({"format": format.cloned().unwrap_or_else(|| json!({"type": "text"}))}),
            tool_choice: self
                .tool_choice
                .clone()
                .unwrap_or_else(ResponseChoice::auto),
            tools: self.tools.clone().unwrap_or_default(),
        }
    }

    /// Refuses what cannot be had, and what is out of its range.
    fn check(&self) -> Result<(), Problem> {
        wishes::check_sampling(self.temperature, self.top_p)?;
        let refused = [
            (
                self.background == Some(true),
                "background",
                "an answer is waited for: background has to be false",
            ),
            (
                self.conversation.is_some(),
                "conversation",
                "a conversation has no id of its own here: go on with previous_response_id",
            ),
            (
                self.prompt.is_some(),
                "prompt",
                "prompts are not kept here: send the words as input",
            ),
            (
                self.top_logprobs.is_some_and(|top| top > 0),
                "top_logprobs",
                "how likely a token was is not known here",
            ),
        ];
        match refused.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, param, detail)) => Err(invalid(param, detail)),
            None => Ok(()),
        }
    }

    /// Reads the tools that the client executes, and the choice among them. Refuses a tool that is
    /// no valid function.
    fn client(&self) -> Result<ClientSide, Problem> {
        let mut tools = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            let place = format!("tools[{at}]");
            let kind = tool.get("type").and_then(Value::as_str);
            let kind = kind
                .ok_or_else(|| invalid(format!("{place}.type"), "the type of a tool is missing"))?;
            wishes::check_kind(at, kind)?;
            let function: FunctionOffered = serde_json::from_value(Value::Object(tool.clone()))
                .map_err(|error| invalid(place.clone(), error.to_string()))?;
            tools.push(function.tool(place)?);
        }
        let named = |choice: &Map<String, Value>| {
            let is_function = choice.get("type").and_then(Value::as_str) == Some("function");
            choice
                .get("name")
                .and_then(Value::as_str)
                .filter(|_| is_function)
                .map(str::to_owned)
        };
        let choice = match &self.tool_choice {
            None => ToolChoice::Auto,
            Some(ResponseChoice::Word(word)) => wishes::choice(word)?,
            Some(ResponseChoice::Function(choice)) => {
                ToolChoice::Named(named(choice).ok_or_else(wishes::unknown_choice)?)
            }
        };
        Ok(wishes::client(tools, choice, self.parallel_tool_calls))
    }

    /// Returns what was asked and is not used, told once each.
    fn without_effect(&self) -> Vec<Notice> {
        let asks = |member: &Option<Map<String, Value>>| {
            member
                .iter()
                .flat_map(Map::values)
                .any(|value| !value.is_null())
        };
        wishes::unused([
            (
                self.temperature.is_some(),
                "temperature",
                wishes::OF_THE_SERVICE,
            ),
            (self.top_p.is_some(), "top_p", wishes::OF_THE_SERVICE),
            (asks(&self.reasoning), "reasoning", wishes::OF_THE_SERVICE),
            (
                self.max_tool_calls.is_some(),
                "max_tool_calls",
                wishes::OF_THE_SERVICE,
            ),
            (
                self.store == Some(false),
                "store",
                "the answer is in the decision log all the same",
            ),
        ])
    }
}
