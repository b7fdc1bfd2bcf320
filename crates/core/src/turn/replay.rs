//! Replay of a turn from its events: the requests to its model and the replies. Nothing is called
//! or executed.

use super::round::Round;
use super::{Action, CallEnd, State, ToolStyle, Turn, TurnSetup};
use crate::confirmation::{PendingCall, Verdict};
use crate::conversation::{given_history, rebuilt_history, turn_history};
use crate::decision::OutcomeCategory;
use crate::error::ModelError;
use crate::event::{Event, GateVerdict, Recorded, ResolvedBy};
use crate::id::{CallId, TurnId};
use crate::message::Message;
use crate::model::{FinishReason, GenerateResponse, GenerationConfig, SchemaSupport};
use crate::output::OutputSchema;
use crate::tool::{ToolCall, ToolResult};
use crate::tool_choice::ToolChoice;
use crate::tool_set::ToolSet;

/// The exchange of a turn with its model, as its events record it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Replay {
    /// Messages of each model call, without the agent's instruction. The last one may have no
    /// reply, if it is running, was given up, or was never made.
    pub(crate) requests: Vec<Vec<Message>>,
    /// Messages of the turn so far, the person's first.
    pub(crate) messages: Vec<Message>,
}

/// Returns the messages of a turn so far, the person's first; none if it does not begin among the
/// events.
#[must_use]
pub fn said_in(events: &[Recorded], turn: TurnId) -> Vec<Message> {
    replay(events, turn)
        .map(|replay| replay.messages)
        .unwrap_or_default()
}

/// Replays a turn through its events. Of earlier events, those that [`Past`](crate::GivenHistory) names are
/// enough if it is recorded; otherwise all are needed. Returns `None` if the turn does not begin
/// among them.
pub(crate) fn replay(events: &[Recorded], id: TurnId) -> Option<Replay> {
    let at = events.iter().position(
        |recorded| matches!(&*recorded.event, Event::TurnStarted { turn, .. } if *turn == id),
    )?;
    let (before, of_turn) = events.split_at(at);
    let of_turn: Vec<&Event> = of_turn
        .iter()
        .map(|recorded| &*recorded.event)
        .filter(|event| event.turn() == Some(id))
        .collect();
    let Some(Event::TurnStarted {
        message,
        message_chars,
        told,
        model,
        limits,
        output_schema,
        call,
        client,
        ..
    }) = of_turn.first()
    else {
        return None;
    };
    let mut turn = Turn::new(TurnSetup {
        turn: id,
        model: model.clone(),
        instruction: String::new(),
        recalled: given_history(of_turn.iter().copied()).map_or_else(
            || turn_history(before, limits.history_messages_max),
            |past| rebuilt_history(past, before),
        ),
        call: call.clone(),
        message: message.clone(),
        message_chars: *message_chars,
        told: told.clone(),
        tools: ToolSet::default(),
        choice: client
            .as_ref()
            .map(|client| client.choice.clone())
            .unwrap_or_default(),
        context: client
            .as_ref()
            .map(|client| client.context.clone())
            .unwrap_or_default(),
        control_functions: true,
        config: GenerationConfig::default(),
        limits: limits.clone(),
        style: ToolStyle::Native,
        output: output_schema
            .clone()
            .and_then(|schema| OutputSchema::new(schema).ok()),
        schema_support: SchemaSupport::Native,
    })
    .ok()?;
    let mut requests = Vec::new();
    let mut action = turn.start().ok();
    while let Some(next) = action {
        action = match next {
            Action::CallModel(request) => {
                let number = requests.len() + 1;
                let changed = turn.take_summary(of_turn.iter().copied(), number);
                requests.push(if changed { turn.request() } else { *request }.messages);
                match reply(&of_turn, number) {
                    Some((Err(error), 0)) => turn.on_unsendable(error).ok(),
                    Some((Ok(mut said), _)) => {
                        if output_schema.is_none() && was_unread(&of_turn, &said, number) {
                            said.finish = FinishReason::MalformedCall;
                        }
                        turn.on_model_result(Ok(said)).ok()
                    }
                    Some((reply, _)) => turn.on_model_result(reply).ok(),
                    None => None,
                }
            }
            Action::CallTools(calls) => {
                let ends = calls
                    .iter()
                    .map(|call| Some((call.id.clone(), first_end(&of_turn, call)?)));
                ends.collect::<Option<Vec<_>>>()
                    .and_then(|ends| turn.on_call_ends(ends).ok())
            }
            Action::AskUser { pending, .. } => {
                if let Some(choice) = choice_after(&of_turn, &pending) {
                    turn.choose(choice);
                }
                let ends = pending
                    .iter()
                    .map(|shown| Some((shown.call_id.clone(), last_end(&of_turn, shown)?)));
                ends.collect::<Option<Vec<_>>>()
                    .and_then(|ends| turn.on_call_ends(ends).ok())
            }
            Action::Finish(end) => {
                return Some(Replay {
                    requests,
                    messages: end.messages,
                });
            }
        };
    }
    let so_far = match &turn.state {
        State::AwaitingTools(round) | State::AwaitingUser(round) => results_so_far(&of_turn, round),
        State::New | State::AwaitingModel | State::Finished => Vec::new(),
    };
    Some(Replay {
        requests,
        messages: turn.messages.into_iter().chain(so_far).collect(),
    })
}

