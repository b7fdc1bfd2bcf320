//! A response with its items, and what of the request is given back in it.

use adjutant_core::{AgentResponse, Notice, OutcomeCategory, Usage};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::openai::wire::TurnInfo;
use crate::problem::Problem;

/// A choice of the tools that may or have to be called.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(
    untagged,
    expecting = "tool_choice has to be auto, none, required, or a function of tools by its name"
)]
pub(super) enum ResponseChoice {
    /// `auto`, `none` or `required`.
    Word(String),
    /// One function: its `type` and `name`.
    #[schema(value_type = Object)]
    Function(Map<String, Value>),
}

impl ResponseChoice {
    /// Returns the choice of whoever makes none.
    pub(super) fn auto() -> Self {
        Self::Word("auto".to_owned())
    }
}

/// An answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ResponseObject {
    id: String,
    object: &'static str,
    /// In seconds since 1970.
    created_at: i64,
    status: ResponseStatus,
    /// Always `false`: an answer is waited for.
    background: bool,
    /// The error, if the status is `failed`.
    error: Option<ResponseError>,
    /// The reason why the answer is not whole, if the status is `incomplete`.
    incomplete_details: Option<IncompleteDetails>,
    /// Steps (`reasoning`), words (`message`), and calls that the client is to execute
    /// (`function_call`), in order.
    #[schema(value_type = Vec<Object>)]
    output: Vec<Value>,
    /// Always `null`: the service's own setting.
    temperature: Option<f64>,
    /// Always `null`: the service's own setting.
    top_p: Option<f64>,
    /// Always `disabled`: the service's own settings say how much of a conversation is read.
    truncation: &'static str,
    /// `null` where the provider did not say.
    usage: Option<ResponseUsage>,
    /// The result of the turn. Not there before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjutant: Option<TurnInfo>,
    #[serde(flatten)]
    echo: ResponseEcho,
}

/// The parts of a request that its answer repeats.
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

/// The state of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    /// Its turn runs.
    InProgress,
    /// It is whole. What the client is asked for may wait.
    Completed,
    /// It was cut.
    Incomplete,
    /// Its turn failed.
    Failed,
    /// Its turn was stopped.
    Cancelled,
}

/// The error, in the words that this API has for it. The code of the service is in the event
/// `error`.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ResponseError {
    code: &'static str,
    message: String,
}

/// The reason why an answer is not whole.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct IncompleteDetails {
    /// `max_output_tokens` or `content_filter`.
    reason: &'static str,
}

/// Tokens, in this route's words.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputTokensDetails,
    output_tokens: u64,
    output_tokens_details: OutputTokensDetails,
    total_tokens: u64,
}

/// Of the input.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct InputTokensDetails {
    cached_tokens: u64,
}

/// Of the output.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct OutputTokensDetails {
    reasoning_tokens: u64,
}

impl ResponseUsage {
    /// `None`: the provider did not say.
    fn of(usage: Usage) -> Option<Self> {
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
    /// Returns what is said of a request that is not kept.
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
    /// Returns the status of the words of an answer.
    pub(super) fn of_words(self) -> &'static str {
        if self == Self::Incomplete {
            "incomplete"
        } else {
            "completed"
        }
    }

    /// Returns how far the answer of a turn is that has ended or waits.
    pub(super) fn of(response: &AgentResponse) -> Self {
        match response.outcome {
            OutcomeCategory::MaxTokensLimit | OutcomeCategory::ContentFilter => Self::Incomplete,
            OutcomeCategory::Cancelled => Self::Cancelled,
            _ => Self::Completed,
        }
    }
}

impl ResponseObject {
    /// Returns an answer that has begun. `created`: in seconds since 1970.
    pub(super) fn begun(id: String, created: i64, echo: ResponseEcho) -> Self {
        Self {
            id,
            object: "response",
            created_at: created,
            status: ResponseStatus::InProgress,
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

    /// Returns it with what its turn came to.
    pub(super) fn ended(
        mut self,
        output: Vec<Value>,
        response: &AgentResponse,
        notices: &[Notice],
    ) -> Self {
        self.status = ResponseStatus::of(response);
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
        self.usage = ResponseUsage::of(response.usage);
        self.adjutant = Some(TurnInfo::of(response, notices));
        self
    }

    /// Returns it as one that failed.
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

    /// Returns the name of the event that ends its stream.
    pub(super) fn last_event(&self) -> &'static str {
        match self.status {
            ResponseStatus::Incomplete => "response.incomplete",
            ResponseStatus::Failed => "response.failed",
            ResponseStatus::InProgress | ResponseStatus::Completed | ResponseStatus::Cancelled => {
                "response.completed"
            }
        }
    }
}
