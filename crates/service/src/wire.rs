//! What a turn came to, and tasks, in the words of the wire: the same in every route that tells
//! them.

use adjutant_core::{
    AgentResponse, Answer, Arguments, Cost, PendingCall, PendingKind as Kind, Task, ToolInvocation,
    ToolResult, TurnError,
};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// A call that waits: for a human, or for its result.
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
    /// What the answer names.
    pub(crate) interrupt_id: String,
    pub(crate) kind: PendingKind,
    pub(crate) tool: String,
    #[schema(value_type = Object)]
    pub(crate) args: Arguments,
    /// What will be touched, in words.
    pub(crate) preview: String,
    pub(crate) expires_at: Timestamp,
    /// When a call in doubt was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// What it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PendingKind {
    /// A yes or no.
    Confirmation,
    /// Somebody who knows whether it was done.
    Doubt,
    /// Its result, which the program that asked brings: nobody has to agree to it.
    AwaitsResult,
}

impl PendingKind {
    fn of(call: &PendingCall) -> Self {
        match call.kind() {
            Kind::Confirmation => Self::Confirmation,
            Kind::Doubt => Self::Doubt,
            Kind::Result => Self::AwaitsResult,
        }
    }
}

impl Pending {
    pub(crate) fn of(call: PendingCall) -> Self {
        Self {
            kind: PendingKind::of(&call),
            interrupt_id: call.digest,
            since: call.doubt.map(|doubt| doubt.since),
            tool: call.tool,
            args: call.arguments,
            preview: call.preview,
            expires_at: call.expires_at,
        }
    }
}

/// An answer with the arguments and the preview that came with it.
pub(crate) fn with_edited(
    answer: Answer,
    arguments: Option<Arguments>,
    shown: Option<String>,
) -> Answer {
    let answer = match arguments {
        Some(arguments) => answer.with_arguments(arguments),
        None => answer,
    };
    match shown {
        Some(digest) => answer.as_shown(digest),
        None => answer,
    }
}

/// A call whose arguments fitted: run, failed or denied.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolUsed {
    pub(crate) tool: String,
    #[schema(value_type = Object)]
    pub(crate) args: Arguments,
    #[schema(value_type = Object)]
    pub(crate) result: ToolResult,
}

impl ToolUsed {
    pub(crate) fn of(invocation: ToolInvocation) -> Self {
        Self {
            tool: invocation.tool,
            args: invocation.arguments,
            result: invocation.result,
        }
    }
}

/// What a turn used. `null`: not known.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Usage {
    pub(crate) model: String,
    /// Cached ones included.
    pub(crate) input_tokens: Option<u64>,
    /// Thinking included.
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) thinking_tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
}

impl Usage {
    pub(crate) fn of(response: &AgentResponse, model: String) -> Self {
        Self {
            model,
            input_tokens: response.usage.input_tokens,
            output_tokens: response.usage.output_tokens,
            cached_tokens: response.usage.cached_tokens,
            thinking_tokens: response.usage.thinking_tokens,
            cost_usd: response.cost.map(Cost::usd),
        }
    }
}

/// Where the time of a turn went, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Timing {
    pub(crate) llm: u64,
    pub(crate) tools: u64,
    pub(crate) total: u64,
}

impl Timing {
    pub(crate) fn of(response: &AgentResponse) -> Self {
        let timing = response.timing;
        Self {
            llm: timing.model_ms,
            tools: timing.tool_ms,
            total: timing.total_ms,
        }
    }
}

/// Why a turn did not simply succeed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Cause {
    /// A stable word, the same as in logs and on the command line.
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn of(error: &TurnError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
        }
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TaskView {
    /// Its number, as text. Per user from 1, never given twice.
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) completed: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
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
        }
    }
}
