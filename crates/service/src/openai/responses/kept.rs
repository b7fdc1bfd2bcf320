//! Responses that were given, read from the journal.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, ConversationKey, DecisionKind, Event, PendingCall, Recorded, TurnId, UserId,
    conversation,
};
use adjutant_runtime::Agent;
use jiff::Timestamp;

use super::id::ResponseId;
use crate::openai::message::{CallMade, FunctionCalled};
use crate::problem::Problem;

/// A response that was given, or is being made.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: ResponseId,
    pub(super) key: ConversationKey,
    pub(super) created: Timestamp,
    /// True if it was for the model without tools.
    pub(super) words_only: bool,
    /// `None`: its turn still runs.
    pub(super) answer: Option<Box<AgentResponse>>,
    /// Its words.
    pub(super) said: String,
}

impl Kept {
    /// Returns whether it asked for something that the next request brings: a yes or no, or
    /// results.
    pub(super) fn waits(&self) -> bool {
        self.pending().next().is_some()
    }

    fn pending(&self) -> impl Iterator<Item = &PendingCall> {
        self.answer
            .iter()
            .flat_map(|answer| &answer.decision.pending)
    }

    /// Returns the calls that the client was to execute.
    pub(super) fn calls(&self) -> Vec<CallMade> {
        self.pending()
            .filter(|call| call.awaits_result())
            .map(made)
            .collect()
    }
}

/// Returns a call as a client sends it back.
fn made(call: &PendingCall) -> CallMade {
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

/// Finds a response of this user. `None`: there is none of that id.
pub(super) async fn find(
    agent: &Agent,
    user: &UserId,
    id: ResponseId,
) -> Result<Option<Kept>, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let key = agent.key_of(user.clone(), id.conversation);
    let loaded = agent.journal().load(&key).await.map_err(failed)?;
    let waits = loaded
        .inbox
        .iter()
        .find(|input| id.answers(&input.id))
        .map(|input| input.at);
    let Some((turn, events)) = answered(&loaded.events, id) else {
        return Ok(waits.map(|created| Kept {
            id,
            key,
            created,
            words_only: false,
            answer: None,
            said: String::new(),
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
    // A call without a model is no response.
    let (Some(words_only), Some(last)) = (started, events.last()) else {
        return Ok(None);
    };
    let answer = conversation::response(id.conversation, events, turn);
    let said = answer
        .as_ref()
        .map(|answer| said(answer, events))
        .unwrap_or_default();
    let created = first_of(events, id).unwrap_or(last).at;
    Ok(Some(Kept {
        id,
        key,
        created,
        words_only,
        answer: answer.map(Box::new),
        said,
    }))
}

/// Returns the turn that answered, and the events up to the end of that answer. `None`: nothing has
/// taken that input.
fn answered(events: &[Recorded], id: ResponseId) -> Option<(TurnId, &[Recorded])> {
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
            .is_some_and(|input| id.answers(input))
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
    // The answer ends with its turn, where that waits, or where the next input was taken.
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

fn first_of(events: &[Recorded], id: ResponseId) -> Option<&Recorded> {
    events.iter().find(|recorded| {
        recorded
            .event
            .takes_input()
            .is_some_and(|input| id.answers(input))
    })
}

/// Returns what an answer says: where it only asks for results, the words that the model put in
/// front of the calls.
fn said(answer: &AgentResponse, events: &[Recorded]) -> String {
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
