//! `--json`: one object on one line, whatever happened.

use adjutant_core::{
    AgentResponse, ConversationId, Cost, DecisionKind, Notice, OutcomeCategory, ToolInvocation,
    TurnId, Usage, UserIntent,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;

pub(crate) use adjutant_service::export::Waiting as Pending;

/// What `ask --json` prints. Every field is always there.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    conversation: Option<ConversationId>,
    turn: Option<TurnId>,
    /// AG-UI's word for the conversation.
    thread_id: Option<ConversationId>,
    /// AG-UI's word for the turn.
    run_id: Option<TurnId>,
    content: String,
    decision: Option<DecisionKind>,
    intent: Option<UserIntent>,
    outcome: Option<OutcomeCategory>,
    /// The answer as JSON, if a schema was asked for and it fits.
    output: Option<Value>,
    tools_used: Vec<ToolInvocation>,
    pending: Vec<Pending>,
    usage: Usage,
    /// US dollars; `null`: not known.
    cost_usd: Option<f64>,
    model: Option<String>,
    notices: Vec<Notice>,
    error: Option<Problem>,
    timing_ms: Timing,
}

/// What did not work.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct Timing {
    model: u64,
    tools: u64,
    total: u64,
}

impl Report {
    /// A turn that ended or waits.
    pub(crate) fn of(response: &AgentResponse, model: String) -> Self {
        Self {
            conversation: Some(response.conversation),
            turn: Some(response.turn),
            thread_id: Some(response.conversation),
            run_id: Some(response.turn),
            content: response.content.clone(),
            decision: Some(response.decision.kind),
            intent: Some(response.decision.intent.clone()),
            outcome: Some(response.outcome),
            output: response.output.clone(),
            tools_used: response.tools_used.clone(),
            pending: response.decision.pending.iter().map(Pending::of).collect(),
            usage: response.usage,
            cost_usd: response.cost.map(Cost::usd),
            model: Some(model),
            notices: response.notices.clone(),
            error: CliError::of_response(response).as_ref().map(Problem::of),
            timing_ms: Timing {
                model: response.timing.model_ms,
                tools: response.timing.tool_ms,
                total: response.timing.total_ms,
            },
        }
    }

    /// No turn came about.
    pub(crate) fn of_error(error: &CliError) -> Self {
        Self {
            error: Some(Problem::of(error)),
            ..Self::default()
        }
    }
}

impl Problem {
    pub(crate) fn of(error: &CliError) -> Self {
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
