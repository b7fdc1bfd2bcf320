//! The end of a turn that is not taken any further.

use super::said_in;
use crate::cost::Cost;
use crate::decision::{AgentDecision, DecisionKind, OutcomeCategory, TurnError, UserIntent};
use crate::event::{Event, Recorded, TurnEnd};
use crate::id::TurnId;
use crate::message::Message;
use crate::model::Usage;
use crate::tool::{ToolCall, ToolResult};
use crate::unanswered::add_note;

/// Returns the end of a turn that is given up from outside, without taking it any further. What it
/// said and did so far is part of the conversation; calls that have no result are said to have
/// none.
#[must_use]
pub fn given_up(
    events: &[Recorded],
    turn: TurnId,
    outcome: OutcomeCategory,
    words: &str,
    error: Option<TurnError>,
) -> TurnEnd {
    let mut messages = said_in(events, turn);
    let has_result = |call: &&ToolCall| {
        messages.iter().any(|message| {
            message
                .tool_result()
                .is_some_and(|(id, _, _)| *id == call.id)
        })
    };
    let calls = messages.iter().flat_map(Message::tool_calls);
    let open: Vec<ToolCall> = calls.filter(|call| !has_result(call)).cloned().collect();
    // Providers reject a history with a call that has no result.
    for call in open {
        let result =
            ToolResult::failed("the turn was given up; it is not known whether this was done");
        messages.extend(Message::tool(call.id, call.name, result).ok());
    }
    add_note(&mut messages, outcome);
    let (mut usage, mut cost, mut tools_used) =
        (Usage::default(), Some(Cost::default()), Vec::new());
    for recorded in events
        .iter()
        .filter(|recorded| recorded.event.turn() == Some(turn))
    {
        match &*recorded.event {
            Event::ModelReplied {
                reply: Ok(reply), ..
            } => {
                usage = usage.plus(reply.usage);
                cost = Cost::sum(cost, reply.cost);
            }
            event => tools_used.extend(event.invocation()),
        }
    }
    TurnEnd {
        decision: AgentDecision {
            kind: DecisionKind::RespondOnly,
            intent: UserIntent::GeneralChat,
            text: words.to_owned(),
            tool_calls: Vec::new(),
            pending: Vec::new(),
        },
        outcome,
        output: None,
        usage,
        cost,
        iterations: 0,
        error,
        notices: Vec::new(),
        tools_used,
        failed_calls: Vec::new(),
        messages,
        from_others: false,
    }
}
