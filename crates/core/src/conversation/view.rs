//! Reads of events at hand: the whole past of a conversation, or its last turn.

use super::{Conversation, Status, history};
use crate::confirmation::{Answer, PendingCall};
use crate::cost::Cost;
use crate::decision::{
    AgentDecision, AgentResponse, DecisionKind, Notice, OutcomeCategory, Timing, UserIntent,
};
use crate::event::{Event, Input, InputBody, Recorded, ResolvedBy, TurnEnd};
use crate::id::{ConversationId, InputId, TurnId};
use crate::model::Usage;
use crate::past::Past;
use crate::summary::{Recalled, Summary};
use crate::tool::{ToolCall, ToolInvocation};
use crate::words;

/// Returns the turn that has started and not finished, if there is one.
#[must_use]
pub fn open_turn(events: &[Recorded]) -> Option<TurnId> {
    Status::of(events).turn
}

/// Returns the calls that wait for a human now: those of the open turn that were asked for and not
/// answered.
#[must_use]
pub fn pending(events: &[Recorded]) -> Vec<PendingCall> {
    Status::of(events).waiting
}

/// Returns the notices about an input that was an answer: that it was refused, came too late, or
/// was given before.
#[must_use]
pub fn notices_of(events: &[Recorded], input: &Input) -> Vec<Notice> {
    let notice = |code: &str, text: &str| Notice {
        code: code.to_owned(),
        text: text.to_owned(),
    };
    let mut notices: Vec<Notice> = events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::AnswerRefused {
                input: refused,
                reason,
                ..
            } if *refused == input.id => Some(notice("answer_refused", reason)),
            Event::CallEdited { input: edited, .. } if *edited == input.id => {
                Some(notice("asked_again", words::ASKED_WITH_EDITED))
            }
            _ => None,
        })
        .collect();
    if is_queued(events, &input.id) {
        let waits = pending(events);
        let words = match waits.iter().all(PendingCall::awaits_result) {
            true => words::MESSAGE_QUEUED_BEHIND_RESULT,
            false => words::MESSAGE_QUEUED,
        };
        notice("message_queued", words).join(&mut notices);
    }
    let InputBody::Answers { answers } = &input.body else {
        return notices;
    };
    for answer in answers {
        let Some(shown) = asked(events, answer) else {
            continue;
        };
        match answered_by(events, shown) {
            Some(Some(by)) if *by != input.id && !is_repeated(events, answer) => {
                notice("answered_before", words::ANSWERED_BEFORE).join(&mut notices);
            }
            Some(None) if shown.awaits_result() => {
                notice("answered_late", words::RESULT_LATE).join(&mut notices);
            }
            Some(None) if shown.doubt.is_none() => {
                notice("answered_late", words::ANSWERED_LATE).join(&mut notices);
            }
            Some(None) => notice("answered_late", words::DOUBT_ANSWERED_LATE).join(&mut notices),
            Some(Some(_)) | None => {}
        }
    }
    notices
}

/// Returns the question that an answer is to, if it was ever asked.
fn asked<'a>(events: &'a [Recorded], answer: &Answer) -> Option<&'a PendingCall> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnParked { pending, .. } => pending
                .iter()
                .find(|call| call.call_id == answer.call_id && call.digest == answer.digest),
            _ => None,
        })
}

/// The input that answered what was asked, if one did; nothing, if its time ran out.
fn answered_by<'a>(events: &'a [Recorded], shown: &PendingCall) -> Option<Option<&'a InputId>> {
    events
        .iter()
        .find_map(|recorded| match (&*recorded.event, &shown.doubt) {
            (Event::CallAnswered { call, input, .. }, None) if *call == shown.call_id => {
                Some(input.as_ref())
            }
            (
                Event::DoubtResolved {
                    call,
                    attempt,
                    input,
                    ..
                },
                Some(doubt),
            ) if *call == shown.call_id && *attempt == doubt.attempt => Some(input.as_ref()),
            _ => None,
        })
}

/// Returns whether an answer brings the result that was brought before: the same answer again is
/// the same answer.
fn is_repeated(events: &[Recorded], answer: &Answer) -> bool {
    events.iter().any(|recorded| match &*recorded.event {
        Event::CallFinished { call, result, .. } => {
            *call == answer.call_id && answer.result.as_ref() == Some(result)
        }
        _ => false,
    })
}

/// Returns the turn that took an input, or, while it waits for the end of a turn, that turn.
#[must_use]
pub fn turn_of_input(events: &[Recorded], input: &InputId) -> Option<TurnId> {
    let concerns = |recorded: &&Recorded| match &*recorded.event {
        Event::InputQueued { input: queued, .. } => queued == input,
        event => event.takes_input() == Some(input),
    };
    events.iter().rev().find(concerns)?.event.turn()
}

/// Returns how often the open turn was taken up since it got any further. That a call was begun,
/// begun again, or is known not to have been done is no step further: it may be what takes each
/// worker down.
#[must_use]
pub fn times_taken_up(events: &[Recorded]) -> u32 {
    let Some(open) = open_turn(events) else {
        return 0;
    };
    let is_step = |event: &Event| match event {
        Event::TurnTakenUp { .. }
        | Event::CallStarted { .. }
        | Event::Decided { .. }
        | Event::SummaryFailed { .. }
        | Event::InputQueued { .. } => false,
        Event::DoubtResolved { by, .. } => *by != ResolvedBy::Probe,
        _ => true,
    };
    let of_turn = events
        .iter()
        .rev()
        .map(|recorded| &*recorded.event)
        .filter(|event| event.turn() == Some(open));
    let since = of_turn.take_while(|event| !is_step(event));
    let taken_up = since
        .filter(|event| matches!(event, Event::TurnTakenUp { .. }))
        .count();
    u32::try_from(taken_up).unwrap_or(u32::MAX)
}

