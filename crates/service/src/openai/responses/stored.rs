//! Responses of earlier requests, read from the journal.

use adjutant_core::{
    AgentResponse, ConversationKey, DecisionKind, Event, PendingCall, Recorded, TurnId, UserId,
    conversation,
};
use adjutant_runtime::Agent;
use jiff::Timestamp;

use super::id::ResponseId;
use crate::openai::message::{CallMade, FunctionCalled};
use crate::problem::Problem;

/// A response of an earlier request, complete or in progress.
#[derive(Debug)]
pub(super) struct StoredResponse {
    pub(super) id: ResponseId,
    pub(super) key: ConversationKey,
    pub(super) created: Timestamp,
    /// True if the model without tools answered.
    pub(super) words_only: bool,
    /// The turn's response. `None`: the turn still runs.
    pub(super) answer: Option<Box<AgentResponse>>,
    /// Text of the answer.
    pub(super) text: String,
}

impl StoredResponse {
    /// Returns true if it waits for the next request: for a confirmation or for results.
    pub(super) fn waits(&self) -> bool {
        self.pending().next().is_some()
    }

    fn pending(&self) -> impl Iterator<Item = &PendingCall> {
        self.answer
            .iter()
            .flat_map(|answer| &answer.decision.pending)
    }

    /// Returns the calls that the client has to execute.
    pub(super) fn calls(&self) -> Vec<CallMade> {
        self.pending()
            .filter(|call| call.awaits_result())
            .map(to_call_made)
            .collect()
    }
}

/// Converts a call to the form in which clients send it back.
fn to_call_made(call: &PendingCall) -> CallMade {
    let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
    let function = FunctionCalled {
        name: call.tool.clone(),
        arguments: Some(arguments),
    };
    CallMade {
        id: Some(call.call_id.to_string()),
        function: Some(function),
    }
}

/// Finds a response of the user; `None` if it does not exist.
pub(super) async fn find(
    agent: &Agent,
    user: &UserId,
    id: ResponseId,
) -> Result<Option<StoredResponse>, Problem> {
    let key = agent.key_for(user.clone(), id.conversation);
    let loaded = agent.journal().load(&key).await?;
    let waits = loaded
        .inbox
        .iter()
        .find(|input| id.is_answer_to(&input.id))
        .map(|input| input.at);
    // An input that is queued has a response in progress, which has no turn yet.
    let Some((turn, events)) = find_answer(&loaded.events, id) else {
        return Ok(waits.map(|created| StoredResponse {
            id,
            key,
            created,
            words_only: false,
            answer: None,
            text: String::new(),
        }));
    };
    let started = events.iter().find_map(|recorded| match &*recorded.event {
        Event::TurnStarted {
            turn: started,
            limits,
            call: None,
            ..
        } if *started == turn => Some(limits.words_only),
        _ => None,
    });
    // Turns that called a tool without a model are not responses.
    let (Some(words_only), Some(last)) = (started, events.last()) else {
        return Ok(None);
    };
    let answer = conversation::response(id.conversation, events, turn);
    let text = answer
        .as_ref()
        .map(|answer| answer_text(answer, events))
        .unwrap_or_default();
    // The response is as old as the input it answers, and not as the turn, which may have waited.
    let created = first_event(events, id).unwrap_or(last).at;
    Ok(Some(StoredResponse {
        id,
        key,
        created,
        words_only,
        answer: answer.map(Box::new),
        text,
    }))
}

/// Returns the turn that answered, and the events up to the end of the answer; `None` if the input
/// has not been taken.
fn find_answer(events: &[Recorded], id: ResponseId) -> Option<(TurnId, &[Recorded])> {
    let last_turn = || {
        events
            .iter()
            .rev()
            .find_map(|recorded| recorded.event.turn())
    };
    if id.is_end() {
        return Some((last_turn()?, events));
    }
    let is_of = |recorded: &Recorded| {
        recorded
            .event
            .takes_input()
            .is_some_and(|input| id.is_answer_to(input))
    };
    let first = events.iter().position(is_of)?;
    let behind = events.get(first + 1..).unwrap_or_default();
    let takes_other =
        |recorded: &Recorded| recorded.event.takes_input().is_some() && !is_of(recorded);
    let ends = |recorded: &Recorded| {
        matches!(
            &*recorded.event,
            Event::TurnParked { .. } | Event::TurnFinished { .. }
        )
    };
    // The answer ends with its turn, where the turn waits, or before the next input.
    let length = match behind
        .iter()
        .position(|recorded| ends(recorded) || takes_other(recorded))
    {
        Some(place) if behind.get(place).is_some_and(ends) => place + 1,
        Some(place) => place,
        None => behind.len(),
    };
    let of_input = events.get(first)?.event.turn();
    Some((of_input.or_else(last_turn)?, events.get(..=first + length)?))
}

fn first_event(events: &[Recorded], id: ResponseId) -> Option<&Recorded> {
    events.iter().find(|recorded| {
        recorded
            .event
            .takes_input()
            .is_some_and(|input| id.is_answer_to(input))
    })
}

/// Returns the text of an answer; if the turn waits for results, the text that the model wrote
/// before the calls.
fn answer_text(answer: &AgentResponse, events: &[Recorded]) -> String {
    if answer.decision.kind != DecisionKind::AwaitResult {
        return answer.content.clone();
    }
    let reply = events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::ModelReplied {
                reply: Ok(reply), ..
            } => Some(reply.text()),
            _ => None,
        });
    reply.unwrap_or_default()
}
