//! The API's JSON, field for field as far as it is used.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::encode::FunctionTool;

/// The body of a request to `/api/chat`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<FunctionTool<'a>>,
    pub(super) stream: bool,
    /// Newer servers only: true if a prompt over the window is cut at its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) truncate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_alive: Option<Value>,
    pub(super) options: Options,
    pub(super) messages: Vec<Message<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Options {
    pub(super) num_ctx: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) thinking: String,
    /// Images as base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<&'a str>,
    /// Newer servers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolCall<'a> {
    /// Newer servers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) function: CalledFunction<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct CalledFunction<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
}

/// A whole answer, a line of a streamed one, or an error inside a 200.
#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    pub(super) model: Option<String>,
    pub(super) message: Option<Answer>,
    pub(super) done: Option<bool>,
    pub(super) done_reason: Option<String>,
    pub(super) prompt_eval_count: Option<u64>,
    pub(super) eval_count: Option<u64>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) content: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tool_calls: Option<Vec<AnsweredCall>>,
    /// Images that the model generated.
    pub(super) images: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AnsweredCall {
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) function: AnsweredFunction,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AnsweredFunction {
    pub(super) name: Option<String>,
    /// An object; JSON text from servers that imitate Ollama.
    pub(super) arguments: Option<Value>,
}

/// The answer of `/api/show`, which describes a model.
#[derive(Debug, Deserialize)]
pub(super) struct ShowResponse {
    pub(super) capabilities: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) model_info: Map<String, Value>,
}

/// The answer of `/api/tags`, which lists the installed models.
#[derive(Debug, Deserialize)]
pub(super) struct TagsResponse {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) models: Vec<Tag>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tag {
    pub(super) name: Option<String>,
    pub(super) model: Option<String>,
    pub(super) size: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) details: Details,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Details {
    pub(super) parameter_size: Option<String>,
    pub(super) quantization_level: Option<String>,
}

/// The answer of `/api/version`.
#[derive(Debug, Deserialize)]
pub(super) struct VersionResponse {
    pub(super) version: String,
}

/// Deserializes null as the default value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
