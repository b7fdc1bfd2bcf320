//! Submits one input, runs its conversation here or elsewhere, and returns the response.

use std::sync::Arc;

use adjutant_core::conversation::{self, Conversation};
use adjutant_core::limits::MESSAGE_BYTES_MAX;
use adjutant_core::{
    AgentResponse, ConversationKey, Event, Input, InputBody, InputId, LongMessage, PendingCall,
    ToolResult, Verdict, check_history, is_bare_answer, read_message,
};
use jiff::tz::TimeZone;
use tokio::sync::Notify;
use tracing::{Instrument as _, debug_span};
use uuid::Uuid;

use crate::dispatch::Dispatcher;
use crate::event::RunEvent;
use crate::inner::Inner;
use crate::input_outcome::{InputOutcome, NewMessages};
use crate::lease::Submission;
use crate::run::{Caller, run_conversation, turn_started};
use crate::stream::{Emitter, StoppedSender};
use crate::turn_tools::check_client;
use crate::{RunContext, RunError};

/// Follows a message that could be read as an answer and must not be.
const SAID_BY_A_PROGRAM: &str = "\n(said by a program)";

/// Submits an input, runs the conversation, and reads the outcome of the input.
pub(crate) async fn respond(
    inner: &Arc<Inner>,
    dispatcher: Option<&Dispatcher>,
    context: RunContext,
    id: Option<InputId>,
    mut body: InputBody,
    caller: Caller<'_>,
    on_stopped: StoppedSender,
) -> Result<(AgentResponse, RunContext), RunError> {
    check(inner, &body)?;
    check_history(&context.history)?;
    if !context.may_answer {
        keep_from_answering(inner, &context, &mut body).await?;
        body.mark_from_others();
    }
    if let InputBody::Message {
        shown, time_zone, ..
    } = &mut body
    {
        if let Some(name) = zone_name(inner, &context).await? {
            *time_zone = Some(name);
        }
        let asked = context.pending.iter().filter(|call| !call.awaits_result());
        *shown = asked.map(|call| call.digest.clone()).collect();
    }
    let key = context.key(&inner.name);
    let input = Input {
        id: id.unwrap_or_else(|| InputId::from(Uuid::now_v7())),
        at: inner.now(),
        request_id: context.request_id.clone(),
        fingerprint: context.fingerprint.clone(),
        after: 0,
        body,
    };
    crate::faults::boundary("before the input is accepted");
    let span = debug_span!("submit", user = key.user.as_str(), conversation = %key.conversation, input = %input.id);
    let stopped = Notify::new();
    let caller = Caller {
        stopped: Some(&stopped),
        ..caller
    };
    let submitted = submit(inner, dispatcher, &context, &key, &input, caller).instrument(span);
    let mut submitted = Box::pin(submitted);
    let ended = tokio::select! {
        biased;
        outcome = &mut submitted => Some(outcome),
        () = stopped.notified() => None,
    };
    let outcome = match ended {
        Some(outcome) => {
            drop(submitted);
            outcome
        }
        None => {
            // The caller is answered now; calls that cannot be taken back go on in this task. If
            // the journal cannot be read, the caller waits for them.
            if let Ok(Some(outcome)) = InputOutcome::search(inner, &key, &input).await {
                let answered = answer(outcome, context.clone(), caller.emitter).await;
                drop(on_stopped.send(answered));
            }
            submitted.await
        }
    };
    let outcome = outcome?.ok_or_else(|| {
        RunError::CannotContinue("nothing was waiting for this answer".to_owned())
    })?;
    Ok(answer(outcome, context, caller.emitter).await)
}

/// Refuses an input that answers a pending call, and sees to it that a message of a single "yes"
/// answers none that is asked about while the message is on its way.
async fn keep_from_answering(
    inner: &Inner,
    context: &RunContext,
    body: &mut InputBody,
) -> Result<(), RunError> {
    match body {
        InputBody::Answers { answers } => {
            let is_result = |verdict| verdict == Verdict::Provided;
            match answers.iter().all(|answer| is_result(answer.verdict)) {
                true => Ok(()),
                false => Err(RunError::MayNotAnswer),
            }
        }
        InputBody::Message { text, .. } if is_bare_answer(text) => {
            let current = inner.current(&context.key(&inner.name)).await?;
            let now = inner.now();
            let waiting: Vec<PendingCall> = current
                .iter()
                .flat_map(|current| current.conversation().pending())
                .filter(|call| !call.has_expired(now))
                .cloned()
                .collect();
            if !read_message(&waiting, text).is_empty() {
                return Err(RunError::MayNotAnswer);
            }
            text.push_str(SAID_BY_A_PROGRAM);
            Ok(())
        }
        InputBody::Message { .. } | InputBody::Cancel | InputBody::Call(_) => Ok(()),
    }
}

