//! Response types that several routes share: pending calls, used tools, usage, tasks.

use adjutant_core::{
    AgentResponse, Answer, Arguments, Cost, DecisionRecord, PendingCall, PendingKind as Kind,
    ToolInvocation, ToolResult, TurnError, Usage as Tokens, Verdict,
};
use adjutant_tools::Task;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limit_setting::message_with_setting;
use crate::problem::Problem;

/// A tool call that waits: for the user's confirmation, or for its result.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "interrupt_id": "6b1f0c…",
    "kind": "confirmation",
    "tool": "delete_task",
    "args": {"task_id": "7"},
    "preview": "Delete “buy milk”",
    "expires_at": "2026-11-29T09:30:00Z"
}))]
pub(crate) struct Pending {
    /// Id of the pending call; an answer has to name it.
    pub(crate) interrupt_id: String,
    /// Kind of answer that the call waits for.
    pub(crate) kind: PendingKind,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Arguments of the call.
    #[schema(value_type = Object)]
    pub(crate) args: Arguments,
    /// Human-readable description of the call's effect.
    pub(crate) preview: String,
    /// Time at which the call is denied if it was not answered.
    pub(crate) expires_at: Timestamp,
    /// Time at which a call in doubt was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// True if the call is confirmed only because it is not in the user's own words: an approval may
    /// then count `for_conversation`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) for_conversation: bool,
    /// True if an approval may count `always`: for all later calls of this tool of an MCP server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) always: bool,
}

/// Kind of answer that a pending call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PendingKind {
    /// The user has to approve or deny the call.
    Confirmation,
    /// The call is in doubt: the user has to say if it was executed.
    Doubt,
    /// The client executes the tool and has to send the result; no approval is needed.
    AwaitsResult,
}

impl PendingKind {
    fn from_call(call: &PendingCall) -> Self {
        // A copy of the domain's type, which has no OpenAPI schema.
        match call.kind() {
            Kind::Confirmation => Self::Confirmation,
            Kind::Doubt => Self::Doubt,
            Kind::Result => Self::AwaitsResult,
        }
    }
}

impl Pending {
    pub(crate) fn from_call(call: PendingCall) -> Self {
        Self {
            kind: PendingKind::from_call(&call),
            interrupt_id: call.digest,
            since: call.doubt.map(|doubt| doubt.since),
            for_conversation: call.for_conversation,
            always: call.always,
            tool: call.tool,
            args: call.arguments,
            preview: call.preview,
            expires_at: call.expires_at,
        }
    }
}

/// A client's answer to a pending call: an approval or denial, or what happened to a call in doubt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallAnswer {
    pub(crate) approved: Option<bool>,
    pub(crate) verdict: Option<DoubtVerdict>,
    #[serde(rename = "editedArgs")]
    pub(crate) edited_args: Option<Arguments>,
    /// The `interrupt_id` of the preview of `edited_args` that the user has seen.
    pub(crate) shown: Option<String>,
    /// True if an approval counts for later calls of the tool in the conversation too.
    #[serde(default)]
    pub(crate) for_conversation: bool,
    /// True if an approval counts for all later calls of the tool too.
    #[serde(default)]
    pub(crate) always: bool,
}

/// The user's statement about a call in doubt.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DoubtVerdict {
    /// The call was executed.
    Done,
    /// The call was not executed, and should be repeated.
    Retry,
    /// The call should be left as it is.
    Leave,
}

impl CallAnswer {
    /// Converts to the answer to `call`.
    ///
    /// # Errors
    /// A problem 422 unless there is either an approval or denial, or a verdict.
    pub(crate) fn answer_to(self, call: &PendingCall) -> Result<Answer, Problem> {
        // Only the value `true` approves a call.
        let verdict = match (self.approved, self.verdict) {
            (Some(true), None) => Verdict::Approved,
            (Some(false), None) => Verdict::Denied,
            (None, Some(DoubtVerdict::Done)) => Verdict::Done,
            (None, Some(DoubtVerdict::Retry)) => Verdict::Retry,
            (None, Some(DoubtVerdict::Leave)) => Verdict::Leave,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Problem::invalid(
                    "an answer has either approved, or a verdict of done, retry or leave",
                ));
            }
        };
        let mut answer = call.answer(verdict);
        if let Some(arguments) = self.edited_args {
            answer = answer.with_arguments(arguments);
        }
        if let Some(digest) = self.shown {
            answer = answer.as_shown(digest);
        }
        if self.for_conversation {
            answer = answer.for_conversation();
        }
        if self.always {
            answer = answer.always();
        }
        Ok(answer)
    }
}

