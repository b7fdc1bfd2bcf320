//! Chat Completions' JSON, field for field as far as we use it.
//!
//! What we read is written by many servers: every field may be missing or null, and where they differ in its type, it stays
//! a [`Value`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What we send before the tools and the messages.
#[derive(Debug, Serialize)]
pub(super) struct Head<'a> {
    pub(super) model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat>,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ResponseFormat {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) json_schema: JsonSchema,
}

#[derive(Debug, Serialize)]
pub(super) struct JsonSchema {
    pub(super) name: &'static str,
    pub(super) strict: bool,
    pub(super) schema: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: FunctionDefinition<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionDefinition<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) parameters: Value,
}

/// What we get: a whole answer, one chunk of a streamed one, or an error inside a 200.
#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    pub(super) model: Option<Value>,
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    pub(super) x_groq: Option<Value>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<Value>,
    /// A chunk's.
    pub(super) delta: Option<Message>,
    /// A whole answer's.
    pub(super) message: Option<Message>,
    pub(super) finish_reason: Option<Value>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) content: Option<Value>,
    pub(super) refusal: Option<Value>,
    pub(super) reasoning_content: Option<Value>,
    pub(super) reasoning: Option<Value>,
    pub(super) reasoning_details: Option<Value>,
    /// Pictures the model made (OpenRouter).
    pub(super) images: Option<Value>,
    /// Tools the server ran itself (Groq).
    pub(super) executed_tools: Option<Value>,
    pub(super) tool_calls: Option<Vec<Call>>,
    /// What calls were before there could be several.
    pub(super) function_call: Option<Function>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) index: Option<Value>,
    pub(super) id: Option<Value>,
    pub(super) function: Option<Function>,
    pub(super) custom: Option<Custom>,
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<Value>,
    /// JSON text; some servers send the object itself.
    pub(super) arguments: Option<Value>,
}

/// A call whose argument is words.
#[derive(Debug, Deserialize)]
pub(super) struct Custom {
    pub(super) name: Option<Value>,
    pub(super) input: Option<Value>,
}
