//! The API's JSON, field for field as far as it is used. Parts keep unknown fields.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

/// The body of a request.
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
    /// False to have nothing stored; `None` where the field is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<bool>,
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
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    /// JSON Schema; omitted for a function without parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters_json_schema: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig {
    pub(super) function_calling_config: FunctionCallingConfig,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCallingConfig {
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) allowed_function_names: Vec<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_json_schema: Option<Value>,
}

/// A whole answer, one event of a streamed one, or an error inside a 200.
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
    /// All other fields: the thought signature, code the vendor ran, and fields added later.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<Value>,
    /// Arguments that arrive value by value.
    pub(super) partial_args: Option<Vec<PartialArg>>,
    /// True if more of this call follows.
    pub(super) will_continue: Option<bool>,
}

impl FunctionCall {
    /// Returns true if its arguments arrive value by value.
    pub(super) fn is_open(&self) -> bool {
        self.will_continue == Some(true) || self.partial_args.is_some()
    }

    /// Returns true if no field of it is set.
    pub(super) fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_none() && self.args.is_none() && !self.is_open()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg {
    pub(super) json_path: Option<String>,
    string_value: Option<String>,
    number_value: Option<Number>,
    bool_value: Option<bool>,
    null_value: Option<Value>,
}

impl PartialArg {
    /// Returns the value; `None` if it only announces the place of the next one.
    pub(super) fn value(&self) -> Option<Value> {
        let text = self.string_value.clone().map(Value::String);
        let number = || self.number_value.clone().map(Value::Number);
        let truth = || self.bool_value.map(Value::Bool);
        text.or_else(number)
            .or_else(truth)
            .or_else(|| self.null_value.as_ref().map(|_| Value::Null))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    pub(super) prompt_token_count: Option<u64>,
    pub(super) candidates_token_count: Option<u64>,
    pub(super) thoughts_token_count: Option<u64>,
    pub(super) cached_content_token_count: Option<u64>,
    /// Tokens that the vendor's own tools added to the prompt; not in `prompt_token_count`.
    pub(super) tool_use_prompt_token_count: Option<u64>,
    pub(super) total_token_count: Option<u64>,
}

impl UsageMetadata {
    /// Returns true if the counts add up to the total, so that none of them is missing.
    pub(super) fn adds_up(&self) -> bool {
        let parts = [
            self.prompt_token_count,
            self.candidates_token_count,
            self.thoughts_token_count,
            self.tool_use_prompt_token_count,
        ];
        let sum = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.total_token_count == Some(sum)
    }
}

/// The body of an error answer; some endpoints wrap it in a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ErrorAnswer {
    One { error: Status },
    Many(Vec<ErrorAnswer>),
}

/// Google's error object, `google.rpc.Status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    #[serde(deserialize_with = "or_default")]
    pub(super) code: u16,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: String,
    /// `ErrorInfo`, `RetryInfo`, `QuotaFailure` and others, each with its own fields.
    #[serde(deserialize_with = "or_default")]
    pub(super) details: Vec<Value>,
}

/// Deserializes a value, or its default if it has another type. Proxies may send errors in another
/// form, and what is readable of them should not be lost.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}