/// Returns whether an input waits for the end of the turn that is open.
#[must_use]
pub fn is_queued(events: &[Recorded], input: &InputId) -> bool {
    Status::of(events).is_queued(input)
}

/// Returns the response of a turn: its end, or, if it waits for a human, the question. `None` while
/// it runs.
#[must_use]
pub fn response(
    conversation: ConversationId,
    events: &[Recorded],
    turn: TurnId,
) -> Option<AgentResponse> {
    let of_turn = || {
        events
            .iter()
            .filter(move |recorded| recorded.event.turn() == Some(turn))
    };
    let timing = timing(of_turn());
    let end = of_turn().find_map(|recorded| match &*recorded.event {
        Event::TurnFinished { end, .. } => Some(end.clone()),
        _ => None,
    });
    if let Some(end) = end {
        return Some(finished(conversation, turn, end, timing));
    }
    let waiting = pending(events);
    let (asked, content) = of_turn()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnParked {
                pending, content, ..
            } => Some((pending.len(), content.clone())),
            _ => None,
        })?;
    if waiting.is_empty() {
        return None;
    }
    // What was answered is not asked again.
    let content = if waiting.len() < asked {
        words::questions(&waiting)
    } else {
        content
    };
    let mut usage = Usage::default();
    let mut cost = Some(Cost::default());
    let mut tool_calls: Vec<ToolCall> = Vec::new();
    let mut tools_used = Vec::new();
    for recorded in of_turn() {
        match &*recorded.event {
            Event::ModelReplied {
                reply: Ok(reply), ..
            } => {
                usage = usage.plus(reply.usage);
                cost = Cost::sum(cost, reply.cost);
                tool_calls.extend(reply.tool_calls().cloned());
            }
            Event::ConversationSummarized {
                usage: more,
                cost: paid,
                ..
            }
            | Event::SummaryFailed {
                usage: more,
                cost: paid,
                ..
            } => {
                usage = usage.plus(*more);
                cost = Cost::sum(cost, *paid);
            }
            Event::CallFinished {
                tool,
                arguments,
                result,
                ..
            } => tools_used.push(ToolInvocation {
                tool: tool.clone(),
                arguments: arguments.clone(),
                result: result.clone(),
            }),
            _ => {}
        }
    }
    let outcome = OutcomeCategory::waiting_for(&waiting);
    let intent = waiting.first().map_or(UserIntent::GeneralChat, |call| {
        UserIntent::of_tool(&call.tool)
    });
    Some(AgentResponse {
        conversation,
        turn,
        content: content.clone(),
        tools_used,
        decision: AgentDecision {
            kind: DecisionKind::waiting_for(&waiting),
            intent,
            text: content,
            tool_calls,
            pending: waiting,
        },
        outcome,
        output: None,
        usage,
        cost,
        error: None,
        notices: Vec::new(),
        timing,
    })
}

fn finished(
    conversation: ConversationId,
    turn: TurnId,
    end: TurnEnd,
    timing: Timing,
) -> AgentResponse {
    AgentResponse {
        conversation,
        turn,
        content: end.decision.text.clone(),
        tools_used: end.tools_used,
        decision: end.decision,
        outcome: end.outcome,
        output: end.output,
        usage: end.usage,
        cost: end.cost,
        error: end.error,
        notices: end.notices,
        timing,
    }
}

fn timing<'a>(events: impl Iterator<Item = &'a Recorded>) -> Timing {
    let mut timing = Timing::default();
    let (mut first, mut last) = (None, None);
    for recorded in events {
        first = first.or(Some(recorded.at));
        last = Some(recorded.at);
        match &*recorded.event {
            Event::ModelReplied { ms, .. }
            | Event::ConversationSummarized { ms, .. }
            | Event::SummaryFailed { ms, .. } => timing.model_ms += ms,
            Event::CallFinished { ms, .. } => timing.tool_ms += ms,
            _ => {}
        }
    }
    if let (Some(first), Some(last)) = (first, last) {
        timing.total_ms =
            u64::try_from(last.as_millisecond() - first.as_millisecond()).unwrap_or(0);
    }
    timing
}

/// Returns what the next turn is given of the past: the last summary and what was said since, of
/// that no more than `messages_max` user and assistant messages (see [`trim`](crate::turn::trim)).
#[must_use]
pub fn recalled(events: &[Recorded], messages_max: Option<usize>) -> Recalled {
    Conversation::of(messages_max, events.iter().cloned()).recalled_now()
}

/// Returns what a turn was given of its conversation, if that is written down among its events.
#[must_use]
pub fn past<'a>(of_turn: impl IntoIterator<Item = &'a Event>) -> Option<&'a Past> {
    of_turn.into_iter().find_map(|event| match event {
        Event::ModelReplied { past, .. } => past.as_deref(),
        _ => None,
    })
}

/// Returns what a turn was given, made from events before it: those of the last turns that have so
/// many messages, the one that has the summary, and any others.
#[must_use]
pub fn recalled_as(past: &Past, before: &[Recorded]) -> Recalled {
    let summary = before
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::ConversationSummarized { summary, .. } if Some(recorded.seq) == past.summary => {
                Some(summary.clone())
            }
            _ => None,
        });
    let mut messages = history(before);
    messages.drain(..messages.len().saturating_sub(past.messages));
    Recalled {
        summary,
        from: past.from,
        messages,
    }
}

/// Returns the summary that stands for the oldest turns now, if there is one.
#[must_use]
pub fn last_summary(events: &[Recorded]) -> Option<&Summary> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::ConversationSummarized { summary, .. } => Some(Some(summary)),
            // What was set in its place is another history.
            Event::HistorySet { .. } => Some(None),
            _ => None,
        })?
}
