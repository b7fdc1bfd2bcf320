//! Queries over events in memory: those of a whole conversation, or of its last turn.

use super::{Conversation, Status, history};
use crate::confirmation::{Answer, PendingCall, PendingKind};
use crate::cost::Cost;
use crate::decision::{
    AgentDecision, AgentResponse, DecisionKind, Disposition, Notice, OutcomeCategory, Timing,
    UserIntent,
};
use crate::event::{Event, Input, InputBody, Recorded, ResolvedBy};
use crate::given_history::GivenHistory;
use crate::id::{ConversationId, InputId, TurnId};
use crate::model::Usage;
use crate::summary::{Summary, TurnHistory};
use crate::tool::ToolCall;
use crate::words;

/// Returns the turn that started and has not ended, if there is one.
#[must_use]
pub fn open_turn(events: &[Recorded]) -> Option<TurnId> {
    Status::from_events(events).turn
}

/// Returns the calls of the open turn that are not answered.
#[must_use]
pub fn pending(events: &[Recorded]) -> Vec<PendingCall> {
    Status::from_events(events).waiting
}

/// Returns the notices about an input with answers: that one was refused, came too late, or was
/// given before.
#[must_use]
pub fn notices_of(events: &[Recorded], input: &Input) -> Vec<Notice> {
    let mut notices: Vec<Notice> = events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::AnswerRefused {
                input: refused,
                reason,
                ..
            } if *refused == input.id => Some(Notice::new("answer_refused", reason)),
            Event::CallEdited { input: edited, .. } if *edited == input.id => {
                Some(Notice::new("asked_again", words::ASKED_WITH_EDITED))
            }
            Event::AnswerUnclear { input: unclear, .. } if *unclear == input.id => {
                Some(Notice::new("answer_unclear", words::ANSWER_UNCLEAR))
            }
            _ => None,
        })
        .collect();
    // Only while it waits: afterwards the input is one like any other.
    if is_queued(events, &input.id) {
        let waits = pending(events);
        let words = match waits.iter().all(PendingCall::awaits_result) {
            true => words::MESSAGE_QUEUED_BEHIND_RESULT,
            false => words::MESSAGE_QUEUED,
        };
        Notice::new("message_queued", words).join(&mut notices);
    }
    let InputBody::Answers { answers } = &input.body else {
        return notices;
    };
    for answer in answers {
        let Some(shown) = asked(events, answer) else {
            continue;
        };
        let notice = match answered_by(events, shown) {
            Some(Some(by)) if *by != input.id && !is_repeated(events, answer) => {
                Notice::new("answered_before", words::ANSWERED_BEFORE)
            }
            Some(Some(_)) | None => continue,
            Some(None) => Notice::new(
                "answered_late",
                match shown.kind() {
                    PendingKind::Result => words::RESULT_LATE,
                    PendingKind::Confirmation => words::ANSWERED_LATE,
                    PendingKind::Doubt => words::DOUBT_ANSWERED_LATE,
                },
            ),
        };
        notice.join(&mut notices);
    }
    notices
}

/// Returns the question that an answer belongs to, if it was ever asked.
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

/// Returns the input that answered a question; `Some(None)` if it expired.
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

/// Returns true if an answer repeats a result that was submitted before.
fn is_repeated(events: &[Recorded], answer: &Answer) -> bool {
    events.iter().any(|recorded| match &*recorded.event {
        Event::CallFinished { call, result, .. } => {
            *call == answer.call_id
                && answer
                    .result
                    .as_ref()
                    .is_some_and(|known| known.says_the_same(result))
        }
        _ => false,
    })
}

/// Returns the turn that took an input or, while it is queued, the open turn that it waits for.
#[must_use]
pub fn turn_of_input(events: &[Recorded], input: &InputId) -> Option<TurnId> {
    if is_queued(events, input) {
        return open_turn(events);
    }
    let taken = |recorded: &&Recorded| recorded.event.takes_input() == Some(input);
    events.iter().rev().find(taken)?.event.turn()
}

/// Returns the fate of an input. `None`: no event tells; it waits in the inbox, or was taken
/// elsewhere.
#[must_use]
pub fn disposition(events: &[Recorded], input: &InputId) -> Option<Disposition> {
    if is_queued(events, input) {
        return Some(Disposition::Queued);
    }
    let taken = events
        .iter()
        .map(|recorded| &*recorded.event)
        .filter(|event| event.takes_input() == Some(input));
    let mut found = None;
    for event in taken {
        match event {
            Event::TurnStarted { .. } => return Some(Disposition::Ran),
            Event::AnswerRefused { .. }
            | Event::AnswerUnclear { .. }
            | Event::InputIgnored { .. } => {
                found = found.or(Some(Disposition::Dropped));
            }
            // One usable answer is enough: the same input may answer several calls.
            _ => found = Some(Disposition::Answered),
        }
    }
    found
}

/// Returns the response to a message that never ran. While the question that it was no answer to
/// waits, the question is asked again; the words of that turn's end are not an answer to it.
#[must_use]
pub fn response_to_dropped(of_turn: AgentResponse) -> AgentResponse {
    let disposition = Disposition::Dropped;
    if !of_turn.decision.pending.is_empty() {
        return AgentResponse {
            disposition,
            ..of_turn
        };
    }
    let text = words::MESSAGE_DROPPED.to_owned();
    AgentResponse {
        conversation: of_turn.conversation,
        turn: of_turn.turn,
        content: text.clone(),
        tools_used: Vec::new(),
        decision: AgentDecision {
            kind: DecisionKind::AskClarification,
            intent: UserIntent::GeneralChat,
            text,
            tool_calls: Vec::new(),
            pending: Vec::new(),
        },
        outcome: OutcomeCategory::UnclearIntent,
        disposition,
        output: None,
        usage: Usage::default(),
        cost: Some(Cost::default()),
        error: None,
        failed_calls: Vec::new(),
        notices: Vec::new(),
        timing: Timing::default(),
    }
}

