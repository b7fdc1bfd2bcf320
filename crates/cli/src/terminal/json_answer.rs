//! `--json`: the answer or error of a command as one JSON object on one line.

use adjutant_core::{
    AgentResponse, ConversationId, Cost, DecisionKind, Disposition, FailedCall, Notice,
    OutcomeCategory, ToolInvocation, TurnId, Usage, UserIntent,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;

pub(crate) use adjutant_service::export::PendingEntry as Pending;

/// The object that `ask --json` prints. Every field is always present.
#[derive(Debug, Default, Serialize)]
pub(crate) struct JsonAnswer {
    conversation: Option<ConversationId>,
    turn: Option<TurnId>,
    /// AG-UI's name for the conversation's id.
    thread_id: Option<ConversationId>,
    /// AG-UI's name for the turn's id.
    run_id: Option<TurnId>,
    content: String,
    decision: Option<DecisionKind>,
    intent: Option<UserIntent>,
    outcome: Option<OutcomeCategory>,
    disposition: Option<Disposition>,
    /// The answer as JSON, if a schema was given and the answer matches it.
    output: Option<Value>,
    tools_used: Vec<ToolInvocation>,
    failed_calls: Vec<FailedCall>,
    pending: Vec<Pending>,
    usage: Usage,
    /// US dollars; `null` if the price is not known.
    cost_usd: Option<f64>,
    model: Option<String>,
    notices: Vec<Notice>,
    error: Option<Problem>,
    timing_ms: Timing,
}

/// A failed turn or command.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// Seconds to wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct Timing {
    model: u64,
    tools: u64,
    total: u64,
}

impl JsonAnswer {
    /// Creates the object for a turn that has ended or waits for a confirmation.
    pub(crate) fn from_response(response: &AgentResponse, model: String) -> Self {
        Self {
            conversation: Some(response.conversation),
            turn: Some(response.turn),
            thread_id: Some(response.conversation),
            run_id: Some(response.turn),
            content: response.content.clone(),
            decision: Some(response.decision.kind),
            intent: Some(response.decision.intent.clone()),
            outcome: Some(response.outcome),
            disposition: Some(response.disposition),
            output: response.output.clone(),
            tools_used: response.tools_used.clone(),
            failed_calls: response.failed_calls.clone(),
            pending: response.decision.pending.iter().map(Pending::new).collect(),
            usage: response.usage,
            cost_usd: response.cost.map(Cost::usd),
            model: Some(model),
            notices: response.notices.clone(),
            error: CliError::from_response(response)
                .as_ref()
                .map(Problem::from_error),
            timing_ms: Timing {
                model: response.timing.model_ms,
                tools: response.timing.tool_ms,
                total: response.timing.total_ms,
            },
        }
    }

    /// Creates the object for a command that failed before it had a turn.
    pub(crate) fn from_error(error: &CliError) -> Self {
        Self {
            error: Some(Problem::from_error(error)),
            ..Self::default()
        }
    }
}

impl Problem {
    pub(crate) fn from_error(error: &CliError) -> Self {
        let message = match &error.cause {
            Some(cause) => format!("{}: {cause}", error.message),
            None => error.message.clone(),
        };
        Self {
            code: error.code,
            message,
            hint: (!error.tries.is_empty()).then(|| error.tries.join("; or ")),
            retry_after: error.retry_after.map(|wait| wait.as_secs_f64()),
        }
    }
}
