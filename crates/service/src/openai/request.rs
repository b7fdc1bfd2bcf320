//! The request of `/v1/chat/completions`. Unknown members are ignored, as clients of this API
//! expect; known ones that are not supported are refused, or ignored with a notice.

use adjutant_core::{ClientSide, Notice, ToolChoice};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::invalid;
use super::message::ChatMessage;
use super::options::{self, FunctionOffered, RequestOptions, SERVICE_SETTING, deserialize_whole};
use crate::problem::Problem;

/// Member with the form of the answer.
const OUTPUT_PARAM: &str = "response_format";

/// A request to complete a chat.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "adjutant",
    "messages": [{"role": "user", "content": "add buy milk"}],
    "stream": true,
    "stream_options": {"include_usage": true}
}))]
pub(super) struct CompletionRequest {
    /// Name of the agent, or the name with `-plain` for its language model without tools.
    pub(super) model: String,
    /// The history, and as the last message the current one of the user.
    #[schema(min_items = 1)]
    pub(super) messages: Vec<ChatMessage>,
    /// True if the answer should be streamed.
    pub(super) stream: Option<bool>,
    /// Options of the stream.
    pub(super) stream_options: Option<StreamOptions>,
    /// Form of the answer.
    pub(super) response_format: Option<ResponseFormat>,
    /// Number of answers; only 1 is supported.
    #[serde(default, deserialize_with = "deserialize_whole")]
    #[schema(minimum = 1, maximum = 1)]
    n: Option<u64>,
    /// Largest length of the answer in tokens. The service has a limit of its own.
    #[serde(default, deserialize_with = "deserialize_whole")]
    #[schema(minimum = 1)]
    max_completion_tokens: Option<u64>,
    /// Older name of `max_completion_tokens`.
    #[serde(default, deserialize_with = "deserialize_whole")]
    #[schema(minimum = 1)]
    max_tokens: Option<u64>,
    /// Validated and otherwise ignored: the service's setting applies.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Validated and otherwise ignored: the service's setting applies.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Validated and otherwise ignored.
    stop: Option<Stop>,
    /// Only `false` is supported.
    logprobs: Option<bool>,
    /// Tools that the client executes, in addition to those of the agent.
    tools: Option<Vec<ToolOffered>>,
    /// Tools that may or must be called: `auto` (the default), `none`, `required`, or one of
    /// `tools` by its name. With `none` the agent does not call its own tools either.
    tool_choice: Option<ChoiceAsked>,
    /// True if several of `tools` may be called in one answer. Default: true.
    parallel_tool_calls: Option<bool>,
    /// Older form of `tools`. Ignored.
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Vec<Map<String, Value>>>,
    /// Only `text` is supported.
    modalities: Option<Vec<String>>,
    /// Ignored: the user is the authenticated caller.
    #[expect(
        dead_code,
        reason = "it is part of what clients send, and must have no effect"
    )]
    user: Option<String>,
}

/// Options of a stream.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct StreamOptions {
    /// True to end the stream with a chunk that has the token counts.
    pub(super) include_usage: Option<bool>,
}

/// A tool that the client executes.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolOffered {
    /// Only `function` is supported.
    #[serde(rename = "type")]
    kind: String,
    /// The function.
    function: Option<FunctionOffered>,
}

/// Choice of the tools that may or must be called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum ChoiceAsked {
    /// `auto`, `none` or `required`.
    Word(String),
    /// A function that must be called.
    Function {
        /// Only `function` is supported.
        #[serde(rename = "type")]
        kind: String,
        /// The function.
        function: Option<FunctionNamed>,
    },
}

/// Name of a function.
#[derive(Debug, Deserialize, ToSchema)]
struct FunctionNamed {
    /// The name.
    name: String,
}

/// Texts at which an answer should stop.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum Stop {
    /// One text.
    One(#[expect(dead_code, reason = "only its type is validated")] String),
    /// Several texts.
    Some(#[expect(dead_code, reason = "only its type is validated")] Vec<String>),
}

/// Form of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat {
    /// Text without a fixed form.
    Text,
    /// A JSON object with any members.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema {
        /// The schema, and its name.
        json_schema: NamedSchema,
    },
}

/// A JSON Schema with a name.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct NamedSchema {
    /// The JSON Schema.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

impl CompletionRequest {
    /// Returns the options besides the messages. Refuses unsupported ones.
    pub(super) fn options(&self) -> Result<RequestOptions, Problem> {
        self.check()?;
        let (max_param, max) = match self.max_completion_tokens {
            None => ("max_tokens", self.max_tokens),
            max => ("max_completion_tokens", max),
        };
        let format = self.response_format.as_ref();
        let output = format.and_then(ResponseFormat::schema);
        if let Some(schema) = &output {
            options::check_output_schema(OUTPUT_PARAM, schema)?;
        }
        Ok(RequestOptions {
            output,
            output_param: OUTPUT_PARAM,
            max_tokens: options::parse_max_tokens(max_param, max)?,
            client: self.client()?,
            notices: self.ignored_options(),
        })
    }

    /// Refuses unsupported values, and those out of range.
    fn check(&self) -> Result<(), Problem> {
        options::check_sampling(self.temperature, self.top_p)?;
        options::refuse([
            (
                self.n.is_some_and(|n| n != 1),
                "n",
                "there is one answer: n has to be 1",
            ),
            (
                // Clients send `false` too, which asks for nothing.
                self.logprobs == Some(true),
                "logprobs",
                "log probabilities are not available",
            ),
            (
                self.modalities
                    .iter()
                    .flatten()
                    .any(|modality| modality != "text"),
                "modalities",
                "the agent answers in text only",
            ),
        ])
    }

    /// Parses the client's tools and the choice among them.
    fn client(&self) -> Result<ClientSide, Problem> {
        let mut tools = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            // First: tools of other types have no function, and this error explains that.
            options::check_kind(at, &tool.kind)?;
            let place = format!("tools[{at}].function");
            let Some(function) = &tool.function else {
                return Err(invalid(place, "the function of a tool is missing"));
            };
            tools.push(function.tool(place)?);
        }
        let choice = match &self.tool_choice {
            None => ToolChoice::Auto,
            Some(ChoiceAsked::Word(word)) => options::parse_choice(word)?,
            Some(ChoiceAsked::Function {
                kind,
                function: Some(function),
            }) if kind == "function" => ToolChoice::Named(function.name.clone()),
            Some(ChoiceAsked::Function { .. }) => return Err(options::unknown_choice()),
        };
        Ok(options::client_side(
            tools,
            choice,
            self.parallel_tool_calls,
        ))
    }

    /// Returns a notice for each option that was sent and is ignored.
    fn ignored_options(&self) -> Vec<Notice> {
        let some = |tools: &Option<Vec<_>>| tools.as_ref().is_some_and(|tools| !tools.is_empty());
        options::ignored_notices([
            (self.temperature.is_some(), "temperature", SERVICE_SETTING),
            (self.top_p.is_some(), "top_p", SERVICE_SETTING),
            (
                self.stop.is_some(),
                "stop",
                "an answer ends where the model ends it",
            ),
            (
                some(&self.functions),
                "functions",
                "the agent is offered functions as tools",
            ),
        ])
    }
}

impl ResponseFormat {
    /// Returns the JSON Schema of the answer; `None` for text.
    fn schema(&self) -> Option<Value> {
        let schema = match self {
            Self::Text => return None,
            Self::JsonObject => None,
            Self::JsonSchema { json_schema } => json_schema.schema.clone(),
        };
        Some(schema.unwrap_or_else(|| json!({"type": "object"})))
    }
}