/// Returns the reply to a model call, if there is one, and the number of attempts.
fn reply(events: &[&Event], wanted: usize) -> Option<(Result<GenerateResponse, ModelError>, u32)> {
    events.iter().find_map(|event| match event {
        Event::ModelReplied {
            number,
            reply,
            attempts,
            ..
        } if usize::try_from(*number) == Ok(wanted) => Some((reply.clone(), *attempts)),
        _ => None,
    })
}

/// Returns true if a text was taken for an unparsable call. The tools on offer are not recorded;
/// that the model was asked again, or the turn failed, is.
fn was_unread(events: &[&Event], said: &GenerateResponse, number: usize) -> bool {
    let answers = said.finish == FinishReason::Stop || said.finish == FinishReason::ToolCalls;
    let in_words = answers && said.tool_calls().next().is_none() && !said.text().trim().is_empty();
    let went_on = |event: &&Event| match event {
        Event::ModelReplied { number: other, .. } => {
            usize::try_from(*other).is_ok_and(|other| other > number)
        }
        Event::TurnFinished { end, .. } => end.outcome == OutcomeCategory::LlmFailure,
        _ => false,
    };
    in_words && events.iter().any(went_on)
}

/// Returns the first end of a call of the model; waiting counts as an end.
fn first_end(events: &[&Event], call: &ToolCall) -> Option<CallEnd> {
    let verdict = events.iter().find_map(|event| match event {
        Event::CallChecked {
            call: checked,
            verdict,
            ..
        } if *checked == call.id => Some(verdict),
        _ => None,
    })?;
    match verdict {
        GateVerdict::Confirm { pending } | GateVerdict::Await { pending } => {
            Some(CallEnd::Waiting(pending.clone()))
        }
        GateVerdict::Ask { question } => Some(CallEnd::Asked {
            question: question.clone(),
        }),
        GateVerdict::Refuse { refusal, message } => Some(CallEnd::Refused {
            refusal: *refusal,
            message: message.clone(),
        }),
        GateVerdict::Run { .. } => {
            let doubt = events.iter().find_map(|event| match event {
                Event::CallInDoubt {
                    call: doubted,
                    doubt,
                    ..
                } if *doubted == call.id => doubt.clone(),
                _ => None,
            });
            doubt
                .map(CallEnd::Waiting)
                .or_else(|| executed(events, &call.id))
        }
    }
}

/// Returns the end of a call that had waited.
fn last_end(events: &[&Event], shown: &PendingCall) -> Option<CallEnd> {
    if shown.doubt.is_some() {
        return executed(events, &shown.call_id);
    }
    let verdict = events.iter().find_map(|event| match event {
        Event::CallAnswered { call, verdict, .. } if *call == shown.call_id => Some(*verdict),
        _ => None,
    })?;
    let arguments = || shown.arguments.clone();
    match verdict {
        Some(Verdict::Approved | Verdict::Provided) => executed(events, &shown.call_id),
        None if shown.awaits_result() => Some(CallEnd::NoResult {
            arguments: arguments(),
        }),
        Some(_) => Some(CallEnd::Denied {
            arguments: arguments(),
        }),
        None => Some(CallEnd::Expired {
            arguments: arguments(),
        }),
    }
}

/// Returns the tool choice that came with the last result of these calls, or `None` if no result
/// came.
fn choice_after(events: &[&Event], pending: &[PendingCall]) -> Option<ToolChoice> {
    events.iter().rev().find_map(|event| match event {
        Event::CallAnswered {
            call,
            verdict: Some(Verdict::Provided),
            choice,
            ..
        } if pending.iter().any(|shown| shown.call_id == *call) => Some(choice.clone()),
        _ => None,
    })
}

/// Returns the end of a call that was started.
fn executed(events: &[&Event], wanted: &CallId) -> Option<CallEnd> {
    let settled = events.iter().rev().find_map(|event| match event {
        Event::DoubtResolved {
            call, by, verdict, ..
        } if call == wanted => Some((*by, *verdict)),
        _ => None,
    });
    events.iter().find_map(|event| match event {
        Event::CallFinished {
            call,
            arguments,
            result,
            summary,
            ..
        } if call == wanted => {
            let arguments = arguments.clone();
            Some(match settled {
                Some((ResolvedBy::Person | ResolvedBy::Expiry, Verdict::Leave)) => {
                    CallEnd::InDoubt { arguments }
                }
                Some((ResolvedBy::Person, Verdict::Done)) => CallEnd::TakenAsDone { arguments },
                Some(_) | None => CallEnd::Executed {
                    arguments,
                    result: result.clone(),
                    summary: summary.clone(),
                },
            })
        }
        // An older journal, in which nobody was asked: the doubt stays open.
        Event::CallInDoubt {
            call,
            arguments,
            doubt: None,
            ..
        } if call == wanted => Some(CallEnd::InDoubt {
            arguments: arguments.clone(),
        }),
        _ => None,
    })
}

/// Returns the results of an unfinished round.
fn results_so_far(events: &[&Event], round: &Round) -> Vec<Message> {
    let result = |wanted: &CallId| {
        events.iter().find_map(|event| match event {
            Event::CallFinished { call, result, .. } if call == wanted => Some(result.clone()),
            Event::CallChecked {
                call,
                verdict: GateVerdict::Refuse { message, .. },
                ..
            } if call == wanted => Some(ToolResult::failed(message.clone())),
            _ => None,
        })
    };
    let told = round.calls.iter().filter_map(|(call, _)| {
        Message::tool(call.id.clone(), call.name.clone(), result(&call.id)?).ok()
    });
    told.collect()
}
