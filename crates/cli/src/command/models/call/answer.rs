//! Output of a raw call: one JSON object, whatever happened.

use adjutant_core::{Content, Counters, FinishReason, GenerateResponse, ModelError};
use serde::Serialize;
use serde_json::Value;

use crate::error::{CliError, Exit};

/// The last line of output. Every field is always present.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    /// The text of the answer, without thinking and refusals.
    text: String,
    tool_calls: Vec<Call>,
    finish: &'static str,
    /// The vendor's usage counters.
    usage: Counters,
    error: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct Call {
    name: String,
    /// An object; arguments of a model that are no object stay text.
    args: Value,
}

#[derive(Debug, Serialize)]
struct Failure {
    kind: &'static str,
    retry_after_s: Option<f64>,
}

/// The finish reason of a call without a usable answer.
const FAILED: &str = "error";

impl Answer {
    /// Creates the output of an answer.
    pub(super) fn from_response(response: GenerateResponse) -> (Self, Exit) {
        let text = response.text();
        let tool_calls: Vec<Call> = response
            .tool_calls()
            .map(|call| Call {
                name: call.name.clone(),
                args: match &call.malformed {
                    Some(malformed) => Value::String(malformed.text.clone()),
                    None => Value::Object(call.arguments.clone()),
                },
            })
            .collect();
        let refused = response
            .parts
            .iter()
            .any(|part| matches!(part.content, Content::Refusal { .. }));
        let (finish, kind, exit) = match response.finish {
            _ if !tool_calls.is_empty() => ("tool_calls", None, Exit::Ok),
            FinishReason::Stop => ("stop", None, Exit::Ok),
            // The caller treats calls as such by this reason; without calls it is an ordinary end.
            FinishReason::ToolCalls => ("tool_calls", None, Exit::Ok),
            FinishReason::MaxTokens => ("max_tokens", None, Exit::Ok),
            FinishReason::ContentFilter => ("content_filter", None, Exit::Ok),
            FinishReason::MalformedCall => (FAILED, Some("invalid_response"), Exit::Unavailable),
        };
        let kind = kind.or(refused.then_some("refused"));
        // Models without a vendor count in one way only.
        let counters = match response.counters {
            Counters {
                input: None,
                output: None,
            } => Counters {
                input: response.usage.input_tokens,
                output: response.usage.output_tokens,
            },
            of_vendor => of_vendor,
        };
        let answer = Self {
            text,
            tool_calls,
            finish,
            usage: counters,
            error: kind.map(|kind| Failure {
                kind,
                retry_after_s: None,
            }),
        };
        (answer, exit)
    }

    /// Creates the output of a failed call. `partial` is the part of the answer that arrived.
    pub(super) fn from_failure(partial: String, error: &ModelError) -> (Self, Exit) {
        let finish = if matches!(error, ModelError::Refused { .. }) {
            "content_filter"
        } else {
            FAILED
        };
        let retry_after_s = error.retry_after().map(|wait| wait.as_secs_f64());
        (
            Self::failed(partial, finish, error.code(), retry_after_s),
            Exit::from_model_error(error),
        )
    }

    /// Creates the output of an error before the call.
    pub(crate) fn from_error(error: &CliError) -> Self {
        let kind = match error.code {
            known @ ("auth" | "not_found") => known,
            _ => "bad_request",
        };
        Self::failed(String::new(), FAILED, kind, None)
    }

    fn failed(
        text: String,
        finish: &'static str,
        kind: &'static str,
        retry_after_s: Option<f64>,
    ) -> Self {
        let (tool_calls, usage) = (Vec::new(), Counters::default());
        Self {
            text,
            tool_calls,
            finish,
            usage,
            error: Some(Failure {
                kind,
                retry_after_s,
            }),
        }
    }
}
