//! Interpretation of a request to run the agent: a message, answers to pending calls, or neither.

use adjutant_core::{
    Answer, ClientSide, Event, InputBody, Notice, PendingCall, Recorded, TurnId, Verdict,
    conversation, words,
};
use axum::http::StatusCode;
use jiff::Timestamp;

use crate::agui::{ResumeEntry, ResumeStatus, RunAgentInput};
use crate::chat::find_confirmation;
use crate::problem::Problem;
use crate::wire::CallAnswer;

/// The input that a request makes, with notices for the client.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    /// The input. `None`: all answers are for calls that never existed, so there is nothing to do.
    pub(crate) body: Option<InputBody>,
    /// The turn whose calls were answered.
    pub(crate) turn: Option<TurnId>,
    /// Notices about parts of the request that were ignored.
    pub(crate) notices: Vec<Notice>,
}

/// The reason for which a request is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The request is invalid.
    Invalid(Problem),
    /// The request is valid, but a pending call has to be answered first.
    Pending(Problem),
}

/// Returns true if a request answers a call that the last turn did not ask about, so that the
/// earlier journal is needed too.
pub(crate) fn answers_earlier_turn(input: &RunAgentInput, events: &[Recorded]) -> bool {
    input
        .resume
        .iter()
        .any(|entry| find_confirmation(events, &entry.interrupt_id).is_none())
}

/// Interprets a request. `client` is what it brings for the turn; `events` are those of the last
/// turn at least.
pub(crate) fn parse(
    input: &RunAgentInput,
    client: Option<Box<ClientSide>>,
    events: &[Recorded],
    now: Timestamp,
) -> Result<ParsedRequest, Refused> {
    // Expired calls block nothing; an answer to one is still matched, and reported as late.
    let (open, late): (Vec<PendingCall>, Vec<PendingCall>) = conversation::pending(events)
        .into_iter()
        .partition(|call| !call.has_expired(now));
    let mut notices = Vec::new();
    let results = input.results(&open);
    if input.resume.is_empty() && results.is_empty() {
        if !open.is_empty() {
            return Err(Refused::Pending(pending(&open)));
        }
        if input.ends_with_result() {
            // The client repeats a result that was accepted before.
            let text = "A result was left out: nothing waits for it (any more).".to_owned();
            notices.push(Notice {
                code: "unknown_result".to_owned(),
                text,
            });
            let turn = turn_with_result(input, events);
            return Ok(ParsedRequest {
                body: None,
                turn,
                notices,
            });
        }
        let invalid = |detail| Refused::Invalid(Problem::invalid(detail));
        let message = input
            .last_user_message()
            .ok_or_else(|| invalid("messages has no message of the user, and resume no answer"))?;
        if message.text.trim().is_empty() {
            return Err(invalid("the user's last message has no text"));
        }
        if message.left_out > 0 {
            notices.push(Notice::not_sent(
                "Only the text of the message was read; pictures and files were not.",
            ));
        }
        let body = InputBody::Message {
            text: message.text,
            output_schema: None,
            limits: None,
            client,
            shown: Vec::new(),
            time_zone: None,
            from_others: false,
        };
        return Ok(ParsedRequest {
            body: Some(body),
            turn: None,
            notices,
        });
    }
    // A call that awaits a result may stay pending: another program may bring it.
    let uncovered: Vec<PendingCall> = open
        .iter()
        .filter(|call| !call.awaits_result())
        .filter(|call| {
            input
                .resume
                .iter()
                .all(|entry| entry.interrupt_id != call.digest)
        })
        .cloned()
        .collect();
    if !uncovered.is_empty() {
        return Err(Refused::Pending(pending(&uncovered)));
    }
    let mut turn = results
        .first()
        .and_then(|answer| find_confirmation(events, &answer.digest))
        .map(|(turn, _)| turn);
    let mut answers: Vec<Answer> = results;
    for entry in &input.resume {
        let waiting = open
            .iter()
            .chain(&late)
            .find(|call| call.digest == entry.interrupt_id);
        let asked = find_confirmation(events, &entry.interrupt_id);
        let Some(call) = waiting
            .cloned()
            .or_else(|| asked.as_ref().map(|(_, call)| call.clone()))
        else {
            let text = "An answer was ignored: there is no such pending call.".to_owned();
            notices.push(Notice {
                code: "unknown_interrupt".to_owned(),
                text,
            });
            continue;
        };
        turn = asked.map(|(turn, _)| turn).or(turn);
        answers.push(answer(&call, entry).map_err(Refused::Invalid)?);
    }
    let body = (!answers.is_empty()).then_some(InputBody::Answers { answers });
    Ok(ParsedRequest {
        body,
        turn,
        notices,
    })
}

/// Returns the turn that waited for the result that is the request's last message.
fn turn_with_result(input: &RunAgentInput, events: &[Recorded]) -> Option<TurnId> {
    let last = input.messages.last()?.tool_call_id.as_deref()?;
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnParked { turn, pending, .. } => pending
                .iter()
                .any(|call| call.call_id.as_str() == last)
                .then_some(*turn),
            _ => None,
        })
}

/// Builds the answer to a call. Cancelling denies a confirmation and leaves a call in doubt as it
/// is.
fn answer(call: &PendingCall, entry: &ResumeEntry) -> Result<Answer, Problem> {
    if entry.status == ResumeStatus::Cancelled {
        let verdict = if call.doubt.is_some() {
            Verdict::Leave
        } else {
            Verdict::Denied
        };
        return Ok(call.answer(verdict));
    }
    let payload = entry.payload.clone();
    let payload = payload.unwrap_or_else(|| serde_json::json!({}));
    let payload: CallAnswer = serde_json::from_value(payload)
        .map_err(|error| Problem::invalid(format!("the payload of an answer: {error}")))?;
    payload.answer_to(call)
}

/// Returns the problem that names the calls to be answered first.
fn pending(open: &[PendingCall]) -> Problem {
    let description = |call: &PendingCall| match call.awaits_result() {
        true => words::awaits_result(call),
        false => call.preview.clone(),
    };
    let descriptions: Vec<String> = open.iter().map(description).collect();
    let (calls, asked): (Vec<&PendingCall>, Vec<&PendingCall>) =
        open.iter().partition(|call| call.awaits_result());
    let ids: Vec<&str> = asked.iter().map(|call| call.digest.as_str()).collect();
    let calls: Vec<&str> = calls.iter().map(|call| call.call_id.as_str()).collect();
    let detail = format!(
        "This waits for an answer first: {}",
        descriptions.join("; ")
    );
    Problem::new(
        StatusCode::CONFLICT,
        "pending_confirmation",
        "A call is pending",
        detail,
    )
    .with("interrupt_ids", ids)
    .with("tool_call_ids", calls)
}
