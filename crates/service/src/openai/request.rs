//! What a client may send, and what is made of it. Keys that are not here are ignored, as this API's clients expect; what is
//! here and cannot be had is refused, or left out and said so.

use adjutant_core::{ClientSide, ClientTool, MaxTokens, Notice, OutputSchema, ToolChoice};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::invalid;
use crate::problem::Problem;

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
    /// The tools that may or have to be called: `auto` (the default), `none`, `required`, or one of `tools` by its name. With `none` the
    /// agent does not call its own either.
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
    #[expect(dead_code, reason = "it is part of what clients send, and must have no effect")]
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

/// The function of a tool, as it is described to the model.
#[derive(Debug, Deserialize, ToSchema)]
struct FunctionOffered {
    /// Letters, digits, `_` and `-`; not the name of a tool of the agent's own.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// JSON Schema of an object. Calls are checked against it, `strict` or not. Without it the tool takes no arguments.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
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

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The application.
    System,
    /// The application, in newer clients.
    Developer,
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// A tool that ran elsewhere.
    Tool,
    /// The same, in older clients.
    Function,
}

impl Role {
    /// Whether it is the application that speaks, and not one of those who talk.
    pub(super) fn is_instruction(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// One message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct ChatMessage {
    /// Who says it.
    pub(super) role: Role,
    /// What is said.
    #[serde(default)]
    content: Option<MessageContent>,
    /// Of a `function` message: which.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// Calls the agent is said to have made.
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallMade>>,
    /// The same in older clients.
    #[serde(default)]
    pub(super) function_call: Option<FunctionCalled>,
    /// Of a `tool` message: which call it answers.
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
}

/// What is said: words, or pieces.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
enum MessageContent {
    Words(String),
    Pieces(Vec<Piece>),
}

/// A piece of what is said.
#[derive(Debug, Clone, Deserialize, ToSchema)]
struct Piece {
    /// `text` and `refusal` are read; of others there is none this agent takes.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Piece {
    /// `None`: it holds no words.
    fn words(&self) -> Option<&str> {
        match self.kind.as_str() {
            "text" | "input_text" | "output_text" => Some(self.text.as_deref().unwrap_or_default()),
            "refusal" => Some(self.refusal.as_deref().unwrap_or_default()),
            _ => None,
        }
    }
}

/// A call the agent is said to have made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct CallMade {
    /// What its result names.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// What was called.
    #[serde(default)]
    pub(super) function: Option<FunctionCalled>,
}

/// What was called.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct FunctionCalled {
    /// The tool.
    pub(super) name: String,
    /// JSON as text.
    #[serde(default)]
    pub(super) arguments: Option<String>,
}

impl ChatMessage {
    /// All its words.
    pub(super) fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(MessageContent::Words(words)) => words.clone(),
            Some(MessageContent::Pieces(pieces)) => {
                pieces.iter().filter_map(Piece::words).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The first piece that is no words: its place and kind.
    pub(super) fn not_words(&self) -> Option<(usize, &str)> {
        let Some(MessageContent::Pieces(pieces)) = &self.content else { return None };
        let place = pieces.iter().position(|piece| piece.words().is_none())?;
        Some((place, pieces.get(place)?.kind.as_str()))
    }
}

/// What a request asks beside its messages.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// JSON Schema of the answer.
    pub(super) output: Option<Value>,
    pub(super) max_tokens: Option<MaxTokens>,
    /// Tools of the client's, and what may be called.
    pub(super) client: ClientSide,
    /// What of the request has no effect.
    pub(super) notices: Vec<Notice>,
}

impl CompletionRequest {
    /// Reads a body.
    pub(super) fn read(body: Value) -> Result<Self, Problem> {
        serde_path_to_error::deserialize(body).map_err(|error| {
            let path = error.path().to_string();
            let detail = error.inner().to_string();
            match missing_field(&detail).map(str::to_owned) {
                Some(field) if path == "." => invalid(field, detail),
                _ if path == "." => Problem::invalid(detail),
                _ => invalid(path, detail),
            }
        })
    }

    /// What it asks beside its messages, if that can be had.
    pub(super) fn wishes(&self) -> Result<Wishes, Problem> {
        self.check()?;
        let max = match (self.max_completion_tokens, self.max_tokens) {
            (Some(max), _) => Some(("max_completion_tokens", max)),
            (None, Some(max)) => Some(("max_tokens", max)),
            (None, None) => None,
        };
        let max_tokens = max
            .map(|(param, max)| {
                let max = u32::try_from(max).unwrap_or(u32::MAX);
                MaxTokens::new(max).map_err(|error| invalid(param, error.to_string()))
            })
            .transpose()?;
        let client = self.client()?;
        Ok(Wishes { output: self.output()?, max_tokens, client, notices: self.without_effect() })
    }

