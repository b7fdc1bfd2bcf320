//! Results of the client's tools, and the turn that waits for them.
//!
//! A request that ends with results continues the turn whose model made the calls. The turn is
//! found by the user, the history and the ids of the calls, on any replica and after a restart. If
//! no turn waits, because it has expired or the client has changed the history, a new turn starts
//! with the history as sent.

use adjutant_core::{
    AgentResponse, Answer, ConversationKey, Event, PendingCall, Recorded, ToolChoice, ToolResult,
    UserId, Verdict, conversation,
};
use adjutant_runtime::Agent;
use axum::http::StatusCode;
use serde_json::Value;

use super::error::about;
use super::message::{CallMade, ChatMessage, Messages, Role};
use super::stateless::{Candidates, SETTLED_DECISIONS_MAX, recent};
use crate::problem::Problem;

/// The results at the end of a request.
#[derive(Debug)]
pub(super) struct Results<'a> {
    /// Name of the request's member with the messages.
    member: &'static str,
    /// The calls that the client repeats.
    calls: Vec<&'a CallMade>,
    results: Vec<&'a ChatMessage>,
}

/// The turn that results are for.
#[derive(Debug)]
pub(super) enum ResultsTarget {
    /// A turn that waits for them, with the results as answers.
    Waiting(ConversationKey, Vec<Answer>),
    /// A turn that has received the same results before, with its response.
    Repeated(Box<AgentResponse>),
    /// No turn waits for them.
    None,
}

impl<'a> Results<'a> {
    /// Returns the results at the end of a request; `None` if the last message is not a result, or
    /// the calls before it are missing.
    pub(super) fn from_messages(messages: &'a Messages) -> Option<Self> {
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

    /// Returns the result of a pending call. The client's copy of the call must match, because the
    /// client may have changed it.
    fn result_for(&self, shown: &PendingCall) -> Option<ToolResult> {
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
        // Compared as values, because clients may serialize the arguments anew.
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

    /// Returns the answers to those of these calls whose results are here.
    fn answers(&self, pending: &[PendingCall], choice: &ToolChoice) -> Vec<Answer> {
        let awaited = pending.iter().filter(|call| call.awaits_result());
        awaited
            .filter_map(|call| {
                Some(
                    call.provided(self.result_for(call)?)
                        .choosing(choice.clone()),
                )
            })
            .collect()
    }
}

/// Finds the turn that results are for among the candidates. `choice`: the tools that may be called
/// next.
pub(super) async fn find_target(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    results: &Results<'_>,
    choice: &ToolChoice,
) -> Result<ResultsTarget, Problem> {
    let waiting = agent.journal().parked(agent.name(), Some(user)).await?;
    for (key, recorded) in waiting.iter().rev() {
        let Event::TurnParked { pending, .. } = &*recorded.event else {
            continue;
        };
        if !candidates.contain(key.conversation) {
            continue;
        }
        let answers = results.answers(pending, choice);
        if answers.is_empty() {
            continue;
        }
        if !pending.iter().all(|call| call.has_expired(agent.now())) {
            return Ok(ResultsTarget::Waiting(key.clone(), answers));
        }
        // The calls have expired, and the turn has not been ended yet.
        agent.run_conversation(key).await?;
    }
    find_repeated(agent, user, candidates, results).await
}

/// Finds the turn that received these results before; a repeated request gets the same answer.
async fn find_repeated(
    agent: &Agent,
    user: &UserId,
    candidates: &Candidates,
    results: &Results<'_>,
) -> Result<ResultsTarget, Problem> {
    let filter = recent(agent, SETTLED_DECISIONS_MAX);
    for decision in agent.logs().decisions(user, &filter).await? {
        if !candidates.contain(decision.conversation) {
            continue;
        }
        let key = decision.key();
        let load_events = || async {
            let read = agent.journal().load_turn(&key, decision.id).await?;
            Ok::<Vec<Recorded>, Problem>(read.map(|read| read.events).unwrap_or_default())
        };
        let events = load_events().await?;
        let Some(same) = are_same_results(&events, results) else {
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
        // If the turn still runs, wait for its end.
        agent.run_conversation(&key).await?;
        if let Some(mut response) =
            conversation::response(key.conversation, &load_events().await?, decision.id)
        {
            // The usage was reported with the first response.
            response.usage = adjutant_core::Usage::default();
            return Ok(ResultsTarget::Repeated(Box::new(response)));
        }
    }
    Ok(ResultsTarget::None)
}

/// Returns true if a turn received the same results; `None` if it received none for these calls.
fn are_same_results(events: &[Recorded], results: &Results<'_>) -> Option<bool> {
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
    let pairs =
        shown.filter_map(|call| Some(results.result_for(call)?.says_the_same(provided(call)?)));
    pairs.reduce(|all, same| all && same)
}
