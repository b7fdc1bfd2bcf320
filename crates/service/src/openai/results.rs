//! Results of the client's tools, and the turn that waits for them.
//!
//! A request that ends with them goes on with the turn whose model made the calls: it is found by
//! the user, by what was said before, and by the ids of the calls, on any replica and after a
//! restart. Where nothing waits for them, because it is too late or because the client has changed
//! what was said, a turn begins with the history as it is given.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, Answer, ConversationKey, DecisionFilter, Event, PendingCall, Recorded,
    ToolChoice, ToolResult, UserId, Verdict, conversation,
};
use adjutant_runtime::Agent;
use axum::http::StatusCode;
use serde_json::Value;

use super::error::about;
use super::message::{CallMade, ChatMessage, Messages, Role};
use super::stateless::{Candidates, SETTLED, SETTLED_MAX};
use crate::problem::Problem;

/// The results that a request ends with.
#[derive(Debug)]
pub(super) struct Results<'a> {
    /// The member of the request that holds them.
    member: &'static str,
    /// The calls that the client says were made.
    calls: Vec<&'a CallMade>,
    results: Vec<&'a ChatMessage>,
}

/// The turn that results belong to.
#[derive(Debug)]
pub(super) enum Belongs {
    /// To a turn that waits for them: there, and as answers.
    Waiting(ConversationKey, Vec<Answer>),
    /// To one that had them before: what became of it.
    Before(Box<AgentResponse>),
    /// To none.
    Nowhere,
}

impl<'a> Results<'a> {
    /// Returns what a request ends with. `None`: its last message is no result, or stands behind no
    /// calls.
    pub(super) fn of(messages: &'a Messages) -> Option<Self> {
        let made = messages
            .list
            .iter()
            .rposition(|message| message.role != Role::Tool)?;
        let (before, results) = messages.list.split_at(made + 1);
        let calls: Vec<&CallMade> = before.last()?.tool_calls.iter().flatten().collect();
        let is_made = before.last()?.role == Role::Assistant && !calls.is_empty();
        (is_made && !results.is_empty()).then(|| Self {
            member: messages.member,
            calls,
            results: results.iter().collect(),
        })
    }

    /// Returns the result of a call, if it is the call that was made: the client may have changed
    /// what it says of it.
    fn of_call(&self, shown: &PendingCall) -> Option<ToolResult> {
        let id = Some(shown.call_id.as_str());
        let made = self
            .calls
            .iter()
            .find(|call| call.id.as_deref() == id)?
            .function
            .as_ref()?;
        let arguments = made
            .arguments
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let arguments = serde_json::from_str::<Value>(arguments.unwrap_or("{}")).ok()?;
        if made.name != shown.tool || arguments != Value::Object(shown.arguments.clone()) {
            return None;
        }
        let result = self
            .results
            .iter()
            .find(|message| message.tool_call_id.as_deref() == id)?;
        Some(ToolResult::verbatim(Value::String(result.text())))
    }

    /// Returns the answers to those of these calls that await a result and have one here.
    fn answers(&self, pending: &[PendingCall], choice: &ToolChoice) -> Vec<Answer> {
        let awaited = pending.iter().filter(|call| call.awaits_result());
        awaited
            .filter_map(|call| Some(call.provided(self.of_call(call)?).choosing(choice.clone())))
            .collect()
    }
}

/// Finds the turn that results are for among those that may be meant. `choice`: what may be called
/// next.
pub(super) async fn belongs(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    results: &Results<'_>,
    choice: &ToolChoice,
) -> Result<Belongs, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let waiting = agent
        .journal()
        .parked(agent.name(), Some(user))
        .await
        .map_err(failed)?;
    for (key, recorded) in waiting.iter().rev() {
        let Event::TurnParked { pending, .. } = &*recorded.event else {
            continue;
        };
        if !candidates.have(key.conversation) {
            continue;
        }
        let answers = results.answers(pending, choice);
        if answers.is_empty() {
            continue;
        }
        if !pending.iter().all(|call| call.has_expired(agent.now())) {
            return Ok(Belongs::Waiting(key.clone(), answers));
        }
        // Its time ran out and nobody looked since.
        agent
            .advance(key)
            .await
            .map_err(|error| Problem::run(&error))?;
    }
    before(agent, user, candidates, results).await
}

/// Finds the turn that had these results before: the same answer again is the same answer.
async fn before(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    results: &Results<'_>,
) -> Result<Belongs, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let filter = DecisionFilter {
        agent: Some(agent.name().clone()),
        since: agent.now().checked_sub(SETTLED).ok(),
        limit: Some(SETTLED_MAX),
        ..DecisionFilter::default()
    };
    for decision in agent
        .logs()
        .decisions(user, &filter)
        .await
        .map_err(failed)?
    {
        if !candidates.have(decision.conversation) {
            continue;
        }
        let key = decision.key();
        let of_turn = || async {
            let read = agent
                .journal()
                .load_turn(&key, decision.id)
                .await
                .map_err(failed)?;
            Ok::<Vec<Recorded>, Problem>(read.map(|read| read.events).unwrap_or_default())
        };
        let events = of_turn().await?;
        let Some(same) = had(&events, results) else {
            continue;
        };
        if !same {
            let detail = "the result of a call was brought before, and it was another one";
            let problem = Problem::new(
                StatusCode::CONFLICT,
                "answered_before",
                "Answered before",
                detail,
            );
            return Err(about(results.member, problem));
        }
        // It may be going on: what becomes of it is the answer.
        agent
            .advance(&key)
            .await
            .map_err(|error| Problem::run(&error))?;
        if let Some(mut response) =
            conversation::response(key.conversation, &of_turn().await?, decision.id)
        {
            // It was counted when it was used.
            response.usage = adjutant_core::Usage::default();
            return Ok(Belongs::Before(Box::new(response)));
        }
    }
    Ok(Belongs::Nowhere)
}

/// Returns whether a turn had the same results. `None`: it had none for these calls.
fn had(events: &[Recorded], results: &Results<'_>) -> Option<bool> {
    let shown = events.iter().flat_map(|recorded| match &*recorded.event {
        Event::TurnParked { pending, .. } => pending.as_slice(),
        _ => &[],
    });
    let provided = |wanted: &PendingCall| {
        let is_provided = events.iter().any(|recorded| {
            matches!(&*recorded.event, Event::CallAnswered { call, verdict: Some(Verdict::Provided), .. }
                if *call == wanted.call_id)
        });
        events
            .iter()
            .filter(|_| is_provided)
            .find_map(|recorded| match &*recorded.event {
                Event::CallFinished { call, result, .. } if *call == wanted.call_id => Some(result),
                _ => None,
            })
    };
    let pairs = shown.filter_map(|call| Some(results.of_call(call)? == *provided(call)?));
    pairs.reduce(|all, same| all && same)
}
