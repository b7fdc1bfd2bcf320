//! The vendor's JSON, field for field as far as we use it. Parts keep what we do not know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What we send.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<Content>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<ToolConfig>,
    pub(super) generation_config: GenerationConfig,
    pub(super) contents: Vec<Content>,
}

#[derive(Debug, Serialize)]
pub(super) struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    pub(super) parts: Vec<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool {
    pub(super) function_declarations: Vec<FunctionDeclaration>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionDeclaration {
    pub(super) name: String,
    pub(super) description: String,
    /// JSON Schema; left out for a function without parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters_json_schema: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig {
    pub(super) function_calling_config: FunctionCallingConfig,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCallingConfig {
    pub(super) mode: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    pub(super) max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_json_schema: Option<Value>,
}

/// What we get: a whole answer, one piece of a streamed one, or an error inside a 200.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<UsageMetadata>,
    pub(super) model_version: Option<String>,
    pub(super) error: Option<Status>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    pub(super) content: Option<CandidateContent>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
    pub(super) index: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CandidateContent {
    pub(super) parts: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    pub(super) function_call: Option<FunctionCall>,
    /// Everything else: the thought signature, code the vendor ran, what is yet to be invented.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    pub(super) prompt_token_count: Option<u64>,
    pub(super) candidates_token_count: Option<u64>,
    pub(super) thoughts_token_count: Option<u64>,
    pub(super) cached_content_token_count: Option<u64>,
}

/// The body of an error answer; some endpoints wrap it in a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ErrorBody {
    One { error: Status },
    Many(Vec<ErrorBody>),
}

/// Google's error object, `google.rpc.Status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) message: String,
    pub(super) status: String,
    /// `ErrorInfo`, `RetryInfo`, `QuotaFailure` and others, each with fields of its own.
    pub(super) details: Vec<Value>,
}
