//! The request of `/v1/responses`, apart from its input. Unknown members are ignored, as clients of
//! this API expect; known ones that are not supported are refused, or ignored with a notice.

use adjutant_core::{ClientSide, Notice, ToolChoice};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::wire::{ResponseChoice, ResponseEcho};
use crate::openai::error::invalid;
use crate::openai::options::{
    self, FunctionOffered, RequestOptions, SERVICE_SETTING, deserialize_whole,
};
use crate::problem::Problem;

/// Path of the option with the form of the answer.
const OUTPUT_PARAM: &str = "text.format";

/// A request to create a response.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "adjutant",
    "input": "add buy milk",
    "instructions": "Answer in one sentence.",
    "stream": false
}))]
pub(super) struct ResponseRequest {
    /// Name of the agent, or the name with `-plain` for its language model without tools.
    model: String,
    /// The user's message as a string, or items: messages, calls of the client's tools, and their
    /// results. The last one must be the user's message or a result.
    pub(super) input: ResponseInput,
    /// Instructions of the client for this response only. They have the authority of the user.
    pub(super) instructions: Option<String>,
    /// Id of the response to continue. Its history need not be sent again.
    pub(super) previous_response_id: Option<String>,
    /// True if the response should be streamed.
    pub(super) stream: Option<bool>,
    /// Ignored: each response is in the decision log, for as long as the service keeps the log.
    store: Option<bool>,
    /// Form of the answer.
    text: Option<ResponseText>,
    /// Tools that the client executes, in addition to those of the agent. Only `function` is
    /// supported.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Map<String, Value>>>,
    /// Tools that may or must be called: `auto` (the default), `none`, `required`, or one of
    /// `tools` by its name. With `none` the agent does not call its own tools either.
    tool_choice: Option<ResponseChoice>,
    /// True if several of `tools` may be called in one answer. Default: true.
    parallel_tool_calls: Option<bool>,
    /// Largest length of the answer in tokens. The service has a limit of its own.
    #[serde(default, deserialize_with = "deserialize_whole")]
    #[schema(minimum = 1)]
    max_output_tokens: Option<u64>,
    /// Returned with the response.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Validated and otherwise ignored: the service's setting applies.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Validated and otherwise ignored: the service's setting applies.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Ignored: a setting of the service determines how much the model thinks.
    #[schema(value_type = Option<Object>)]
    reasoning: Option<Map<String, Value>>,
    /// Ignored: the service limits the calls of a turn.
    max_tool_calls: Option<u64>,
    /// Only `false` is supported.
    background: Option<bool>,
    /// Only `null` is supported: use `previous_response_id`.
    #[schema(value_type = Option<Object>)]
    conversation: Option<Value>,
    /// Only `null` is supported: there are no stored prompts.
    #[schema(value_type = Option<Object>)]
    prompt: Option<Value>,
    /// Only 0 is supported: log probabilities are not available.
    top_logprobs: Option<u64>,
}

/// The input of a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "the input has to be a string or a list of items"
)]
pub(super) enum ResponseInput {
    /// The user's message.
    Text(String),
    /// Items in their order.
    #[schema(value_type = Vec<Object>)]
    Items(Vec<Value>),
}

/// Options of the answer's text.
#[derive(Debug, Deserialize, ToSchema)]
struct ResponseText {
    /// Form of the text.
    format: Option<TextFormat>,
}

/// Form of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat {
    /// Text without a fixed form.
    Text,
    /// A JSON object with any members.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema {
        /// The JSON Schema.
        #[schema(value_type = Option<Object>)]
        schema: Option<Value>,
    },
}

impl TextFormat {
    /// Returns the JSON Schema of the answer; `None` for text.
    fn schema(&self) -> Option<Value> {
        let schema = match self {
            Self::Text => return None,
            Self::JsonObject => None,
            Self::JsonSchema { schema } => schema.clone(),
        };
        Some(schema.unwrap_or_else(|| json!({"type": "object"})))
    }
}

impl ResponseRequest {
    /// Returns the options besides the input. Refuses unsupported ones.
    pub(super) fn options(&self) -> Result<RequestOptions, Problem> {
        self.check()?;
        let format = self.text.as_ref().and_then(|text| text.format.as_ref());
        let output = format.and_then(TextFormat::schema);
        if let Some(schema) = &output {
            options::check_output_schema(OUTPUT_PARAM, schema)?;
        }
        Ok(RequestOptions {
            output,
            output_param: OUTPUT_PARAM,
            max_tokens: options::parse_max_tokens("max_output_tokens", self.max_output_tokens)?,
            client: self.client()?,
            notices: self.ignored_options(),
        })
    }

    /// Returns the fields that the response repeats. `body`: the request as JSON.
    pub(super) fn echo(&self, body: &Value) -> ResponseEcho {
        // From the body, so that the response repeats members of it that are not parsed.
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

    /// Refuses unsupported values, and those out of range.
    fn check(&self) -> Result<(), Problem> {
        options::check_sampling(self.temperature, self.top_p)?;
        options::refuse([
            (
                self.background == Some(true),
                "background",
                "background mode is not supported: background has to be false",
            ),
            (
                self.conversation.is_some(),
                "conversation",
                "conversations have no ids here: continue with previous_response_id",
            ),
            (
                self.prompt.is_some(),
                "prompt",
                "prompts are not stored here: send the text as input",
            ),
            (
                self.top_logprobs.is_some_and(|top| top > 0),
                "top_logprobs",
                "log probabilities are not available",
            ),
        ])
    }

    /// Parses the client's tools and the choice among them.
    fn client(&self) -> Result<ClientSide, Problem> {
        let mut tools = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            let place = format!("tools[{at}]");
            let kind = tool.get("type").and_then(Value::as_str);
            let kind = kind
                .ok_or_else(|| invalid(format!("{place}.type"), "the type of a tool is missing"))?;
            options::check_kind(at, kind)?;
            // Parsed here and not by the type of the request: the response repeats tools as they
            // were sent.
            let function: FunctionOffered = serde_json::from_value(Value::Object(tool.clone()))
                .map_err(|error| invalid(place.clone(), error.to_string()))?;
            tools.push(function.tool(place)?);
        }
        let named = |choice: &Map<String, Value>| {
            let text = |member| choice.get(member).and_then(Value::as_str);
            let name = text("name").filter(|_| text("type") == Some("function"));
            name.map(str::to_owned)
        };
        let choice = match &self.tool_choice {
            None => ToolChoice::Auto,
            Some(ResponseChoice::Word(word)) => options::parse_choice(word)?,
            Some(ResponseChoice::Function(choice)) => {
                ToolChoice::Named(named(choice).ok_or_else(options::unknown_choice)?)
            }
        };
        Ok(options::client_side(
            tools,
            choice,
            self.parallel_tool_calls,
        ))
    }

    /// Returns a notice for each option that was sent and is ignored.
    fn ignored_options(&self) -> Vec<Notice> {
        let has_value = |member: &Option<Map<String, Value>>| {
            member
                .iter()
                .flat_map(Map::values)
                .any(|value| !value.is_null())
        };
        options::ignored_notices([
            (self.temperature.is_some(), "temperature", SERVICE_SETTING),
            (self.top_p.is_some(), "top_p", SERVICE_SETTING),
            (has_value(&self.reasoning), "reasoning", SERVICE_SETTING),
            (
                self.max_tool_calls.is_some(),
                "max_tool_calls",
                SERVICE_SETTING,
            ),
            (
                self.store == Some(false),
                "store",
                "the answer is in the decision log all the same",
            ),
        ])
    }
}
