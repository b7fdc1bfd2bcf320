//! What a request asks of its conversation: something said, something answered, or neither.

use adjutant_core::{
    Answer, Arguments, ClientSide, Event, InputBody, Notice, PendingCall, Recorded, TurnId,
    Verdict, conversation, words,
};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;

use crate::agui::{ResumeEntry, ResumeStatus, RunAgentInput};
use crate::chat::asked_before;
use crate::problem::Problem;
use crate::wire::with_edited;

/// What there is to do.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What goes into the conversation. `None`: nothing that was answered was ever asked.
    pub(crate) body: Option<InputBody>,
    /// The turn that was answered.
    pub(crate) turn: Option<TurnId>,
    /// What the person should know of how the request was read.
    pub(crate) notices: Vec<Notice>,
}

/// Why nothing is done.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The request makes no sense.
    Invalid(Problem),
    /// It makes sense, and not now: something waits for an answer first.
    Pending(Problem),
}

/// The answer to a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    approved: Option<bool>,
    verdict: Option<Verdicts>,
    #[serde(rename = "editedArgs")]
    edited_args: Option<Arguments>,
    /// The `interrupt_id` of the preview of `edited_args` that the person was shown.
    shown: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdicts {
    Done,
    Retry,
    Leave,
}

/// Returns whether a request answers something that the last turn of its conversation did not ask:
/// it has to be looked for in what was recorded before.
pub(crate) fn is_about_earlier(input: &RunAgentInput, events: &[Recorded]) -> bool {
    input
        .resume
        .iter()
        .any(|entry| asked_before(events, &entry.interrupt_id).is_none())
}

/// Reads a request, and what its client brings along, beside what is recorded of its conversation:
/// of its last turn, or of more.
pub(crate) fn read(
    input: &RunAgentInput,
    client: Option<Box<ClientSide>>,
    events: &[Recorded],
    now: Timestamp,
) -> Result<Asked, Refused> {
    // What nobody answered in time is no answer any more, and stands in nobody's way.
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
            // What was said before it was answered before.
            let text = "A result was left out: nothing waits for it (any more).".to_owned();
            notices.push(Notice {
                code: "unknown_result".to_owned(),
                text,
            });
            let turn = turn_with_result(input, events);
            return Ok(Asked {
                body: None,
                turn,
                notices,
            });
        }
        let words = input.words().ok_or_else(|| {
            Refused::Invalid(Problem::invalid(
                "messages has no message of the user, and resume no answer",
            ))
        })?;
        if words.text.trim().is_empty() {
            return Err(Refused::Invalid(Problem::invalid(
                "the user's last message has no text",
            )));
        }
        if words.left_out > 0 {
            notices.push(Notice::not_sent(
                "Only the text of the message was read; pictures and files were not.",
            ));
        }
        let body = InputBody::Message {
            text: words.text,
            output_schema: None,
            limits: None,
            client,
        };
        return Ok(Asked {
            body: Some(body),
            turn: None,
            notices,
        });
    }
    // What awaits a result may wait on: another program brings it.
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
        .and_then(|answer| asked_before(events, &answer.digest))
        .map(|(turn, _)| turn);
    let mut answers: Vec<Answer> = results;
    for entry in &input.resume {
        let waiting = open
            .iter()
            .chain(&late)
            .find(|call| call.digest == entry.interrupt_id);
        let asked = asked_before(events, &entry.interrupt_id);
        let Some(call) = waiting
            .cloned()
            .or_else(|| asked.as_ref().map(|(_, call)| call.clone()))
        else {
            let text = "An answer was left out: nothing of that name was asked here.".to_owned();
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
    Ok(Asked {
        body,
        turn,
        notices,
    })
}

/// The turn that waited for the result a request ends with.
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

/// Giving up is a no. Only the very word `true` is a yes.
fn answer(call: &PendingCall, entry: &ResumeEntry) -> Result<Answer, Problem> {
    if entry.status == ResumeStatus::Cancelled {
        let verdict = if call.doubt.is_some() {
            Verdict::Leave
        } else {
            Verdict::Denied
        };
        return Ok(call.answer(verdict));
    }
    let payload = entry
        .payload
        .clone()
        .unwrap_or_else(|| serde_json::json!({}));
    let payload: Payload = serde_json::from_value(payload)
        .map_err(|error| Problem::invalid(format!("the payload of an answer: {error}")))?;
    let verdict = match (payload.approved, payload.verdict) {
        (Some(true), None) => Verdict::Approved,
        (Some(false), None) => Verdict::Denied,
        (None, Some(Verdicts::Done)) => Verdict::Done,
        (None, Some(Verdicts::Retry)) => Verdict::Retry,
        (None, Some(Verdicts::Leave)) => Verdict::Leave,
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::invalid(
                "the payload of an answer has either approved, or a verdict of done, retry or leave",
            ));
        }
    };
    let answer = call.answer(verdict);
    Ok(with_edited(answer, payload.edited_args, payload.shown))
}

fn pending(open: &[PendingCall]) -> Problem {
    let what = |call: &PendingCall| match call.awaits_result() {
        true => words::awaits_result(call),
        false => call.preview.clone(),
    };
    let what: Vec<String> = open.iter().map(what).collect();
    let ids: Vec<&str> = open
        .iter()
        .filter(|call| !call.awaits_result())
        .map(|call| call.digest.as_str())
        .collect();
    let calls: Vec<&str> = open
        .iter()
        .filter(|call| call.awaits_result())
        .map(|call| call.call_id.as_str())
        .collect();
    let detail = format!("This waits for an answer first: {}", what.join("; "));
    Problem::new(
        StatusCode::CONFLICT,
        "pending_confirmation",
        "Something waits for an answer",
        detail,
    )
    .with("interrupt_ids", ids)
    .with("tool_call_ids", calls)
}
