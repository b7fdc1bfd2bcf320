//! The API's JSON, field for field as far as it is used. Items keep unknown fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An item of the input or the output, by its `type`.
pub(super) type Item = Map<String, Value>;

/// The body of a request. What a conversation grows by is at the end, so that the vendor's cache
/// matches the longest prefix.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    /// True if the vendor stores the answer.
    pub(super) store: bool,
    /// Optional content that an answer should include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Text>,
    #[serde(skip_serializing_if = "<[Tool]>::is_empty")]
    pub(super) tools: &'a [Tool],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    pub(super) input: Vec<Item>,
}

#[derive(Debug, Serialize)]
pub(super) struct Text {
    pub(super) format: Format,
}

#[derive(Debug, Serialize)]
pub(super) struct Format {
    pub(super) r#type: &'static str,
    pub(super) name: &'static str,
    pub(super) schema: Value,
    pub(super) strict: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool {
    pub(super) r#type: &'static str,
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    pub(super) parameters: Value,
    /// If omitted, the vendor assumes true and changes the schema.
    pub(super) strict: bool,
}

/// A whole answer, or the `response` of the last event of a streamed one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reply {
    pub(super) status: Option<String>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    pub(super) output: Option<Vec<Value>>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    /// With cached tokens.
    pub(super) input_tokens: Option<u64>,
    pub(super) input_tokens_details: Option<InputDetails>,
    /// With reasoning.
    pub(super) output_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
    /// The price of xAI.
    pub(super) cost_in_usd_ticks: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Option<u64>,
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Option<u64>,
}
