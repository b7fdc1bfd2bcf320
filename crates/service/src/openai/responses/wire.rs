//! The response object, including the fields of the request that it repeats.

use adjutant_core::{AgentResponse, Notice, OutcomeCategory, Usage};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::openai::wire::TurnInfo;
use crate::problem::Problem;

/// Choice of the tools that may or must be called.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(
    untagged,
    expecting = "tool_choice has to be auto, none, required, or a function of tools by its name"
)]
pub(super) enum ResponseChoice {
    /// `auto`, `none` or `required`.
    Word(String),
    /// A function that must be called: its `type` and `name`.
    #[schema(value_type = Object)]
    Function(Map<String, Value>),
}

impl ResponseChoice {
    /// Returns the default choice, `auto`.
    pub(super) fn auto() -> Self {
        Self::Word("auto".to_owned())
    }
}

/// A response of the Responses API.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ResponseObject {
    /// Id of the response.
    id: String,
    /// Always `response`.
    object: &'static str,
    /// Time of creation, in seconds since 1970.
    created_at: i64,
    /// State of the response.
    status: ResponseStatus,
    /// Always `false`.
    background: bool,
    /// The error, if the status is `failed`.
    error: Option<ResponseError>,
    /// Details of an incomplete response, if the status is `incomplete`.
    incomplete_details: Option<IncompleteDetails>,
    /// The items in their order: activity (`reasoning`), text (`message`), and calls that the
    /// client has to execute (`function_call`).
    #[schema(value_type = Vec<Object>)]
    output: Vec<Value>,
    /// Always `null`: a setting of the service.
    temperature: Option<f64>,
    /// Always `null`: a setting of the service.
    top_p: Option<f64>,
    /// Always `disabled`: settings of the service determine how much of the history is read.
    truncation: &'static str,
    /// Token counts; `null` if the provider did not report them.
    usage: Option<ResponseUsage>,
    /// Details of the turn. Absent before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjutant: Option<TurnInfo>,
    #[serde(flatten)]
    echo: ResponseEcho,
}

/// Fields of a request that its response repeats.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ResponseEcho {
    pub(super) model: String,
    pub(super) instructions: Option<String>,
    pub(super) max_output_tokens: Option<u64>,
    #[schema(value_type = Object)]
    pub(super) metadata: Map<String, Value>,
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<String>,
    pub(super) store: bool,
    #[schema(value_type = Object)]
    pub(super) text: Value,
    pub(super) tool_choice: ResponseChoice,
    #[schema(value_type = Vec<Object>)]
    pub(super) tools: Vec<Map<String, Value>>,
}

/// State of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    /// Its turn runs.
    InProgress,
    /// The answer is complete. Calls may be pending.
    Completed,
    /// The answer was cut.
    Incomplete,
    /// The turn failed.
    Failed,
    /// The turn was cancelled.
    Cancelled,
}

/// An error in the codes of the Responses API. The event `error` has the service's own code.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ResponseError {
    code: &'static str,
    message: String,
}

/// Details of an incomplete response.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct IncompleteDetails {
    /// `max_output_tokens` or `content_filter`.
    reason: &'static str,
}

/// Token counts, as the Responses API names them.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputTokensDetails,
    output_tokens: u64,
    output_tokens_details: OutputTokensDetails,
    total_tokens: u64,
}

/// Details of the input tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct InputTokensDetails {
    cached_tokens: u64,
}

/// Details of the output tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct OutputTokensDetails {
    reasoning_tokens: u64,
}

impl ResponseUsage {
    /// Converts a usage; `None` if the provider did not report it.
    fn from_usage(usage: Usage) -> Option<Self> {
        Some(Self {
            input_tokens: usage.input_tokens?,
            input_tokens_details: InputTokensDetails {
                cached_tokens: usage.cached_tokens.unwrap_or_default(),
            },
            output_tokens: usage.output_tokens?,
            output_tokens_details: OutputTokensDetails {
                reasoning_tokens: usage.thinking_tokens.unwrap_or_default(),
            },
            total_tokens: usage.total()?,
        })
    }
}

impl ResponseEcho {
    /// Returns the fields for a request that was not stored.
    pub(super) fn unknown(model: String) -> Self {
        Self {
            model,
            instructions: None,
            max_output_tokens: None,
            metadata: Map::new(),
            parallel_tool_calls: true,
            previous_response_id: None,
            store: true,
            text: json!({"format": {"type": "text"}}),
            tool_choice: ResponseChoice::auto(),
            tools: Vec::new(),
        }
    }
}

impl ResponseStatus {
    /// Returns the status of the answer's text.
    pub(super) fn text_status(self) -> &'static str {
        if self == Self::Incomplete {
            "incomplete"
        } else {
            "completed"
        }
    }

    /// Returns the status of a turn that has ended or waits.
    pub(super) fn from_response(response: &AgentResponse) -> Self {
        match response.outcome {
            OutcomeCategory::MaxTokensLimit | OutcomeCategory::ContentFilter => Self::Incomplete,
            OutcomeCategory::Cancelled => Self::Cancelled,
            _ => Self::Completed,
        }
    }
}

impl ResponseObject {
    /// Creates a response in progress. `created`: in seconds since 1970.
    pub(super) fn new(id: String, created: i64, echo: ResponseEcho) -> Self {
        Self {
            id,
            object: "response",
            created_at: created,
            status: ResponseStatus::InProgress,
            // Members that the API demands, and that do not apply here, are constant.
            background: false,
            error: None,
            incomplete_details: None,
            output: Vec::new(),
            temperature: None,
            top_p: None,
            truncation: "disabled",
            usage: None,
            adjutant: None,
            echo,
        }
    }

    /// Completes the response with the items and the turn's outcome.
    pub(super) fn finished(
        mut self,
        output: Vec<Value>,
        response: &AgentResponse,
        notices: &[Notice],
    ) -> Self {
        self.status = ResponseStatus::from_response(response);
        self.incomplete_details = match response.outcome {
            OutcomeCategory::MaxTokensLimit => Some(IncompleteDetails {
                reason: "max_output_tokens",
            }),
            OutcomeCategory::ContentFilter => Some(IncompleteDetails {
                reason: "content_filter",
            }),
            _ => None,
        };
        self.output = output;
        self.usage = ResponseUsage::from_usage(response.usage);
        self.adjutant = Some(TurnInfo::from_response(response, notices));
        self
    }

    /// Marks the response as failed.
    pub(super) fn failed(mut self, output: Vec<Value>, problem: &Problem) -> Self {
        self.status = ResponseStatus::Failed;
        self.output = output;
        let code = match problem.status() {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded",
            _ => "server_error",
        };
        self.error = Some(ResponseError {
            code,
            message: problem.detail().to_owned(),
        });
        self
    }

    /// Returns the name of the event that ends the stream.
    pub(super) fn last_event(&self) -> &'static str {
        match self.status {
            ResponseStatus::Incomplete => "response.incomplete",
            ResponseStatus::Failed => "response.failed",
            // There is no event for a cancelled response.
            ResponseStatus::InProgress | ResponseStatus::Completed | ResponseStatus::Cancelled => {
                "response.completed"
            }
        }
    }
}