    /// Refuses what cannot be had, and what is out of its range.
    fn check(&self) -> Result<(), Problem> {
        let out_of = |value: Option<f64>, max: f64| value.is_some_and(|value| !(0.0..=max).contains(&value));
        let refused = [
            (self.n.is_some_and(|n| n != 1), "n", "there is one answer: n has to be 1"),
            (out_of(self.temperature, 2.0), "temperature", "temperature has to be between 0 and 2"),
            (out_of(self.top_p, 1.0), "top_p", "top_p has to be between 0 and 1"),
            (self.logprobs == Some(true), "logprobs", "how likely a token was is not known here"),
            (
                self.modalities.iter().flatten().any(|modality| modality != "text"),
                "modalities",
                "the agent answers in text only",
            ),
        ];
        match refused.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, param, detail)) => Err(invalid(param, detail)),
            None => Ok(()),
        }
    }

    /// Reads the tools that the client executes, and the choice among them. Refuses a tool that is no valid function.
    fn client(&self) -> Result<ClientSide, Problem> {
        let mut tools = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            let function = match (&*tool.kind, &tool.function) {
                ("function", Some(function)) => function,
                ("function", None) => {
                    return Err(invalid(
                        format!("tools[{at}].function"),
                        "the function of a tool is missing",
                    ));
                }
                (kind, _) => {
                    let detail =
                        format!("a tool of the type {kind} cannot be called here; only function can");
                    return Err(invalid(format!("tools[{at}].type"), detail));
                }
            };
            let description = function.description.as_deref().unwrap_or_default();
            let parameters = function.parameters.clone().filter(|schema| !schema.is_null());
            let tool = ClientTool::new(function.name.clone(), description, parameters);
            tools.push(tool.map_err(|error| invalid(format!("tools[{at}].function"), error.to_string()))?);
        }
        let one_at_a_time = self.parallel_tool_calls == Some(false) && !tools.is_empty();
        Ok(ClientSide { tools, choice: self.choice()?, one_at_a_time, ..ClientSide::default() })
    }

    fn choice(&self) -> Result<ToolChoice, Problem> {
        let unknown = || {
            invalid(
                "tool_choice",
                "tool_choice has to be auto, none, required, or a function of tools by its name",
            )
        };
        match &self.tool_choice {
            None => Ok(ToolChoice::Auto),
            Some(ChoiceAsked::Word(word)) => match &**word {
                "auto" => Ok(ToolChoice::Auto),
                "none" => Ok(ToolChoice::None),
                "required" => Ok(ToolChoice::Required),
                _ => Err(unknown()),
            },
            Some(ChoiceAsked::Function { kind, function: Some(function) }) if kind == "function" => {
                Ok(ToolChoice::Named(function.name.clone()))
            }
            Some(ChoiceAsked::Function { .. }) => Err(unknown()),
        }
    }

    fn output(&self) -> Result<Option<Value>, Problem> {
        let schema = match &self.response_format {
            None | Some(ResponseFormat::Text) => return Ok(None),
            Some(ResponseFormat::JsonObject) => json!({"type": "object"}),
            Some(ResponseFormat::JsonSchema { json_schema }) => {
                json_schema.schema.clone().unwrap_or_else(|| json!({"type": "object"}))
            }
        };
        OutputSchema::new(schema.clone()).map_err(|error| invalid("response_format", error.to_string()))?;
        Ok(Some(schema))
    }

    /// What was asked and is not used, told once each.
    fn without_effect(&self) -> Vec<Notice> {
        let set = "is the service's own setting";
        let some = |tools: &Option<Vec<_>>| tools.as_ref().is_some_and(|tools| !tools.is_empty());
        let unused = [
            (self.temperature.is_some(), "temperature", set),
            (self.top_p.is_some(), "top_p", set),
            (self.stop.is_some(), "stop", "an answer ends where the model ends it"),
            (some(&self.functions), "functions", "the agent is offered functions as tools"),
        ];
        let notice = |(_, param, why)| Notice::not_sent(format!("{param} was not used: {why}."));
        unused.into_iter().filter(|(asked, ..)| *asked).map(notice).collect()
    }
}

/// A whole number; `5.0` is one too.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as u64)),
        Some(number) => Err(D::Error::custom(format!("{number} is no whole number of 0 or more"))),
    }
}

/// Which field serde misses: its error has the place of what holds it only.
fn missing_field(detail: &str) -> Option<&str> {
    detail.strip_prefix("missing field `")?.split('`').next()
}
