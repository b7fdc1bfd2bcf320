//! Requests to `/v1/chat/completions`, and their reading. Keys that are not here are ignored, as
//! this API's clients expect; what is here and cannot be had is refused, or left out and said so.

use adjutant_core::{ClientSide, Notice, ToolChoice};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::invalid;
use super::message::ChatMessage;
use super::wishes::{self, FunctionOffered, Wishes, whole};
use crate::problem::Problem;

/// The member that says what an answer has to look like.
const FORM: &str = "response_format";

/// What a client sends.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "adjutant",
    "messages": [{"role": "user", "content": "add buy milk"}],
    "stream": true,
    "stream_options": {"include_usage": true}
}))]
pub(super) struct CompletionRequest {
    /// The agent's name, or that with `-plain`.
    pub(super) model: String,
    /// What was said before, and last what the person says now.
    #[schema(min_items = 1)]
    pub(super) messages: Vec<ChatMessage>,
    /// Whether the answer comes in pieces.
    #[serde(default)]
    pub(super) stream: Option<bool>,
    /// What else the pieces hold.
    #[serde(default)]
    pub(super) stream_options: Option<StreamOptions>,
    /// What the answer has to look like.
    #[serde(default)]
    pub(super) response_format: Option<ResponseFormat>,
    /// How many answers: one.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 1)]
    n: Option<u64>,
    /// Visible output, in tokens. The service's own bound holds too.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1)]
    max_completion_tokens: Option<u64>,
    /// The older name of it.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1)]
    max_tokens: Option<u64>,
    /// Checked, and otherwise the service's own setting.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Checked, and otherwise the service's own setting.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Checked, and otherwise not used.
    #[serde(default)]
    stop: Option<Stop>,
    /// Only `false`: how likely a token was is not known.
    #[serde(default)]
    logprobs: Option<bool>,
    /// Tools that the client executes, offered beside the agent's own, which run here.
    #[serde(default)]
    tools: Option<Vec<ToolOffered>>,
    /// The tools that may or have to be called: `auto` (the default), `none`, `required`, or one of
    /// `tools` by its name. With `none` the agent does not call its own either.
    #[serde(default)]
    tool_choice: Option<ChoiceAsked>,
    /// True if several of `tools` may be called in one answer. Default: true.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    /// The older form of `tools`. Not used.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Vec<Map<String, Value>>>,
    /// Only `text`.
    #[serde(default)]
    modalities: Option<Vec<String>>,
    /// Not used: who asks is who the token says.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "it is part of what clients send, and must have no effect"
    )]
    user: Option<String>,
}

/// What else the pieces of an answer hold.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct StreamOptions {
    /// A last piece with the tokens.
    #[serde(default)]
    pub(super) include_usage: Option<bool>,
}

/// A tool that the client executes.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolOffered {
    /// Only `function`.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    function: Option<FunctionOffered>,
}

/// A choice of the tools that may or have to be called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum ChoiceAsked {
    /// `auto`, `none` or `required`.
    Word(String),
    /// One function.
    Function {
        /// Only `function`.
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        function: Option<FunctionNamed>,
    },
}

/// A function by its name.
#[derive(Debug, Deserialize, ToSchema)]
struct FunctionNamed {
    name: String,
}

/// Where an answer is to stop.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum Stop {
    One(#[expect(dead_code, reason = "only its type is looked at")] String),
    Some(#[expect(dead_code, reason = "only its type is looked at")] Vec<String>),
}

/// What an answer has to look like.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat {
    /// Words.
    Text,
    /// A JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema, and its name.
        json_schema: NamedSchema,
    },
}

/// A schema with a name.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct NamedSchema {
    /// JSON Schema.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

impl CompletionRequest {
    /// What it asks beside its messages, if that can be had.
    pub(super) fn wishes(&self) -> Result<Wishes, Problem> {
        self.check()?;
        let max = match (self.max_completion_tokens, self.max_tokens) {
            (Some(max), _) => Some(("max_completion_tokens", max)),
            (None, Some(max)) => Some(("max_tokens", max)),
            (None, None) => None,
        };
        let format = self
            .response_format
            .as_ref()
            .and_then(ResponseFormat::schema);
        let output = format
            .map(|schema| wishes::output(FORM, schema))
            .transpose()?;
        Ok(Wishes {
            output,
            form: FORM,
            max_tokens: max
                .map(|(param, max)| wishes::max_tokens(param, max))
                .transpose()?,
            client: self.client()?,
            notices: self.without_effect(),
        })
    }

    /// Refuses what cannot be had, and what is out of its range.
    fn check(&self) -> Result<(), Problem> {
        wishes::check_sampling(self.temperature, self.top_p)?;
        let refused = [
            (
                self.n.is_some_and(|n| n != 1),
                "n",
                "there is one answer: n has to be 1",
            ),
            (
                self.logprobs == Some(true),
                "logprobs",
                "how likely a token was is not known here",
            ),
            (
                self.modalities
                    .iter()
                    .flatten()
                    .any(|modality| modality != "text"),
                "modalities",
                "the agent answers in text only",
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
            wishes::check_kind(at, &tool.kind)?;
            let place = format!("tools[{at}].function");
            let Some(function) = &tool.function else {
                return Err(invalid(place, "the function of a tool is missing"));
            };
            tools.push(function.tool(place)?);
        }
        let choice = match &self.tool_choice {
            None => ToolChoice::Auto,
            Some(ChoiceAsked::Word(word)) => wishes::choice(word)?,
            Some(ChoiceAsked::Function {
                kind,
                function: Some(function),
            }) if kind == "function" => ToolChoice::Named(function.name.clone()),
            Some(ChoiceAsked::Function { .. }) => return Err(wishes::unknown_choice()),
        };
        Ok(wishes::client(tools, choice, self.parallel_tool_calls))
    }

    /// What was asked and is not used, told once each.
    fn without_effect(&self) -> Vec<Notice> {
        let some = |tools: &Option<Vec<_>>| tools.as_ref().is_some_and(|tools| !tools.is_empty());
        wishes::unused([
            (
                self.temperature.is_some(),
                "temperature",
                wishes::OF_THE_SERVICE,
            ),
            (self.top_p.is_some(), "top_p", wishes::OF_THE_SERVICE),
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
    /// Returns the JSON Schema of the answer. `None`: words.
    fn schema(&self) -> Option<Value> {
        match self {
            Self::Text => None,
            Self::JsonObject => Some(json!({"type": "object"})),
            Self::JsonSchema { json_schema } => Some(
                json_schema
                    .schema
                    .clone()
                    .unwrap_or_else(|| json!({"type": "object"})),
            ),
        }
    }
}
