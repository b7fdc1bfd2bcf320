//! `--json`: one object on one line, whatever happened.

use adjutant_core::{
    AgentResponse, Arguments, Awaits, ConversationId, Cost, DecisionKind, Doubt, Notice, OutcomeCategory,
    PendingCall, ToolInvocation, TurnId, Usage, UserIntent,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::confirm::short_id;
use crate::error::CliError;

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

/// A call that waits for a human.
#[derive(Debug, Serialize)]
pub(crate) struct Pending {
    /// What `adjutant pending approve` takes.
    id: String,
    call_id: String,
    tool: String,
    arguments: Arguments,
    preview: String,
    digest: String,
    expires_at: Timestamp,
    /// Not `null`: it was begun, and nobody knows whether it was done.
    doubt: Option<Doubt>,
    /// Not `null`: it waits for its result and not for a person. `client`: from the program that sent the message.
    awaits: Option<Awaits>,
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
        Self { error: Some(Problem::of(error)), ..Self::default() }
    }
}

impl Pending {
    pub(crate) fn of(call: &PendingCall) -> Self {
        Self {
            id: short_id(call),
            call_id: call.call_id.to_string(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            preview: call.preview.clone(),
            digest: call.digest.clone(),
            expires_at: call.expires_at,
            doubt: call.doubt.clone(),
            awaits: call.awaits,
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
