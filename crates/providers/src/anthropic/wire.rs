//! The Messages API's JSON, field for field as far as it is used. Content blocks keep unknown
//! fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A content block: its `type` and that type's fields.
pub(super) type Block = Map<String, Value>;

/// The body of a request. What changes from call to call is at the end, so that the vendor's cache
/// matches the longest prefix.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
    /// Marks the last block that can be cached, wherever that is in this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block>,
    pub(super) messages: Vec<Message>,
}

#[derive(Debug, Serialize)]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) content: Vec<Block>,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

/// An event of a stream. Of an unknown one only the type is read.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<Answer>,
    pub(super) index: Option<u64>,
    pub(super) content_block: Option<Block>,
    pub(super) delta: Option<Map<String, Value>>,
    pub(super) usage: Option<Usage>,
    pub(super) input_transformations: Option<Vec<Value>>,
    pub(super) error: Option<Value>,
}

/// A whole answer, or the `message` at the beginning of a streamed one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    pub(super) content: Option<Content>,
    pub(super) model: Option<String>,
    #[serde(flatten)]
    pub(super) stop: Stop,
    pub(super) usage: Option<Usage>,
    /// Content of the request that the vendor left out.
    pub(super) input_transformations: Option<Vec<Value>>,
    pub(super) error: Option<Value>,
}

/// The content of an answer. Some servers with this API answer with plain text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Blocks(Vec<Block>),
    Text(String),
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Stop {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

/// The vendor's explanation of a refused answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StopDetails {
    pub(super) category: Option<String>,
    pub(super) explanation: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct Usage {
    /// Without tokens read from or written to a cache.
    pub(super) input_tokens: Option<u64>,
    /// With thinking.
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputTokensDetails>,
    /// US dollars, if a proxy charges for the answer (OpenRouter).
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct OutputTokensDetails {
    pub(super) thinking_tokens: Option<u64>,
}
