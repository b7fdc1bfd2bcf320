//! Replay of a turn from its events: the requests to its model and the replies. Nothing is called
//! or executed.

use super::round::Round;
use super::{Action, CallEnd, State, ToolStyle, Turn, TurnSetup};
use crate::confirmation::{PendingCall, Verdict};
use crate::conversation::{CurrentTurn, given_history, rebuilt_history, turn_history};
use crate::decision::OutcomeCategory;
use crate::error::ModelError;
use crate::event::{Event, GateVerdict, Recorded};
use crate::id::{CallId, TurnId};
use crate::message::Message;
use crate::model::{FinishReason, GenerateResponse, GenerationConfig, SchemaSupport};
use crate::output::OutputSchema;
use crate::tool::ToolResult;
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

/// Replays a turn through its events. Of earlier events, those that [`GivenHistory`](crate::GivenHistory) names
/// are enough if it is recorded; otherwise all are needed. Returns `None` if the turn does not begin
/// among them.
pub(crate) fn replay(events: &[Recorded], id: TurnId) -> Option<Replay> {
    let at = events.iter().position(
        |recorded| matches!(&*recorded.event, Event::TurnStarted { turn, .. } if *turn == id),
    )?;
    let (before, rest) = events.split_at(at);
    let mut recorded = CurrentTurn::new(id);
    let of_turn = rest.iter().filter(|one| one.event.turn() == Some(id));
    of_turn.cloned().for_each(|one| recorded.push(one));
    let Some(Event::TurnStarted {
        message,
        message_chars,
        sent_at,
        recalled_texts,
        model,
        limits,
        output_schema,
        call,
        client,
        ..
    }) = recorded.started()
    else {
        return None;
    };
    let events = || recorded.events().iter().map(|one| &*one.event);
    let client = client.as_deref();
    let mut turn = Turn::new(TurnSetup {
        turn: id,
        model: model.clone(),
        // Instruction, tools and settings are not recorded. What follows depends on the recorded
        // replies alone.
        instruction: String::new(),
        recalled: given_history(events()).map_or_else(
            || turn_history(before, limits.history_messages_max),
            |past| rebuilt_history(past, before),
        ),
        call: call.clone(),
        message: message.clone(),
        message_chars: *message_chars,
        sent_at: sent_at.clone(),
        recalled_texts: recalled_texts.clone(),
        tools: ToolSet::default(),
        choice: client.map_or_else(ToolChoice::default, |client| client.choice.clone()),
        context: client.map_or_else(String::new, |client| client.context.clone()),
        control_functions: true,
        reports_failed_calls: true,
        claims_change: None,
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
                // A summary was made before this request was sent, and the action holds the request
                // as it was before the summary.
                let changed = turn.take_summary(recorded.summaries(), number);
                requests.push(if changed { turn.request() } else { *request }.messages);
                match reply(&recorded, number) {
                    // Without a request that was sent, the failure is that none could be made.
                    Some((Err(error), 0)) => turn.on_unsendable(error).ok(),
                    Some((Ok(mut response), _)) => {
                        if output_schema.is_none() && was_unread(events(), &response, number) {
                            response.finish = FinishReason::MalformedCall;
                        }
                        turn.on_model_result(Ok(response)).ok()
                    }
                    Some((reply, _)) => turn.on_model_result(reply).ok(),
                    None => None,
                }
            }
            Action::CallTools(calls) => {
                let ends = calls
                    .iter()
                    .map(|call| Some((call.id.clone(), first_end(&recorded, &call.id)?)));
                ends.collect::<Option<Vec<_>>>()
                    .and_then(|ends| turn.on_call_ends(ends).ok())
            }
            Action::AskUser { pending, .. } => {
                // Before the ends: the next request is made with it.
                if let Some(choice) = recorded.choice_after(&pending) {
                    turn.choose(choice.clone());
                }
                let ends = pending
                    .iter()
                    .map(|shown| Some((shown.call_id.clone(), last_end(&recorded, shown)?)));
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
        State::AwaitingTools(round) | State::AwaitingUser(round) => {
            results_so_far(&recorded, round)
        }
        State::New | State::AwaitingModel | State::Finished => Vec::new(),
    };
    Some(Replay {
        requests,
        messages: turn.messages.into_iter().chain(so_far).collect(),
    })
}

/// Returns the reply to a model call, if there is one, and the number of attempts.
fn reply(
    recorded: &CurrentTurn,
    number: usize,
) -> Option<(Result<GenerateResponse, ModelError>, u32)> {
    match recorded.reply(u32::try_from(number).ok()?)? {
        Event::ModelReplied {
            reply, attempts, ..
        } => Some((reply.clone(), *attempts)),
        _ => None,
    }
}

/// Returns true if a text was taken for an unparsable call. The tools on offer are not recorded;
/// that the model was asked again, or the turn failed, is.
fn was_unread<'a>(
    mut events: impl Iterator<Item = &'a Event>,
    response: &GenerateResponse,
    number: usize,
) -> bool {
    let answers =
        response.finish == FinishReason::Stop || response.finish == FinishReason::ToolCalls;
    let is_text =
        answers && response.tool_calls().next().is_none() && !response.text().trim().is_empty();
    is_text
        && events.any(|event| match event {
            Event::ModelReplied { number: other, .. } => {
                usize::try_from(*other).is_ok_and(|other| other > number)
            }
            Event::TurnFinished { end, .. } => end.outcome == OutcomeCategory::LlmFailure,
            _ => false,
        })
}

/// Returns the first end of a call of the model; waiting counts as an end.
fn first_end(recorded: &CurrentTurn, call: &CallId) -> Option<CallEnd> {
    match recorded.verdict(call)?.clone() {
        GateVerdict::Confirm { pending } | GateVerdict::Await { pending } => {
            Some(CallEnd::Waiting(pending))
        }
        GateVerdict::Ask { question } => Some(CallEnd::Asked { question }),
        GateVerdict::Refuse { refusal, message } => Some(CallEnd::Refused { refusal, message }),
        // A call that was in doubt waited for a person first, whatever it ended with.
        GateVerdict::Run { .. } => match recorded.doubt_after(call, 0) {
            Some(doubt) => Some(CallEnd::Waiting(doubt.clone())),
            None => recorded.end(call),
        },
    }
}

/// Returns the end of a call that had waited.
fn last_end(recorded: &CurrentTurn, shown: &PendingCall) -> Option<CallEnd> {
    if shown.doubt.is_some() {
        return recorded.end(&shown.call_id);
    }
    let arguments = shown.arguments.clone();
    match recorded.answer(&shown.call_id)? {
        Some((Verdict::Approved | Verdict::Provided, _)) => recorded.end(&shown.call_id),
        Some(_) => Some(CallEnd::Denied { arguments }),
        None if shown.awaits_result() => Some(CallEnd::NoResult { arguments }),
        None => Some(CallEnd::Expired { arguments }),
    }
}

/// Returns the results of an unfinished round.
fn results_so_far(recorded: &CurrentTurn, round: &Round) -> Vec<Message> {
    let result = |call: &CallId| match recorded.verdict(call) {
        Some(GateVerdict::Refuse { message, .. }) => Some(ToolResult::failed(message.clone())),
        Some(GateVerdict::Ask { question }) => Some(ToolResult::asked(question)),
        _ => recorded.result(call).cloned(),
    };
    let results = round.calls.iter().filter_map(|(call, _)| {
        Message::tool(call.id.clone(), call.name.clone(), result(&call.id)?).ok()
    });
    results.collect()
}