/// Returns the name of the user's time zone: the caller's, else the stored one. `None` if neither is
/// known.
async fn zone_name(inner: &Inner, context: &RunContext) -> Result<Option<String>, RunError> {
    let name = match (&context.time_zone, &inner.user_settings) {
        (Some(zone), _) => zone.iana_name().map(str::to_owned),
        (None, Some(store)) => store.user_settings(&context.user).await?.time_zone,
        (None, None) => None,
    };
    // Unknown to a later version of the database of zones, or to this one.
    Ok(name.filter(|name| TimeZone::get(name).is_ok_and(|zone| !zone.is_unknown())))
}

/// Brings the caller's context up to date, and emits the end of the run.
async fn answer(
    outcome: InputOutcome,
    mut context: RunContext,
    emitter: &Emitter,
) -> (AgentResponse, RunContext) {
    let InputOutcome {
        mut response,
        notices,
        pending,
        messages,
    } = outcome;
    context.pending = pending;
    let (NewMessages::Replace(new) | NewMessages::Append(new)) = &messages;
    context.history_is_from_others |= conversation::hold_text_of_others(new);
    match messages {
        NewMessages::Replace(messages) => context.history = messages,
        NewMessages::Append(messages) => context.history.extend(messages),
    }
    for notice in notices {
        response.content = format!("{}\n{}", notice.text, response.content);
        emitter.emit(|| RunEvent::Noticed(notice.clone())).await;
        response.notices.push(notice);
    }
    emitter
        .emit(|| RunEvent::Finished(Box::new(response.clone())))
        .await;
    (response, context)
}

/// Accepts the input durably, and runs the conversation here or where the dispatcher sends it.
async fn submit(
    inner: &Arc<Inner>,
    dispatcher: Option<&Dispatcher>,
    context: &RunContext,
    key: &ConversationKey,
    input: &Input,
    caller: Caller<'_>,
) -> Result<Option<InputOutcome>, RunError> {
    let known = context.history.len();
    let read = |conversation: &Conversation| {
        InputOutcome::from_conversation(key, conversation, input, known)
    };
    // A history that only the caller knows cannot be dispatched: other processes do not have it.
    let dispatched = dispatcher
        .filter(|_| known == 0)
        .and_then(|it| Some((it, it.permit()?)));
    let started = turn_started(inner, input).map(|(_, event)| event);
    let outcome = match dispatched {
        Some((dispatcher, permit)) => {
            // With automatic recall, the process that runs the turn makes its first event.
            match started.filter(|_| inner.recall.is_none()) {
                Some(started) => {
                    let journal = &inner.journal;
                    journal.submit_with_turn(key, input, &started).await?;
                }
                None => inner.journal.submit(key, input).await?,
            }
            caller.emitter.emit(|| RunEvent::Accepted).await;
            let outcome = dispatcher
                .dispatch_input(inner, permit, key, input, caller, read)
                .await?;
            match outcome {
                Some(outcome) => Some(outcome),
                None => inner
                    .current(key)
                    .await?
                    .and_then(|state| read(state.conversation())),
            }
        }
        None => {
            let first = (known > 0).then(|| Event::HistorySet {
                messages: context.history.clone(),
                from_others: context.history_is_from_others,
            });
            let submission = Submission {
                input,
                turn: started.as_ref(),
                first: first.as_ref(),
                trace: context.trace.as_ref(),
            };
            run_conversation(inner, key, Some(submission), caller, read)
                .await?
                .flatten()
        }
    };
    match outcome {
        Some(outcome) => Ok(Some(outcome)),
        // It was answered before, or the conversation has gone further since.
        None => Ok(InputOutcome::search(inner, key, input).await?),
    }
}

/// Refuses an input that no turn could answer, before it is accepted.
pub(crate) fn check(inner: &Inner, body: &InputBody) -> Result<(), RunError> {
    let check_size = |bytes: usize| match bytes > MESSAGE_BYTES_MAX {
        true => Err(RunError::MessageTooLarge {
            bytes,
            max: MESSAGE_BYTES_MAX,
        }),
        false => Ok(()),
    };
    match body {
        InputBody::Message { text, limits, .. } => {
            check_size(text.len())?;
            let limits = limits.as_deref().unwrap_or(&inner.limits);
            if let (Some(max), LongMessage::Refuse) =
                (limits.message_chars_max, limits.long_message)
            {
                let chars = text.chars().count();
                if chars > max {
                    return Err(RunError::MessageTooLong { chars, max });
                }
            }
            if text.trim().is_empty() {
                return Err(RunError::EmptyMessage);
            }
        }
        InputBody::Answers { answers } => {
            let results = answers.iter().filter_map(|answer| answer.result.as_ref());
            check_size(results.map(ToolResult::bytes).sum())?;
        }
        InputBody::Cancel | InputBody::Call(_) => {}
    }
    if let Some(client) = body.client() {
        check_client(inner, client)?;
    }
    Ok(())
}