/// Returns true if the open turn was stopped while its calls go on in the process that began them.
#[must_use]
pub fn is_stopped(events: &[Recorded]) -> bool {
    let open = open_turn(events);
    let of_turn = events
        .iter()
        .filter(|recorded| recorded.event.turn() == open);
    open.is_some() && stopped_words(of_turn).is_some()
}

/// Returns how often the open turn was recovered since it last progressed. A call that was started,
/// started again, or found not to have run is not progress, because it may be the cause.
#[must_use]
pub fn times_taken_up(events: &[Recorded]) -> u32 {
    let Some(open) = open_turn(events) else {
        return 0;
    };
    let is_step = |event: &Event| match event {
        // What a worker may have been lost in is no progress: it would be tried for ever.
        Event::TurnTakenUp { .. }
        | Event::TurnStopped { .. }
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

/// Returns true if an input is queued until the open turn ends.
#[must_use]
pub fn is_queued(events: &[Recorded], input: &InputId) -> bool {
    Status::from_events(events).is_queued(input)
}

/// Returns the words for the person of a turn that was stopped and whose calls go on. `None`: it was
/// not stopped, or another worker has recovered it since.
fn stopped_words<'a>(of_turn: impl DoubleEndedIterator<Item = &'a Recorded>) -> Option<&'a str> {
    of_turn
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnStopped { content, .. } => Some(Some(content.as_str())),
            Event::TurnTakenUp { .. } => Some(None),
            _ => None,
        })
        .flatten()
}

/// Returns the response of a turn: its end or, if it waits, the question. `None` while it runs. A
/// turn that was stopped is answered while its calls go on.
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
        return Some(AgentResponse {
            conversation,
            turn,
            content: end.decision.text.clone(),
            tools_used: end.tools_used,
            failed_calls: end.failed_calls,
            decision: end.decision,
            outcome: end.outcome,
            disposition: Disposition::Ran,
            output: end.output,
            usage: end.usage,
            cost: end.cost,
            error: end.error,
            notices: end.notices,
            timing,
        });
    }
    // Of the open turn. Another turn that parked has ended since, and is answered above.
    let waiting = pending(events);
    let content = if waiting.is_empty() {
        stopped_words(of_turn())?.to_owned()
    } else {
        let (asked, content) = of_turn()
            .rev()
            .find_map(|recorded| match &*recorded.event {
                Event::TurnParked {
                    pending, content, ..
                } => Some((pending.len(), content.clone())),
                _ => None,
            })?;
        // Only the calls that are left are asked about.
        if waiting.len() < asked {
            words::questions(&waiting)
        } else {
            content
        }
    };
    // The turn has no end yet, which would hold these sums.
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
            event => tools_used.extend(event.invocation()),
        }
    }
    let (outcome, kind) = match waiting.is_empty() {
        true => (OutcomeCategory::Cancelled, DecisionKind::InvokeTool),
        false => (
            OutcomeCategory::waiting_for(&waiting),
            DecisionKind::waiting_for(&waiting),
        ),
    };
    let intent = waiting
        .first()
        .map_or(UserIntent::GeneralChat, UserIntent::from);
    Some(AgentResponse {
        conversation,
        turn,
        content: content.clone(),
        tools_used,
        failed_calls: Vec::new(),
        decision: AgentDecision {
            kind,
            intent,
            text: content,
            tool_calls,
            pending: waiting,
        },
        outcome,
        disposition: Disposition::Ran,
        output: None,
        usage,
        cost,
        error: None,
        notices: Vec::new(),
        timing,
    })
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

/// Returns the history that the next turn is given: the last summary and later messages, at most
/// `messages_max` of user and assistant (see [`trim`](crate::turn::trim)).
#[must_use]
pub fn turn_history(events: &[Recorded], messages_max: Option<usize>) -> TurnHistory {
    Conversation::from_events(messages_max, events.iter().cloned()).turn_history_now()
}

/// Returns the recorded part of the conversation that a turn started from.
#[must_use]
pub fn given_history<'a>(of_turn: impl IntoIterator<Item = &'a Event>) -> Option<&'a GivenHistory> {
    of_turn.into_iter().find_map(|event| match event {
        Event::ModelReplied { past, .. } => past.as_deref(),
        _ => None,
    })
}

/// Returns the history that a turn was given, rebuilt from earlier events: those of the last turns
/// with that many messages, and the one with the summary.
#[must_use]
pub fn rebuilt_history(past: &GivenHistory, before: &[Recorded]) -> TurnHistory {
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
    TurnHistory {
        summary,
        from: past.from,
        messages,
    }
}

/// Returns the summary that replaces the oldest turns now, if there is one.
#[must_use]
pub fn last_summary(events: &[Recorded]) -> Option<&Summary> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::ConversationSummarized { summary, .. } => Some(Some(summary)),
            // A history set from outside ends the summary's validity.
            Event::HistorySet { .. } => Some(None),
            _ => None,
        })?
}