/// A tool call with valid arguments that was executed, failed or was denied.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolUsed {
    pub(crate) tool: String,
    #[schema(value_type = Object)]
    pub(crate) args: Arguments,
    #[schema(value_type = Object)]
    pub(crate) result: ToolResult,
}

impl ToolUsed {
    pub(crate) fn from_invocation(invocation: ToolInvocation) -> Self {
        Self {
            tool: invocation.tool,
            args: invocation.arguments,
            result: invocation.result,
        }
    }
}

/// Tokens and cost of a turn. `null`: unknown.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Name of the model.
    pub(crate) model: String,
    /// Input tokens, cached ones included.
    pub(crate) input_tokens: Option<u64>,
    /// Output tokens, thinking included.
    pub(crate) output_tokens: Option<u64>,
    /// Input tokens that the provider read from its cache.
    pub(crate) cached_tokens: Option<u64>,
    /// Output tokens used for thinking.
    pub(crate) thinking_tokens: Option<u64>,
    /// Cost in US dollars, if the model's prices are known.
    pub(crate) cost_usd: Option<f64>,
}

impl Usage {
    pub(crate) fn from_response(response: &AgentResponse, model: String) -> Self {
        Self::new(model, response.usage, response.cost)
    }

    pub(crate) fn from_record(record: &DecisionRecord) -> Self {
        Self::new(record.model.to_string(), record.usage, record.cost)
    }

    fn new(model: String, tokens: Tokens, cost: Option<Cost>) -> Self {
        Self {
            model,
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            cached_tokens: tokens.cached_tokens,
            thinking_tokens: tokens.thinking_tokens,
            cost_usd: cost.map(Cost::usd),
        }
    }
}

/// Durations of a turn, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Timing {
    /// Time of the model calls.
    pub(crate) llm: u64,
    /// Time of the tool calls.
    pub(crate) tools: u64,
    /// Duration of the turn without the time it waited for a person.
    pub(crate) total: u64,
}

impl Timing {
    pub(crate) fn from_response(response: &AgentResponse) -> Self {
        let timing = response.timing;
        Self {
            llm: timing.model_ms,
            tools: timing.tool_ms,
            total: timing.total_ms,
        }
    }

    /// Returns the durations of a logged turn; of one that has not ended, until `now`.
    pub(crate) fn from_record(record: &DecisionRecord, now: Timestamp) -> Self {
        let so_far = now.as_millisecond() - record.started_at.as_millisecond();
        Self {
            llm: record.model_ms,
            tools: record.tool_ms,
            total: record
                .total_ms
                .unwrap_or_else(|| u64::try_from(so_far).unwrap_or(0)),
        }
    }
}

/// The reason for which a turn did not fully succeed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Cause {
    /// Stable identifier, the same as in logs and on the command line.
    pub(crate) code: &'static str,
    /// Explanation in English.
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn from_error(error: &TurnError) -> Self {
        Self {
            code: error.code(),
            message: message_with_setting(error),
        }
    }
}

/// An entry of the user's task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TaskView {
    /// Number of the task, as a string. Counted per user from 1 and never reused.
    pub(crate) id: String,
    /// Text of the task.
    pub(crate) description: String,
    /// True if the task is done.
    pub(crate) completed: bool,
    /// Time of creation.
    pub(crate) created_at: Timestamp,
    /// Time of the last change.
    pub(crate) updated_at: Timestamp,
    /// Time of completion; null while the task is open.
    pub(crate) completed_at: Option<Timestamp>,
    /// True if a program with a token that may not answer wrote the text, and the user has not approved
    /// it.
    pub(crate) from_others: bool,
}

impl From<Task> for TaskView {
    fn from(task: Task) -> Self {
        Self {
            id: task.id.to_string(),
            description: task.description.into(),
            completed: task.completed,
            created_at: task.created_at,
            updated_at: task.updated_at,
            completed_at: task.completed_at,
            from_others: task.from_others,
        }
    }
}
